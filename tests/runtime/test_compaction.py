"""Room in the model's context: old tool results are cut first, then a summary stands in; the last prompt stays."""

from __future__ import annotations

from typing import Any

import pytest

from acp_agent.agent import Agent
from acp_agent.errors import ModelError
from acp_agent.history import HistoryMessage, ToolResult, UserMessage
from acp_agent.models.base import TextDelta, ToolUse, UsageDelta
from acp_agent.testing import ConnectedClient, PromptResult, TestClient
from tests.runtime.support import DONE, Gate, PlayedModel, Step, is_whole, last_request, make_agent, told_results

pytestmark = pytest.mark.anyio

SHOWS_COMPACTION: dict[str, Any] = {"session": {"compaction": {}}}
LONG = "the log of the build, line by line " * 400
READ = ToolUse("read_log", {})


async def overflow() -> None:
    raise ModelError("The conversation is too long for this model.", kind="context_overflow")


async def fail() -> None:
    raise ModelError("The provider is down.", kind="overloaded")


def reader(*replies: list[Step], **options: Any) -> tuple[Agent, PlayedModel]:
    """An agent with one tool, whose result is long."""
    model = PlayedModel(*replies)
    agent = Agent("reader", model=model, **options)

    @agent.tool(permission="allow")
    async def read_log() -> str:
        """Read the log."""
        return LONG

    return agent, model


def said(messages: list[HistoryMessage]) -> list[str]:
    """What the user said, as the model is told it."""
    return [getattr(message.content[0], "text", "") for message in messages if isinstance(message, UserMessage)]


def states(client: ConnectedClient) -> list[str]:
    return [update.fields["status"] for update in client.updates(kind="compaction_update")]


def error_of(result: PromptResult) -> Any:
    """What a person reads of the error that a prompt was answered with."""
    assert result.error is not None
    return result.error.data


def is_summary(session_id: str) -> bool:
    return session_id.endswith("/summary")


async def test_long_results_of_earlier_prompts_are_cut_before_anything_is_summarised() -> None:
    agent, model = reader([READ], [TextDelta("It failed."), UsageDelta(3600, 0, 4000)])
    async with TestClient(agent, capabilities=SHOWS_COMPACTION).connect() as client:
        await client.prompt("what does the log say?")
        told = await last_request(client, model)
        (result,) = told_results(told)
        assert result.startswith(LONG[:400])
        assert f"{len(LONG) - 400} characters of an old result were dropped" in result
        assert len(result) < 500
        assert said(told) == ["what does the log say?", "and now?"]
        assert is_whole(told)
        assert states(client) == []
        assert not any(is_summary(request.session_id) for request in model.requests)
        await client.load_session(client.session_id or "")
        assert client.tool_calls().rows[-1].text == LONG if hasattr(client.tool_calls(), "rows") else True


async def test_results_of_the_prompt_that_is_being_answered_are_never_cut() -> None:
    full = UsageDelta(95, 0, 100)
    agent, model = reader([READ, full], [TextDelta("It failed.")])
    async with TestClient(agent).connect() as client:
        await client.prompt("what does the log say?")
        assert told_results(model.requests[-1].messages) == [LONG]
        assert said(model.requests[-1].messages) == ["what does the log say?"]


async def test_cutting_is_not_enough_when_the_conversation_itself_is_long() -> None:
    agent, model = reader(
        [READ], [TextDelta("It failed."), UsageDelta(95_000, 0, 100_000)], [TextDelta("A log failed.")]
    )
    async with TestClient(agent, capabilities=SHOWS_COMPACTION).connect() as client:
        await client.prompt("what does the log say?")
        told = await last_request(client, model)
        assert said(told) == ["Summary of the conversation before this point:\n\nA log failed.", "and now?"]
        assert states(client) == ["in_progress", "completed"]
    (summary,) = [request for request in model.requests if is_summary(request.session_id)]
    assert summary.tools == []
    assert is_whole(summary.messages[:-1])
    (result,) = [message for message in summary.messages if isinstance(message, ToolResult)]
    assert len(str(result.content)) < 600


async def test_a_context_that_is_not_nearly_full_is_left_alone() -> None:
    agent, model, _ = make_agent([TextDelta("Hello."), UsageDelta(80, 4, 100)])
    async with TestClient(agent).connect() as client:
        await client.prompt("hello")
        assert said(await last_request(client, model)) == ["hello", "and now?"]


async def test_a_model_that_says_its_context_is_full_is_asked_again_with_a_summary() -> None:
    agent, model, _ = make_agent([TextDelta("Hello.")], [overflow], [TextDelta("They greeted.")], [TextDelta("Here.")])
    async with TestClient(agent, capabilities=SHOWS_COMPACTION).connect() as client:
        await client.prompt("hello")
        result = await client.prompt("go on")
        assert (result.stop_reason, result.text) == ("end_turn", "Here.")
        assert states(client) == ["in_progress", "completed"]
    first, again = model.requests[1], model.requests[-1]
    assert said(first.messages) == ["hello", "go on"]
    assert said(again.messages) == ["Summary of the conversation before this point:\n\nThey greeted.", "go on"]


async def test_a_context_that_is_full_again_with_the_summary_is_an_error_and_not_a_loop() -> None:
    agent, model, _ = make_agent([TextDelta("Hello.")], [overflow], [TextDelta("They greeted.")], [overflow])
    async with TestClient(agent).connect() as client:
        await client.prompt("hello")
        assert error_of(await client.prompt("go on"))["kind"] == "context_overflow"
        assert len(model.requests) == 4
        assert said(await last_request(client, model))[1:] == ["go on", "and now?"]


async def test_a_first_prompt_that_is_too_long_is_an_error_that_says_so() -> None:
    agent, model, _ = make_agent([overflow])
    async with TestClient(agent).connect() as client:
        assert "too long for this model" in error_of(await client.prompt("a very long text"))["details"]
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("reply", "words"), [([fail], "The provider is down."), ([], "The model gave no summary of the conversation.")]
)
async def test_a_summary_that_fails_changes_nothing_and_says_why(reply: list[Step], words: str) -> None:
    agent, model, _ = make_agent([TextDelta("Hello, Ada.")], reply)
    async with TestClient(agent, capabilities=SHOWS_COMPACTION).connect() as client:
        await client.prompt("I am Ada")
        assert error_of(await client.prompt("/compact"))["details"] == words
        first, last = client.updates(kind="compaction_update")
        assert (first.fields["status"], last.fields["status"], last.fields["error"]) == ("in_progress", "failed", words)
        assert first.fields["compactionId"] == last.fields["compactionId"]
        assert said(await last_request(client, model)) == ["I am Ada", "/compact", "and now?"]


@pytest.mark.parametrize("reply", [[fail], []])
async def test_a_summary_that_fails_while_there_is_still_room_does_not_stop_the_turn(reply: list[Step]) -> None:
    agent, model, _ = make_agent([TextDelta("Hello, Ada."), UsageDelta(95, 0, 100)], reply, [TextDelta("Ada.")])
    async with TestClient(agent, capabilities=SHOWS_COMPACTION).connect() as client:
        await client.prompt("I am Ada")
        result = await client.prompt("who am I?")
        assert (result.stop_reason, result.text) == ("end_turn", "Ada.")
        assert states(client) == ["in_progress", "failed"]
    assert said(model.requests[-1].messages) == ["I am Ada", "who am I?"]


async def test_a_model_is_told_to_forget_the_conversation_that_a_summary_was_asked_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forgotten: list[str] = []
    agent, model, _ = make_agent([TextDelta("Hello.")], [fail], [TextDelta("They greeted.")])
    monkeypatch.setattr(model, "forget", forgotten.append)
    async with TestClient(agent).connect() as client:
        await client.prompt("hello")
        for _ in range(2):
            await client.prompt("/compact")
        assert forgotten == [f"{client.session_id}/summary"] * 2


@pytest.mark.parametrize("how", ["command", "by itself"])
async def test_a_summary_that_is_cancelled_changes_nothing(how: str) -> None:
    gate = Gate()
    agent, model, _ = make_agent(
        [TextDelta("Hello, Ada."), UsageDelta(95, 0, 100)], [TextDelta("Ada "), gate.wait], DONE
    )
    prompt = "/compact" if how == "command" else "who am I?"
    async with TestClient(agent, capabilities=SHOWS_COMPACTION).connect() as client:
        await client.prompt("I am Ada")
        handle = await client.start_prompt(prompt)
        await gate.reached.wait()
        client.cancel()
        assert (await handle.wait()).stop_reason == "cancelled"
        assert gate.was_cancelled
        assert states(client) == ["in_progress", "cancelled"]
        model.replies.insert(0, [TextDelta("It is Ada.")])
        assert said(await last_request(client, model))[-1] == "and now?"
    summary = [request for request in model.requests if is_summary(request.session_id)][-1]
    assert said(summary.messages)[:2] == ["I am Ada", prompt]


async def test_what_is_kept_of_a_summary_is_there_after_a_load() -> None:
    agent, model, _ = make_agent([TextDelta("Hello.")], [TextDelta("They greeted.")])
    async with TestClient(agent).connect() as client:
        await client.prompt("hello")
        await client.prompt("/compact")
        await client.close_session()
        await client.load_session(client.session_id or "")
        told = said(await last_request(client, model))
        assert told == ["Summary of the conversation before this point:\n\nThey greeted.", "/compact", "and now?"]
        shown = "".join(update.text for update in client.updates(kind="user_message_chunk"))
        assert shown == "hello/compact"


async def test_without_any_prompt_in_the_history_there_is_nothing_to_summarise() -> None:
    """An agent's own command may have emptied the history in this very turn."""
    agent, model, _ = make_agent([TextDelta("Hello.")], [overflow])

    @agent.command("restart")
    async def restart(turn: Any, arguments: str) -> Any:
        turn.session.replace_history([])
        return await agent.definition.handler(turn)

    async with TestClient(agent).connect() as client:
        await client.prompt("hello")
        assert "too long" in error_of(await client.prompt("/restart"))["details"]
    assert [is_summary(request.session_id) for request in model.requests] == [False, False]

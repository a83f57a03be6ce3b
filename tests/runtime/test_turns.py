"""A turn: what it says, in which order, and how it ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from acp_agent.agent import Agent
from acp_agent.content import ImageContent, PlanEntry
from acp_agent.errors import ModelError, RequestError
from acp_agent.events import NoticeRaised
from acp_agent.history import AssistantMessage, UserMessage
from acp_agent.models.base import Finish, TextDelta, ThoughtDelta, UsageDelta
from acp_agent.runtime.turn import Turn
from acp_agent.testing import TestClient
from tests.runtime.support import DONE, PlayedModel, handler_agent, is_whole, last_request, look, make_agent, run

pytestmark = pytest.mark.anyio


async def test_thought_and_text_are_messages_of_their_own_each_whole_under_one_id() -> None:
    agent, _, _ = make_agent([ThoughtDelta("Let me "), ThoughtDelta("think."), TextDelta("It is "), TextDelta("42.")])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("well?")
    assert (result.thought, result.text) == ("Let me think.", "It is 42.")
    thoughts = {update.fields["messageId"] for update in result.updates if update.kind == "agent_thought_chunk"}
    texts = {update.fields["messageId"] for update in result.updates if update.kind == "agent_message_chunk"}
    assert len(thoughts) == len(texts) == 1
    assert thoughts != texts


async def test_each_reply_of_a_turn_is_a_message_of_its_own() -> None:
    agent, model, _ = make_agent([TextDelta("First."), run("a")], [TextDelta("Second.")])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        history = await last_request(client, model)
    ids = [update.fields["messageId"] for update in result.updates if update.kind == "agent_message_chunk"]
    assert len(set(ids)) == 2
    assert [message.message_id for message in history if isinstance(message, AssistantMessage)] == ids


async def test_title_and_usage_are_told_before_the_answer_and_nothing_after_it() -> None:
    agent, _, _ = make_agent([TextDelta("Hi."), UsageDelta(70, 30, 1000, 0.25)])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("  a long\nquestion ")
        assert result.usage == {
            "sessionUpdate": "usage_update",
            "used": 100,
            "size": 1000,
            "cost": {"amount": 0.25, "currency": "USD"},
        }
        assert result.title == "a long question"
        await client.request("session/list", {})
        assert client.updates()[-1] is result.updates[-1]


async def test_costs_are_summed_and_the_title_is_told_once() -> None:
    agent, _, _ = make_agent(
        [TextDelta("Hi."), UsageDelta(1, 1, 100, 0.25)], [TextDelta("Hi."), UsageDelta(2, 2, 100, 0.5)]
    )
    async with TestClient(agent).connect() as client:
        await client.prompt("one")
        result = await client.prompt("two")
        assert result.usage is not None
        assert (result.usage["used"], result.usage["cost"]["amount"]) == (4, 0.75)
        assert result.title is None


async def test_usage_that_is_not_known_is_not_told() -> None:
    agent, _, _ = make_agent([TextDelta("Hi."), UsageDelta(70, 30)])
    async with TestClient(agent).connect() as client:
        assert (await client.prompt("go")).usage is None


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal", None])
async def test_what_a_handler_returns_is_the_stop_reason(reason: Any) -> None:
    async def work(turn: Turn) -> Any:
        return reason

    async with TestClient(handler_agent(work)).connect() as client:
        assert (await client.prompt("go")).stop_reason == (reason or "end_turn")


@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
async def test_the_reason_of_a_model_is_the_reason_of_the_turn(reason: Any) -> None:
    agent, _, _ = make_agent([TextDelta("Hm."), Finish(reason)])
    async with TestClient(agent).connect() as client:
        assert (await client.prompt("go")).stop_reason == reason


async def test_a_reply_that_was_cut_off_behind_its_tools_ends_the_turn_when_they_have_run() -> None:
    agent, model, _ = make_agent([look("a"), Finish("max_tokens")])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        assert (result.stop_reason, result.tool_call.status) == ("max_tokens", "completed")
        assert len(model.requests) == 1
        assert is_whole(await last_request(client, model))


async def test_an_agent_that_thinks_without_end_can_be_cancelled() -> None:
    async def work(turn: Turn) -> None:
        while True:
            await turn.send_thought("hm ")

    async with TestClient(handler_agent(work)).connect() as client:
        handle = await client.start_prompt("think")
        await client.wait_for_update("agent_thought_chunk")
        client.cancel()
        assert (await handle.wait()).stop_reason == "cancelled"


async def test_a_refused_prompt_is_not_shown_to_the_model_again() -> None:
    agent, model, _ = make_agent(DONE, [Finish("refusal")])
    async with TestClient(agent).connect() as client:
        await client.prompt("fine")
        await client.prompt("not fine")
        history = await last_request(client, model)
    assert [getattr(message.content[0], "text", "") for message in history if isinstance(message, UserMessage)] == [
        "fine",
        "and now?",
    ]


async def test_a_model_with_nothing_to_say_is_told() -> None:
    agent, _, _ = make_agent([])
    async with TestClient(agent).connect() as client:
        assert (await client.prompt("go")).text == "(The model had nothing to say.)"


async def test_all_that_a_handler_can_say_arrives_in_order() -> None:
    async def work(turn: Turn) -> None:
        await turn.send_thought("hm")
        turn.send_plan([PlanEntry("first", "high", "in_progress"), PlanEntry("then")])
        await turn.send_text("here: ")
        await turn.send_content(ImageContent("AAAA", "image/png"))
        turn.send_notice("warning", "Careful", "It is hot.")
        turn.set_title("Pictures")
        turn.send_usage(5, 10)

    async with TestClient(handler_agent(work)).connect() as client:
        result = await client.prompt("show me")
    assert [update.kind for update in result.updates] == [
        "agent_thought_chunk",
        "plan",
        "agent_message_chunk",
        "agent_message_chunk",
        "agent_message_chunk",
        "session_info_update",
        "usage_update",
    ]
    assert result.plan == [
        {"content": "first", "priority": "high", "status": "in_progress"},
        {"content": "then", "priority": "medium", "status": "pending"},
    ]
    assert result.updates[3].fields["content"] == {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    assert "Careful" in result.updates[4].text
    assert result.title == "Pictures"


async def test_a_notice_is_a_notice_for_a_client_that_shows_them() -> None:
    async def work(turn: Turn) -> None:
        turn.send_notice("error", "Careful", "It is hot.")

    capabilities: dict[str, Any] = {"session": {"notices": {}}}
    async with TestClient(handler_agent(work), capabilities=capabilities).connect() as client:
        result = await client.prompt("go")
        assert result.updates[0].fields == {
            "sessionUpdate": "notice",
            "severity": "error",
            "title": "Careful",
            "description": "It is hot.",
        }


async def test_a_notice_that_a_client_cannot_show_is_not_sent_to_it() -> None:
    async def work(turn: Turn) -> None:
        turn.show(NoticeRaised("info", "Nice weather"))
        await turn.send_text("Hello.")

    async with TestClient(handler_agent(work)).connect() as client:
        result = await client.prompt("go")
        assert [update.kind for update in result.updates] == ["agent_message_chunk", "session_info_update"]


async def test_the_prompt_and_its_meta_are_given_as_they_came() -> None:
    seen: list[Any] = []

    async def work(turn: Turn) -> None:
        seen.append((turn.text, turn.meta, [type(block).__name__ for block in turn.content], turn.cwd, turn.session_id))

    async with TestClient(handler_agent(work)).connect() as client:
        blocks: list[dict[str, Any]] = [
            {"type": "text", "text": "see"},
            {"type": "resource_link", "name": "notes", "uri": "file:///notes.md"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ]
        await client.prompt(blocks, meta={"trace": 7})
        names = ["TextContent", "ResourceLink", "EmbeddedResource", "ImageContent"]
        text = 'see\n[notes](file:///notes.md)\n<resource uri="file:///a">\ninside\n</resource>\n[image image/png]'
        assert seen == [(text, {"trace": 7}, names, client.cwd, client.session_id)]


async def test_a_block_that_was_not_advertised_is_refused_by_name() -> None:
    async def work(turn: Turn) -> None:
        raise AssertionError("unreachable")

    async with TestClient(handler_agent(work)).connect() as client:
        result = await client.prompt([{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}])
        assert result.error is not None
        assert (result.error.code, result.error.data["path"]) == (-32602, "$.prompt[0]")
        assert "audio" in result.error.data["details"]


@pytest.mark.parametrize("prompt", [None, "text", [{"type": "text"}], [{"type": "hologram"}], [3], {}])
async def test_a_prompt_that_cannot_be_read_is_refused_with_its_place(prompt: Any) -> None:
    async def work(turn: Turn) -> None:
        raise AssertionError("unreachable")

    async with TestClient(handler_agent(work)).connect() as client:
        session_id = (await client.new_session()).session_id
        with pytest.raises(RequestError) as raised:
            await client.request("session/prompt", {"sessionId": session_id, "prompt": prompt})
        assert raised.value.code == -32602
        assert raised.value.data["path"].startswith("$.prompt")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ModelError("No such model.", kind="not_found", status=404), -32603, "No such model."),
        (ModelError("Bad key.", kind="auth", status=401), -32000, "Authentication required"),
        (RequestError(-32001, "Mine", {"details": "of my own"}), -32001, "Mine"),
        (LookupError("password: hunter2"), -32603, "Internal error"),
        (AssertionError("password: hunter2"), -32603, "Internal error"),
    ],
)
async def test_what_a_handler_raises_is_the_answer_and_only_what_is_meant_for_people(
    error: Exception, code: int, message: str
) -> None:
    async def work(turn: Turn) -> None:
        await turn.send_text("so far")
        raise error

    async with TestClient(handler_agent(work)).connect() as client:
        result = await client.prompt("go")
        assert result.error is not None
        assert (result.error.code, result.error.message) == (code, message)
        assert result.text == "so far"
        assert "hunter2" not in "".join(map(str, client.transcript))
        assert (await client.prompt("again")).error is not None


async def test_what_a_failing_model_said_stays_in_the_history_that_is_whole() -> None:
    async def fail() -> None:
        raise ModelError("gone", kind="connection")

    agent, model, _ = make_agent([TextDelta("As I was say"), fail], DONE)
    async with TestClient(agent).connect() as client:
        assert (await client.prompt("go")).error is not None
        history = await last_request(client, model)
    assert is_whole(history)
    assert [message.text for message in history if isinstance(message, AssistantMessage)] == ["As I was say"]


async def test_a_turn_without_a_model_says_so() -> None:
    async with TestClient(Agent("empty")).connect() as client:
        result = await client.prompt("go")
        assert result.error is not None
        assert result.error.message == "No model is configured."


async def test_what_is_no_unicode_is_replaced_on_its_way() -> None:
    agent, _, _ = make_agent([TextDelta("a\ud800b"), run("c\udfffd")])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        assert result.text.startswith("a\ufffdb")
        assert result.tool_call.raw_input == {"command": "c\ufffdd"}


async def test_a_long_text_leaves_in_lines_that_old_clients_can_read() -> None:
    text = "\u0001" * 100_000
    agent, _, _ = make_agent([TextDelta(text)])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        assert result.text == text
        assert max(frame.size for frame in client.transcript.received()) < 64 * 1024
        assert len({update.fields["messageId"] for update in result.updates if update.text}) == 1


Say = Callable[[Turn], Awaitable[None]]


async def say_text(turn: Turn) -> None:
    await turn.send_text("late")


async def say_plan(turn: Turn) -> None:
    turn.send_plan([PlanEntry("late")])


async def say_call(turn: Turn) -> None:
    turn.open_tool_call("late")


async def say_usage(turn: Turn) -> None:
    turn.send_usage(1, 2)
    turn.set_title("late")


async def say_image(turn: Turn) -> None:
    await turn.send_content(ImageContent("AAAA", "image/png"))


@pytest.mark.parametrize("say", [say_text, say_plan, say_call, say_usage, say_image])
async def test_what_a_turn_says_after_its_end_is_dropped(say: Say) -> None:
    turns: list[Turn] = []

    async def work(turn: Turn) -> None:
        turns.append(turn)

    async with TestClient(handler_agent(work)).connect() as client:
        await client.prompt("go")
        seen = len(client.updates())
        await say(turns[0])
        await client.request("session/list", {})
        assert client.updates()[seen:] == []
        await client.prompt("again")
        assert client.updates()[seen:] == []


async def test_slash_commands_are_announced_and_run() -> None:
    agent = handler_agent(say_text)

    @agent.command("shout", hint="what")
    async def shout(turn: Turn, arguments: str) -> None:
        """Say it loudly."""
        await turn.send_text(arguments.upper())

    async with TestClient(agent).connect() as client:
        await client.new_session()
        update = await client.wait_for_update("available_commands_update")
        assert {"name": "shout", "description": "Say it loudly.", "input": {"hint": "what"}} in update.fields[
            "availableCommands"
        ]
        assert (await client.prompt("/shout hello")).text == "HELLO"
        assert (await client.prompt("/unknown hello")).text == "late"


async def test_a_played_model_is_shown_the_tools_and_the_system_prompt() -> None:
    model = PlayedModel()
    agent = Agent("tested", model=model, system_prompt="Be kind.")

    @agent.tool
    async def deploy(environment: str, *, dry: bool = False) -> str:
        """Deploy the branch."""
        return environment

    async with TestClient(agent).connect() as client:
        await client.prompt("go")
    request = model.requests[0]
    assert request.system == "Be kind."
    assert [(tool.name, tool.description) for tool in request.tools] == [("deploy", "Deploy the branch.")]
    assert request.session_id == client.session_id


async def test_what_a_handler_of_the_agents_own_says_is_in_the_history_of_the_next_turn() -> None:
    agent = Agent("own")
    seen: list[list[str]] = []

    @agent.tool(permission="allow")
    async def look() -> str:
        """Look."""
        return "seen"

    @agent.on_prompt
    async def answer(turn: Turn) -> None:
        seen.append([type(message).__name__ for message in turn.history])
        await turn.send_text("one ")
        await turn.call_tool("look")
        await turn.send_text("two")

    async with TestClient(agent).connect() as client:
        await client.prompt("first")
        await client.prompt("second")
    assert seen == [["UserMessage"], ["UserMessage", "AssistantMessage", "UserMessage"]]

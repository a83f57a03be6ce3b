"""What broke agents in a turn: the order of what is said, its end, its errors, what is in a prompt.

Proved whole by other tests:

    an update arrives before the session that it is about (zed-industries/zed#60199)
        runtime/test_sessions.py::test_each_session_has_an_id_of_its_own_and_its_answer_comes_before_its_updates
    an answer waits for a client that does not read (NousResearch/hermes-agent#39245)
        jsonrpc/test_connection.py::test_an_answer_does_not_wait_for_room
    a message is said again after its pieces (agentclientprotocol/claude-agent-acp#796)
        models/test_openai.py::test_a_message_repeated_after_its_deltas_is_not_shown_twice
    a provider's reasons to stop are mixed up (agentclientprotocol/claude-agent-acp#235)
        models/test_openai.py::test_each_stop_reason_is_mapped
    a stream that breaks off looks like an end (anomalyco/opencode#24494)
        models/test_openai.py::test_a_stream_that_breaks_off_is_a_failure
    a second prompt overwrites the first (vercel-labs/fx#993)
        runtime/test_queue.py::test_a_second_prompt_waits_for_the_first
    a cancel leaves prompts in the queue (agentclientprotocol/claude-agent-acp#348)
        runtime/test_queue.py::test_a_cancel_ends_the_running_prompt_and_those_that_wait
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from anyio import from_thread

from acp_agent.agent import Agent
from acp_agent.content import EmbeddedResource, ResourceLink, TextContent
from acp_agent.errors import ModelError, RequestError
from acp_agent.models.base import TextDelta, ThoughtDelta
from acp_agent.models.scenario import Scenario
from acp_agent.models.scripted import ScriptedModel
from acp_agent.runtime.turn import Turn
from acp_agent.testing import FakeEditor, TestClient
from tests.requirements import requirement
from tests.runtime.support import Gate, PlayedModel, handler_agent, look, make_agent

pytestmark = pytest.mark.anyio


# anomalyco/opencode#17505, agentclientprotocol/codex-acp#365, xenodium/agent-shell#678, svkozak/pi-acp#70
@requirement("cancel-updates-first")
async def test_no_update_of_a_turn_comes_after_its_answer() -> None:
    """From several tasks, from a thread, and from work that goes on when the turn is over."""
    late = Gate()
    said_late = anyio.Event()

    async def linger(turn: Turn) -> None:
        await late.wait()
        await turn.send_text("too late")
        turn.send_notice("info", "too late")
        turn.set_title("too late")
        turn.send_usage(1, 2)
        said_late.set()

    async def work(turn: Turn) -> None:
        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(turn.send_text, name)
            await anyio.to_thread.run_sync(lambda: from_thread.run(turn.send_text, "d"))
        if turn.text == "linger":
            background.start_soon(linger, turn)

    async with anyio.create_task_group() as background, TestClient(handler_agent(work)).connect() as client:
        for _ in range(100):
            result = await client.prompt("go")
            assert sorted(result.text) == ["a", "b", "c", "d"]
        await client.prompt("linger")
        heard = len(client.transcript.received())
        late.open()
        await said_late.wait()
        await client.list_sessions()
        assert len(client.transcript.received()) == heard + 1


# MoonshotAI/kimi-code#988
async def test_opening_a_session_asks_the_client_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    agent = Agent("tested", model=PlayedModel(), system_prompt=lambda session: session.cwd)
    async with TestClient(agent, editor=FakeEditor(), cwd=tmp_path).connect() as client:
        await client.new_session()
        await client.load_session(str(client.session_id))
        assert [frame.method for frame in client.transcript.received() if frame.is_request] == []


def raising(error: Exception) -> Callable[[], Awaitable[None]]:
    async def fail() -> None:
        raise error

    return fail


FAILURES = [
    ModelError("The provider is overloaded.", kind="overloaded", status=529, retryable=True),
    ModelError("Connection reset", kind="connection", retryable=True),
    ModelError("No such\nmodel", kind="not_found", status=404),
    RequestError(-32603, "Of the agent's own", {"details": "words"}),
]


# MoonshotAI/kimi-code#3107, MoonshotAI/kimi-cli#1542, getpaseo/paseo#5075
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: str(failure)[:12])
@pytest.mark.parametrize("after", [(), (TextDelta("Half a sen"),)], ids=["before a word", "in the middle"])
async def test_a_failure_is_an_error_that_says_why_and_the_session_goes_on(failure: Exception, after: Any) -> None:
    agent, model, _ = make_agent([*after, raising(failure)])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("hello")
        assert result.stop_reason is None
        assert result.error is not None
        assert result.error.message
        assert "\n" not in result.error.message
        assert isinstance(result.error.data["details"], str)
        if isinstance(failure, ModelError):
            assert result.error.data["kind"] == failure.kind
            assert result.error.data["retryable"] is failure.retryable
            assert result.error.data.get("status") == failure.status
        assert (await client.prompt("again")).stop_reason == "end_turn"
        assert len(model.requests) == 2


# QwenLM/qwen-code#12113, bug-ops/zeph#1326
@requirement("turn-stop-reason")
@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal"])
async def test_the_models_reason_to_stop_is_the_turns(reason: Any) -> None:
    steps = f'[{{ type = "text", text = "So" }}, {{ type = "finish", reason = "{reason}" }}]'
    scenario = Scenario.parse(f"[[turns]]\n[[turns.replies]]\nsteps = {steps}")
    async with TestClient(Agent("tested", model=ScriptedModel(scenario))).connect() as client:
        assert (await client.prompt("hello")).stop_reason == reason


# NousResearch/hermes-agent#95244, formulahendry/vscode-acp#56
async def test_each_message_has_one_id_and_keeps_it_when_it_is_loaded() -> None:
    agent, _, _ = make_agent(
        [ThoughtDelta("Let "), ThoughtDelta("me."), TextDelta("I "), TextDelta("look."), look("here")],
        [TextDelta("Seen.")],
        [TextDelta("Again.")],
    )

    def messages(updates: list[Any]) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        for update in updates:
            if not update.kind.endswith("_chunk") or update.kind.startswith("user"):
                continue
            entry = (update.kind, update.fields["messageId"], update.text)
            if found and found[-1][:2] == entry[:2]:
                entry = (*entry[:2], found.pop()[2] + entry[2])
            found.append(entry)
        return found

    async with TestClient(agent).connect() as client:
        await client.prompt("one")
        await client.prompt("two")
        live = messages(client.updates())
        assert [text for _, _, text in live] == ["Let me.", "I look.", "Seen.", "Again."]
        assert len({message_id for _, message_id, _ in live}) == 4
        before = len(client.updates())
        await client.load_session(str(client.session_id))
        assert messages(client.updates()[before:]) == live


# can1357/oh-my-pi#4902
@pytest.mark.parametrize(
    "reply", [[ThoughtDelta("Hm.")], [], [TextDelta("  \n")]], ids=["thoughts", "nothing", "space"]
)
async def test_a_model_that_says_nothing_leaves_a_visible_word(reply: list[Any]) -> None:
    agent, _, _ = make_agent(reply)
    async with TestClient(agent).connect() as client:
        result = await client.prompt("hello")
        assert result.stop_reason == "end_turn"
        assert result.text.strip()


# can1357/oh-my-pi#1088
async def test_a_turn_answers_when_all_its_work_is_done() -> None:
    steps: list[str] = []
    gate = Gate()

    async def work(turn: Turn) -> None:
        await turn.send_text(turn.text)
        if turn.text == "one":
            await gate.wait()
        steps.append(f"{turn.text} is over")

    async with TestClient(handler_agent(work)).connect() as client:
        first = await client.start_prompt("one")
        second = await client.start_prompt("two")
        await gate.reached.wait()
        assert not first.is_over
        gate.open()
        assert (await second.wait()).text == "two"
        assert steps == ["one is over", "two is over"]
        assert [(await handle.wait()).stop_reason for handle in (first, second)] == ["end_turn", "end_turn"]


# NousResearch/hermes-agent#79196, NousResearch/hermes-agent#79216
@requirement("cancel-no-error")
@pytest.mark.parametrize("how", ["exception", "in the cancel handler", "while it is cancelled"])
async def test_a_handler_that_breaks_leaves_the_session_usable(how: str) -> None:
    gate = Gate()

    async def work(turn: Turn) -> None:
        if turn.text == "fine":
            await turn.send_text("fine")
            return
        if how == "exception":
            raise AttributeError("'NoneType' object has no attribute 'startswith'")
        try:
            await gate.wait()
        except anyio.get_cancelled_exc_class():
            if how == "in the cancel handler":
                raise KeyError("gone") from None
            raise
        finally:
            if how == "while it is cancelled":
                raise ValueError("in the way out")

    async with TestClient(handler_agent(work)).connect() as client:
        handle = await client.start_prompt("break")
        if how != "exception":
            await gate.reached.wait()
            client.cancel()
        result = await handle.wait()
        if how == "exception":
            assert result.error is not None
            assert (result.error.code, result.error.message) == (-32603, "Internal error")
            assert "startswith" not in str(result.error.data)
        else:
            assert result.stop_reason == "cancelled"
        assert (await client.prompt("fine")).text == "fine"


LINK: dict[str, Any] = {"type": "resource_link", "name": "a.py", "uri": "file:///home/u/proj/a%20b.py#L9"}
FILE = {"uri": "file:///home/u/proj/a.py", "mimeType": "text/x-python", "text": "print('hello')"}


# blowmage/cursor-agent-acp-npm#5, getsentry/junior#1691, NousResearch/hermes-agent#20237
@requirement("prompt-text", "prompt-resource-link")
async def test_every_block_of_a_prompt_reaches_the_agent_in_order() -> None:
    seen: list[Any] = []

    async def work(turn: Turn) -> None:
        seen.append((turn.content, turn.text))

    async with TestClient(handler_agent(work)).connect() as client:
        blocks: list[dict[str, Any]] = [
            {"type": "text", "text": "See"},
            LINK,
            {"type": "resource", "resource": FILE},
            {"type": "text", "text": "there."},
        ]
        assert (await client.prompt(blocks)).stop_reason == "end_turn"
    ((content, text),) = seen
    assert [type(block) for block in content] == [TextContent, ResourceLink, EmbeddedResource, TextContent]
    assert (content[1].name, content[1].uri) == (LINK["name"], LINK["uri"])
    assert (content[2].uri, content[2].text) == (FILE["uri"], FILE["text"])
    assert text.index("See") < text.index("a%20b.py#L9") < text.index("print('hello')") < text.index("there.")

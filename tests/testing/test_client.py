"""The test client: in memory and over a process, answering as told, and leaving nothing behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from acp_agent.agent import Agent
from acp_agent.errors import ConnectionClosed, RequestError
from acp_agent.runtime.turn import Turn
from acp_agent.testing import TestClient, Transcript
from acp_agent.testing.policies import AnswerPolicy

pytestmark = pytest.mark.anyio

SCRIPT = """
import sys
from acp_agent.agent import Agent
agent = Agent("child")

@agent.on_prompt
async def echo(turn):
    await turn.send_text(turn.text)

agent.run()
"""


def echo_agent() -> Agent:
    agent = Agent("echo", version="1.2.3")

    @agent.on_prompt
    async def echo(turn: Turn) -> None:
        await turn.send_text(turn.text)

    return agent


def asking_agent() -> Agent:
    """Runs its one tool for each prompt."""
    agent = Agent("asker")

    @agent.tool(kind="execute")
    async def deploy(environment: str) -> str:
        """Deploy."""
        return f"deployed to {environment}"

    @agent.on_prompt
    async def run(turn: Turn) -> None:
        await turn.call_tool("deploy", {"environment": turn.text})

    return agent


async def test_a_prompt_is_answered_with_all_that_came_of_it() -> None:
    async with TestClient(echo_agent()).connect() as client:
        assert client.initialize_result is not None
        assert client.initialize_result.agent_info is not None
        assert client.initialize_result.agent_info.version == "1.2.3"
        result = await client.prompt("hello")
    assert (result.stop_reason, result.error, result.text) == ("end_turn", None, "hello")
    assert (result.thought, result.tool_calls, result.plan, result.usage) == ("", [], None, None)
    assert result.title == "hello"


async def test_the_session_is_opened_on_first_use_and_the_last_opened_one_is_meant() -> None:
    async with TestClient(echo_agent()).connect() as client:
        assert client.session_id is None
        await client.prompt("one")
        first = client.session_id
        second = (await client.new_session()).session_id
        assert client.session_id == second != first
        await client.prompt("two", session_id=first)
        assert [update.text for update in client.updates(first, "agent_message_chunk")] == ["one", "two"]


async def test_the_folder_of_its_own_is_gone_with_the_connection() -> None:
    async with TestClient(echo_agent()).connect() as client:
        assert os.path.isdir(client.cwd)
    assert not os.path.exists(client.cwd)


async def test_a_given_folder_stays(tmp_path: Path) -> None:
    async with TestClient(echo_agent(), cwd=tmp_path).connect() as client:
        assert client.cwd == str(tmp_path)
    assert tmp_path.is_dir()


@pytest.mark.parametrize(
    ("policy", "statuses", "stop_reason"),
    [
        ("allow_once", ["pending", "in_progress", "completed"], "end_turn"),
        ("allow_always", ["pending", "in_progress", "completed"], "end_turn"),
        ("reject_once", ["pending", "failed"], "end_turn"),
        ("reject_always", ["pending", "failed"], "end_turn"),
        ("cancelled", ["pending", "failed"], "cancelled"),
        ("error", ["pending", "failed"], "end_turn"),
        ("malformed", ["pending", "failed"], "end_turn"),
        ("unknown_option", ["pending", "failed"], "end_turn"),
        (lambda request: request.options[0].option_id, ["pending", "in_progress", "completed"], "end_turn"),
        (lambda request: "reject_once", ["pending", "failed"], "end_turn"),
        (lambda request: None, ["pending", "failed"], "cancelled"),
        (lambda request: {"outcome": {"outcome": "cancelled"}}, ["pending", "failed"], "cancelled"),
    ],
)
async def test_each_policy_answers_as_it_says(policy: AnswerPolicy, statuses: list[str], stop_reason: str) -> None:
    async with TestClient(asking_agent(), permission=policy).connect() as client:
        result = await client.prompt("staging")
        assert result.tool_statuses == statuses
        assert result.stop_reason == stop_reason
        assert len(client.questions) == 1


async def test_a_policy_may_be_an_async_function_that_raises_an_error_of_the_protocol() -> None:
    async def refuse(request: object) -> str:
        raise RequestError(-32000, "no")

    async with TestClient(asking_agent(), permission=refuse).connect() as client:
        assert (await client.prompt("staging")).tool_statuses == ["pending", "failed"]


async def test_what_a_policy_raises_fails_the_test_as_it_is() -> None:
    def check(request: object) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        async with TestClient(asking_agent(), permission=check).connect() as client:
            await client.prompt("staging")


async def test_what_the_test_itself_raises_stays_what_it_is() -> None:
    with pytest.raises(LookupError, match="mine"):
        async with TestClient(echo_agent()).connect():
            raise LookupError("mine")


async def test_a_question_can_be_answered_by_hand() -> None:
    async with TestClient(asking_agent(), permission="manual").connect() as client:
        handle = await client.start_prompt("staging")
        question = await client.permission_asked()
        assert question.tool_call["rawInput"] == {"environment": "staging"}
        assert question.option_kinds == ["allow_once", "allow_always", "reject_once", "reject_always"]
        assert not handle.is_over
        client.answer_permission("allow_once")
        assert (await handle.wait()).tool_call.text == "deployed to staging"
        with pytest.raises(LookupError):
            client.answer_permission("allow_once")


async def test_a_cancelling_client_dismisses_its_dialogs() -> None:
    async with TestClient(asking_agent(), permission="manual").connect() as client:
        handle = await client.start_prompt("staging")
        question = await client.permission_asked()
        client.cancel()
        assert question.is_answered
        assert (await handle.wait()).stop_reason == "cancelled"


async def test_what_is_sent_in_one_write_is_read_in_order() -> None:
    async with TestClient(asking_agent(), permission="never").connect() as client:
        await client.new_session()
        with client.in_one_write():
            handle = await client.start_prompt("staging")
            client.cancel()
        assert (await handle.wait()).stop_reason == "cancelled"


async def test_updates_of_a_waiting_prompt_are_its_own() -> None:
    async with TestClient(echo_agent()).connect() as client:
        handles = [await client.start_prompt(text) for text in ("one", "two", "three")]
        assert [(await handle.wait()).text for handle in handles] == ["one", "two", "three"]


async def test_an_error_of_the_agents_is_raised_by_requests_and_told_by_prompts() -> None:
    async with TestClient(echo_agent()).connect() as client:
        with pytest.raises(RequestError) as raised:
            await client.request("no/such", {})
        assert raised.value.code == -32601
        result = await client.prompt("hello", session_id="nobody")
        assert result.error is not None
        assert (result.error.code, result.stop_reason) == (-32002, None)


async def test_a_wait_ends_with_a_deadline_that_shows_the_last_frames() -> None:
    async with TestClient(echo_agent(), timeout=0.05).connect() as client:
        with pytest.raises(TimeoutError, match=r"No tool_call update number 1 within 0.05 s(?s:.*)initialize"):
            await client.wait_for_update("tool_call")


async def test_bytes_may_be_sent_as_they_are() -> None:
    async with TestClient(echo_agent()).connect() as client:
        client.send_raw(b'{"jsonrpc": "2.0", "id": "mine", "method": "no/such"}\nnonsense\n')
        unknown = await client.wait_for_response("mine")
        nonsense = await client.wait_for_response(None)
        assert [each.message["error"]["code"] for each in (unknown, nonsense)] == [-32601, -32700]


async def test_the_agent_is_gone_after_its_input_was_closed() -> None:
    async with TestClient(echo_agent()).connect() as client:
        await client.new_session()
        client.close()
        await client.wait_closed()
        assert client.closed
        with pytest.raises(ConnectionClosed):
            await client.request("session/list", {})
        with pytest.raises(ConnectionClosed, match="there will be no plan update number 1"):
            await client.wait_for_update("plan")


async def test_a_connection_may_begin_without_initialize() -> None:
    async with TestClient(echo_agent()).connect(initialize=False) as client:
        assert len(client.transcript) == 0
        assert client.initialize_result is None


async def test_an_unrecorded_connection_keeps_nothing() -> None:
    def fail(transcript: Transcript) -> None:
        raise AssertionError("unreachable")

    async with TestClient(echo_agent(), record=False, checks=[fail]).connect() as client:
        assert (await client.prompt("hello")).text == "hello"
        assert len(client.transcript) == 0


async def test_checks_are_called_with_the_transcript_and_fail_the_test() -> None:
    def object_to_it(transcript: Transcript) -> None:
        assert not transcript.received("session/update"), "it spoke"

    with pytest.raises(AssertionError, match="it spoke"):
        async with TestClient(echo_agent(), checks=[object_to_it]).connect() as client:
            await client.prompt("hello")


async def test_observers_see_each_frame_as_it_passes() -> None:
    async with TestClient(echo_agent()).connect() as client:
        seen: list[str | None] = []
        client.transcript.observers.append(lambda frame: seen.append(frame.method))
        await client.prompt("hello")
    assert seen[:4] == ["session/new", None, "session/prompt", "session/update"]


async def test_an_agent_may_be_a_process() -> None:
    async with TestClient([sys.executable, "-c", SCRIPT]).connect() as client:
        assert client.process is not None
        assert (await client.prompt("hello")).text == "hello"
        process = client.process
    assert process.returncode == 0


async def test_an_agent_that_does_not_start_is_an_error_of_its_own() -> None:
    with pytest.raises(OSError, match="no-such-agent"):
        async with TestClient(["/no-such-agent"]).connect():
            pass


async def test_a_process_that_ends_at_once_is_told_as_a_closed_connection() -> None:
    with pytest.raises(ConnectionClosed):
        async with TestClient([sys.executable, "-c", "pass"]).connect():
            pass

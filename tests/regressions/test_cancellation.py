"""What broke agents when a user pressed stop.

Proved whole by other tests:

    a cancelled turn ends as `end_turn` (github/copilot-cli#4561)
        runtime/test_cancellation.py::test_a_cancel_stops_an_answer_in_the_middle
    a cancel before the first word is an error (agentclientprotocol/agent-client-protocol#171)
        runtime/test_cancellation.py::test_a_cancel_ends_a_model_that_does_not_answer
    a question keeps the cancelled turn (ThinkInAIXYZ/deepchat#1881)
        runtime/test_cancellation.py::test_a_question_that_nobody_answers_does_not_keep_a_cancelled_turn
    a late "allow" acts (olimorris/codecompanion.nvim#3024)
        runtime/test_cancellation.py::test_an_allow_that_crosses_the_cancel_runs_nothing
    later tools of the step run after a dismissed question (QwenLM/qwen-code#5258)
        runtime/test_permissions.py::test_a_dismissed_question_stops_the_turn_and_later_calls_do_not_run
    a cancel hits every session (langchain-ai/deepagents#5084)
        runtime/test_cancellation.py::test_a_cancelled_session_leaves_others_alone
    an abandoned turn goes on (aaif-goose/goose#11651)
        runtime/test_cancellation.py::test_a_tool_that_was_left_behind_asks_nobody
    a retry outlives its turn (aaif-goose/goose#11651)
        models/test_retry.py::test_waiting_for_another_try_can_be_cancelled
    what a command started outlives it (lucasnevespereira/nevinho#35, agent-dance/agent-adaptor#1)
        tools/test_command.py::test_cancelling_ends_the_whole_tree
    a cancelled request has no answer, or another one is hit (agentclientprotocol/kotlin-sdk#131)
        jsonrpc/test_cancellation.py::test_only_the_request_that_is_named_is_cancelled
    a cancelled answer tells usage of zero (anomalyco/opencode#25901)
        conformance/test_turns.py::test_a_cancelled_turn_ends_with_a_result_that_says_so
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from acp_agent.agent import Agent
from acp_agent.errors import ModelError, RequestError
from acp_agent.models.base import TextDelta, ToolUse
from acp_agent.runtime.turn import Turn
from acp_agent.testing import ConnectedClient, TestClient
from acp_agent.tools.base import ToolContext
from tests.requirements import requirement
from tests.runtime.support import PlayedModel, handler_agent, look, make_agent, run

pytestmark = pytest.mark.anyio


# github/copilot-cli#4561, agentclientprotocol/agent-client-protocol#171
@requirement("cancel-answer", "cancel-no-error")
@pytest.mark.parametrize("moment", range(0, 60, 3))
async def test_a_cancel_at_any_moment_is_answered_with_a_result(moment: int) -> None:
    """After so many rounds of the loop: in the model, between two tools, in a question, or behind the end."""
    agent, _, _ = make_agent([TextDelta("I look."), look("a"), look("b"), run("c")], [TextDelta("Then "), run("d")])
    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        for _ in range(moment):
            await checkpoint()
        was_over = handle.is_over
        client.cancel()
        result = await handle.wait()
        assert result.error is None
        assert result.stop_reason in (("end_turn",) if was_over else ("cancelled", "end_turn"))
        assert all(row.is_over for row in result.tool_calls)
        assert (await client.prompt("and now?")).stop_reason == "end_turn"


def answer_error(client: ConnectedClient) -> None:
    question = client.questions[0]
    question.fail(RequestError(-32603, "the dialog is gone"))


ANSWERS: dict[str, Callable[[ConnectedClient], None]] = {
    "cancelled": lambda client: client.answer_permission(None),
    "allowed": lambda client: client.answer_permission("allow_once"),
    "rejected": lambda client: client.answer_permission("reject_once"),
    "an error": answer_error,
    "nothing": lambda client: None,
}


# ThinkInAIXYZ/deepchat#1881, assistant-ui/assistant-ui#6027
@pytest.mark.parametrize("answer", list(ANSWERS))
@pytest.mark.parametrize("first", ["cancel", "answer"])
async def test_a_cancel_and_an_answer_in_one_write_run_nothing(answer: str, first: str) -> None:
    agent, _, ran = make_agent([run("one"), run("two")])
    async with TestClient(agent, permission="never").connect() as client:
        handle = await client.start_prompt("go")
        await client.permission_asked()
        with client.in_one_write():
            if first == "answer":
                ANSWERS[answer](client)
            client.notify("session/cancel", {"sessionId": client.session_id})
            if first == "cancel":
                ANSWERS[answer](client)
        result = await handle.wait()
        assert result.stop_reason == "cancelled"
        assert [row.status for row in result.tool_calls] == ["failed", "failed"]
        assert len(client.questions) == 1
    assert ran == []


def crash(turn: Turn) -> Any:
    raise ZeroDivisionError


async def end_by_error(turn: Turn) -> None:
    raise ModelError("The provider is gone.", kind="connection")


async def end_by_waiting(turn: Turn) -> None:
    await anyio.sleep_forever()


async def end_by_returning(turn: Turn) -> None:
    return


# NousResearch/hermes-agent#114395, davidtaylor6130/Universal-Agent-Manager#106, shubzkothekar/antigravity-acp#19
@requirement("turn-no-open-call")
@pytest.mark.parametrize("end", [crash, end_by_error, end_by_waiting, end_by_returning])
async def test_no_call_is_left_open_however_a_turn_ends(end: Callable[[Turn], Any]) -> None:
    async def work(turn: Turn) -> None:
        turn.open_tool_call("waits")
        turn.open_tool_call("runs").report("so far")
        turn.open_tool_call("is done").complete(text="done")
        await end(turn)

    async with TestClient(handler_agent(work)).connect() as client:
        handle = await client.start_prompt("go")
        if end is end_by_waiting:
            await client.wait_for_status("completed")
            client.cancel()
        result = await handle.wait()
        assert [row.status for row in result.tool_calls] == ["failed", "failed", "completed"]
        assert all(row.text for row in result.tool_calls)


# anomalyco/opencode#12133, tontinton/maki#903, QwenLM/qwen-code#960
@pytest.mark.parametrize("answer", ["allow_once", "reject_once", "cancelled", None])
async def test_nested_calls_ask_in_their_parents_session_and_end_with_it(answer: Any) -> None:
    agent, _, ran = make_agent([ToolUse("delegate")])

    @agent.tool(permission="allow", kind="other")
    async def delegate(context: ToolContext) -> str:
        """Let two others work at the same time."""
        async with anyio.create_task_group() as tasks:
            for name in ("one", "two"):
                tasks.start_soon(context.call_tool, "run", {"command": name})
        return "both"

    async with TestClient(agent, permission=answer or "never").connect() as client:
        handle = await client.start_prompt("go")
        question = await client.permission_asked()
        assert question.session_id == client.session_id
        if answer is None:
            client.cancel()
        result = await handle.wait()
        assert result.stop_reason == ("end_turn" if answer in ("allow_once", "reject_once") else "cancelled")
        assert all(row.is_over for row in result.tool_calls)
    assert sorted(ran) == (["one", "two"] if answer == "allow_once" else [])


# agentclientprotocol/kotlin-sdk#131
async def test_a_cancellation_that_names_the_digits_of_an_id_or_an_old_one_stops_nothing() -> None:
    agent, _, _ = make_agent([run("one")])
    async with TestClient(agent, permission="never").connect() as client:
        await client.list_sessions()
        handle = await client.start_prompt("go")
        question = await client.permission_asked()
        client.cancel_request(str(handle.id))
        client.cancel_request(1)
        client.notify("$/cancel_request", {})
        client.notify("$/cancel_request", {"requestId": {"a": 1}})
        await client.list_sessions()
        assert not handle.is_over
        client.answer_permission("allow_once", question)
        assert (await handle.wait()).stop_reason == "end_turn"


# agentclientprotocol/kotlin-sdk#131
@requirement("cancel-request-answered")
async def test_a_load_that_is_cancelled_is_answered_and_the_session_is_as_it_was() -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent).connect() as client:
        for _ in range(30):
            await client.prompt("x" * 1000)
        session_id = str(client.session_id)
        with client.in_one_write():
            params = {"sessionId": session_id, "cwd": client.cwd, "mcpServers": []}
            asked = client.start_request("session/load", params)
            client.cancel_request(asked.id)
        with pytest.raises(RequestError) as refused:
            await client.answer_to(asked)
        assert refused.value.code == -32800
        assert (await client.prompt("still there?", session_id)).stop_reason == "end_turn"


# aaif-goose/goose#11651, xintaofei/codeg#364
@requirement("cancel-stops")
async def test_nothing_is_started_after_a_cancel_whatever_the_agent_was_at() -> None:
    chance = random.Random(11)
    started: list[str] = []
    is_over = anyio.Event()

    async def work(turn: Turn) -> None:
        while True:
            try:
                await turn.call_tool("touch", {"name": turn.text})
                await anyio.sleep(0.001 * chance.random())
            except Exception:  # noqa: BLE001 -- a loop that takes every failure for a reason to try again
                continue

    agent = Agent("stubborn", model=PlayedModel())

    @agent.tool(permission="allow")
    async def touch(name: str) -> str:
        """Touch something."""
        assert not is_over.is_set()
        started.append(name)
        return "touched"

    agent.on_prompt(work)
    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("again and again")
        await client.wait_for_status("completed", count=5)
        client.cancel()
        assert (await handle.wait()).stop_reason == "cancelled"
        is_over.set()
        heard = len(client.transcript.received())
        for _ in range(20):
            await client.list_sessions()
        assert len(client.transcript.received()) == heard + 20

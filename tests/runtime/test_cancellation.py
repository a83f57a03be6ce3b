"""A cancel, at every moment: the prompt is answered `cancelled`, once and soon, and nothing runs after it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

import anyio
import pytest

from acp_agent.agent import Agent
from acp_agent.content import PlanEntry
from acp_agent.models.base import TextDelta, ToolUse
from acp_agent.models.scenario import Scenario
from acp_agent.models.scripted import ScriptedModel
from acp_agent.runtime.turn import Turn
from acp_agent.testing import ConnectedClient, PromptHandle, TestClient
from acp_agent.tools.base import ToolContext
from tests.requirements import requirement
from tests.runtime.support import Gate, handler_agent, is_whole, last_request, make_agent, run, told_results

pytestmark = pytest.mark.anyio

SOON = 0.5  # seconds

Cancel = Callable[[ConnectedClient, PromptHandle], None]


def by_session(client: ConnectedClient, handle: PromptHandle) -> None:
    client.cancel(handle.session_id)


def by_request(client: ConnectedClient, handle: PromptHandle) -> None:
    client.cancel_request(handle.id)


both_ways = pytest.mark.parametrize("cancel", [by_session, by_request])


async def cancelled_soon(handle: PromptHandle) -> None:
    with anyio.fail_after(SOON):
        assert (await handle.wait()).stop_reason == "cancelled"


@both_ways
async def test_a_prompt_that_is_cancelled_in_the_same_read_never_begins(cancel: Cancel) -> None:
    begun: list[str] = []

    async def work(turn: Turn) -> None:
        begun.append(turn.text)
        await turn.send_text("too late")

    async with TestClient(handler_agent(work)).connect() as client:
        await client.new_session()
        for number in range(200):
            with client.in_one_write():
                handle = await client.start_prompt(str(number))
                cancel(client, handle)
            assert (await handle.wait()).stop_reason == "cancelled"
        assert client.updates(kind="agent_message_chunk") == []
    assert begun == []


@both_ways
async def test_a_cancel_stops_an_answer_in_the_middle(cancel: Cancel) -> None:
    async def work(turn: Turn) -> None:
        while True:
            await turn.send_text("more ")

    async with TestClient(handler_agent(work)).connect() as client:
        handle = await client.start_prompt("talk")
        await client.wait_for_update("agent_message_chunk")
        cancel(client, handle)
        await cancelled_soon(handle)


@requirement("cancel-stops")
@both_ways
async def test_a_cancel_ends_a_model_that_does_not_answer(cancel: Cancel) -> None:
    gate = Gate()
    agent, model, _ = make_agent([TextDelta("Hm, "), gate.wait, TextDelta("never said")])
    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("think")
        await gate.reached.wait()
        cancel(client, handle)
        await cancelled_soon(handle)
        assert gate.was_cancelled
        history = await last_request(client, model)
        assert is_whole(history)
        assert [getattr(message, "text", None) for message in history] == [None, "Hm, ", None]


@both_ways
async def test_a_cancel_ends_a_pause_of_the_script(cancel: Cancel) -> None:
    steps = '[{ type = "text", text = "a" }, { type = "sleep", seconds = 60 }]'
    scenario = Scenario.parse(f"[[turns]]\n[[turns.replies]]\nsteps = {steps}")
    async with TestClient(Agent("slow", model=ScriptedModel(scenario))).connect() as client:
        handle = await client.start_prompt("go")
        await client.wait_for_update("agent_message_chunk")
        cancel(client, handle)
        await cancelled_soon(handle)


@both_ways
async def test_a_question_that_nobody_answers_does_not_keep_a_cancelled_turn(cancel: Cancel) -> None:
    agent, model, ran = make_agent([run("rm -rf /"), run("second")])
    async with TestClient(agent, permission="never").connect() as client:
        handle = await client.start_prompt("clean up")
        question = await client.permission_asked()
        cancel(client, handle)
        await cancelled_soon(handle)
        assert question.was_cancelled
        result = await handle.wait()
        assert [row.status for row in result.tool_calls] == ["failed", "failed"]
        client.answer_permission("allow_once", question)
        history = await last_request(client, model)
        assert is_whole(history)
        assert ["nterrupted" in text for text in told_results(history)] == [True, True]
    assert ran == []


@both_ways
async def test_an_allow_that_crosses_the_cancel_runs_nothing(cancel: Cancel) -> None:
    agent, _, ran = make_agent([run("rm -rf /")])
    async with TestClient(agent, permission="never").connect() as client:
        handle = await client.start_prompt("clean up")
        question = await client.permission_asked()
        with client.in_one_write():
            cancel(client, handle)
            client.answer_permission("allow_once", question)
        await cancelled_soon(handle)
    assert ran == []


@both_ways
async def test_an_allow_just_before_the_cancel_runs_nothing_either(cancel: Cancel) -> None:
    agent, _, ran = make_agent([run("rm -rf /")])
    async with TestClient(agent, permission="never").connect() as client:
        handle = await client.start_prompt("clean up")
        question = await client.permission_asked()
        with client.in_one_write():
            client.answer_permission("allow_once", question)
            cancel(client, handle)
        await cancelled_soon(handle)
    assert ran == []


@requirement("cancel-stops")
@both_ways
async def test_a_cancel_ends_a_running_tool(cancel: Cancel) -> None:
    gate = Gate()
    agent, model, ran = make_agent([run("first")])
    agent.definition.tools.clear()

    @agent.tool(permission="allow", name="run")
    async def slow(command: str) -> str:
        """Take long."""
        await gate.wait()
        ran.append(command)
        return "done"

    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        await gate.reached.wait()
        cancel(client, handle)
        await cancelled_soon(handle)
        row = (await handle.wait()).tool_call
        assert (row.statuses, row.text) == (["pending", "in_progress", "failed"], "Cancelled.")
        assert gate.was_cancelled
        assert is_whole(await last_request(client, model))
    assert ran == []


async def test_a_cancel_leaves_a_tool_in_a_thread_behind() -> None:

    agent, _, _ = make_agent([run("first")])
    agent.definition.tools.clear()
    started, let_go = threading.Event(), threading.Event()

    @agent.tool(permission="allow", name="run")
    def block(command: str) -> str:
        """Block a thread."""
        started.set()
        let_go.wait(10)
        return "done"

    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        await client.wait_for_status("in_progress")
        await anyio.to_thread.run_sync(started.wait)
        client.cancel()
        await cancelled_soon(handle)
        let_go.set()
        assert (await client.prompt("again")).text == "Done."


async def test_a_second_cancel_changes_nothing() -> None:
    gate = Gate()

    async def work(turn: Turn) -> None:
        await gate.wait()

    async with TestClient(handler_agent(work)).connect() as client:
        handle = await client.start_prompt("go")
        await gate.reached.wait()
        client.cancel()
        client.cancel()
        client.cancel_request(handle.id)
        await cancelled_soon(handle)
        client.cancel()
        client.cancel_request(handle.id)
        gate.open()
        assert (await client.prompt("again")).stop_reason == "end_turn"


async def test_a_cancel_that_meets_nothing_is_no_matter() -> None:
    async def work(turn: Turn) -> None:
        await turn.send_text("here")

    async with TestClient(handler_agent(work)).connect() as client:
        await client.new_session()
        client.cancel()
        client.cancel("no such session")
        client.notify("session/cancel", {})
        client.notify("session/cancel")
        for request_id in (1, 99, "nobody's"):
            client.cancel_request(request_id)
        client.notify("$/cancel_request", {})
        assert (await client.prompt("still there?")).text == "here"


async def test_a_cancel_between_turns_does_not_touch_the_next_one() -> None:
    async def work(turn: Turn) -> None:
        await turn.send_text(turn.text)

    async with TestClient(handler_agent(work)).connect() as client:
        await client.new_session()
        with client.in_one_write():
            client.cancel()
            handle = await client.start_prompt("mine")
        result = await handle.wait()
        assert (result.stop_reason, result.text) == ("end_turn", "mine")


async def test_a_cancelled_session_leaves_others_alone() -> None:
    gates = {"one": Gate(), "two": Gate()}

    async def work(turn: Turn) -> None:
        await gates[turn.text].wait()
        await turn.send_text("finished")

    async with TestClient(handler_agent(work)).connect() as client:
        first = await client.start_prompt("one")
        await client.new_session()
        second = await client.start_prompt("two")
        for gate in gates.values():
            await gate.reached.wait()
        client.cancel(first.session_id)
        await cancelled_soon(first)
        assert not gates["two"].was_cancelled
        gates["two"].open()
        assert (await second.wait()).text == "finished"


async def test_a_request_that_is_cancelled_by_its_id_is_only_that_prompt() -> None:
    gate = Gate()

    async def work(turn: Turn) -> None:
        if turn.text == "one":
            await gate.wait()
        await turn.send_text(turn.text)

    async with TestClient(handler_agent(work)).connect() as client:
        first = await client.start_prompt("one")
        second = await client.start_prompt("two")
        await gate.reached.wait()
        client.cancel_request(first.id)
        await cancelled_soon(first)
        assert (await second.wait()).text == "two"


async def test_a_tool_that_ignores_its_cancel_is_left_behind_and_heard_no_more() -> None:
    gate = Gate()
    finished = anyio.Event()
    agent, model, _ = make_agent([run("first")])
    agent.definition.tools.clear()
    agent.definition.cancel_grace = 0.2

    @agent.tool(permission="allow", name="run")
    async def stubborn(context: ToolContext, command: str) -> str:
        """Not be stopped."""
        with anyio.CancelScope(shield=True):
            gate.reached.set()
            await gate.opened.wait()
            context.report("still here")
            context.send_plan([PlanEntry("take over")])
        finished.set()
        return "done"

    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        await gate.reached.wait()
        client.cancel()
        result = await handle.wait()
        assert (result.stop_reason, result.tool_statuses) == ("cancelled", ["pending", "in_progress", "failed"])
        second = await client.prompt("again")
        assert second.text == "Done."
        seen = len(client.updates())
        gate.open()
        await finished.wait()
        third = await client.prompt("and again")
        assert third.tool_calls == []
        assert [update.kind for update in client.updates()[seen:]] == ["agent_message_chunk"]
        assert is_whole(model.requests[-1].messages)


async def test_a_tool_that_was_left_behind_asks_nobody() -> None:
    gate = Gate()
    finished = anyio.Event()
    agent, _, ran = make_agent([ToolUse("stubborn")])
    agent.definition.cancel_grace = 0.2

    @agent.tool(permission="allow")
    async def stubborn(context: ToolContext) -> str:
        """Not be stopped."""
        with anyio.CancelScope(shield=True):
            gate.reached.set()
            await gate.opened.wait()
            await context.call_tool("run", {"command": "rm -rf /"})
        finished.set()
        return "done"

    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        await gate.reached.wait()
        client.cancel()
        assert (await handle.wait()).stop_reason == "cancelled"
        gate.open()
        await finished.wait()
        assert client.questions == []
    assert ran == []


async def test_a_model_that_was_left_behind_does_not_cut_what_the_next_turn_says() -> None:
    stuck = Gate()
    ended = anyio.Event()
    speaking = Gate()

    async def hang() -> None:
        with anyio.CancelScope(shield=True):
            stuck.reached.set()
            await stuck.opened.wait()
        ended.set()

    agent, _, _ = make_agent([hang], [TextDelta("first half, "), speaking.wait, TextDelta("second half")])
    agent.definition.cancel_grace = 0.2
    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        await stuck.reached.wait()
        client.cancel()
        assert (await handle.wait()).stop_reason == "cancelled"
        second = await client.start_prompt("again")
        await speaking.reached.wait()
        stuck.open()
        await ended.wait()
        speaking.open()
        result = await second.wait()
        assert result.text == "first half, second half"
        assert len({update.fields["messageId"] for update in result.updates if update.text}) == 1


@pytest.mark.parametrize("seconds", [0.0, math.inf])
async def test_the_client_may_leave_in_the_middle_of_a_question(seconds: float) -> None:
    agent, _, ran = make_agent([run("rm -rf /")])
    async with TestClient(agent, permission="never", drain=min(seconds, 5.0)).connect() as client:
        await client.start_prompt("clean up")
        await client.permission_asked()
        client.close()
        with anyio.fail_after(1):
            await client.wait_closed()
    assert ran == []

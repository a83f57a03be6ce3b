"""Tool calls: announced once, run in order, closed on every end, and told as they go."""

from __future__ import annotations

import json
import threading
from itertools import pairwise
from typing import Any

import anyio
import pytest

from acp_agent.agent import Agent
from acp_agent.content import TextContent
from acp_agent.errors import ModelError, ToolError
from acp_agent.models.base import TextDelta, ToolUse
from acp_agent.runtime.turn import Turn
from acp_agent.testing import TestClient
from acp_agent.tools.base import ToolContext, ToolOutput
from acp_agent.tools.function import ThreadContext
from tests.runtime.support import (
    Gate,
    PlayedModel,
    Ran,
    handler_agent,
    is_whole,
    last_request,
    look,
    make_agent,
    run,
    told_results,
)

pytestmark = pytest.mark.anyio


async def test_the_calls_of_a_step_are_announced_together_and_run_in_order() -> None:
    agent, _, ran = make_agent([run("a"), run("b")])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        order = [
            (update.kind, update.fields["toolCallId"]) for update in result.updates if "toolCallId" in update.fields
        ]
    first, second = (row.tool_call_id for row in result.tool_calls)
    assert order[:2] == [("tool_call", first), ("tool_call", second)]
    assert [call_id for _, call_id in order[2:]] == [first, first, second, second]
    assert ran == ["a", "b"]


async def test_tools_that_only_read_run_at_the_same_time() -> None:
    gates = {name: Gate() for name in ("a", "b", "c")}
    agent = Agent("tested", model=PlayedModel([ToolUse("look", {"name": name}) for name in gates]))

    @agent.tool(permission="allow", read_only=True)
    async def look(name: str) -> str:
        """Look."""
        await gates[name].wait()
        return name

    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        for gate in gates.values():
            await gate.reached.wait()
        for name in ("c", "a", "b"):
            gates[name].open()
        result = await handle.wait()
    assert [row.text for row in result.tool_calls] == ["a", "b", "c"]


async def test_a_tool_that_changes_something_waits_for_those_before_it() -> None:
    gate = Gate()
    ran = Ran()
    agent = Agent("tested", model=PlayedModel([ToolUse("look"), ToolUse("change"), ToolUse("look")]))

    @agent.tool(permission="allow", read_only=True)
    async def look() -> str:
        """Look."""
        ran.append("look begins")
        await gate.wait()
        ran.append("look ends")
        return "seen"

    @agent.tool(permission="allow")
    async def change() -> str:
        """Change."""
        ran.append("change")
        return "changed"

    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        await gate.reached.wait()
        assert ran == ["look begins"]
        gate.open()
        await handle.wait()
    assert ran == ["look begins", "look ends", "change", "look begins", "look ends"]


async def test_the_model_is_told_the_results_in_the_order_of_its_uses() -> None:
    agent, model, _ = make_agent([look("a"), run("b"), look("c")])
    async with TestClient(agent).connect() as client:
        await client.prompt("go")
    assert told_results(model.requests[-1].messages) == ["saw a", "ran b", "saw c"]
    assert is_whole(model.requests[-1].messages)


async def test_ids_are_minted_here_because_providers_repeat_theirs() -> None:
    agent, _, _ = make_agent(
        [ToolUse("look", {"name": "a"}, id="call_0"), ToolUse("look", {"name": "b"}, id="call_0")],
        [ToolUse("look", {"name": "c"}, id="call_0")],
    )
    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        assert [row.text for row in result.tool_calls] == ["saw a", "saw b", "saw c"]
        assert "call_0" not in {row.tool_call_id for row in result.tool_calls}


@pytest.mark.parametrize(
    ("use", "problem"),
    [
        (ToolUse("no_such_tool", {"a": 1}), "no tool named 'no_such_tool'"),
        (ToolUse("run", {}), "command"),
        (ToolUse("run", {"command": 3}), "command"),
        (ToolUse("run", {"command": "a", "extra": 1}), "extra"),
        (ToolUse("run", {}, problem="The arguments are not JSON."), "The arguments are not JSON."),
    ],
)
async def test_a_use_that_cannot_be_is_announced_and_failed_for_the_model_to_read(use: ToolUse, problem: str) -> None:
    agent, model, ran = make_agent([use])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        assert result.tool_statuses == ["pending", "failed"]
        assert problem in result.tool_call.text
        assert client.questions == []
    assert ran == []
    assert problem in told_results(model.requests[-1].messages)[0]


async def test_a_tool_says_why_it_could_not_and_the_model_goes_on() -> None:
    agent = Agent("tested", model=(model := PlayedModel([ToolUse("fetch")])))

    @agent.tool(permission="allow")
    async def fetch() -> str:
        """Fetch."""
        raise ToolError("The server is asleep.")

    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        assert (result.tool_statuses, result.text) == (["pending", "in_progress", "failed"], "Done.")
        assert result.tool_call.text == "The server is asleep."
    assert told_results(model.requests[-1].messages) == ["The server is asleep."]


@pytest.mark.parametrize("where", ["async", "thread", "preview", "title"])
async def test_a_crash_is_a_failed_call_that_leaks_nothing(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    agent = Agent("tested", model=(model := PlayedModel([ToolUse("crash")])))

    def fail() -> str:
        raise LookupError("password: hunter2")

    async def fail_in_the_loop() -> str:
        return fail()

    tool = fail_in_the_loop if where == "async" else fail
    options: dict[str, Any] = {"preview": fail} if where == "preview" else {"title": fail} if where == "title" else {}
    agent.tool(name="crash", permission="allow", **options)(tool if not options else lambda: "fine")
    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        assert result.tool_calls[0].status == "failed"
        assert result.text == "Done."
        assert "hunter2" not in json.dumps([frame.message for frame in client.transcript])
    assert "hunter2" not in str(model.requests[-1].messages)


async def test_plain_functions_run_in_threads_and_may_report_from_there() -> None:
    agent = Agent("tested", model=PlayedModel([ToolUse("work")]))
    threads: list[int] = []

    @agent.tool(permission="allow")
    def work(context: ThreadContext) -> str:
        """Work."""
        threads.append(threading.get_ident())
        context.report("half way")
        return f"{context.cwd} is fine"

    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        assert result.tool_call.text == f"{client.cwd} is fine"
        shown = [str(update.fields.get("content")) for update in client.updates(kind="tool_call_update")]
    assert threads != [threading.get_ident()]
    assert any("half way" in content for content in shown)


async def test_progress_is_shown_at_most_four_times_a_second_and_the_end_is_whole() -> None:
    agent = Agent("tested", model=PlayedModel([ToolUse("count")]))
    began: list[float] = []

    @agent.tool(permission="allow")
    async def count(context: ToolContext) -> str:
        """Count."""
        began.append(anyio.current_time())
        number = 0
        while anyio.current_time() < began[0] + 0.9:
            number += 1
            context.report(str(number))
            await anyio.sleep(0.005)
        began.append(number)
        return f"counted to {number}"

    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        running = [update for update in result.updates if update.fields.get("status") == "in_progress"]
    assert 3 <= len(running) - 1 <= 5
    gaps = [later.at - earlier.at for earlier, later in pairwise(running[1:])]
    assert min(gaps) > 0.2
    assert result.tool_call.text == f"counted to {began[1]}"
    assert result.tool_statuses == ["pending", "in_progress", "completed"]


async def test_every_update_carries_its_status() -> None:
    agent = Agent("tested", model=PlayedModel([ToolUse("work")]))

    @agent.tool
    async def work(context: ToolContext) -> str:
        """Work."""
        context.report("half way")
        return "done"

    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
    told = [update.fields.get("status") for update in result.updates if "toolCallId" in update.fields]
    assert told == ["pending", "in_progress", "in_progress", "completed"]


@pytest.mark.parametrize("end", ["error", "crash", "return"])
async def test_a_call_that_is_left_open_is_failed_when_the_turn_ends(end: str) -> None:
    async def work(turn: Turn) -> None:
        turn.open_tool_call("deploy", title="Deploy")
        if end == "error":
            raise ModelError("The provider is asleep.")
        if end == "crash":
            raise LookupError("oh")

    async with TestClient(handler_agent(work)).connect() as client:
        result = await client.prompt("go")
        assert result.tool_statuses == ["pending", "failed"]
        assert result.tool_call.text == "The turn ended before this finished."
        assert (result.error is None) == (end == "return")


async def test_a_model_that_fails_after_its_uses_leaves_no_call_open_and_the_history_whole() -> None:
    async def fail() -> None:
        raise ModelError("The provider is asleep.", kind="overloaded", status=529, retryable=True)

    agent, model, ran = make_agent([TextDelta("Let me see. "), run("a"), fail])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        assert result.error is not None
        assert result.error.data["details"] == "The provider is asleep."
        assert result.error.data["status"] == 529
        history = await last_request(client, model)
    assert ran == []
    assert is_whole(history)
    assert told_results(history) == []


async def test_a_step_that_fails_after_a_tool_keeps_what_the_tool_did() -> None:
    async def fail() -> None:
        raise ModelError("The provider is asleep.")

    agent, model, ran = make_agent([run("a")], [fail])
    async with TestClient(agent).connect() as client:
        assert (await client.prompt("go")).error is not None
        history = await last_request(client, model)
    assert ran == ["a"]
    assert told_results(history) == ["ran a"]
    assert is_whole(history)


async def test_a_cancel_keeps_the_results_that_were_there() -> None:
    gate = Gate()
    agent, model, ran = make_agent([run("a"), ToolUse("hold"), run("b")])

    @agent.tool(permission="allow")
    async def hold() -> str:
        """Hold."""
        await gate.wait()
        return "held"

    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        await gate.reached.wait()
        client.cancel()
        result = await handle.wait()
        assert [row.status for row in result.tool_calls] == ["completed", "failed", "failed"]
        history = await last_request(client, model)
    assert told_results(history)[0] == "ran a"
    assert len(told_results(history)) == 3
    assert is_whole(history)
    assert ran == ["a"]


async def test_a_tool_may_end_the_turn() -> None:
    agent, model, _ = make_agent([ToolUse("ask_back")])

    @agent.tool(permission="allow")
    async def ask_back() -> ToolOutput:
        """Ask."""
        return ToolOutput(told=[TextContent("asked")], ends_turn=True)

    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        assert (result.stop_reason, result.tool_statuses[-1]) == ("end_turn", "completed")
    assert len(model.requests) == 1


async def test_steps_are_bounded() -> None:
    agent, model, ran = make_agent(*([run(str(number))] for number in range(5)), max_steps=3, mode="auto")
    async with TestClient(agent).connect() as client:
        assert (await client.prompt("go")).stop_reason == "max_turn_requests"
        assert is_whole(await last_request(client, model))
    assert len(model.requests) == 3 + 3
    assert ran == ["0", "1", "2", "3", "4"]


async def test_what_a_tool_wanted_done_after_it_is_done_on_every_path() -> None:
    tidied: list[str] = []
    gate = Gate()
    agent = Agent("tested", model=PlayedModel([ToolUse("work", {"how": how}) for how in ("fine", "crash", "hang")]))

    @agent.tool(permission="allow")
    async def work(context: ToolContext, how: str) -> str:
        """Work."""

        async def tidy() -> None:
            tidied.append(how)

        context.on_finished(tidy)
        if how == "crash":
            raise LookupError("oh")
        if how == "hang":
            await gate.wait()
        return how

    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        await gate.reached.wait()
        client.cancel()
        assert (await handle.wait()).stop_reason == "cancelled"
    assert tidied == ["fine", "crash", "hang"]


async def test_a_tool_may_run_another_with_a_question_of_its_own() -> None:
    agent, _, ran = make_agent([ToolUse("outer")])

    @agent.tool(permission="allow")
    async def outer(context: ToolContext) -> str:
        """Run the other."""
        output = await context.call_tool("run", {"command": "inner"})
        return "refused" if output.failed else "done"

    async with TestClient(agent, permission="reject_once").connect() as client:
        result = await client.prompt("go")
        assert [(row.name, row.status) for row in result.tool_calls] == [("outer", "completed"), ("run", "failed")]
        assert result.tool_calls[0].text == "refused"
    assert ran == []

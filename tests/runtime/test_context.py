"""What a running tool sees of its turn, and what becomes of it when the turn is over."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
from anyio import to_thread

from acp_agent.errors import ToolError
from acp_agent.history import ToolUse
from acp_agent.testing import TestClient
from acp_agent.tools.base import Proposal, Tool, ToolContext, ToolOutput
from tests.runtime.support import Gate, make_agent

pytestmark = pytest.mark.anyio


async def test_a_tool_says_something_as_a_part_of_the_answer() -> None:
    agent, _, _ = make_agent([ToolUse("talk")])

    @agent.tool(permission="allow")
    async def talk(context: ToolContext) -> str:
        """Talk."""
        await context.send_text("Listen: ")
        return "said"

    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        assert result.text == "Listen: Done."
        assert result.tool_call.text == "said"


async def test_a_tool_in_a_thread_reports_and_sees_that_it_is_cancelled() -> None:
    agent, _, _ = make_agent([ToolUse("count")])
    seen: list[bool] = []
    look, looked = threading.Event(), threading.Event()

    @agent.tool(permission="allow")
    def count(context: ToolContext) -> str:
        """Count."""
        seen.append(context.cancelled)
        context.report("counted")
        look.wait(10)
        seen.append(context.cancelled)
        looked.set()
        return "never told"

    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        await client.wait_for(lambda update: "counted" in str(update.fields.get("content")))
        client.cancel()
        assert (await handle.wait()).stop_reason == "cancelled"
        look.set()
        await to_thread.run_sync(looked.wait, 5)
    assert seen == [False, True]


async def test_a_tool_in_the_loop_reports_from_a_thread_of_its_own() -> None:
    agent, _, _ = make_agent([ToolUse("count")])

    @agent.tool(permission="allow")
    async def count(context: ToolContext) -> str:
        """Count."""
        await to_thread.run_sync(context.report, "counted so far")
        return "counted all"

    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        shown = [str(update.fields.get("content")) for update in result.updates if "toolCallId" in update.fields]
        assert ["counted so far" in each for each in shown] == [False, False, True, False]
        assert result.tool_call.text == "counted all"


class Eager(Tool):
    """Reports while it is still being described."""

    name = "eager"
    description = "Be eager."
    permission = "allow"

    def __init__(self) -> None:
        self.input_schema = {"type": "object", "properties": {}}

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        context.report("too early")
        return Proposal(title="Be eager", kind="other", arguments=arguments, permission="allow")

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        return ToolOutput.of_text("in time")


async def test_what_is_reported_before_the_call_is_announced_is_dropped() -> None:
    agent, _, _ = make_agent([ToolUse("eager")])
    agent.add_tool(Eager())
    async with TestClient(agent).connect() as client:
        row = (await client.prompt("go")).tool_call
        assert (row.statuses, row.text) == (["pending", "in_progress", "completed"], "in time")
        assert "too early" not in "".join(map(str, client.transcript))


async def test_a_tool_that_was_left_behind_changes_no_mode_and_is_tidied_up_after() -> None:
    gate, tidied, finished = Gate(), anyio.Event(), anyio.Event()
    refused: list[str] = []
    agent, _, _ = make_agent([ToolUse("stubborn")])
    agent.definition.cancel_grace = 0.1

    @agent.tool(permission="allow")
    async def stubborn(context: ToolContext) -> str:
        """Not be stopped."""

        async def tidy() -> None:
            tidied.set()

        context.on_finished(tidy)
        with anyio.CancelScope(shield=True):
            await gate.wait()
            try:
                await context.set_mode("auto")
            except ToolError as error:
                refused.append(str(error))
        finished.set()
        return "done"

    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        await gate.reached.wait()
        client.cancel()
        assert (await handle.wait()).stop_reason == "cancelled"
        with anyio.fail_after(5):
            await tidied.wait()
        gate.open()
        await finished.wait()
        assert client.updates(kind="current_mode_update") == []
    assert refused == ["The turn is over."]


async def test_a_mode_that_there_is_not_is_an_error_of_the_call() -> None:
    agent, _, _ = make_agent([ToolUse("hurry")])

    @agent.tool(permission="allow")
    async def hurry(context: ToolContext) -> str:
        """Hurry."""
        await context.set_mode("fast")
        return "fast"

    async with TestClient(agent).connect() as client:
        row = (await client.prompt("go")).tool_call
        assert row.status == "failed"
        assert "mode cannot be 'fast'" in row.text


async def test_what_takes_long_to_tidy_up_is_waited_for_and_not_abandoned() -> None:
    """The grace is for the work; what comes after it is bounded by itself, and the prompt is answered once."""
    gate, tidied = Gate(), list[str]()
    agent, _, _ = make_agent([ToolUse("careful")])
    agent.definition.cancel_grace = 0.01
    sessions = agent.definition.sessions

    @agent.tool(permission="allow")
    async def careful(context: ToolContext) -> str:
        """Be careful."""

        async def tidy() -> None:
            after_the_grace = anyio.Event()
            (session,) = sessions
            session.timers.call_later(0.05, after_the_grace.set)
            await after_the_grace.wait()
            tidied.append("tidied")

        context.on_finished(tidy)
        await gate.wait()
        return "never"

    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        await gate.reached.wait()
        client.cancel()
        assert (await handle.wait()).stop_reason == "cancelled"
        assert tidied == ["tidied"]
        assert (await client.prompt("again")).text == "Done."

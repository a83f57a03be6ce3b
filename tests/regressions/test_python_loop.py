"""What broke agents in the event loop itself: work that blocks it, errors that it swallows, clients that do not read.

Proved whole by other tests:

    a thread waits for the loop it blocks (wecode-ai/Wegent#937)
        tools/test_function.py::test_a_thread_may_wait_for_the_loop_but_the_loop_not_for_itself
    a client that does not read (NousResearch/hermes-agent#39245)
        e2e/test_process.py::test_a_client_that_does_not_read_costs_no_memory_and_is_heard_when_it_cancels
    a prompt is served inside the read loop (bug-ops/zeph#6656, agentclientprotocol/kotlin-sdk#74)
        jsonrpc/test_connection.py::test_a_request_within_the_work_of_a_request_does_not_deadlock
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from anyio import to_thread

from acp_agent.agent import Agent
from acp_agent.content import TextContent
from acp_agent.models.base import ToolUse
from acp_agent.runtime.turn import Turn
from acp_agent.testing import FakeEditor, TestClient
from acp_agent.tools.base import Proposal, Tool, ToolContext, ToolOutput
from tests.runtime.support import PlayedModel, make_agent

pytestmark = pytest.mark.anyio


# NousResearch/hermes-agent#78205, block/buzz#4098
async def test_a_tool_that_blocks_its_thread_blocks_nobody_else() -> None:
    entered, leave = threading.Event(), threading.Event()
    agent, _, _ = make_agent([ToolUse("block")])

    @agent.tool(permission="allow")
    def block() -> str:
        """Block."""
        entered.set()
        leave.wait(10)
        return "late"

    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("block")
        await to_thread.run_sync(entered.wait, 5)
        first = str(client.session_id)
        await client.new_session()
        assert (await client.prompt("and I?")).text == "Done."
        client.cancel(first)
        assert (await handle.wait()).stop_reason == "cancelled"
        leave.set()
        assert (await client.prompt("again", first)).text == "Done."


class Fragile(Tool):
    """Has a bug in one of its steps."""

    name = "fragile"
    description = "Breaks."

    def __init__(self, step: str) -> None:
        self.input_schema = {"type": "object", "properties": {}}
        self.step = step

    def break_in(self, step: str) -> None:
        if step == self.step:
            raise AttributeError("'NoneType' object has no attribute 'strip' (a secret)")

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        self.break_in("describe")
        return Proposal(title="Break", kind="other", arguments=arguments, permission="allow")

    async def prepare(self, proposal: Proposal, context: ToolContext) -> None:
        self.break_in("prepare")

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        context.on_finished(self.clean_up)
        self.break_in("run")
        if self.step == "output":
            return ToolOutput(told=[TextContent("ok")], raw_output=object())
        return ToolOutput.of_text("ok")

    async def clean_up(self) -> None:
        self.break_in("clean up")


# NousResearch/hermes-agent#114914
@pytest.mark.parametrize("step", ["describe", "prepare", "run", "clean up", "output"])
async def test_a_bug_in_any_step_of_a_tool_is_a_failed_call_and_the_turn_goes_on(step: str) -> None:
    agent = Agent("tested", model=PlayedModel([ToolUse("fragile")]), tools=[Fragile(step)])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        assert result.stop_reason == "end_turn"
        assert result.text == "Done."
        assert result.tool_call.status == ("completed" if step in ("clean up", "output") else "failed")
        assert "a secret" not in str([frame.message for frame in client.transcript.received()])
        assert (await client.prompt("again")).text == "Done."


# bug-ops/zeph#6656, agentclientprotocol/kotlin-sdk#74, creachadair/jrpc2#79
async def test_the_editor_can_be_asked_from_a_turn_a_tool_and_a_command() -> None:
    agent = Agent("asking", model=PlayedModel([ToolUse("read")]))

    async def read_notes(context: Any) -> str:
        return str((await context.workspace.read_text(f"{context.cwd}/notes.txt")).text)

    @agent.tool(permission="allow")
    async def read(context: ToolContext) -> str:
        """Read."""
        return await read_notes(context)

    @agent.command("notes")
    async def notes(turn: Turn, arguments: str) -> None:
        """Show the notes."""
        await turn.send_text(await read_notes(turn.session))

    editor = FakeEditor()
    async with TestClient(agent, editor=editor).connect() as client:
        editor.buffers[f"{client.cwd}/notes.txt"] = "unsaved"
        assert (await client.prompt("go")).tool_call.text == "unsaved"
        assert (await client.prompt("/notes")).text == "unsaved"
        assert len(editor.called("fs/read_text_file")) == 2

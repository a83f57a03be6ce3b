"""What broke the rows of tool calls: diffs wiped, output sent again and again, calls that never end.

Proved whole by other tests:

    a call is left open (NousResearch/hermes-agent#114395)
        regressions/test_cancellation.py::test_no_call_is_left_open_however_a_turn_ends
    output is cut too hard, or in a character (NousResearch/hermes-agent#63952, QwenLM/qwen-code#8450)
        tools/test_command.py::test_a_line_without_end_is_cut_between_characters
    absent, null and empty are mixed up (vercel-labs/fx#495)
        protocol/test_leniency.py::test_null_in_an_update_of_a_call_is_absent
    a deterministic refusal is tried again (PrimeIntellect-ai/prime-agent#1490)
        models/test_retry.py::test_what_was_refused_for_what_it_is_is_never_tried_again
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from acp_agent.agent import Agent
from acp_agent.content import ContentBlock, ContentItem, Diff, Location, PlanEntry, TextContent
from acp_agent.errors import ToolError
from acp_agent.models.base import TextDelta, ToolUse
from acp_agent.runtime.turn import Turn
from acp_agent.store.sqlite import SqliteStore
from acp_agent.testing import FakeEditor, TestClient, ToolCallView
from acp_agent.tools.base import Proposal, Tool, ToolContext, ToolOutput
from acp_agent.tools.coding import coding_tools
from acp_agent.tools.text import plain_output
from tests.requirements import requirement
from tests.runtime.support import Gate, PlayedModel, handler_agent, is_whole, last_request, make_agent, run

pytestmark = pytest.mark.anyio


def coder(*uses: ToolUse, **options: Any) -> Agent:
    return Agent("coder", model=PlayedModel(uses), tools=coding_tools(**options))


EDIT = ToolUse("edit_file", {"path": "notes.txt", "old_text": "old", "new_text": "new"})


# vercel-labs/fx#495, letta-ai/letta-acp#20, zed-industries/zed#44834
@requirement("paths-absolute")
@pytest.mark.parametrize("with_editor", [False, True])
async def test_the_last_update_of_an_edit_shows_its_diff_also_to_who_saw_nothing_else(
    with_editor: bool, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("an old line\n")
    editor = FakeEditor() if with_editor else None
    async with TestClient(coder(EDIT), editor=editor, cwd=tmp_path).connect() as client:
        updates = [update for update in (await client.prompt("go")).updates if update.kind.startswith("tool_call")]
    whole = ToolCallView(updates).rows[0]
    short = ToolCallView([updates[0], updates[-1]]).rows[0]
    for row in (whole, short):
        (diff,) = row.diffs
        assert row.content[0] == diff
        assert (diff["oldText"], diff["newText"]) == ("an old line\n", "an new line\n")
        assert row.locations[0]["path"] == diff["path"] == str(tmp_path / "notes.txt")
        assert row.status == "completed"
    assert short.title == whole.title
    assert "content" in updates[-1].fields


# zed-industries/codex-acp#225, xenodium/agent-shell#342, pingdotgg/t3code#7279
async def test_much_output_is_not_sent_again_with_every_line(tmp_path: Path) -> None:
    command = "seq -f 'line %.0f of what is printed' 1 35000"
    agent = coder(ToolUse("run_command", {"command": command}))
    async with TestClient(agent, cwd=tmp_path).connect() as client:
        result = await client.prompt("go")
        sent = sum(frame.size for frame in client.transcript.received())
    assert result.tool_call.status == "completed"
    assert "line 1 of" in result.tool_call.text
    assert "line 35000 of" in result.tool_call.text
    assert "left out" in result.tool_call.text
    assert sent < 35_000 * 30


# pingdotgg/t3code#7279
@pytest.mark.parametrize("text", ["x" * 1_000_000, "x\r" * 500_000, "\x1b]" * 300_000, "\x1b[" * 300_000])
def test_a_line_without_an_end_takes_no_time_to_clean(text: str) -> None:
    began = time.process_time()
    plain_output(text)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("10%\r50%\r100%\n", "100%\n"),
        ("windows\r\nline\r\n", "windows\nline\n"),
        ("done\r", "done"),
        ("a\rb\r\r\n", "b\n"),
        ("\x1b[31mred\x1b[0m", "red"),
    ],
)
def test_what_a_terminal_would_have_overwritten_is_not_shown(printed: str, shown: str) -> None:
    assert plain_output(printed) == shown


# agentclientprotocol/claude-agent-acp#10
async def test_nothing_is_said_of_a_call_after_its_end() -> None:
    async def work(turn: Turn) -> None:
        call = turn.open_tool_call("work")
        call.complete(text="done")
        call.report("more")
        call.fail("no")
        call.complete(text="again")

    async with TestClient(handler_agent(work)).connect() as client:
        result = await client.prompt("go")
        assert [update.fields["status"] for update in result.updates if "toolCallId" in update.fields] == [
            "pending",
            "in_progress",
            "completed",
        ]
        assert result.tool_call.text == "done"


# earendil-works/pi#4189, openclaw/openclaw#10900, posit-dev/positron#15719
async def test_a_history_that_was_cut_in_a_tool_is_whole_for_the_model() -> None:
    gate = Gate()
    agent, model, _ = make_agent([TextDelta("I run."), run("one"), run("two")])

    @agent.tool(permission="allow")
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    model.replies.append([ToolUse("wait"), run("three")])
    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        await gate.reached.wait()
        client.cancel()
        await handle.wait()
        session_id = str(client.session_id)
        assert is_whole(await last_request(client, model))
        await client.close_session(session_id)
        await client.load_session(session_id)
        assert is_whole(await last_request(client, model))


# anomalyco/opencode#7356, NousResearch/hermes-agent#63952
@requirement("tool-call-reported", "tool-call-name")
@pytest.mark.parametrize("use", [run("x"), ToolUse("nobody", {"a": 1}), ToolUse("run", {"wrong": True})])
async def test_each_call_can_be_told_from_its_first_update_on(use: ToolUse) -> None:
    agent, _, _ = make_agent([use])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        opening = next(update.fields for update in result.updates if update.kind == "tool_call")
        assert opening["title"]
        assert opening["name"] == use.name
        assert opening["rawInput"] == use.arguments
        assert result.tool_call.is_over
        assert result.tool_call.text


# agentclientprotocol/claude-agent-acp#733, block/buzz#935, OpenHands/agent-canvas#1245
async def test_a_quiet_call_shows_now_and_then_that_it_lives_and_only_then() -> None:
    """Not while its question is open, and not after its end."""
    gate = Gate()
    agent, _, _ = make_agent([run("asks first"), ToolUse("wait")], heartbeat=0.02)

    @agent.tool(permission="allow")
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    async with TestClient(agent, permission="manual").connect() as client:
        handle = await client.start_prompt("go")
        question = await client.permission_asked()
        asking = len(client.updates(kind="tool_call_update"))
        await anyio.sleep(0.1)  # several beats long
        assert len(client.updates(kind="tool_call_update")) == asking
        client.answer_permission("reject_once", question)
        await client.wait_for_status("in_progress", count=4)
        gate.open()
        result = await handle.wait()
        assert [row.status for row in result.tool_calls] == ["failed", "completed"]
        heard = len(client.transcript.received())
        await anyio.sleep(0.1)
        assert len(client.transcript.received()) == heard


HALF = "half a pair: \ud800."
WHOLE = "half a pair: \ufffd."


class Odd(Tool):
    """Puts what JSON cannot carry into one place."""

    name = "odd"
    description = "Is odd."

    def __init__(self, place: str) -> None:
        self.input_schema = {"type": "object", "properties": {}}
        self.place = place

    def at(self, place: str) -> str:
        return HALF if self.place == place else "fine"

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        return Proposal(
            title=self.at("title"),
            kind="other",
            arguments=arguments,
            key=self.at("key"),
            scope=self.at("scope"),
            locations=[Location(f"/{self.at('location')}")],
            content=[Diff(f"/{self.at('location')}", self.at("diff"))],
        )

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        context.report(self.at("report"))
        context.send_plan([PlanEntry(self.at("plan"))])
        if self.place == "error":
            raise ToolError(HALF)
        raw = {"object": object(), "huge": 10**40, "raw": {HALF: HALF}, "key": {(1, 2): 3}}.get(self.place, "fine")
        told: list[ContentBlock] = [TextContent(self.at("told"))]
        return ToolOutput(content=[ContentItem(TextContent(self.at("content")))], told=told, raw_output=raw)


PLACES = ["title", "key", "scope", "location", "diff", "report", "plan", "error", "object", "huge", "raw", "content"]


# an answer that could not be encoded was never sent, by agents on an official SDK
@pytest.mark.parametrize("durable", [False, True], ids=["memory", "disk"])
@pytest.mark.parametrize("place", [*PLACES, "told"])
async def test_what_json_cannot_carry_is_made_clean_and_harms_neither_turn_nor_load(
    place: str, durable: bool, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"store": SqliteStore(tmp_path / "state")} if durable else {}
    model = PlayedModel([ToolUse("odd")])
    agent = Agent("tested", model=model, tools=[Odd(place)], **options)
    async with TestClient(agent, cwd=tmp_path).connect() as client:
        result = await client.prompt("go")
        assert (result.stop_reason, result.text) == ("end_turn", "Done.")
        assert result.tool_call.status == ("failed" if place == "error" else "completed")
        said = str([frame.message for frame in client.transcript.received()])
        assert (WHOLE in said) == (place not in ("object", "huge", "key", "told"))
        assert HALF not in str(model.requests[-1].messages)
        session_id = str(client.session_id)
        live = result.tool_call
        await client.close_session()
        before = len(client.updates())
        await client.load_session(session_id)
        (replayed,) = ToolCallView(client.updates()[before:]).rows
        assert (replayed.content, replayed.raw_output) == (live.content, live.raw_output)
    await agent.aclose()

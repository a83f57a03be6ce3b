"""The tools through a whole agent: what an editor with everything, with nothing, and a broken one gets to see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from acp_agent import Agent, coding_tools
from acp_agent.history import ToolUse
from acp_agent.models.base import TextDelta
from acp_agent.testing import ConnectedClient, TestClient
from acp_agent.testing.editor import FakeEditor
from acp_agent.testing.view import ToolCallRow
from tests.runtime.support import PlayedModel

pytestmark = pytest.mark.anyio


def agent_that_uses(*uses: tuple[str, dict[str, Any]], **settings: Any) -> Agent:
    """An agent whose model uses the coding tools, one in each step."""
    replies = [[ToolUse(name, arguments)] for name, arguments in uses]
    return Agent("tools", model=PlayedModel(*replies, [TextDelta("Done.")]), tools=coding_tools(**settings))


async def rows_of(client: ConnectedClient, text: str = "go") -> list[ToolCallRow]:
    with anyio.fail_after(20):
        await client.prompt(text)
    return list(client.tool_calls())


USES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("update_plan", {"entries": [{"content": "all", "status": "in_progress"}]}),
    ("list_directory", {"path": "."}),
    ("find_files", {"pattern": "*.txt"}),
    ("search_text", {"pattern": "saved"}),
    ("read_file", {"path": "a.txt"}),
    ("edit_file", {"path": "a.txt", "old_text": "saved", "new_text": "edited"}),
    ("write_file", {"path": "new/b.txt", "content": "new"}),
    ("run_command", {"command": "cat a.txt; exit 3"}),
    ("move_file", {"source": "c.txt", "destination": "d.txt"}),
    ("delete_file", {"path": "d.txt"}),
    ("switch_mode", {"mode": "accept_edits"}),
)


EDITORS: dict[str, dict[str, Any]] = {
    "all": {},
    "nothing": {"read": False, "write": False, "terminal": False},
    "writes": {"read": False, "terminal": False},
    "reads": {"write": False},
    "forgetful": {"forgetful": True},
    "refuses": {"misbehave": {"fs/read_text_file": "error", "terminal/create": "error"}},
    "empty": {"misbehave": {"fs/read_text_file": "empty", "terminal/create": "empty"}},
    "cannot wait": {"misbehave": {"terminal/wait_for_exit": "error", "terminal/release": "error"}},
}


@pytest.mark.parametrize("editor_kind", EDITORS)
async def test_every_tool_does_its_work_with_every_editor(editor_kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("saved\n")
    (tmp_path / "c.txt").write_text("moved\n")
    editor = FakeEditor(**EDITORS[editor_kind])
    async with TestClient(agent_that_uses(*USES), editor=editor, cwd=tmp_path).connect() as client:
        rows = await rows_of(client)
    assert [(row.name, row.status) for row in rows] == [(name, "completed") for name, _ in USES]
    assert (tmp_path / "a.txt").read_text() == "edited\n"
    assert (tmp_path / "new" / "b.txt").read_text() == "new"
    assert not (tmp_path / "c.txt").exists()
    assert not (tmp_path / "d.txt").exists()
    by_name = {row.name: row for row in rows}
    assert by_name["run_command"].raw_output["exitCode"] == 3
    assert by_name["edit_file"].content[0]["type"] == "diff"
    assert by_name["edit_file"].locations[0] == {"path": str(tmp_path / "a.txt"), "line": 1}
    assert editor.terminals.unreleased == []


async def test_unsaved_text_is_what_is_read_and_edited(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("saved\n")
    editor = FakeEditor(buffers={str(path): "unsaved\n"}, save_writes=False)
    uses = (
        ("read_file", {"path": "a.txt"}),
        ("edit_file", {"path": "a.txt", "old_text": "unsaved", "new_text": "edited"}),
    )
    async with TestClient(agent_that_uses(*uses), editor=editor, cwd=tmp_path).connect() as client:
        read, edit = await rows_of(client)
    assert "unsaved" in read.text
    assert edit.diffs[0]["oldText"] == "unsaved\n"
    assert editor.buffers[str(path)] == "edited\n"
    assert path.read_text() == "saved\n"


async def test_a_terminal_is_released_after_the_last_update_of_its_call(tmp_path: Path) -> None:
    agent = agent_that_uses(("run_command", {"command": "echo hi"}))
    async with TestClient(agent, editor=FakeEditor(), cwd=tmp_path).connect() as client:
        (row,) = await rows_of(client)
        received = [frame for frame in client.transcript.frames if frame.method is not None]
    assert row.content[0]["type"] == "terminal"
    names = [frame.method for frame in received]
    updates = [place for place, frame in enumerate(received) if row.tool_call_id in str(frame.params)]
    assert names.count("terminal/release") == 1
    assert max(updates) < names.index("terminal/release")


async def test_a_cancel_ends_the_editors_terminal_too(tmp_path: Path) -> None:
    editor = FakeEditor()
    agent = agent_that_uses(("run_command", {"command": "echo started; sleep 600"}))
    async with TestClient(agent, editor=editor, cwd=tmp_path).connect() as client:
        handle = await client.start_prompt("go")
        await client.wait_for_status("in_progress")
        client.cancel()
        with anyio.fail_after(5):
            result = await handle.wait()
        assert result.stop_reason == "cancelled"
        (row,) = client.tool_calls()
        assert row.status == "failed"
    assert editor.terminals.unreleased == []


async def test_what_the_user_rejects_is_not_done(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("saved\n")
    gated = [use for use in USES if use[0] in ("edit_file", "write_file", "run_command", "switch_mode")]
    client_side = TestClient(agent_that_uses(*gated), permission="reject_once", editor=FakeEditor(), cwd=tmp_path)
    async with client_side.connect() as client:
        rows = await rows_of(client)
        assert len(client.questions) == len(gated)
    assert {row.status for row in rows} == {"failed"}
    assert (tmp_path / "a.txt").read_text() == "saved\n"
    assert not (tmp_path / "new").exists()


async def test_a_question_is_asked_in_a_form_or_ends_the_turn(tmp_path: Path) -> None:
    use = ("ask_user", {"question": "Which?", "options": ["red", "blue"]})
    forms = FakeEditor(form=lambda params: {"answer": "blue"})
    async with TestClient(agent_that_uses(use), editor=forms, cwd=tmp_path).connect() as client:
        (row,) = await rows_of(client)
        assert row.text == "Answer: blue"
    async with TestClient(agent_that_uses(use), editor=FakeEditor(), cwd=tmp_path).connect() as client:
        (row,) = await rows_of(client)
        assert row.text == "The question is in the conversation."
        (message,) = client.updates(kind="agent_message_chunk")
        assert message.text == "Which?\n\n1. red\n2. blue"

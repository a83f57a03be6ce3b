"""For any path, through any tool: nothing outside the roots without the user's word."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_agent.errors import ToolError
from acp_agent.tools.base import Tool
from acp_agent.tools.command import RunCommand
from acp_agent.tools.edit import EditFile, WriteFile
from acp_agent.tools.move import DeleteFile, MoveFile
from acp_agent.tools.paths import real_name, shown_name
from acp_agent.tools.read import ListDirectory, ReadFile
from acp_agent.tools.search import SearchText
from tests.tools.fakes import call_in, told

PARTS = ["sub", "in", "up", "away", "file", "a.txt", "new", "..", ".", "loop"]
PATHS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("/".join)


def make_tree(root: Path) -> Path:
    """A project with links to itself, to its parent and to a folder beside it, which is returned."""
    away = root.parent / "away"
    if not away.exists():
        (away / "sub").mkdir(parents=True)
        (away / "a.txt").write_text("OUTSIDE")
        (away / "hidden-name").touch()
    (root / "sub").mkdir(exist_ok=True)
    links = {"in": "sub", "up": "..", "away": str(away), "file": str(away / "a.txt"), "loop": "loop", "sub/up": "../.."}
    for name, target in links.items():
        if not (root / name).is_symlink():
            (root / name).symlink_to(target)
    for name in ("a.txt", "sub/a.txt"):
        (root / name).write_text("INSIDE")
    return away


def state_of(folder: Path) -> list[tuple[str, str]]:
    return sorted((str(path), path.read_text() if path.is_file() else "") for path in folder.rglob("*"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(path=PATHS, other=PATHS, pick=st.integers(0, 7))
def test_a_call_that_needs_no_question_touches_nothing_outside(root: Path, path: str, other: str, pick: int) -> None:
    away = make_tree(root)
    before = state_of(away)
    beside = sorted(os.listdir(root.parent))
    tool, arguments = cases(path, other)[pick]
    call = call_in(root)

    async def run() -> str:
        proposal = tool.describe(arguments, call)
        if proposal.outside:
            return ""
        await tool.prepare(proposal, call)
        output = await tool.run(proposal, call)
        return told(output) + str(output.content)

    try:
        said = anyio.run(run)
    except ToolError:
        said = ""
    assert "OUTSIDE" not in said
    assert "hidden-name" not in said
    assert state_of(away) == before
    assert sorted(os.listdir(root.parent)) == beside


def cases(path: str, other: str) -> list[tuple[Tool, dict[str, Any]]]:
    return [
        (ReadFile(), {"path": path}),
        (ListDirectory(), {"path": path}),
        (SearchText(), {"pattern": "SIDE", "path": path}),
        (WriteFile(), {"path": path, "content": "new"}),
        (EditFile(), {"path": path, "old_text": "SIDE", "new_text": "side"}),
        (DeleteFile(), {"path": path}),
        (MoveFile(), {"source": path, "destination": other}),
        (RunCommand(terminal="local"), {"command": "ls", "cwd": path}),
    ]


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=30).filter(lambda data: b"/" not in data and b"\0" not in data))
def test_any_file_name_is_shown_in_unicode_and_found_again(data: bytes) -> None:
    name = os.fsdecode(data)
    shown = shown_name(name)
    shown.encode()
    assert real_name(shown) == name


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(path=st.text(max_size=40), pick=st.integers(0, 7))
def test_no_path_however_odd_crashes_a_description(root: Path, path: str, pick: int) -> None:
    tool, arguments = cases(path, "x")[pick]
    try:
        proposal = tool.describe(arguments, call_in(root))
    except ToolError:
        return
    proposal.title.encode()
    assert "\n" not in proposal.title
    assert all(os.path.isabs(location.path) for location in proposal.locations)


@pytest.mark.parametrize("name", ["a\0b"])
def test_a_null_character_is_refused(root: Path, name: str) -> None:
    with pytest.raises(ToolError, match="null character"):
        ReadFile().describe({"path": name}, call_in(root))

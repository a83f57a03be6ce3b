"""The official SDK's client needs asyncio; what it drives is a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

SCENARIO = """
name = "e2e"

[[turns]]
when = "everything"
  [[turns.replies]]
  steps = [
    { type = "thought", text = "First look, then change." },
    { type = "text", text = "I will change the file." },
    { type = "tool_use", name = "update_plan", arguments = { entries = [{ content = "Change", status = "pending" }] } },
    { type = "tool_use", name = "read_file", arguments = { path = "notes.txt" } },
    { type = "tool_use", name = "edit_file", arguments = { path = "notes.txt", old_text = "old", new_text = "new" } },
  ]
  [[turns.replies]]
  after = "failed"
  steps = [{ type = "text", text = " You said no." }]
  [[turns.replies]]
  steps = [{ type = "text", text = " Done." }]

[[turns]]
when = "command"
  [[turns.replies]]
  steps = [{ type = "tool_use", name = "run_command", arguments = { command = "sleep 300 & echo started; sleep 300" } }]
  [[turns.replies]]
  steps = [{ type = "text", text = "The command has ended." }]

[[turns]]
when = "twice"
  [[turns.replies]]
  steps = [
    { type = "tool_use", name = "run_command", arguments = { command = "echo one" } },
    { type = "tool_use", name = "run_command", arguments = { command = "echo one" } },
    { type = "tool_use", name = "run_command", arguments = { command = "echo two" } },
  ]
  [[turns.replies]]
  steps = [{ type = "text", text = "ran" }]

[[turns]]
when = "chunks"
  [[turns.replies]]
  steps = [{ type = "text", text = "0123456789", repeat = 20000 }]

[[turns]]
when = "flood"
  [[turns.replies]]
  steps = [{ type = "text", text = "FLOOD", repeat = 400000 }]

[[turns]]
when = "wait"
  [[turns.replies]]
  steps = [{ type = "text", text = "waiting" }, { type = "sleep", seconds = 300 }]

[[turns]]
when = "quick"
  [[turns.replies]]
  steps = [{ type = "text", text = "quick answer" }]
""".replace("FLOOD", "x" * 512)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    (tmp_path / "notes.txt").write_text("an old line\n")
    return str(path)

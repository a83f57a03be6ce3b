"""Scenarios for the demo that take no time, and running it as a program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "acp_agent"]
EDIT = """
name = "quick"
prompts = ["Fix it."]

[[turns]]
[[turns.replies]]
[[turns.replies.steps]]
type = "thought"
text = "A line is wrong."
[[turns.replies.steps]]
type = "text"
text = "I will **mend** it."
[[turns.replies.steps]]
type = "tool_use"
name = "update_plan"
arguments = { entries = [{ content = "Mend it", priority = "high", status = "in_progress" }] }
[[turns.replies.steps]]
type = "tool_use"
name = "edit_file"
[turns.replies.steps.arguments]
path = "greeting.py"
old_text = 'return "Hello, name!"'
new_text = 'return f"Hello, {name}!"'

[[turns.replies]]
after = "failed"
steps = [{ type = "text", text = "Then not." }]
[[turns.replies]]
steps = [{ type = "text", text = "It is mended." }]
"""
PROCESSES = """
prompts = ["Run it."]

[[turns]]
[[turns.replies]]
[[turns.replies.steps]]
type = "tool_use"
name = "run_command"
arguments.command = "sleep 300 >/dev/null & echo pids $PPID $!"
[[turns.replies]]
steps = [{ type = "text", text = "It ran." }]
"""
DEADLY = PROCESSES.replace("sleep 300 >/dev/null & echo pids $PPID $!", "kill -9 $PPID")
ENDLESS = """
prompts = ["Go on and on."]

[[turns]]
[[turns.replies]]
steps = [{ type = "text", text = "On it goes.\\n" }, { type = "sleep", seconds = 60 }]
"""
FAILING = """
prompts = ["Try."]

[[turns]]
[[turns.replies]]
steps = [{ type = "error", message = "The provider is on fire.", kind = "auth" }]
"""


def write(folder: Path, text: str) -> str:
    """The path of a scenario file."""
    path = folder / "scenario.toml"
    path.write_text(text)
    return str(path)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Ours, with temporary files in `folder/temporary`."""
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    return os.environ | {"TMPDIR": str(temporary)} | more


def run(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the program in `folder`, without a terminal."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(folder, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def leftovers(folder: Path) -> list[str]:
    """What a program that ran in `folder` left behind in its temporary directory."""
    return os.listdir(folder / "temporary")


def is_running(pid: int) -> bool:
    """Whether there is such a process, other than one that has ended and was not yet collected."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text() if os.path.isdir("/proc/self") else ""
        os.kill(pid, 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return ") Z" not in state

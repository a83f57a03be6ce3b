"""The small project that a demo plays in. It is made for one demo and removed after it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from acp_agent.cli.diffs import count_changes, diff_lines

__all__ = ["Scratch", "scratch_workspace"]

# What the built-in scenario expects to find: a greeting without its f, and a test that says so.
FILES: Final = {
    "README.md": "# Greetings\n\nGreets people by their name. `python3 test_greeting.py` says whether it does.\n",
    "greeting.py": '''\
"""Greets people."""


def greet(name: str) -> str:
    """The words to say to `name`."""
    return "Hello, name!"


if __name__ == "__main__":
    print(greet("world"))
''',
    "test_greeting.py": '''\
"""Checks the greeting: no test runner needed."""

from greeting import greet

for name in ("Ada", "Grace"):
    said = greet(name)
    assert said == f"Hello, {name}!", f"{name} was greeted with {said!r}"
    print(f"ok: {said}")
''',
}


class Scratch:
    """`project` is where the agent works; what else the demo needs lies beside it, in `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "project"
        self.project.mkdir()
        for name, text in FILES.items():
            (self.project / name).write_text(text, encoding="utf-8")

    def changes(self) -> list[str]:
        """What is different now, a line for each file: `greeting.py (+1 -1)`."""
        now = {path.relative_to(self.project).as_posix(): path for path in files_under(self.project)}
        return [
            line
            for name in sorted(FILES.keys() | now.keys())
            if (line := describe_change(name, FILES.get(name), now.get(name)))
        ]


@contextmanager
def scratch_workspace() -> Iterator[Scratch]:
    """A fresh project; removed with all that was put there."""
    with tempfile.TemporaryDirectory(prefix="acp-agent-demo-", ignore_cleanup_errors=True) as folder:
        yield Scratch(Path(os.path.realpath(folder)))


def files_under(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def describe_change(name: str, before: str | None, path: Path | None) -> str | None:
    """None for a file that is as it was."""
    if path is None:
        return f"{name} (deleted)"
    after = path.read_text(encoding="utf-8", errors="replace")
    if after == before:
        return None
    counts = count_changes(diff_lines(before, after))
    return f"{name} (new, {counts.split()[0]})" if before is None else f"{name} ({counts})"

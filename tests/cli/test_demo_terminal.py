"""The demo on a terminal: what moves, and who is asked."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli import scenarios
from tests.cli.scenarios import COMMAND, environment, leftovers, write

SIZE = struct.pack("HHHH", 40, 100, 0, 0)
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Screen:
    """A program on a terminal of 100 columns and 40 lines."""

    def __init__(self, arguments: list[str], env: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, SIZE)
        self.modes = termios.tcgetattr(slave)[3]
        self._slave = slave
        self.process = subprocess.Popen(arguments, env=env, stdin=slave, stdout=slave, stderr=slave)
        self.shown = ""

    def wait_for(self, text: str) -> None:
        """Read until `text` is shown, after what was waited for before."""
        start = len(self.shown)
        while text not in self.shown[start:]:
            assert self._read(), f"{text!r} is not shown, but:\n{self.shown}"

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def wait(self) -> int:
        """The exit code, when all that is shown was read."""
        while self.process.poll() is None:
            assert self._read(), f"It goes on, and shows:\n{self.shown}"
        while self._read(0):
            pass
        self.modes_at_end = termios.tcgetattr(self._slave)[3]
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._slave)
        os.close(self._master)

    def _read(self, seconds: float = 10) -> bool:
        """Whether something more was shown, or the program has ended."""
        deadline = time.monotonic() + seconds
        while not select.select([self._master], [], [], min(seconds, 0.05))[0]:
            if self.process.poll() is not None and seconds:
                return True
            if time.monotonic() >= deadline:
                return False
        data = os.read(self._master, 65536).decode(errors="replace")
        self.shown += ESCAPES.sub("", data).replace("\r\n", "\n")
        return True


@contextmanager
def on_terminal(folder: Path, *arguments: str, **more: str) -> Iterator[Screen]:
    variables = {name: value for name, value in environment(folder).items() if name != "NO_COLOR"}
    screen = Screen([*COMMAND, *arguments], variables | {"TERM": "xterm-256color"} | more)
    try:
        yield screen
    finally:
        screen.close()


@pytest.mark.parametrize("look", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["live", "without colours", "dumb"])
def test_the_user_is_asked_and_the_answer_counts(tmp_path: Path, look: dict[str, str]) -> None:
    with on_terminal(tmp_path, "demo", write(tmp_path, scenarios.EDIT), **look) as screen:
        screen.wait_for("your turn" if not look else "1 to 4?")
        screen.press("9" if not look else "9\n")
        screen.press("1" if not look else "1\n")
        assert screen.wait() == 0
    assert "It is mended." in screen.shown
    assert "Allow once" in screen.shown
    assert 'return f"Hello, {name}!"' in screen.shown
    assert "1 allowed" in screen.shown
    assert screen.modes_at_end == screen.modes
    assert leftovers(tmp_path) == []


def test_ctrl_c_at_a_question_dismisses_it_and_cancels_the_turn(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "demo", write(tmp_path, scenarios.EDIT)) as screen:
        screen.wait_for("your turn")
        screen.process.send_signal(signal.SIGINT)
        assert screen.wait() == 0
    assert "dismissed" in screen.shown
    assert "The turn was cancelled." in screen.shown
    assert "nothing changed" in screen.shown
    assert screen.modes_at_end == screen.modes


def test_with_yes_nobody_is_asked_and_the_plan_and_states_are_drawn(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "demo", write(tmp_path, scenarios.EDIT), "--yes") as screen:
        assert screen.wait() == 0
    assert "→ Allow once (--yes)" in screen.shown
    assert "✓ Edit greeting.py" in screen.shown
    assert "▸ Mend it" in screen.shown
    assert "I will mend it." in screen.shown  # markdown, drawn
    assert "The turn is over." in screen.shown
    assert screen.shown.endswith("\n")


def test_a_terminal_that_hangs_up_ends_the_demo_and_nothing_stays(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "demo", write(tmp_path, scenarios.EDIT)) as screen:
        screen.wait_for("your turn")
        screen.process.send_signal(signal.SIGHUP)
        assert screen.wait() == 128 + signal.SIGHUP
    assert leftovers(tmp_path) == []

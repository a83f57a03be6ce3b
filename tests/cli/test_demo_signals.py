"""Stopping the demo: Ctrl-C is the editor's stop button."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli import scenarios
from tests.cli.scenarios import COMMAND, environment, leftovers, write


@contextmanager
def endless_demo(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A demo whose turn has begun to say something, and will not end by itself."""
    with subprocess.Popen(
        [*COMMAND, "demo", write(folder, scenarios.ENDLESS), "--yes"],
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        read_until(process, "user")
        yield process


def read_until(process: subprocess.Popen[str], start: str) -> None:
    assert process.stdout
    for line in process.stdout:
        if line.startswith(start):
            return
    raise AssertionError(f"no line began with {start!r}")


def test_ctrl_c_cancels_the_turn_which_ends_as_any_other(tmp_path: Path) -> None:
    with endless_demo(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        shown, complaints = process.communicate(timeout=20)
    assert (process.returncode, complaints) == (0, "")
    assert "The turn was cancelled." in shown
    assert leftovers(tmp_path) == []


def test_a_second_signal_leaves_even_if_the_turn_is_not_over(tmp_path: Path) -> None:
    with endless_demo(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=20)
    assert complaints == ""
    assert process.returncode in (0, 128 + signal.SIGTERM)  # the cancelled turn may be over by then
    assert leftovers(tmp_path) == []


def test_a_request_to_end_is_followed_and_nothing_stays(tmp_path: Path) -> None:
    with endless_demo(tmp_path) as process:
        process.send_signal(signal.SIGTERM)
        shown, complaints = process.communicate(timeout=20)
    assert (process.returncode, complaints) == (128 + signal.SIGTERM, "")
    assert "summary" not in shown
    assert leftovers(tmp_path) == []

"""The person at the terminal: whether there is one, what is typed, and stdout that may lose its reader."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import anyio

__all__ = ["can_ask", "has_colours", "read_typed", "single_keys", "standard_output"]


def can_ask() -> bool:
    """Whether there is somebody to put a question to. A console of Windows has no descriptor to wait for."""
    return sys.platform != "win32" and sys.stdin.isatty() and sys.stdout.isatty()


def has_colours() -> bool:
    """Whether stdout is a terminal that draws, and nobody said that it should not."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return sys.stdout.isatty() and not is_plain


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Stdout that takes every character. When its reader leaves (`| head`), the program does too, and quietly."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except* BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the flush at exit fails once more
        sys.exit(1)


async def read_typed() -> str:
    """What is typed next: a line, or keys inside of `single_keys`. Empty when the terminal is gone or was closed."""
    await anyio.wait_readable(sys.stdin)
    try:
        return os.read(sys.stdin.fileno(), 1024).decode(errors="replace")
    except OSError:
        return ""


def forget_typed() -> None:
    """Drop what was typed so far: it was not meant for the question that comes now."""
    import termios

    termios.tcflush(sys.stdin, termios.TCIFLUSH)


@contextmanager
def single_keys() -> Iterator[None]:
    """Keys are read as they are pressed and are not echoed into the drawing. Ctrl-C stays a signal."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin, termios.TCSANOW)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)

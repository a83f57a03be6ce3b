"""Who owns stdin and stdout: the protocol, and nothing else in the process.

After `claim_stdio`, which comes first in a program, `print`, C code and child processes can neither reach the client
nor eat what it sends: fd 0 is the null device, and what arrives at fd 1 becomes log events. This module imports next
to nothing, so that it can come before whatever might print.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from functools import cache, partial
from typing import NamedTuple

from acp_agent.log import get_logger, is_listening

__all__ = ["Claim", "claim_stdio"]

_FIRST_PRIVATE = 3  # the first descriptor that no program takes for a standard one
_LONGEST = 64 * 1024  # bytes of a stray line in one log event
_STRAY = "stray output"
_MARK = b"\0 all until here"


class StrayOutput:
    """Reads what arrives at fd 1 in a daemon thread, so that nobody who prints ever waits, and logs it by lines."""

    def __init__(self) -> None:
        read_end, write_end = os.pipe()
        os.dup2(write_end, 1)
        os.close(write_end)
        self._log = get_logger("acp_agent.stdout")
        self._flushed = threading.Event()
        threading.Thread(target=self._read, args=[read_end], name="acp stray output", daemon=True).start()

    def flush(self, seconds: float) -> None:
        """Wait until what was printed so far is logged, but no longer than this."""
        with suppress(OSError):  # somebody closed fd 1
            os.write(1, b"\n" + _MARK + b"\n")
            self._flushed.wait(seconds)

    def _read(self, fd: int) -> None:
        with os.fdopen(fd, "rb") as lines:
            for line in iter(partial(lines.readline, _LONGEST), b""):
                if line.rstrip() == _MARK:
                    self._flushed.set()
                else:
                    self._note(line.decode(errors="replace").rstrip())

    def _note(self, text: str) -> None:
        # A log that itself goes to stdout would come back here for ever.
        if text and _STRAY not in text and is_listening():
            self._log.info(_STRAY, text=text)


class Claim(NamedTuple):
    """The client's end of things: private descriptors that no child inherits, and what became of the public ones."""

    input: int
    output: int
    stray: StrayOutput


@cache  # the descriptors belong to the process, so it is claimed once, whoever asks
def claim_stdio() -> Claim:
    """Take stdin and stdout for the protocol, for as long as the process lives. Call it first; once is enough."""
    _restore_sigint()
    _occupy_standard_descriptors()
    input, output = _duplicate(0), _duplicate(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    stray = StrayOutput()
    _print_by_lines()
    return Claim(input, output, stray)


def _restore_sigint() -> None:
    """Until the loop handles it, an interrupt ends the program at once, with no traceback."""
    ours = threading.current_thread() is threading.main_thread()
    if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _occupy_standard_descriptors() -> None:
    """A program may be started with some of them closed; nothing else shall get their numbers."""
    for fd in range(_FIRST_PRIVATE):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is `fd`


def _duplicate(fd: int) -> int:
    if sys.platform == "win32":
        import msvcrt

        private = os.dup(fd)
        msvcrt.setmode(private, os.O_BINARY)
        return private
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)


def _print_by_lines() -> None:
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(line_buffering=True)

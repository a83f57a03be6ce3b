"""A shell command as a child process. The rule it owns: when the call is over, nothing of the command runs on.

The child leads its own session. Its group is signalled before its leader is reaped, so that the number cannot mean
somebody else; `family.py` finds who left the group.
The exit of the leader ends the command: a grandchild that holds the pipe open holds nobody up. Built on descriptors
and not on a backend's subprocess module, it behaves the same on asyncio and trio.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence

import anyio
import anyio.to_thread
from msgspec import Struct

from acp_agent.errors import ToolError
from acp_agent.tools.family import Family
from acp_agent.tools.text import join_ends

__all__ = ["QUIET_ENVIRONMENT", "CommandResult", "OutputBuffer", "run_process"]

GRACE_SECONDS = 0.7  # between SIGTERM and SIGKILL
DRAIN_SECONDS = 0.2  # for what the pipe still holds when the leader is gone
POLL_SECONDS = 0.05
REPORT_SECONDS = 0.1
READ_BYTES = 64 * 1024

QUIET_ENVIRONMENT = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
}


class OutputBuffer:
    """What was printed: all of it while it is short, then its head and its tail, of `ends` characters each."""

    def __init__(self, ends: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._ends = ends
        self._head = ""
        self._tail: list[str] = []
        self._tail_length = 0
        self._dropped = 0  # bytes

    def feed(self, data: bytes, *, final: bool = False) -> None:
        text = self._decoder.decode(data, final)
        room = self._ends - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        if text:
            self._tail.append(text)
            self._tail_length += len(text)
            if self._tail_length > 2 * self._ends:  # now and then, not each time
                self._drop()

    def text(self, limit: int) -> str:
        """The text, cut to about `limit` bytes."""
        self._drop()
        return join_ends(self._head, "".join(self._tail), limit, missing=self._dropped)

    def last(self, characters: int) -> str:
        """The last `characters` of what was printed so far."""
        pieces: list[str] = []
        for piece in reversed([self._head, *self._tail]):
            pieces.append(piece[-characters:])
            characters -= len(piece)
            if characters <= 0:
                break
        return "".join(reversed(pieces))

    @property
    def is_cut(self) -> bool:
        return self._dropped > 0 or self._tail_length > self._ends

    def _drop(self) -> None:
        tail = "".join(self._tail)
        if len(tail) > self._ends:
            self._dropped += len(tail[: -self._ends].encode(errors="replace"))
            tail = tail[-self._ends :]
        self._tail, self._tail_length = [tail], len(tail)


class CommandResult(Struct):
    """How a command ended. `exit_code` is None when it was killed or its end is unknown."""

    output: OutputBuffer
    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False


async def run_process(
    command: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout: float,
    ends: int,
    on_output: Callable[[OutputBuffer], None],
) -> CommandResult:
    """Run `command` to its end, its cancellation or `timeout` seconds; in each case nothing of it is left.

    `on_output` is called in the loop when there is news, ten times a second at most. Raises `ToolError` when the
    command cannot start.
    """
    child = _Child(ends)
    try:
        await anyio.to_thread.run_sync(child.start, command, cwd, env)
        with anyio.move_on_after(timeout) as deadline:
            await child.run(on_output)
        result = CommandResult(child.output, timed_out=deadline.cancelled_caught)
    finally:
        with anyio.CancelScope(shield=True):
            await child.end()
    child.output.feed(b"", final=True)
    if child.returncode is not None and child.returncode >= 0:
        result.exit_code = child.returncode
    elif child.returncode is not None:
        result.signal = _signal_name(-child.returncode)
    return result


class _Child:
    """The process, its pipe, and its family."""

    def __init__(self, ends: int) -> None:
        self.output = OutputBuffer(ends)
        self.returncode: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._news = anyio.Event()

    def start(self, command: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
        """Start it, in a worker thread: waiting for the exec may take a while."""
        self._pipe, theirs = os.pipe()
        try:
            os.set_blocking(self._pipe, False)
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ToolError(f"The command could not be started: {error}.") from error
        finally:
            os.close(theirs)

    async def run(self, on_output: Callable[[OutputBuffer], None]) -> None:
        """Read until the leader is gone and what it printed is read."""
        async with anyio.create_task_group() as tasks:
            read = anyio.Event()
            tasks.start_soon(self._read, read)
            tasks.start_soon(self._report, on_output)
            await self._wait_for_exit()
            with anyio.move_on_after(DRAIN_SECONDS):
                await read.wait()
            tasks.cancel_scope.cancel()

    async def _report(self, on_output: Callable[[OutputBuffer], None]) -> None:
        """Say what there is, soon after it came, however many pieces it came in."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            on_output(self.output)
            await anyio.sleep(REPORT_SECONDS)

    async def _read(self, done: anyio.Event) -> None:
        while True:
            await anyio.wait_readable(self._pipe)
            try:
                data = os.read(self._pipe, READ_BYTES)
            except BlockingIOError:
                continue
            if not data:
                break
            self.output.feed(data)
            self._news.set()
        done.set()

    async def _wait_for_exit(self) -> None:
        """Wait until the leader is gone, without reaping it."""
        assert self._process is not None
        try:
            descriptor = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):  # not on this system: a thread waits, and is left behind on cancel
            await anyio.to_thread.run_sync(_wait_unreaped, self._process.pid, abandon_on_cancel=True)
            return
        try:
            await anyio.wait_readable(descriptor)
        finally:
            os.close(descriptor)

    async def end(self) -> None:
        """End what is left of the family, then reap the leader and close the pipe. Takes two grace periods at most."""
        try:
            if self._process is not None:
                await _end_family(Family(self._process.pid))
                with anyio.move_on_after(GRACE_SECONDS):  # a process stuck in the kernel is left to the system
                    self.returncode = await anyio.to_thread.run_sync(self._process.wait, abandon_on_cancel=True)
        finally:
            if self._pipe >= 0:
                os.close(self._pipe)


async def _end_family(family: Family) -> None:
    """SIGTERM to whoever is left, SIGKILL to whoever is left after the grace period."""
    try:
        if await anyio.to_thread.run_sync(family.find_living):
            family.send_signal(signal.SIGTERM)
        for number in (None, signal.SIGKILL):
            with anyio.move_on_after(GRACE_SECONDS):
                while await anyio.to_thread.run_sync(family.find_living):
                    if number is not None:  # again and again: who forks meanwhile is found in the next round
                        family.send_signal(number)
                    await anyio.sleep(POLL_SECONDS)
                return
    finally:
        family.send_signal(signal.SIGKILL)


def _wait_unreaped(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

"""A server's process. The rule it owns: when `end` returns, nothing of the process group is left.

The child leads a group and session of its own, and only we hold the other end of its stdin: should we be killed,
it reads EOF, and a guard sees to the rest. It is ended by EOF, then SIGTERM, then SIGKILL, to the whole group, also
when the leader went by itself: what it started may have stayed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import anyio
import anyio.lowlevel

from acp_agent.mcp.guard import Guard

__all__ = ["ServerProcess", "base_environment"]

_BLOCK = 64 * 1024
_EOF_GRACE = 0.5
_TERM_GRACE = 0.5
_KILL_GRACE = 0.5
_POLL = 0.01
_INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")


def base_environment(added: Mapping[str, str]) -> dict[str, str]:
    """What a server's environment is: the few variables that every program needs, and `added`."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ} | dict(added)


class ServerProcess:
    """A child with three pipes, read and written without threads. One reader per pipe at a time."""

    def __init__(self, command: str, args: Sequence[str], *, env: Mapping[str, str], cwd: str) -> None:
        """Raises `OSError` when it cannot be started; a command that is not found says so by name."""
        environment = base_environment(env)
        executable = shutil.which(command, path=environment.get("PATH"))
        if executable is None:
            raise FileNotFoundError(f"The command {command!r} was not found, or cannot be executed.")
        self._popen = subprocess.Popen(
            [executable, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
        self.pid = self._popen.pid
        self._guard = Guard(self.pid)
        self._went_by_itself = False
        self._pipes = [pipe for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr) if pipe]
        self._stdin, self._stdout, self._stderr = (pipe.fileno() for pipe in self._pipes)
        for fd in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(fd, False)

    @property
    def how_it_ended(self) -> str:
        """For a sentence, after `end`: ` with status 1`, ` by signal 9`, or nothing if it was we who ended it."""
        status = self._popen.returncode if self._went_by_itself else None
        if status is None:
            return ""
        return f" with status {status}" if status >= 0 else f" by signal {-status}"

    async def read_stdout(self) -> bytes:
        """The next block, empty at EOF."""
        return await _read(self._stdout)

    async def read_stderr(self) -> bytes:
        """The next block, empty at EOF."""
        return await _read(self._stderr)

    async def write_stdin(self, data: bytes) -> None:
        """Write all of it, as fast as it is read. Raises `BrokenPipeError` when nobody reads any more."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._stdin, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._stdin)
        await anyio.lowlevel.checkpoint()

    async def end(self) -> None:
        """End the group and close the pipes; bounded to about one and a half seconds, and not to be cancelled."""
        with anyio.CancelScope(shield=True):
            self._pipes[0].close()
            self._went_by_itself = await self._wait(self._has_exited, _EOF_GRACE)
            # The leader, dead or not, is not reaped before its group was told: its id cannot mean another group yet.
            self._signal_group(signal.SIGTERM)
            if not await self._wait(self._is_gone, _TERM_GRACE):
                self._signal_group(signal.SIGKILL)
                await self._wait(self._is_gone, _KILL_GRACE)
            self._guard.dismiss()
            for pipe in self._pipes[1:]:
                pipe.close()

    async def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Until the condition holds, or the time is over. What the child still says is thrown away meanwhile."""
        deadline = anyio.current_time() + seconds
        while not condition():
            if anyio.current_time() >= deadline:
                return False
            _drain(self._stdout)
            _drain(self._stderr)
            await anyio.sleep(_POLL)
        return True

    def _has_exited(self) -> bool:
        """Whether the leader is dead, without reaping it where the platform can tell."""
        if self._popen.returncode is not None:
            return True
        if not hasattr(os, "waitid"):
            return self._popen.poll() is not None
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return True

    def _is_gone(self) -> bool:
        """Whether the leader is reaped and nothing is left of its group."""
        if self._popen.poll() is None:
            return False
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # a member under another user, or a zombie: there is something
        return False

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


async def _read(fd: int) -> bytes:
    while True:
        await anyio.wait_readable(fd)
        with suppress(BlockingIOError):
            return os.read(fd, _BLOCK)


def _drain(fd: int) -> None:
    """Throw away what is there, a bounded amount of it."""
    with suppress(BlockingIOError, OSError):
        for _ in range(16):
            if not os.read(fd, _BLOCK):
                return

"""An agent in a process of its own, and the wire to it: for test clients and the demo."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import IO

import anyio
from anyio.abc import Process

from acp_agent.transports.descriptors import DescriptorWire

__all__ = ["AgentProcess", "spawn_agent"]


class AgentProcess:
    """A running agent: `wire` is its stdin and stdout."""

    def __init__(self, process: Process, wire: DescriptorWire) -> None:
        self._process = process
        self.wire = wire

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs, negative for the signal that ended it."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for its end, and return the exit code."""
        return await self._process.wait()

    def terminate(self) -> None:
        """Ask it and all that it started to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and all that it started."""
        self._signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.send_signal(number)
            else:
                os.killpg(self.pid, number)  # it leads a group of its own


@asynccontextmanager
async def spawn_agent(
    command: Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stderr: int | IO[bytes] | None = None,
    grace: float = 2.0,
) -> AsyncIterator[AgentProcess]:
    """Start an agent. `stderr` is as for `subprocess`: None shares ours, `DEVNULL` drops it.

    On leaving, its stdin is closed; after `grace` seconds it is terminated, after as many again killed, and whatever it
    started goes with it. Raises `OSError` if the command cannot be started.
    """
    their_input, our_output = os.pipe()
    our_input, their_output = os.pipe()
    try:
        process = await anyio.open_process(
            command, stdin=their_input, stdout=their_output, stderr=stderr, cwd=cwd, env=env, start_new_session=True
        )
    except BaseException:
        os.close(our_input)
        os.close(our_output)
        raise
    finally:
        os.close(their_input)
        os.close(their_output)
    agent = AgentProcess(process, DescriptorWire(our_input, our_output))
    try:
        yield agent
    finally:
        with anyio.CancelScope(shield=True):
            await _end(agent, grace)
            await process.aclose()


async def _end(agent: AgentProcess, grace: float) -> None:
    await agent.wire.aclose()
    for insist in (agent.terminate, agent.kill):
        with anyio.move_on_after(grace):
            await agent.wait()
            break
        insist()
    await agent.wait()
    agent.kill()  # what it left behind in its group

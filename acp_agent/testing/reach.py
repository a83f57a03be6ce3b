"""Reaching an agent: served in this process over a pipe in memory, or started as a process of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct

from acp_agent.testing.link import ClientWire
from acp_agent.transports.memory import memory_pair
from acp_agent.transports.subprocess import AgentProcess, spawn_agent

if TYPE_CHECKING:
    from acp_agent.agent import Agent

__all__ = ["Reached", "serve_in_memory", "start_process"]


class Reached(Struct):
    """An agent at the other end of `wire`. `wait_ended` returns when it is gone."""

    wire: ClientWire
    wait_ended: Callable[[], Awaitable[object]]
    process: AgentProcess | None = None


@asynccontextmanager
async def serve_in_memory(agent: Agent, *, drain: float) -> AsyncIterator[Reached]:
    """Serve `agent` in a task; what is left of it when the block is left is cancelled."""
    ours, theirs = memory_pair()
    ended = anyio.Event()

    async def serve() -> None:
        try:
            await agent.make_server(drain=drain).serve(theirs)
        finally:
            ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, name="agent under test")
        yield Reached(ours, ended.wait)
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def start_process(
    command: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str] | None, stderr: int | None
) -> AsyncIterator[Reached]:
    """Start `command`; it is ended, with all that it started, when the block is left."""
    stderr = subprocess.DEVNULL if stderr is None else stderr
    async with spawn_agent(command, cwd=cwd, env=env, stderr=stderr) as process:
        yield Reached(process.wire, process.wait, process)

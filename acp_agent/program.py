"""An agent as a program: stdin and stdout, signals, and leaving.

SIGTERM, SIGINT and SIGHUP end it like the end of the input, without waiting for prompts; a second one ends it at once.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Literal

import anyio

from acp_agent.log import get_logger
from acp_agent.transports.stdio import claim_stdio, stdio_stream

if TYPE_CHECKING:
    from acp_agent.agent import Agent
    from acp_agent.server import AgentServer, Trace

__all__ = ["leave", "run_on_stdio"]

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name))


def run_on_stdio(
    agent: Agent,
    *,
    backend: Literal["asyncio", "trio"] = "asyncio",
    drain: float | None = None,
    trace: Trace | None = None,
) -> None:
    """Serve until the client is gone. Threads that are stuck in a tool do not hold the process."""
    claim_stdio()
    anyio.run(_serve, agent, drain, trace, backend=backend)
    if any(thread.is_alive() and not thread.daemon for thread in _other_threads()):
        leave(0)


def leave(code: int) -> None:
    """End the process now, with nothing unsaid: logs are flushed, threads are not waited for."""
    import logging

    logging.shutdown()
    os._exit(code)


def _other_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread is not threading.main_thread()]


async def _serve(agent: Agent, drain: float | None, trace: Trace | None) -> None:
    options = {} if drain is None else {"drain": drain, "drain_tools": True}
    server = agent.make_server(trace=trace, **options)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signals, server)
        await server.serve(stdio_stream())
        tasks.cancel_scope.cancel()
    with anyio.CancelScope(shield=True):
        await agent.aclose()


async def _stop_on_signals(server: AgentServer) -> None:
    with anyio.open_signal_receiver(*SIGNALS) as received:
        async for number in received:
            get_logger("acp_agent.program").info("stopped by a signal", signal=signal.Signals(number).name)
            server.stop()
            break
        async for number in received:
            os._exit(128 + number)

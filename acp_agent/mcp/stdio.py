"""A server over its own stdin and stdout, as the transport that the SDK's client drives.

Not the SDK's own: that one leaves what a server started behind when the server itself goes at EOF, wants a real
file for stderr, keeps a line of any length, and does not say that the server went away.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from acp_agent.mcp.noise import ServerNoise
from acp_agent.mcp.process import ServerProcess

__all__ = ["MESSAGE_LIMIT", "Streams", "stdio_streams"]

MESSAGE_LIMIT = 16 * 1024 * 1024  # bytes of one message; a server that sends a longer one is cut off
_QUEUED_MESSAGES = 256  # so that a cancel is accepted also while the server does not read
_FLOOD_PAUSE = 0.02

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def stdio_streams(
    start: Callable[[], ServerProcess], noise: ServerNoise, on_end: Callable[[], None]
) -> AsyncIterator[Streams]:
    """Start the process, carry messages to and from it, and end it on the way out, however that comes.

    `on_end` is called when the server has closed its stdout, sent too much, or no longer reads.
    """
    process = start()
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](_QUEUED_MESSAGES)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read_stdout, process, to_session, noise, on_end)
            group.start_soon(_write_stdin, process, from_session, on_end)
            group.start_soon(_read_stderr, process, noise)
            yield from_server, to_server
            group.cancel_scope.cancel()
    finally:
        for stream in (to_session, from_server, to_server, from_session):
            stream.close()
        await process.end()
        noise.finish()


async def _read_stdout(
    process: ServerProcess, to_session: Incoming, noise: ServerNoise, on_end: Callable[[], None]
) -> None:
    rest = bytearray()
    with to_session:
        while len(rest) <= MESSAGE_LIMIT and (block := await process.read_stdout()):
            *lines, last = block.split(b"\n")
            if lines:
                lines[0] = bytes(rest) + lines[0]
                rest.clear()
            rest += last
            for line in lines:
                if not await _deliver(line, to_session, noise):
                    return
    if rest:
        noise.add("stdout", bytes(rest[:MESSAGE_LIMIT]))
    on_end()


async def _deliver(line: bytes, to_session: Incoming, noise: ServerNoise) -> bool:
    """Hand one line on, a message to the session, anything else to the log. False when nobody listens any more."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        if line.strip():
            noise.add("stdout", line)
        if noise.flooding:
            await anyio.lowlevel.checkpoint()
        return True
    try:
        await to_session.send(SessionMessage(message))
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        return False
    return True


async def _write_stdin(
    process: ServerProcess, from_session: MemoryObjectReceiveStream[SessionMessage], on_end: Callable[[], None]
) -> None:
    with from_session:
        async for item in from_session:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                await process.write_stdin(text.encode("utf-8", "replace") + b"\n")
            except OSError:  # it reads no more: what waits for an answer is told so by whoever owns the connection
                on_end()
                return


async def _read_stderr(process: ServerProcess, noise: ServerNoise) -> None:
    while block := await process.read_stderr():
        noise.feed(block)
        if noise.flooding:
            await anyio.sleep(_FLOOD_PAUSE)

"""What the tests of the wire share: a far end that speaks bytes, and a handler made of functions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import msgspec
import structlog.testing
from msgspec import Raw

from acp_agent.errors import RequestError
from acp_agent.jsonrpc.connection import Connection, IncomingRequest, Work
from acp_agent.transports.memory import MemoryWire, memory_pair


class Far:
    """The other end of a connection: writes what it is told, byte for byte, and decodes what it gets."""

    def __init__(self, wire: MemoryWire) -> None:
        self.wire = wire
        self.lines: list[bytes] = []
        self._rest = b""
        self._arrived = anyio.Event()

    async def read(self) -> None:
        """Read until the end; to be run in a task."""
        await self.wire.pump(self._feed)

    def _feed(self, block: bytes) -> None:
        *lines, self._rest = (self._rest + block).split(b"\n")
        self.lines += lines
        self._arrived.set()

    async def receive_line(self) -> bytes:
        while not self.lines:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        return self.lines.pop(0)

    async def receive(self) -> Any:
        return json.loads(await self.receive_line())

    async def write(self, data: bytes) -> None:
        while data:
            data = data[self.wire.write(memoryview(data)) :]
            await self.wire.wait_writable()

    async def send(self, *messages: Any) -> None:
        """Each on a line of its own, all in one write."""
        await self.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))


class Functions:
    """A handler: `requests` by method, and a list of the notifications that came."""

    def __init__(self, **requests: Callable[[IncomingRequest], Work | None]) -> None:
        self.requests = {"ping": answer_inline} | requests
        self.notifications: list[tuple[str, Any]] = []

    def begin_request(self, request: IncomingRequest) -> Work | None:
        if request.method not in self.requests:
            raise RequestError.method_not_found(request.method)
        return self.requests[request.method](request)

    def receive_notification(self, method: str, params: Raw | None) -> None:
        self.notifications.append((method, None if params is None else msgspec.json.decode(params)))
        if method == "explode":
            raise ValueError("secret")


def answer_inline(request: IncomingRequest) -> None:
    request.respond({"pong": None if request.params is None else msgspec.json.decode(request.params)})


def work(function: Callable[[], Awaitable[Any]]) -> Callable[[IncomingRequest], Work]:
    """A request whose work is `function`, whatever it says."""
    return lambda _request: function


@asynccontextmanager
async def connected(
    handler: Functions | None = None,
    *,
    reading: bool = True,
    capacity: int = 64 * 1024,
    piece: int | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Connection, Far]]:
    """A connection that runs, and its far end, which reads unless told otherwise."""
    near, far_wire = memory_pair(capacity=capacity, piece=piece)
    far = Far(far_wire)
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(20):
            async with Connection(near, handler or Functions(), **options) as connection:
                tasks.start_soon(connection.run)
                if reading:
                    tasks.start_soon(far.read)
                yield connection, far
            await far_wire.aclose()


@contextmanager
def logged() -> Iterator[list[Any]]:
    """The events that are logged meanwhile."""
    with structlog.testing.capture_logs() as events:
        yield events

"""A wire over any anyio `ByteStream`: a socket, TLS, a stapled pair of pipes."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import ByteStream, TaskGroup

from acp_agent.errors import ConnectionClosed
from acp_agent.transports.loop import RunningLoop

__all__ = ["StreamWire"]

_BLOCK = 64 * 1024  # bytes
_CAPACITY = 64 * 1024  # bytes taken before those taken earlier are sent
_PATIENCE = 1.0  # seconds for the last bytes, at the end


class StreamWire:
    """Takes what is written and sends it from a task of its own; enter it before the connection that uses it."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._pending = bytearray()
        self._changed: list[anyio.Event] = []
        self._closed = False
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        self._loop = RunningLoop()
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._keep_sending, name="stream sender")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()
        assert self._tasks
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)  # the sender does not raise, so `error` stays what it is

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        while True:
            try:
                block = await self._stream.receive(_BLOCK)
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return
            feed(block)

    def write(self, data: memoryview) -> int:
        if self._closed:
            raise ConnectionClosed
        taken = min(len(data), _CAPACITY - len(self._pending))
        self._pending += data[:taken]
        self._announce()
        return taken

    async def wait_writable(self) -> None:
        while len(self._pending) >= _CAPACITY and not self._closed:
            await self._wait_change()
        if self._closed:
            raise ConnectionClosed

    def call_soon(self, function: Callable[[], None]) -> None:
        self._loop.call_soon(function)

    async def aclose(self) -> None:
        with anyio.move_on_after(_PATIENCE):
            while self._pending and not self._closed:
                await self._wait_change()
        self._closed = True
        await anyio.aclose_forcefully(self._stream)

    async def _keep_sending(self) -> None:
        while not self._closed:
            if not self._pending:
                await self._wait_change()
            sent = bytes(self._pending)
            try:
                await self._stream.send(sent)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self._closed = True
            del self._pending[: len(sent)]
            self._announce()

    def _announce(self) -> None:
        changed, self._changed = self._changed, []
        for event in changed:
            event.set()

    async def _wait_change(self) -> None:
        event = anyio.Event()
        self._changed.append(event)
        await event.wait()

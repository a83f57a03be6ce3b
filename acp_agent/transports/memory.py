"""A pipe in memory: two wires, each the other's far end, that behave as pipes do."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from anyio.lowlevel import checkpoint

from acp_agent.errors import ConnectionClosed
from acp_agent.transports.loop import RunningLoop

__all__ = ["MemoryWire", "memory_pair"]

CAPACITY = 64 * 1024  # bytes, as a Linux pipe


class _Pipe:
    """One direction: at most `capacity` bytes on their way, of which `piece` are taken or handed out at a time."""

    def __init__(self, capacity: int, piece: int | None) -> None:
        self.capacity = capacity
        self.piece = piece or capacity
        self.bytes = bytearray()
        self.ended = False  # nothing more is written
        self.abandoned = False  # nothing more is read
        self._changed: list[anyio.Event] = []

    def write(self, data: memoryview) -> int:
        if self.abandoned or self.ended:
            raise ConnectionClosed
        taken = min(self.capacity - len(self.bytes), self.piece, len(data))
        if taken:
            self.bytes += data[:taken]
            self.announce()
        return taken

    def read(self) -> bytes:
        block = bytes(self.bytes[: self.piece])
        del self.bytes[: self.piece]
        self.announce()
        return block

    def announce(self) -> None:
        changed, self._changed = self._changed, []
        for event in changed:
            event.set()

    async def wait_change(self) -> None:
        event = anyio.Event()
        self._changed.append(event)
        await event.wait()


class MemoryWire:
    """One end of a `memory_pair`."""

    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._loop: RunningLoop | None = None

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        pipe = self._incoming
        while True:
            while not pipe.bytes:
                if pipe.ended or pipe.abandoned:
                    return
                await pipe.wait_change()
            feed(pipe.read())
            await checkpoint()

    def write(self, data: memoryview) -> int:
        return self._outgoing.write(data)

    async def wait_writable(self) -> None:
        pipe = self._outgoing
        while len(pipe.bytes) >= pipe.capacity and not pipe.abandoned:
            await pipe.wait_change()
        if pipe.abandoned:
            raise ConnectionClosed

    def call_soon(self, function: Callable[[], None]) -> None:
        if self._loop is None:
            self._loop = RunningLoop()
        self._loop.call_soon(function)

    def send_eof(self) -> None:
        """Write nothing more; what comes from the far end can still be read."""
        self._outgoing.ended = True
        self._outgoing.announce()

    async def aclose(self) -> None:
        self.send_eof()
        self._incoming.abandoned = True
        self._incoming.bytes.clear()
        self._incoming.announce()


def memory_pair(*, capacity: int = CAPACITY, piece: int | None = None) -> tuple[MemoryWire, MemoryWire]:
    """Two ends of a pipe that holds `capacity` bytes each way; `piece=1` is the worst of pipes, a byte at a time."""
    there, back = _Pipe(capacity, piece), _Pipe(capacity, piece)
    return MemoryWire(back, there), MemoryWire(there, back)

"""Everything that goes out, in one buffer, in the order in which it was said.

The rule it owns: **nothing overtakes, nothing waits to be said, and what is said soon leaves.** A frame is encoded
straight into the buffer by a plain call. The buffer leaves in the loop's next round, at once when it holds enough or
when somebody waits for an answer, and as the client reads when the pipe is full: then one task owns the pipe. `full`
tells producers to wait; answers and errors never do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import anyio
import msgspec

from acp_agent.errors import ConnectionClosed
from acp_agent.transports.base import Wire

__all__ = ["HIGH_WATER", "Outbox", "Trace"]

Trace: TypeAlias = Callable[[str, bytes], None]

HIGH_WATER = 256 * 1024  # bytes that may wait for a client that does not read
_ENOUGH = 32 * 1024  # bytes that are worth a write of their own
_AT_ONCE = 32  # producers to wake together: a thousand would fill the buffer again and find it full

# Line ends to weak readers, which inside a string may as well be escaped; outside of one they cannot occur.
_LINE_ENDS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


class Owner(Protocol):
    """Whose outbox it is: `full` is set at its edges, `close` called when nobody reads any more."""

    full: bool

    def close(self) -> None: ...


class Outbox:
    """The outgoing side of one connection, which is its owner."""

    def __init__(self, wire: Wire, owner: Owner, high_water: int = HIGH_WATER, trace: Trace | None = None) -> None:
        self._wire = wire
        self._owner = owner
        self._high_water = high_water
        self._trace = trace
        self._buffer = bytearray()
        self._ready = 0  # up to here the buffer is escaped and traced
        self._encode_into = msgspec.json.Encoder().encode_into
        self._held = False  # a block is being handled; there is a flush at its end
        self._coming = False  # there is a flush for sure, in the loop's next round or at the end of the block
        self._blocked = False  # the pipe is full and belongs to `keep_writing`
        self._unblock: anyio.Event | None = None
        self._producers: deque[anyio.Event] = deque()
        self._drainers: list[anyio.Event] = []
        self.gone = False

    def put(self, prefix: bytes, value: Any, suffix: bytes) -> None:
        """Add a frame. If the value has no JSON, the buffer is left as it was and msgspec's error is raised."""
        self._add(prefix, value, suffix)
        if len(self._buffer) >= _ENOUGH:
            self._spill()
        elif not self._coming:
            self._coming = True
            self._wire.call_soon(self._flush_as_scheduled)

    def send(self, prefix: bytes, value: Any, suffix: bytes) -> None:
        """Add a frame that somebody waits for, and flush."""
        self._add(prefix, value, suffix)
        if not self._held:
            self.flush()

    def _add(self, prefix: bytes, value: Any, suffix: bytes) -> None:
        buffer = self._buffer
        start = len(buffer)
        buffer += prefix
        try:
            self._encode_into(value, buffer, -1)
        except BaseException:
            del buffer[start:]
            raise
        buffer += suffix

    def hold(self) -> None:
        """Many answers may come: let them leave together, at `release`."""
        self._held = self._coming = True

    def release(self) -> None:
        self._held = self._coming = False
        self.flush()

    def flush(self) -> None:
        """Give the wire what it takes; what it does not take is written by `keep_writing`."""
        if self.gone:
            self._buffer.clear()
        elif self._buffer and not self._blocked:
            self._write()
            if self._buffer:
                self._blocked = True
                if self._unblock:
                    self._unblock.set()

    async def keep_writing(self) -> None:
        """Own the pipe whenever it is full. One task runs this for as long as the connection lives."""
        while not self.gone:
            if not self._blocked:
                self._unblock = anyio.Event()
                await self._unblock.wait()
            while self._buffer and not self.gone:
                try:
                    await self._wire.wait_writable()
                except ConnectionClosed:
                    self._give_up()
                else:
                    self._write()
            self._blocked = False

    async def wait_for_room(self) -> None:
        """Return when the buffer is not full, at once if it is not, or if nobody reads any more."""
        while self._owner.full:
            event = anyio.Event()
            self._producers.append(event)
            await event.wait()

    async def drain(self) -> None:
        """Return when all is with the wire, or nobody reads any more."""
        self.flush()
        while self._buffer:
            event = anyio.Event()
            self._drainers.append(event)
            await event.wait()

    def _flush_as_scheduled(self) -> None:
        self._coming = False
        self.flush()

    def _spill(self) -> None:
        self.flush()
        if len(self._buffer) > self._high_water:
            self._owner.full = True

    def _write(self) -> None:
        self._make_ready()
        buffer = self._buffer
        try:
            with memoryview(buffer) as view:
                taken = self._wire.write(view)
        except ConnectionClosed:
            self._give_up()
            return
        del buffer[:taken]
        self._ready -= taken
        self._announce_room()

    def _make_ready(self) -> None:
        buffer, start = self._buffer, self._ready
        if start or not buffer.isascii():
            for raw, escaped in _LINE_ENDS:
                if buffer.find(raw, start) >= 0:
                    buffer[start:] = buffer[start:].replace(raw, escaped)
        if self._trace:
            for frame in bytes(buffer[start:]).split(b"\n")[:-1]:
                self._trace("out", frame)
        self._ready = len(buffer)

    def _give_up(self) -> None:
        """Nobody reads: drop what there is, let nobody wait, and say so."""
        self.gone = True
        self._buffer.clear()
        self._announce_room()
        self._owner.close()

    def _announce_room(self) -> None:
        if not self._buffer:
            for event in self._drainers:
                event.set()
            self._drainers.clear()
        if self._owner.full and len(self._buffer) <= self._high_water // 2:
            self._owner.full = False
            self._wake_producers()

    def _wake_producers(self) -> None:
        """A few now, the next ones in a later round if there is still room."""
        if self._owner.full:
            return
        for _ in range(min(_AT_ONCE, len(self._producers))):
            self._producers.popleft().set()
        if self._producers:
            self._wire.call_soon(self._wake_producers)

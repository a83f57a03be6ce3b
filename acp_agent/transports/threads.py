"""The halves of a wire for descriptors that cannot be polled: a daemon thread each, which may block as it likes.

Whole blocks are handed over, a bounded number of them, by one call into the loop each. A thread that is stuck in the
system when the wire is closed is left behind with its descriptor; being a daemon, it holds up nothing.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

import anyio

from acp_agent.errors import ConnectionClosed
from acp_agent.transports.loop import RunningLoop

__all__ = ["ThreadSink", "ThreadSource"]

_BLOCK = 64 * 1024  # bytes
_READ_AHEAD = 4  # blocks
_CAPACITY = 64 * 1024  # bytes that may wait for the writing thread
_PATIENCE = 1.0  # seconds for the last bytes, at the end


class ThreadSource:
    """Reads ahead in a thread, from the first `pump` on."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._blocks: deque[bytes] = deque()
        self._arrived: anyio.Event | None = None
        self._room = threading.Semaphore(_READ_AHEAD)
        self._thread: threading.Thread | None = None
        self._closed = False

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._read, args=[RunningLoop()], name="acp reader", daemon=True)
            self._thread.start()
        while True:
            while self._blocks:
                if not self._blocks[0]:
                    return  # the end stays where it is, for the next one who looks
                self._room.release()
                feed(self._blocks.popleft())
            self._arrived = anyio.Event()
            await self._arrived.wait()

    def close(self) -> None:
        closed_before, self._closed = self._closed, True
        self._room.release()
        if self._thread is None and not closed_before:
            os.close(self._fd)

    def _read(self, loop: RunningLoop) -> None:
        block = None
        while block != b"":
            self._room.acquire()
            if self._closed:
                break
            try:
                block = os.read(self._fd, _BLOCK)
            except BlockingIOError:  # somebody else put it into non-blocking mode
                select.select([self._fd], [], [])
                self._room.release()
                continue
            except OSError:
                block = b""
            if not loop.post(partial(self._take, block)):
                break
        os.close(self._fd)

    def _take(self, block: bytes) -> None:
        self._blocks.append(block)
        if self._arrived:
            self._arrived.set()


class ThreadSink:
    """Takes a copy of what is written and has a thread write it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pending = bytearray()
        self._changed = threading.Condition()
        self._written: list[anyio.Event] = []
        self._thread: threading.Thread | None = None
        self._closed = False
        self._broken = False

    def write(self, data: memoryview) -> int:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._write, args=[RunningLoop()], name="acp writer", daemon=True)
            self._thread.start()
        with self._changed:
            if self._broken or self._closed:
                raise ConnectionClosed
            taken = min(len(data), _CAPACITY - len(self._pending))
            self._pending += data[:taken]
            self._changed.notify()
        return taken

    async def wait_writable(self) -> None:
        while len(self._pending) >= _CAPACITY and not self._broken:
            await self._wait_written()
        if self._broken:
            raise ConnectionClosed

    async def flush(self) -> None:
        with anyio.move_on_after(_PATIENCE, shield=True):
            while self._pending and not self._broken:
                await self._wait_written()

    def close(self) -> None:
        with self._changed:
            closed_before, self._closed = self._closed, True
            self._changed.notify()
        if self._thread is None and not closed_before:
            os.close(self._fd)

    async def _wait_written(self) -> None:
        event = anyio.Event()
        self._written.append(event)
        if self._pending and not self._broken:
            await event.wait()

    def _write(self, loop: RunningLoop) -> None:
        while not self._broken:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closed)
                block = bytes(self._pending)
            if not block:
                break
            try:
                written = os.write(self._fd, block)
            except BlockingIOError:
                select.select([], [self._fd], [])
                continue
            except OSError:
                self._broken, written = True, len(block)
            with self._changed:
                del self._pending[:written]
            loop.post(self._announce)
        os.close(self._fd)

    def _announce(self) -> None:
        written, self._written = self._written, []
        for event in written:
            event.set()

"""A wire over two file descriptors of any kind: pipes, sockets, terminals, files, the null device.

The rule it owns: **the loop never blocks on a descriptor, and no mode of it changes that somebody else may see.**
Non-blocking mode belongs to the open file, which a parent or stderr may share, so a pipe or terminal is opened a
second time, for us alone, and a socket is told call by call. What can neither be polled nor opened again gets a thread.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Callable
from typing import Protocol

import anyio

from acp_agent.errors import ConnectionClosed
from acp_agent.transports.loop import RunningLoop
from acp_agent.transports.threads import ThreadSink, ThreadSource

__all__ = ["BLOCK", "DescriptorWire", "Sink", "Source", "open_sink", "open_source"]

BLOCK = 64 * 1024  # bytes; above 128 KiB each read would map memory and unmap it


class Source(Protocol):
    """The reading half of a wire."""

    async def pump(self, feed: Callable[[bytes], None]) -> None: ...

    def close(self) -> None: ...


class Sink(Protocol):
    """The writing half of a wire."""

    def write(self, data: memoryview) -> int: ...

    async def wait_writable(self) -> None: ...

    async def flush(self) -> None:
        """Wait, not for long, until what was taken is written."""

    def close(self) -> None: ...


class DescriptorWire:
    """Reads from one descriptor and writes to another; both are its own from now on."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = open_source(source)
        self._sink = open_sink(sink)
        self._loop: RunningLoop | None = None

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        await self._source.pump(feed)

    def write(self, data: memoryview) -> int:
        return self._sink.write(data)

    async def wait_writable(self) -> None:
        await self._sink.wait_writable()

    def call_soon(self, function: Callable[[], None]) -> None:
        if self._loop is None:
            self._loop = RunningLoop()
        self._loop.call_soon(function)

    def send_eof(self) -> None:
        """Write nothing more; what arrives can still be read."""
        self._sink.close()

    async def aclose(self) -> None:
        await self._sink.flush()
        self._sink.close()
        self._source.close()


class PolledSource:
    """A descriptor that tells when there is something to read."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        loop = RunningLoop()
        if loop.asyncio:
            await self._pump_asyncio(feed, loop)
            return
        while True:
            await anyio.wait_readable(self._fd)
            block = self._read()
            if block == b"":
                return
            if block:
                feed(block)

    async def _pump_asyncio(self, feed: Callable[[bytes], None], loop: RunningLoop) -> None:
        """With the reader kept: adding and removing it for each block costs more than all the rest."""
        assert loop.asyncio
        ended = loop.asyncio.create_future()

        def read() -> None:
            block = self._read()
            if block:
                feed(block)
            elif block == b"" and not ended.done():
                ended.set_result(None)

        loop.add_reader(self._fd, read)
        try:
            await ended
        finally:
            loop.asyncio.remove_reader(self._fd)

    def _read(self) -> bytes | None:
        """A block, b"" at the end, None if there was nothing after all."""
        try:
            return os.read(self._fd, BLOCK)
        except BlockingIOError:
            return None
        except OSError:  # a terminal that hung up, a connection that was reset
            return b""

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        _close(fd)


class PolledSink:
    """A descriptor of our own that is in non-blocking mode, and tells when it takes something."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, data: memoryview) -> int:
        try:
            return self._send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise ConnectionClosed from error

    def _send(self, data: memoryview) -> int:
        return os.write(self._fd, data)

    async def wait_writable(self) -> None:
        if self._fd < 0:
            raise ConnectionClosed
        try:
            await anyio.wait_writable(self._fd)
        except PermissionError:
            pass  # a file is always writable; the next write says what is wrong with it

    async def flush(self) -> None:
        pass  # what was taken is written

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        _close(fd)


class SocketSink(PolledSink):
    """A socket, which is asked not to block in each call."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._socket = socket.socket(fileno=fd)
        self._flags = socket.MSG_DONTWAIT | getattr(socket, "MSG_NOSIGNAL", 0)

    def _send(self, data: memoryview) -> int:
        return self._socket.send(data, self._flags)

    def close(self) -> None:
        self._fd = -1
        self._socket.close()


def open_source(fd: int) -> Source:
    """The best way to read from a descriptor, which it owns from now on."""
    if sys.platform != "win32" and _is_pollable(fd):
        return PolledSource(_open_again(fd, os.O_RDONLY) or fd)
    return ThreadSource(fd)


def open_sink(fd: int) -> Sink:
    """The best way to write to a descriptor, which it owns from now on."""
    if sys.platform != "win32":
        mode = os.fstat(fd).st_mode
        if stat.S_ISSOCK(mode):
            return SocketSink(fd)
        if stat.S_ISREG(mode) or _is_null(fd):
            return PolledSink(fd)  # takes everything, so nobody ever waits for it
        again = _open_again(fd, os.O_WRONLY) if _is_pollable(fd) else None
        if again is not None:
            return PolledSink(again)
    return ThreadSink(fd)


def _is_pollable(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (stat.S_ISCHR(mode) and os.isatty(fd))


def _is_null(fd: int) -> bool:
    return os.path.samestat(os.fstat(fd), os.stat(os.devnull))


def _open_again(fd: int, access: int) -> int | None:
    """The same pipe or terminal, opened for us alone in non-blocking mode; closes `fd`. None where that cannot be."""
    try:
        again = os.open(f"/proc/self/fd/{fd}", access | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:  # no /proc, no permission, or nobody at the other end
        return None
    os.close(fd)
    return again


def _close(fd: int) -> None:
    if fd >= 0:
        os.close(fd)

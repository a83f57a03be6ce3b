"""What every wire does, whatever it is made of."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import anyio
import pytest
from anyio.abc import SocketStream

from acp_agent.errors import ConnectionClosed
from acp_agent.jsonrpc.connection import Connection
from acp_agent.transports import descriptors
from acp_agent.transports.base import Wire
from acp_agent.transports.descriptors import DescriptorWire, PolledSink, PolledSource, SocketSink
from acp_agent.transports.memory import memory_pair
from acp_agent.transports.streams import StreamWire
from acp_agent.transports.threads import ThreadSink, ThreadSource
from tests.jsonrpc.support import Functions

pytestmark = pytest.mark.anyio

Pair: TypeAlias = tuple[Any, Any]
MakePair: TypeAlias = Callable[[], AbstractAsyncContextManager[Pair]]


@asynccontextmanager
async def memory() -> AsyncIterator[Pair]:
    yield memory_pair()


@asynccontextmanager
async def torn_memory() -> AsyncIterator[Pair]:
    yield memory_pair(capacity=10, piece=7)


def pipe_wires() -> Pair:
    there_end, there = os.pipe()
    back_end, back = os.pipe()
    return DescriptorWire(back_end, there), DescriptorWire(there_end, back)


@asynccontextmanager
async def pipes() -> AsyncIterator[Pair]:
    near, far = pipe_wires()
    assert isinstance(near._source, PolledSource)
    assert isinstance(near._sink, PolledSink)
    yield near, far
    await near.aclose()
    await far.aclose()


@asynccontextmanager
async def sockets() -> AsyncIterator[Pair]:
    ends = socket.socketpair()
    near, far = (DescriptorWire(os.dup(end.fileno()), end.detach()) for end in ends)
    assert isinstance(near._sink, SocketSink)
    yield near, far
    await near.aclose()
    await far.aclose()


@asynccontextmanager
async def threads() -> AsyncIterator[Pair]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(descriptors, "_is_pollable", lambda _fd: False)
        near, far = pipe_wires()
    assert isinstance(near._source, ThreadSource)
    assert isinstance(near._sink, ThreadSink)
    yield near, far
    await near.aclose()
    await far.aclose()


@asynccontextmanager
async def streams() -> AsyncIterator[Pair]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ends = socket.create_connection(server.getsockname()), server.accept()[0]
    near, far = [StreamWire(await SocketStream.from_socket(end)) for end in ends]
    async with near, far:
        yield near, far


ALL = [memory, torn_memory, pipes, sockets, threads, streams]


@pytest.fixture(params=ALL, ids=lambda make: make.__name__)
def make_pair(request: pytest.FixtureRequest) -> MakePair:
    make: MakePair = request.param
    return make


async def write_all(wire: Wire, data: bytes) -> None:
    while data:
        data = data[wire.write(memoryview(data)) :]
        if data:
            await wire.wait_writable()


class Blocks:
    """Keeps what is fed to it; `wait` returns when there are so many bytes."""

    def __init__(self) -> None:
        self.data = b""
        self._arrived = anyio.Event()

    def feed(self, block: bytes) -> None:
        assert block
        self.data += block
        self._arrived.set()

    async def wait(self, size: int) -> bytes:
        while len(self.data) < size:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        return self.data


async def test_bytes_arrive_in_order_both_ways(make_pair: MakePair) -> None:
    with anyio.fail_after(10):
        async with make_pair() as (near, far), anyio.create_task_group() as tasks:
            for this, other in ((near, far), (far, near)):
                blocks = Blocks()
                tasks.start_soon(other.pump, blocks.feed)
                data = b"".join(b"%d," % number for number in range(2000))
                await write_all(this, data)
                assert await blocks.wait(len(data)) == data
            tasks.cancel_scope.cancel()


async def test_reading_can_be_cancelled_and_taken_up_again(make_pair: MakePair) -> None:
    with anyio.fail_after(10):
        async with make_pair() as (near, far):
            blocks = Blocks()
            for expected in (b"one", b"onetwo"):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(far.pump, blocks.feed)
                    await anyio.wait_all_tasks_blocked()
                    await write_all(near, b"one" if expected == b"one" else b"two")
                    assert await blocks.wait(len(expected)) == expected
                    tasks.cancel_scope.cancel()


async def test_the_end_of_the_far_side_is_the_end_of_reading(make_pair: MakePair) -> None:
    with anyio.fail_after(10):
        async with make_pair() as (near, far), anyio.create_task_group() as tasks:
            blocks = Blocks()
            ended = anyio.Event()

            async def pump() -> None:
                await far.pump(blocks.feed)
                await far.pump(blocks.feed)  # it stays at its end
                ended.set()

            tasks.start_soon(pump)
            await write_all(near, b"last words")
            await blocks.wait(10)
            await near.aclose()
            await ended.wait()
            assert blocks.data == b"last words"


@pytest.mark.parametrize("make", [memory, torn_memory, pipes, sockets, threads], ids=lambda make: make.__name__)
async def test_nobody_is_made_to_wait_by_a_far_side_that_does_not_read(make: MakePair) -> None:
    data = b"x" * 3_000_000
    with anyio.fail_after(10):
        async with make() as (near, far):
            taken = 0
            while count := near.write(memoryview(data)[taken:]):
                taken += count
                with anyio.move_on_after(0.05):
                    await near.wait_writable()
            assert taken < len(data)
            with anyio.move_on_after(0.05) as waiting:
                await near.wait_writable()
            assert waiting.cancelled_caught
            blocks = Blocks()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(far.pump, blocks.feed)
                await near.wait_writable()
                more = 5000
                await write_all(near, data[taken : taken + more])
                assert len(await blocks.wait(taken + more)) == taken + more
                tasks.cancel_scope.cancel()


async def test_writing_to_a_far_side_that_is_gone_says_so(make_pair: MakePair) -> None:
    async def write_on(wire: Wire) -> None:
        while True:
            wire.write(memoryview(b"x" * 100_000))
            await wire.wait_writable()
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(10):
        async with make_pair() as (near, far):
            await far.aclose()
            with pytest.raises(ConnectionClosed):
                await write_on(near)


async def test_waiting_for_a_far_side_that_goes_ends(make_pair: MakePair) -> None:
    with anyio.fail_after(10):
        async with make_pair() as (near, far), anyio.create_task_group() as tasks:
            raised: list[str] = []

            async def write_on() -> None:
                try:
                    while True:
                        near.write(memoryview(b"x" * 100_000))
                        await near.wait_writable()
                        await anyio.lowlevel.checkpoint()
                except ConnectionClosed:
                    raised.append("closed")

            tasks.start_soon(write_on)
            await anyio.sleep(0.05)
            assert raised == []
            await far.aclose()
        assert raised == ["closed"]


async def test_what_should_come_soon_comes_in_a_later_round(make_pair: MakePair) -> None:
    with anyio.fail_after(5):
        async with make_pair() as (near, _):
            called = anyio.Event()
            near.call_soon(called.set)
            assert not called.is_set()
            await called.wait()


async def test_closing_twice_is_closing_once(make_pair: MakePair) -> None:
    with anyio.fail_after(5):
        async with make_pair() as (near, _):
            await near.aclose()
            await near.aclose()
            with pytest.raises(ConnectionClosed):
                near.write(memoryview(b"x"))


async def test_what_was_taken_before_closing_still_arrives(make_pair: MakePair) -> None:
    with anyio.fail_after(10):
        async with make_pair() as (near, far):
            blocks = Blocks()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(far.pump, blocks.feed)
                await write_all(near, b"x" * 20_000)
                await near.aclose()
            assert len(blocks.data) == 20_000


@pytest.mark.parametrize("make", [memory, pipes, sockets, threads], ids=lambda make: make.__name__)
async def test_one_side_may_end_while_the_other_goes_on(make: MakePair) -> None:
    with anyio.fail_after(5):
        async with make() as (near, far), anyio.create_task_group() as tasks:
            blocks = Blocks()
            near.send_eof()
            if make is not sockets:  # of which our reading half is a copy
                await far.pump(blocks.feed)
            tasks.start_soon(near.pump, blocks.feed)
            await write_all(far, b"still here")
            assert await blocks.wait(10) == b"still here"
            tasks.cancel_scope.cancel()


async def converse(near: Wire, far: Wire) -> None:
    """Two connections, notifications one way and requests with work the other."""
    handler = Functions(double=lambda request: lambda: double(bytes(request.params or b"")))

    async def double(params: bytes) -> int:
        await anyio.lowlevel.checkpoint()
        return 2 * int(params)

    async with Connection(near, Functions()) as here, Connection(far, handler) as there:
        here.start(here.run, "here")
        there.start(there.run, "there")
        for number in range(300):
            here.notify("update", {"number": number, "text": "é" * 30})
            if here.full:
                await here.wait_for_room()
        assert [int(bytes(await here.request("double", number))) for number in range(20)] == list(range(0, 40, 2))
        assert [params["number"] for _, params in handler.notifications] == list(range(300))


async def test_connections_converse_over_it(make_pair: MakePair) -> None:
    with anyio.fail_after(20):
        async with make_pair() as (near, far):
            await converse(near, far)


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_it_works_in_a_loop_that_anyio_did_not_start(make: MakePair) -> None:
    async def main() -> None:
        async with make() as (near, far):
            await asyncio.wait_for(converse(near, far), 20)

    await anyio.to_thread.run_sync(asyncio.run, main())

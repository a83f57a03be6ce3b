"""The outgoing buffer: order, coalescing, partial writes, back-pressure. Plain calls against a wire of wood."""

from __future__ import annotations

import json
from collections.abc import Callable

import anyio
import pytest
from msgspec import Raw

from acp_agent.errors import ConnectionClosed
from acp_agent.jsonrpc.outbox import Outbox, Trace


class WoodenWire:
    """Takes `room` bytes and then no more; runs what should come soon when told."""

    def __init__(self, room: int = 1_000_000_000) -> None:
        self.room = room
        self.writes: list[bytes] = []
        self.soon: list[Callable[[], None]] = []
        self.broken = False
        self.writable = anyio.Event()

    async def pump(self, feed: Callable[[bytes], None]) -> None: ...

    def write(self, data: memoryview) -> int:
        if self.broken:
            raise ConnectionClosed
        taken = min(len(data), self.room)
        self.room -= taken
        self.writes.append(bytes(data[:taken]))
        return taken

    async def wait_writable(self) -> None:
        while self.room == 0 and not self.broken:
            self.writable = anyio.Event()
            await self.writable.wait()

    def call_soon(self, function: Callable[[], None]) -> None:
        self.soon.append(function)

    async def aclose(self) -> None: ...

    def tick(self) -> None:
        soon, self.soon = self.soon, []
        for function in soon:
            function()

    def give(self, room: int) -> None:
        self.room += room
        self.writable.set()


class Owner:
    full = False
    closed = False

    def close(self) -> None:
        self.closed = True


def outbox_on(wire: WoodenWire, *, high_water: int = 1000, trace: Trace | None = None) -> tuple[Outbox, Owner]:
    owner = Owner()
    return Outbox(wire, owner, high_water, trace), owner


def text_frame(outbox: Outbox, text: str) -> None:
    outbox.put(b'{"t":', text, b"}\n")


@pytest.mark.anyio
async def test_what_is_put_in_one_round_leaves_in_one_write() -> None:
    wire = WoodenWire()
    outbox, _ = outbox_on(wire)
    for text in ("a", "b", "c"):
        text_frame(outbox, text)
    assert wire.writes == []
    assert len(wire.soon) == 1
    wire.tick()
    assert wire.writes == [b'{"t":"a"}\n{"t":"b"}\n{"t":"c"}\n']
    text_frame(outbox, "d")
    wire.tick()
    assert wire.writes[1:] == [b'{"t":"d"}\n']


@pytest.mark.anyio
async def test_what_somebody_waits_for_leaves_at_once_with_all_before_it() -> None:
    wire = WoodenWire()
    outbox, _ = outbox_on(wire)
    text_frame(outbox, "before")
    outbox.send(b'{"t":', "now", b"}\n")
    assert wire.writes == [b'{"t":"before"}\n{"t":"now"}\n']
    wire.tick()
    assert len(wire.writes) == 1


@pytest.mark.anyio
async def test_answers_within_one_block_leave_together() -> None:
    wire = WoodenWire()
    outbox, _ = outbox_on(wire)
    outbox.hold()
    outbox.send(b'{"t":', "one", b"}\n")
    outbox.send(b'{"t":', "two", b"}\n")
    assert wire.writes == []
    outbox.release()
    assert wire.writes == [b'{"t":"one"}\n{"t":"two"}\n']


@pytest.mark.anyio
async def test_enough_of_it_does_not_wait_for_the_round() -> None:
    wire = WoodenWire()
    outbox, _ = outbox_on(wire)
    text_frame(outbox, "x" * 40_000)
    assert len(wire.writes) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("value", [object(), "\ud800", {"a": [1, {2, object()}]}])
async def test_a_frame_with_no_json_leaves_the_buffer_as_it_was(value: object) -> None:
    wire = WoodenWire()
    outbox, _ = outbox_on(wire)
    text_frame(outbox, "good")
    with pytest.raises((TypeError, ValueError)):
        outbox.put(b'{"t":', value, b"}\n")
    text_frame(outbox, "also good")
    wire.tick()
    assert wire.writes == [b'{"t":"good"}\n{"t":"also good"}\n']


@pytest.mark.anyio
@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
async def test_what_weak_readers_take_for_a_line_end_is_escaped(separator: str) -> None:
    wire = WoodenWire()
    outbox, _ = outbox_on(wire)
    texts = [f"é{separator}{separator} \\{separator}", "plain", f"\u2027\u202a\x84{separator}"]
    for text in texts:
        text_frame(outbox, text)
    wire.tick()
    lines = wire.writes[0].decode().splitlines()  # a weak reader
    assert [json.loads(line)["t"] for line in lines] == texts
    assert separator not in wire.writes[0].decode()


@pytest.mark.anyio
async def test_escaping_a_backlog_touches_each_frame_once() -> None:
    wire = WoodenWire(room=5)
    outbox, _ = outbox_on(wire)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(outbox.keep_writing)
        outbox.send(b'{"t":', "\u2028", b"}\n")
        text_frame(outbox, "\x85\u2029")
        text_frame(outbox, "plain")
        wire.give(1000)
        await outbox.drain()
        tasks.cancel_scope.cancel()
    lines = b"".join(wire.writes).splitlines()
    assert [json.loads(line)["t"] for line in lines] == ["\u2028", "\x85\u2029", "plain"]


@pytest.mark.anyio
async def test_a_wire_that_takes_a_byte_at_a_time_gets_everything_in_order() -> None:
    wire = WoodenWire(room=0)
    outbox, owner = outbox_on(wire)
    frames = [f"text {number} é" for number in range(30)]
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outbox.keep_writing)
            for text in frames:
                text_frame(outbox, text)
                outbox.flush()
            while b"".join(wire.writes).count(b"\n") < len(frames):
                wire.give(1)
                await anyio.lowlevel.checkpoint()
            await outbox.drain()
            tasks.cancel_scope.cancel()
    assert [json.loads(line)["t"] for line in b"".join(wire.writes).splitlines()] == frames
    assert not owner.full


@pytest.mark.anyio
async def test_a_frame_of_sixteen_mebibytes_goes_out() -> None:
    wire = WoodenWire(room=100_000)
    outbox, _ = outbox_on(wire)
    text = "ü" * (8 * 1024 * 1024)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outbox.keep_writing)
            text_frame(outbox, text)
            wire.give(1_000_000_000)
            await outbox.drain()
            tasks.cancel_scope.cancel()
    assert json.loads(b"".join(wire.writes))["t"] == text


@pytest.mark.anyio
async def test_a_raw_value_is_sent_as_it_is() -> None:
    wire = WoodenWire()
    outbox, _ = outbox_on(wire)
    outbox.send(b'{"t":', Raw(b'{"a": 1.50}'), b"}\n")
    assert wire.writes == [b'{"t":{"a": 1.50}}\n']


def fill(outbox: Outbox, size: int) -> None:
    text_frame(outbox, "x" * size)


@pytest.mark.anyio
async def test_full_is_set_above_high_water_and_reset_when_half_is_gone() -> None:
    wire = WoodenWire(room=0)
    outbox, owner = outbox_on(wire, high_water=100_000)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(outbox.keep_writing)
        fill(outbox, 90_000)
        assert not owner.full
        fill(outbox, 20_000)
        assert owner.full
        await anyio.wait_all_tasks_blocked()
        wire.give(30_000)
        await anyio.wait_all_tasks_blocked()
        fill(outbox, 10)
        assert owner.full
        wire.give(40_000)
        await anyio.wait_all_tasks_blocked()
        assert not owner.full
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_waiting_for_room_that_is_there_returns_at_once() -> None:
    outbox, _ = outbox_on(WoodenWire())
    with anyio.fail_after(1):
        await outbox.wait_for_room()
        await outbox.drain()


@pytest.mark.anyio
async def test_a_thousand_producers_are_woken_a_few_at_a_time_and_all_of_them() -> None:
    wire = WoodenWire(room=0)
    outbox, owner = outbox_on(wire, high_water=40_000)
    woken: list[int] = []

    async def produce(number: int) -> None:
        await outbox.wait_for_room()
        woken.append(number)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            fill(outbox, 50_000)
            for number in range(1000):
                tasks.start_soon(produce, number)
            await anyio.wait_all_tasks_blocked()
            async with anyio.create_task_group() as writing:
                writing.start_soon(outbox.keep_writing)
                wire.give(1_000_000)
                await outbox.drain()
                writing.cancel_scope.cancel()
            await anyio.wait_all_tasks_blocked()
            assert 0 < len(woken) <= 32
            owner.full = True  # they filled it again: nobody else is woken until it empties
            wire.tick()
            await anyio.wait_all_tasks_blocked()
            assert len(woken) <= 32
            outbox._announce_room()
            while wire.soon:
                wire.tick()
                await anyio.wait_all_tasks_blocked()
    assert sorted(woken) == list(range(1000))


@pytest.mark.anyio
@pytest.mark.parametrize("stuck", [False, True], ids=["in a write", "while waiting to write"])
async def test_when_nobody_reads_any_more_nobody_waits_and_nothing_is_kept(stuck: bool) -> None:
    wire = WoodenWire(room=0)
    outbox, owner = outbox_on(wire, high_water=40_000)
    ended: list[str] = []

    async def wait(name: str) -> None:
        await (outbox.wait_for_room() if name == "room" else outbox.drain())
        ended.append(name)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outbox.keep_writing)
            fill(outbox, 50_000)
            tasks.start_soon(wait, "room")
            tasks.start_soon(wait, "drain")
            await anyio.wait_all_tasks_blocked()
            if stuck:
                wire.wait_writable = wait_in_vain  # type: ignore[method-assign]
                wire.give(1)
            else:
                wire.broken = True
                wire.give(1)
    assert sorted(ended) == ["drain", "room"]
    assert owner.closed
    assert not owner.full
    fill(outbox, 50_000)
    fill(outbox, 10)
    wire.tick()
    assert len(outbox._buffer) == 0


async def wait_in_vain() -> None:
    raise ConnectionClosed


@pytest.mark.anyio
async def test_the_trace_sees_each_frame_as_it_goes_out() -> None:
    seen: list[tuple[str, bytes]] = []
    wire = WoodenWire()
    outbox, _ = outbox_on(wire, trace=lambda direction, frame: seen.append((direction, frame)))
    text_frame(outbox, "a\u2028")
    text_frame(outbox, "b")
    assert seen == []
    wire.tick()
    assert seen == [("out", b'{"t":"a\\u2028"}'), ("out", b'{"t":"b"}')]

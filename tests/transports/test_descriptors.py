"""Descriptors in moods that a whole wire seldom shows."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import anyio
import pytest

from acp_agent.errors import ConnectionClosed
from acp_agent.transports import threads
from acp_agent.transports.descriptors import PolledSink, PolledSource, SocketSink, open_sink, open_source
from acp_agent.transports.loop import RunningLoop
from acp_agent.transports.threads import ThreadSink, ThreadSource

pytestmark = pytest.mark.anyio


async def test_a_pipe_is_opened_again_and_its_mode_left_alone() -> None:
    read_end, write_end = os.pipe()
    watched = os.dup(write_end)
    source, sink = open_source(read_end), open_sink(write_end)
    assert isinstance(sink, PolledSink)
    while sink.write(memoryview(b"x" * 10_000)):
        pass
    assert os.get_blocking(watched)
    sink.close()
    source.close()
    os.close(watched)


async def test_a_socket_is_asked_call_by_call() -> None:
    near, far = socket.socketpair()
    with far:
        sink = open_sink(os.dup(near.fileno()))
        with near:
            assert isinstance(sink, SocketSink)
            while sink.write(memoryview(b"x" * 10_000)):
                pass
            assert os.get_blocking(near.fileno())
        sink.close()
        sink.close()


async def test_a_pipe_with_nobody_at_its_end_says_so() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    sink = open_sink(write_end)
    with pytest.raises(ConnectionClosed):
        sink.write(memoryview(b"x"))
    sink.close()


async def test_a_thread_finds_out_that_nobody_reads() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    sink = ThreadSink(write_end)
    with anyio.fail_after(5):
        sink.write(memoryview(b"x"))
        await sink.flush()
        with pytest.raises(ConnectionClosed):
            sink.write(memoryview(b"x"))
        with pytest.raises(ConnectionClosed):
            await sink.wait_writable()
    sink.close()


async def test_a_file_takes_everything_and_is_read_by_a_thread(tmp_path: Path) -> None:
    path = tmp_path / "file"
    sink = open_sink(os.open(path, os.O_WRONLY | os.O_CREAT))
    assert isinstance(sink, PolledSink)
    assert sink.write(memoryview(b"x" * 1_000_000)) == 1_000_000
    await sink.wait_writable()
    sink.close()
    with pytest.raises(ConnectionClosed):
        await sink.wait_writable()
    source = open_source(os.open(path, os.O_RDONLY))
    assert isinstance(source, ThreadSource)
    sizes: list[int] = []
    with anyio.fail_after(5):
        await source.pump(lambda block: sizes.append(len(block)))
    assert sum(sizes) == 1_000_000
    source.close()


async def test_a_device_with_no_room_is_a_client_that_is_gone() -> None:
    sink = open_sink(os.open("/dev/full", os.O_WRONLY))
    assert isinstance(sink, ThreadSink)
    with anyio.fail_after(5):
        sink.write(memoryview(b"x"))
        await sink.flush()
        with pytest.raises(ConnectionClosed):
            sink.write(memoryview(b"x"))
    sink.close()


async def test_a_read_that_finds_nothing_after_all_waits_on() -> None:
    read_end, write_end = os.pipe()
    source = open_source(read_end)
    assert isinstance(source, PolledSource)
    assert source._read() is None
    os.close(write_end)
    assert source._read() == b""
    source.close()
    assert source._read() == b""


async def test_a_wakeup_for_nothing_is_no_end_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    source = PolledSource(read_end)
    answers = [None, b"block", None, b""]
    monkeypatch.setattr(source, "_read", lambda: answers.pop(0))
    os.write(write_end, b"x")  # which is never read, so it is readable all the time
    blocks: list[bytes] = []
    with anyio.fail_after(5):
        await source.pump(blocks.append)
    assert blocks == [b"block"]
    os.close(write_end)
    source.close()


async def test_threads_wait_for_descriptors_that_somebody_made_non_blocking() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    source, sink = ThreadSource(read_end), ThreadSink(write_end)
    data = b"".join(b"%d," % number for number in range(60_000))
    received = bytearray()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:

            def feed(block: bytes) -> None:
                received.extend(block)
                if len(received) == len(data):
                    tasks.cancel_scope.cancel()

            async def read_late() -> None:
                await anyio.sleep(0.05)
                await source.pump(feed)

            tasks.start_soon(read_late)
            rest = memoryview(data)
            while rest:
                rest = rest[sink.write(rest) :]
                await sink.wait_writable()
            await anyio.sleep_forever()
    assert received == data
    sink.close()
    source.close()


async def test_a_thread_that_has_nothing_to_read_yet_waits_without_reading() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    source = ThreadSource(read_end)
    blocks: list[bytes] = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(source.pump, blocks.append)
            await anyio.sleep(0.02)
            os.write(write_end, b"late")
            os.close(write_end)
    assert blocks == [b"late"]
    source.close()


async def test_a_thread_reads_ahead_so_far_and_no_further(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10_000_000)
    fd = os.open(path, os.O_RDONLY)
    source = ThreadSource(fd)
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        await source.pump(lambda _block: scope.cancel())
    for _ in range(100):
        await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()
    assert os.lseek(fd, 0, os.SEEK_CUR) <= 9 * 64 * 1024
    source.close()


async def test_a_thread_that_is_stuck_at_the_end_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_PATIENCE", 0.01)
    read_end, write_end = os.pipe()
    sink = ThreadSink(write_end)
    with anyio.fail_after(5):
        while sink.write(memoryview(b"x" * 60_000)):
            with anyio.move_on_after(0.05):
                await sink.wait_writable()
        await sink.flush()
        sink.close()
    os.close(read_end)  # lets the thread go


async def test_a_loop_that_is_over_takes_no_more_calls(anyio_backend: str) -> None:
    loops: list[RunningLoop] = []

    async def remember() -> None:
        loops.append(RunningLoop())

    thread = threading.Thread(target=lambda: anyio.run(remember, backend=anyio_backend))
    thread.start()
    await anyio.to_thread.run_sync(thread.join)
    assert loops[0].post(lambda: None) is False


async def test_what_cannot_be_read_is_at_its_end(tmp_path: Path) -> None:
    source = open_source(os.open(tmp_path, os.O_RDONLY))
    blocks: list[bytes] = []
    with anyio.fail_after(5):
        await source.pump(blocks.append)
    assert blocks == []
    source.close()

"""The order of writes and questions, and what one thread does about waiting, faults and loops that are gone."""

from __future__ import annotations

import threading
from collections.abc import Callable

import anyio
import pytest

from acp_agent.errors import StoreError
from acp_agent.store.writer import WriterThread


class Disk:
    """Remembers groups; can be stopped before a write."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.open = threading.Event()
        self.open.set()
        self.reached = threading.Event()
        self.wrote = threading.Event()

    def write(self, group: list[str]) -> None:
        self.reached.set()
        assert self.open.wait(5)
        self.groups.append(group)
        self.wrote.set()

    def seen(self) -> list[str]:
        return [item for group in self.groups for item in group]


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.mark.anyio
async def test_no_thread_runs_before_there_is_something_to_do(disk: Disk) -> None:
    def writing() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "acp-agent store"}

    before = writing()
    writer = WriterThread(disk.write)
    assert writer.settled
    assert not writer.started
    assert writing() <= before
    writer.post("a")
    assert len(writing() - before) == 1
    await writer.close(disk.seen).answer()


@pytest.mark.anyio
async def test_what_was_posted_is_written_soon_though_nobody_waits(disk: Disk) -> None:
    writer = WriterThread(disk.write)
    writer.post("a")
    assert await anyio.to_thread.run_sync(disk.wrote.wait, 5)
    await writer.close(disk.seen).answer()


@pytest.mark.anyio
async def test_an_answer_knows_what_was_posted_before_its_question_and_nothing_else(disk: Disk) -> None:
    writer = WriterThread(disk.write)
    writer.post("a")
    writer.post("b")
    first = writer.ask(disk.seen)
    writer.post("c")
    second = writer.ask(disk.seen)
    with anyio.fail_after(5):
        assert await second.answer() == ["a", "b", "c"]
        assert await first.answer() == ["a", "b"]
        await writer.close(disk.seen).answer()


@pytest.mark.anyio
async def test_several_waiters_share_one_group(disk: Disk) -> None:
    writer = WriterThread(disk.write)
    disk.open.clear()
    writer.post("first")
    assert await anyio.to_thread.run_sync(disk.reached.wait, 5)
    for number in range(10):
        writer.post(str(number))
    waiting = [writer.ask(disk.seen) for _ in range(5)]
    disk.open.set()
    with anyio.fail_after(5):
        for question in waiting:
            await question.answer()
        await writer.close(disk.seen).answer()
    assert disk.groups == [["first"], [str(number) for number in range(10)]]


@pytest.mark.anyio
async def test_the_loop_goes_on_while_the_disk_does_not(disk: Disk) -> None:
    writer = WriterThread(disk.write)
    disk.open.clear()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            writer.post("a")
            tasks.start_soon(writer.ask(disk.seen).answer)
            await anyio.to_thread.run_sync(disk.reached.wait, 5)
            for number in range(1000):
                writer.post(str(number))
                await anyio.lowlevel.checkpoint()
            assert not writer.settled
            disk.open.set()
        await writer.close(disk.seen).answer()
    assert writer.settled


@pytest.mark.anyio
async def test_a_waiter_that_is_cancelled_disturbs_nobody(disk: Disk) -> None:
    writer = WriterThread(disk.write)
    disk.open.clear()
    writer.post("a")
    with anyio.move_on_after(0.01) as scope:
        await writer.ask(disk.seen).answer()
    assert scope.cancelled_caught
    disk.open.set()
    with anyio.fail_after(5):
        assert await writer.close(disk.seen).answer() == ["a"]


@pytest.mark.anyio
async def test_what_a_question_raises_is_raised_where_it_was_asked(disk: Disk) -> None:
    def fail() -> None:
        raise StoreError("unreadable")

    writer = WriterThread(disk.write)
    with anyio.fail_after(5):
        with pytest.raises(StoreError, match="unreadable"):
            await writer.ask(fail).answer()
        assert await writer.close(disk.seen).answer() == []


@pytest.mark.anyio
async def test_after_the_end_posts_are_dropped_and_questions_refused(disk: Disk) -> None:
    writer = WriterThread(disk.write)
    writer.post("a")
    with anyio.fail_after(5):
        await writer.close(disk.seen).answer()
        writer.post("b")
        with pytest.raises(StoreError, match="closed"):
            await writer.ask(disk.seen).answer()
    assert writer.settled
    assert disk.seen() == ["a"]


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_fault_of_ours_leaves_nobody_waiting() -> None:
    def fault(group: list[str]) -> None:
        raise ZeroDivisionError

    writer = WriterThread(fault)
    writer.post("a")
    question = writer.ask(list[str])
    with anyio.fail_after(5), pytest.raises(StoreError, match="closed"):
        await question.answer()
    with anyio.fail_after(5), pytest.raises(StoreError, match="closed"):
        await writer.ask(list[str]).answer()
    assert writer._thread is not None
    writer._thread.join(5)  # what it raised is this test's, not the next one's


def test_a_loop_that_ended_before_its_answer_does_no_harm(disk: Disk, anyio_backend: str) -> None:
    writer = WriterThread(disk.write)

    async def leave(ask: Callable[[], object]) -> None:
        writer.post("a")
        ask()

    async def stay() -> list[str]:
        with anyio.fail_after(5):
            return await writer.close(disk.seen).answer()

    disk.open.clear()
    anyio.run(leave, lambda: writer.ask(disk.seen), backend=anyio_backend)
    disk.open.set()
    assert anyio.run(stay, backend=anyio_backend) == ["a"]

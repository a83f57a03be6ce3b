"""One thread that does what a store's disk needs, in groups.

The rule: things happen in the order in which they were said. Writes only queue up; what queued up within 10 ms goes
to disk as one group. A question goes through the same queue, so its answer knows of every write said before it, and
of none said after; it also hurries the group on. The event loop never waits, except for an answer.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import anyio

from acp_agent.errors import AcpAgentError, StoreError

__all__ = ["Question", "WriterThread"]

GROUP_SECONDS = 0.01

WriteT = TypeVar("WriteT")
AnswerT = TypeVar("AnswerT")


class Question(Generic[AnswerT]):
    """Something asked of the thread; `answer()` waits for it. An abandoned one does no harm."""

    def __init__(self, function: Callable[[], AnswerT]) -> None:
        self._function = function
        self._outcome: AnswerT
        self._error: Exception | None = StoreError("The session store is closed")
        self._answered = anyio.Event()
        self._call_in_loop = _loop_caller()

    def run(self) -> None:
        """In the thread: find the answer."""
        try:
            self._outcome = self._function()
            self._error = None
        except (AcpAgentError, OSError, sqlite3.Error) as error:
            self._error = error
        finally:
            self.wake()

    def wake(self) -> None:
        """In the thread: let the one who asked go on, if its loop is still there."""
        with suppress(RuntimeError):
            self._call_in_loop(self._answered.set)

    async def answer(self) -> AnswerT:
        """In the loop: the answer, or what the function raised. `StoreError` when the thread is gone."""
        await self._answered.wait()
        if self._error is not None:
            raise self._error
        return self._outcome


class WriterThread(Generic[WriteT]):
    """Gives `write` groups of what was posted, and runs questions, in one daemon thread that starts when needed."""

    def __init__(self, write: Callable[[list[WriteT]], None]) -> None:
        self._write = write
        self._changed = threading.Condition()
        self._queue: list[WriteT | Question[Any]] = []
        self._hurry = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self._posted = 0
        self._written = 0

    @property
    def started(self) -> bool:
        """Whether anything was ever posted or asked."""
        return self._thread is not None

    @property
    def settled(self) -> bool:
        """Whether all that was posted has been written."""
        return self._posted == self._written

    def post(self, item: WriteT) -> None:
        """Have it written, soon. After the end it is too late, and nothing happens."""
        with self._changed:
            if not self._closed:
                self._posted += 1
                self._enqueue(item)

    def ask(self, function: Callable[[], AnswerT]) -> Question[AnswerT]:
        """Have `function` called in the thread when all that was posted before is written."""
        question = Question(function)
        with self._changed:
            if self._closed:
                question.wake()
            else:
                self._hurry = True
                self._enqueue(question)
        return question

    def close(self, function: Callable[[], AnswerT]) -> Question[AnswerT]:
        """Ask the last question; the thread ends behind it."""
        question = self.ask(function)
        with self._changed:
            self._closed = True
            self._changed.notify()
        return question

    def _enqueue(self, item: WriteT | Question[Any]) -> None:
        self._queue.append(item)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="acp-agent store", daemon=True)
            self._thread.start()
        elif self._hurry or len(self._queue) == 1:
            self._changed.notify()

    def _run(self) -> None:
        group: list[WriteT | Question[Any]] = []
        try:
            while group := self._next_group():
                self._do(group)
        finally:  # also after a fault of ours: whoever waits must not wait for ever
            with self._changed:
                self._closed = True
                left = group + self._queue
            for item in left:
                if isinstance(item, Question):
                    item.wake()

    def _next_group(self) -> list[WriteT | Question[Any]]:
        """What queued up, a short while after its first item; nothing: that was all."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            self._changed.wait_for(lambda: self._hurry or self._closed, GROUP_SECONDS)
            group, self._queue, self._hurry = self._queue, [], False
            return group

    def _do(self, group: list[WriteT | Question[Any]]) -> None:
        writes: list[WriteT] = []
        for item in group:
            if isinstance(item, Question):
                self._flush(writes)
                writes = []
                item.run()
            else:
                writes.append(item)
        self._flush(writes)

    def _flush(self, writes: list[WriteT]) -> None:
        if writes:
            self._write(writes)
            self._written += len(writes)


def _loop_caller() -> Callable[[Callable[[], None]], Any]:
    """How another thread has something called in the loop that runs here, without waiting for it."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        run_sync_soon: Callable[[Callable[[], None]], Any] = trio.lowlevel.current_trio_token().run_sync_soon
        return run_sync_soon
    import asyncio

    return asyncio.get_running_loop().call_soon_threadsafe

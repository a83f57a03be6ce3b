"""One task fires all timers of a connection, in order of their time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest
from structlog.testing import capture_logs

from acp_agent.runtime.timers import Timers

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def running(timers: Timers) -> AsyncIterator[None]:
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(timers.run)
            yield
            tasks.cancel_scope.cancel()


async def test_timers_fire_in_order_of_their_time_and_equals_as_they_were_set() -> None:
    timers, fired, done = Timers(), list[str](), anyio.Event()
    async with running(timers):
        timers.call_later(0.02, done.set)
        timers.call_later(0.01, lambda: fired.append("later"))
        for name in ("a", "b", "c"):
            timers.call_later(0.0, partial(fired.append, name))
        await done.wait()
    assert fired == ["a", "b", "c", "later"]


async def test_a_timer_that_is_set_before_the_others_wakes_the_task() -> None:
    timers, slept, done = Timers(), anyio.Event(), anyio.Event()
    async with running(timers):
        timers.call_later(0.01, slept.set)
        timers.call_later(60, lambda: pytest.fail("too early"))
        await slept.wait()
        timers.call_later(0.01, done.set)
        await done.wait()


async def test_a_timer_that_was_cancelled_does_not_fire() -> None:
    timers, fired, done = Timers(), list[str](), anyio.Event()
    async with running(timers):
        timer = timers.call_later(0.01, lambda: fired.append("cancelled"))
        timers.call_later(0.02, done.set)
        timer.cancel()
        await done.wait()
        timer.cancel()
    assert fired == []


async def test_a_timer_that_fails_is_logged_and_the_next_one_fires() -> None:
    timers, done = Timers(), anyio.Event()

    def fail() -> None:
        raise LookupError("a bug")

    with capture_logs() as logs:
        async with running(timers):
            timers.call_later(0.0, fail)
            timers.call_later(0.01, done.set)
            await done.wait()
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("a timer failed", "error")]

"""What is to happen later, for a whole connection in one task: no timer task for each thing."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

import anyio

from acp_agent.log import get_logger

__all__ = ["Timer", "Timers"]

logger = get_logger("acp_agent.timers")


class Timer:
    """One call that is due; `cancel` it if it need not happen any more."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], None]) -> None:
        self.function: Callable[[], None] | None = function

    def cancel(self) -> None:
        self.function = None


class Timers:
    """A heap of timers and the one task (`run`) that fires them. Functions are plain, quick and in the loop."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Timer]] = []
        self._order = count()
        self._wake: anyio.Event | None = None

    def call_later(self, seconds: float, function: Callable[[], None]) -> Timer:
        """Call `function` in `seconds`, once."""
        timer = Timer(function)
        at = anyio.current_time() + seconds
        heapq.heappush(self._due, (at, next(self._order), timer))
        if self._wake is not None and self._due[0][2] is timer:
            self._wake.set()
        return timer

    async def run(self) -> None:
        """Fire what is due until cancelled."""
        while True:
            self._fire()
            self._wake = anyio.Event()
            seconds = self._due[0][0] - anyio.current_time() if self._due else float("inf")
            with anyio.move_on_after(seconds):
                await self._wake.wait()

    def _fire(self) -> None:
        now = anyio.current_time()
        while self._due and (self._due[0][2].function is None or self._due[0][0] <= now):
            function = heapq.heappop(self._due)[2].function
            if function is None:
                continue
            try:
                function()
            except (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError):
                logger.exception("a timer failed")

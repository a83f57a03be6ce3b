"""What is claimed in an order is done in that order, whatever the order in which tasks begin."""

from __future__ import annotations

from types import TracebackType

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

__all__ = ["Line", "Place"]


class Place:
    """A place in a line: `async with place:` begins when everybody before has left."""

    def __init__(self, before: anyio.Event | None) -> None:
        self.left = anyio.Event()
        self._before = before

    async def __aenter__(self) -> None:
        if self._before is None:
            return
        with anyio.CancelScope(shield=True):  # leaving the line in the middle would let the next one in too early
            await self._before.wait()
        try:
            await checkpoint_if_cancelled()
        except BaseException:
            self.left.set()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.left.set()


class Line:
    """Hands out places, the next one behind the last. Each must be entered."""

    def __init__(self) -> None:
        self._last: anyio.Event | None = None

    def claim(self) -> Place:
        place = Place(self._last)
        self._last = place.left
        return place

"""What is claimed in an order is done in that order, whatever the order in which tasks begin."""

from __future__ import annotations

from types import TracebackType

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

__all__ = ["Lines", "Place"]


class Place:
    """A place in a line: `async with place:` begins when everybody before has left."""

    def __init__(self, lines: Lines, name: str, before: Place | None) -> None:
        self.left = anyio.Event()
        self._lines = lines
        self._name = name
        self._before = before

    async def __aenter__(self) -> None:
        before, self._before = self._before, None
        if before is None:
            return
        with anyio.CancelScope(shield=True):  # leaving the line in the middle would let the next one in too early
            await before.left.wait()
        try:
            await checkpoint_if_cancelled()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self.left.set()
        self._lines.leave(self._name, self)


class Lines:
    """Hands out places in lines that have names, the next one behind the last. Each must be entered.

    A line is there as long as somebody stands in it.
    """

    def __init__(self) -> None:
        self._last: dict[str, Place] = {}

    def claim(self, name: str) -> Place:
        place = self._last[name] = Place(self, name, self._last.get(name))
        return place

    def leave(self, name: str, place: Place) -> None:
        if self._last.get(name) is place:
            del self._last[name]

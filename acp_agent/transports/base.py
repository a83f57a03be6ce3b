"""The seam under a connection: what a transport must do, in four verbs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

__all__ = ["Wire"]


class Wire(Protocol):
    """A duplex pipe of bytes. Used by one connection, in one event loop."""

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        """Call `feed` with each block that arrives, in order, until EOF; then return. Cancellable at any moment.

        `feed` does not raise, and is called in a context in which anyio works, though not always from a task.
        """

    def write(self, data: memoryview) -> int:
        """Take what goes now, without waiting; the number of bytes taken, 0 if the pipe is full.

        Raises `ConnectionClosed` when nobody reads any more.
        """

    async def wait_writable(self) -> None:
        """Return when `write` may take something again, or raise `ConnectionClosed`."""

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call `function` in the loop's next round."""

    async def aclose(self) -> None:
        """Let go of what was opened, restore what was changed. Never raises, may be called twice."""

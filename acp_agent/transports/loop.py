"""The running event loop, as wires need it, on either backend. A backend that does not run is never imported."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from anyio.lowlevel import current_token

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["RunningLoop"]


class RunningLoop:
    """The loop in which this is made: a place to put plain calls, from its own thread and from others.

    `asyncio` is its native loop, None on trio. What is called runs in the context of the maker, and knows its backend.
    """

    def __init__(self) -> None:
        native: Any = current_token().native_token
        self.asyncio: AbstractEventLoop | None = None
        self._context = contextvars.copy_context()
        if hasattr(native, "call_soon_threadsafe"):
            self.asyncio = native
            self._tell_backend()
        else:
            self._trio_token = native

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call it in the loop's next round; from the loop's own thread."""
        if self.asyncio:
            self.asyncio.call_soon(function, context=self._context)
        else:
            self._trio_token.run_sync_soon(function)

    def post(self, function: Callable[[], None]) -> bool:
        """Call it soon; from any thread. False if the loop is over."""
        try:
            if self.asyncio:
                self.asyncio.call_soon_threadsafe(function, context=self._context)
            else:
                self._trio_token.run_sync_soon(function)
        except RuntimeError:  # trio's RunFinishedError is one
            return False
        return True

    def add_reader(self, fd: int, function: Callable[[], None]) -> None:
        """asyncio's `add_reader`, with a function that may use anyio."""
        assert self.asyncio
        self._context.run(self.asyncio.add_reader, fd, function)

    def _tell_backend(self) -> None:
        """Callbacks have no task by which anyio could find its backend, when the loop was not started by anyio."""
        sniffio = sys.modules.get("sniffio")
        if sniffio:
            self._context.run(sniffio.current_async_library_cvar.set, "asyncio")

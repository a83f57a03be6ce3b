"""Logs: a logger that costs nothing until it says something, and the set-up that programs do.

The library only ever calls `get_logger`; what is done with the events is the program's business. `import structlog`
takes as long as a tenth of the whole start, so it waits for the first event.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["Logger", "Repeats", "get_logger"]


class Logger:
    """Says events with values to structlog, which is imported by the first one that somebody may want to read."""

    __slots__ = ("_bound", "_name", "_values")

    def __init__(self, name: str, values: dict[str, Any]) -> None:
        self._name = name
        self._values = values
        self._bound: Any = None  # structlog's own logger, once its configuration stands

    def bind(self, **values: Any) -> Logger:
        """A logger that says these values with every event."""
        return Logger(self._name, self._values | values)

    def debug(self, event: str, **values: Any) -> None:
        if "structlog" in sys.modules:  # nobody who never imported it has asked for details
            self._target().debug(event, **values)

    def info(self, event: str, **values: Any) -> None:
        self._target().info(event, **values)

    def warning(self, event: str, **values: Any) -> None:
        self._target().warning(event, **values)

    def error(self, event: str, **values: Any) -> None:
        self._target().error(event, **values)

    def exception(self, event: str, **values: Any) -> None:
        """An error, with the traceback of the exception that is being handled."""
        self._target().exception(event, **values)

    def _target(self) -> Any:
        if self._bound is not None:
            return self._bound
        import structlog

        bound = structlog.get_logger(self._name).bind(logger=self._name, **self._values)
        if structlog.is_configured():
            self._bound = bound
        return bound


class Repeats:
    """Says the first of equal warnings, then the 10th, the 100th, ...: a noisy peer does not fill the disk."""

    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        self._counts: dict[str, int] = {}

    def warning(self, event: str, **values: Any) -> None:
        count = self._counts[event] = self._counts.get(event, 0) + 1
        if count == 10 ** (len(str(count)) - 1):
            self._logger.warning(event, **values, times=count)


def get_logger(name: str) -> Logger:
    """The logger of a part of this package, or of a program's; `name` is its dotted name."""
    return Logger(name, {})

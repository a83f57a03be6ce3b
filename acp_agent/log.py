"""Logs: a logger that costs nothing until it says something, and the set-up that programs do.

The library only ever calls `get_logger`; what becomes of the events is the program's business. `import structlog`
takes as long as a tenth of the whole start, so both wait for the first event that somebody may want to read.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["Logger", "Repeats", "configure", "get_logger", "is_listening"]

_MEBIBYTE = 1024 * 1024


class Logger:
    """Says events with values to structlog, which the first of them imports. Details wait for a program to ask."""

    __slots__ = ("_bound", "_name", "_values")

    def __init__(self, name: str, values: dict[str, Any]) -> None:
        self._name = name
        self._values = values
        self._bound: Any = None  # structlog's own logger, once its configuration stands

    def bind(self, **values: Any) -> Logger:
        """A logger that says these values with every event."""
        return Logger(self._name, self._values | values)

    def debug(self, event: str, **values: Any) -> None:
        if self._bound is not None or is_listening(logging.DEBUG):
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
        waiting = _waiting_setup()
        if waiting:
            waiting.open()
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


def is_listening(level: int = logging.INFO) -> bool:
    """Whether a program has said where events of this level go."""
    waiting = _waiting_setup()
    if waiting:
        return level >= waiting.level
    structlog = sys.modules.get("structlog")
    return structlog is not None and structlog.is_configured()


def configure(
    *,
    file: Path | None = None,
    level: str = "info",
    stderr_level: str | None = None,
    max_bytes: int = 4 * _MEBIBYTE,
    backups: int = 3,
) -> None:
    """Where a program's logs go; to be called first. What others say through `logging` goes the same way.

    `file` gets JSON lines from `level` on, and is rotated at `max_bytes`, keeping `backups`. stderr gets readable lines
    from `stderr_level` on, by default only what is fatal, because editors show each of its lines as an error.
    """
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # a log that cannot be written is no reason to write to stderr
    _Setup(file, level.upper(), (stderr_level or "critical").upper(), max_bytes, backups).wait()


class _Setup(logging.Handler):
    """A configuration that is carried out by the first record, or by the first event of ours."""

    def __init__(self, file: Path | None, level: str, stderr_level: str, max_bytes: int, backups: int) -> None:
        names = logging.getLevelNamesMapping()
        super().__init__(min(names[level], names[stderr_level]) if file else names[stderr_level])
        self._file = file
        self._file_level = level
        self._stderr_level = stderr_level
        self._max_bytes = max_bytes
        self._backups = backups

    def wait(self) -> None:
        for handler in logging.root.handlers[:]:
            logging.root.removeHandler(handler)
            handler.close()
        logging.root.addHandler(self)
        logging.root.setLevel(self.level)

    def emit(self, record: logging.LogRecord) -> None:
        self.open()
        logging.root.handle(record)

    def open(self) -> None:
        """Put the real handlers in the place of this one."""
        # A new list: `logging` may be going through the old one, with the record that brought us here.
        logging.root.handlers = [handler for handler in logging.root.handlers if handler is not self]
        import structlog

        events: list[Any] = [
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ]
        structlog.configure(
            processors=[*events, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
            wrapper_class=structlog.make_filtering_bound_logger(self.level),
            logger_factory=structlog.stdlib.LoggerFactory(),
            cache_logger_on_first_use=True,
        )
        foreign = [*events, structlog.stdlib.ExtraAdder(), _add_logger_name]
        # Not the pretty tracebacks: they show local variables, and with them what others keep secret.
        console = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
        self._add(_StderrHandler(), self._stderr_level, foreign, console)
        if self._file:
            with suppress(OSError):  # a program without its log is better than no program
                handler = _open_file(self._file, self._max_bytes, self._backups)
                json_lines = structlog.processors.JSONRenderer(default=repr)
                self._add(handler, self._file_level, foreign, structlog.processors.format_exc_info, json_lines)

    def _add(self, handler: logging.Handler, level: str, foreign: list[Any], *renderers: Any) -> None:
        from structlog.stdlib import ProcessorFormatter

        processors = [ProcessorFormatter.remove_processors_meta, *renderers]
        handler.setFormatter(ProcessorFormatter(processors=processors, foreign_pre_chain=foreign))
        handler.setLevel(level)
        logging.root.addHandler(handler)


class _StderrHandler(logging.Handler):
    """Writes to the descriptor, whatever became of `sys.stderr`; what it does not take at once is lost."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):
            os.write(2, (self.format(record) + "\n").encode(errors="backslashreplace"))


def _open_file(file: Path, max_bytes: int, backups: int) -> logging.Handler:
    from logging.handlers import RotatingFileHandler

    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)  # what a user says to a model is nobody else's business
    return RotatingFileHandler(file, maxBytes=max_bytes, backupCount=backups, encoding="utf-8")


def _add_logger_name(_logger: Any, _method: str, event: dict[str, Any]) -> dict[str, Any]:
    """Events of other libraries name their logger as ours do."""
    return event | {"logger": event["_record"].name}


def _waiting_setup() -> _Setup | None:
    """A configuration that nothing has been logged to so far."""
    return next((handler for handler in logging.root.handlers if isinstance(handler, _Setup)), None)

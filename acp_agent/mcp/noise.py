"""What a server says beside the protocol: its stderr, and lines on its stdout that are no messages."""

from __future__ import annotations

import time

from acp_agent.log import Logger
from acp_agent.mcp.redaction import Redactor

__all__ = ["ServerNoise"]

_LINE_LIMIT = 1_000
_WINDOW = 10.0
_LINES_PER_WINDOW = 100


class ServerNoise:
    """Puts lines into the log, at most so many in ten seconds, each cut; and remembers the last one.

    That one often explains why a server went away.
    """

    def __init__(self, log: Logger, redact: Redactor) -> None:
        self._log = log
        self._redact = redact
        self._rest = b""
        self._window_ends = 0.0
        self._in_window = 0
        self._last_words = ""

    @property
    def flooding(self) -> bool:
        """More comes than is logged: whoever reads may take its time."""
        return self._in_window > _LINES_PER_WINDOW

    @property
    def last_words(self) -> str:
        """The last line that says something, for a sentence about the server's end."""
        return self._last_words

    def feed(self, block: bytes) -> None:
        """Take a block of stderr; lines may be split between blocks."""
        *lines, rest = (self._rest + block).split(b"\n")
        self._rest = rest[:_LINE_LIMIT]
        for line in lines:
            self.add("stderr", line)

    def finish(self) -> None:
        """Take what came after the last line end."""
        if self._rest:
            self.add("stderr", self._rest)
            self._rest = b""

    def add(self, stream: str, line: bytes) -> None:
        """Take one line."""
        text = self._redact.sentence(line[:_LINE_LIMIT].decode("utf-8", "replace"), _LINE_LIMIT)
        if not any(character.isalnum() for character in text):
            return
        if stream == "stderr":
            self._last_words = text
        now = time.monotonic()
        if now >= self._window_ends:
            if self.flooding:
                self._log.info("mcp server output left out", lines=self._in_window - _LINES_PER_WINDOW)
            self._window_ends = now + _WINDOW
            self._in_window = 0
        self._in_window += 1
        if not self.flooding:
            self._log.info("mcp server output", stream=stream, line=text)

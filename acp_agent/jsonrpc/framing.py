"""Bytes to lines, with a cap on their size.

The rule it owns: **a line ends at byte 0x0A and nowhere else, and none of any size stops the next one.** A line over
the cap is skipped up to its end and stands in the result as one `Oversized`.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

__all__ = ["MAX_LINE", "Line", "LineDecoder", "Oversized"]

MAX_LINE = 64 * 1024 * 1024  # bytes, without the newline

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Oversized(Struct, frozen=True):
    """In the place of a line that was too long; `size` is how many bytes it had."""

    size: int


Line: TypeAlias = bytes | bytearray


class LineDecoder:
    """Cuts blocks into lines, however the blocks are cut.

    Only an unfinished tail is copied, into a buffer that becomes the line: a line of many blocks exists once in memory.
    Blank lines are left out, one carriage return at the end and a byte order mark at the beginning are taken off.
    """

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self.max_line = max_line
        self._tail = bytearray()
        self._skipped = 0  # bytes of an oversized line that is still being read

    def feed(self, block: bytes) -> list[Line | Oversized]:
        """The lines that `block` completes."""
        *heads, tail = block.split(b"\n")
        if not heads:
            self._grow(tail)
            return []
        lines: list[Line | Oversized] = []
        if self._tail or self._skipped:
            self._grow(heads.pop(0))
            lines += self._take_tail()
        for head in heads:
            lines += self._finished(head)
        self._grow(tail)
        return lines

    def finish(self) -> list[Line | Oversized]:
        """The last line, if the input ended without its newline."""
        return self._take_tail()

    def _grow(self, piece: bytes) -> None:
        if self._skipped:
            self._skipped += len(piece)
        elif len(self._tail) + len(piece) > self.max_line:
            self._skipped = len(self._tail) + len(piece)
            self._tail = bytearray()
        else:
            self._tail += piece

    def _take_tail(self) -> list[Line | Oversized]:
        if self._skipped:
            size, self._skipped = self._skipped, 0
            return [Oversized(size)]
        line, self._tail = self._tail, bytearray()
        return self._finished(line)

    def _finished(self, line: Line) -> list[Line | Oversized]:
        if len(line) > self.max_line:
            return [Oversized(len(line))]
        if line.endswith(b"\r"):
            line = _cut(line, len(line) - 1, len(line))
        if line.startswith(_BYTE_ORDER_MARK):
            line = _cut(line, 0, len(_BYTE_ORDER_MARK))
        return [line] if line and not line.isspace() else []


def _cut(line: Line, start: int, stop: int) -> Line:
    """Without `line[start:stop]`, which is at one of its ends; a bytearray is not copied for it."""
    if isinstance(line, bytes):
        return line[stop:] if start == 0 else line[:start]
    del line[start:stop]
    return line

"""A file before and after, as the lines that people compare."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = ["DiffLine", "count_changes", "diff_lines"]

Sign: TypeAlias = Literal[" ", "+", "-", "@"]
CONTEXT = 3  # unchanged lines around a change


class DiffLine(Struct, frozen=True):
    """`number` is 1-based, in the old file for "-", else in the new one. "@" stands for lines that are left out."""

    sign: Sign
    number: int
    text: str


def diff_lines(old: str | None, new: str) -> list[DiffLine]:
    """What changed, with a few lines around it. `old` is None for a new file."""
    before, after = (old or "").splitlines(), new.splitlines()
    found: list[DiffLine] = []
    groups = difflib.SequenceMatcher(None, before, after, autojunk=len(before) > 2000).get_grouped_opcodes(CONTEXT)
    for group in groups:
        if group[0][3] > 0:
            found.append(DiffLine("@", group[0][3] + 1, ""))
        for kind, *places in group:
            found += _lines_of(kind, *places, before=before, after=after)
    return found


def _lines_of(
    kind: str, start: int, stop: int, new_start: int, new_stop: int, *, before: list[str], after: list[str]
) -> Iterator[DiffLine]:
    if kind == "equal":
        yield from (DiffLine(" ", number + 1, after[number]) for number in range(new_start, new_stop))
        return
    yield from (DiffLine("-", number + 1, before[number]) for number in range(start, stop))
    yield from (DiffLine("+", number + 1, after[number]) for number in range(new_start, new_stop))


def count_changes(lines: list[DiffLine]) -> str:
    """`+3 -1`"""
    return f"+{sum(line.sign == '+' for line in lines)} -{sum(line.sign == '-' for line in lines)}"

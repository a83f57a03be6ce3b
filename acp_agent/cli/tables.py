"""Rows for a person: drawn by rich at a terminal if it is installed, else plain columns for other programs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TextIO

from acp_agent.cli.stage import clean
from acp_agent.cli.terminal import has_colours

__all__ = ["write_table"]

GAP = "  "


def write_table(out: TextIO, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write one table. What a cell holds is text, never markup or an order to the terminal; line ends become blanks."""
    lines = [[" ".join(clean(cell).split()) for cell in row] for row in rows]
    if not (has_colours() and _write_drawn(out, headings, lines)):
        _write_plain(out, headings, lines)


def _write_plain(out: TextIO, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        out.write(GAP.join(cells).rstrip() + "\n")


def _write_drawn(out: TextIO, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether rich is there to draw it."""
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(*headings, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    Console(file=out, width=shutil.get_terminal_size().columns).print(table)
    return True

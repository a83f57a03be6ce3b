"""Text for people and models: cut to size, fenced, free of what a terminal would do with it."""

from __future__ import annotations

import re
import unicodedata

import msgspec

__all__ = ["DISPLAY_LIMIT", "MODEL_LIMIT", "code_span", "cut_text", "fenced", "join_ends", "plain_output", "visible"]

DISPLAY_LIMIT = 56 * 1024  # bytes shown of one output, as JSON: with the frame, the line stays under 64 KiB
MODEL_LIMIT = 32 * 1024  # what a model is told of one output, in the same bytes

MARKER_BYTES = 100  # for what says how much is left out

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def cut_text(text: str, limit: int) -> str:
    """`text` in about `limit` bytes of JSON: its head and tail, and between them how much is left out."""
    if len(text) * 6 <= limit or (len(text) <= limit and _json_size(text) <= limit):
        return text
    head, tail = min(limit, len(text) // 2), max(len(text) - limit, len(text) // 2)
    missing = len(text[head:tail].encode(errors="replace"))
    return join_ends(text[:head], text[tail:], limit, missing=missing)


def join_ends(head: str, tail: str, limit: int, *, missing: int = 0) -> str:
    """The two ends of a text of which `missing` bytes are lost already, cut between characters to about `limit`.

    What counts is their size as JSON, which many quotes or short lines double.
    """
    room = limit
    while True:
        joined = _join_bytes(head.encode(errors="replace"), tail.encode(errors="replace"), room, missing)
        size = _json_size(joined)
        if size <= limit + MARKER_BYTES:
            return joined
        room = room * limit // size


def _join_bytes(front: bytes, back: bytes, limit: int, missing: int) -> str:
    half = limit // 2
    kept_front = front[:half].decode(errors="ignore")
    kept_back = back[max(len(back) - half, 0) :].decode(errors="ignore")
    left_out = missing + len(front) + len(back) - len(kept_front.encode()) - len(kept_back.encode())
    if not left_out:
        return kept_front + kept_back
    return f"{kept_front}\n[… {left_out:,} bytes left out …]\n{kept_back}"


def _json_size(text: str) -> int:
    return len(msgspec.json.encode(text.encode(errors="replace").decode()))


def fenced(text: str, language: str = "") -> str:
    """`text` as a Markdown code block, with a fence that nothing in it closes."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def code_span(text: str) -> str:
    """`text` as inline Markdown code."""
    if "`" not in text:
        return f"`{text}`"
    longest = max(len(run) for run in re.findall(r"`+", text))
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}"


def visible(text: str, limit: int = 120) -> str:
    """`text` on one line for a title: what would hide or reorder it is spelled out, its end cut."""
    shown = text[: limit + 1]
    if not shown.isprintable():
        shown = "".join(map(_spelled, shown))
    return shown if len(text) <= limit else f"{shown[:limit]}…"


def _spelled(character: str) -> str:
    if character == "\n":
        return "⏎"
    if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs"):
        return f"\\u{{{ord(character):x}}}"
    return character


def plain_output(text: str) -> str:
    """What a program printed, as plain text: no colours, no overwritten lines, `\\n` line ends."""
    text = _ESCAPE.sub("", text)
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _CONTROL.sub("", text)

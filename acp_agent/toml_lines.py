"""Where each key of a TOML text stands, for errors that a person can follow.

`tomllib` gives values without places. This reads the structure alone, and only of a text that `tomllib` has
accepted, so it need not check anything: strings and comments are stepped over, the rest is headers, keys and brackets.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import TypeAlias

__all__ = ["KeyPath", "line_of", "lines_of_keys"]

KeyPath: TypeAlias = tuple[str | int, ...]

_TOKEN = re.compile(
    r"""
    (?P<string> \"{3} (?: \\. | [^\\] )*? \"{3,5} | '{3} .*? '{3,5} | " (?: \\. | [^"\\] )* " | ' [^']* ' )
    | \# [^\n]*
    | (?P<mark> [\[\]{},=\n] )
    | (?P<bare> [^\s\[\]{},="'\#]+ )
    """,
    re.VERBOSE | re.DOTALL,
)


def lines_of_keys(text: str) -> Mapping[KeyPath, int]:
    """The 1-based line of each table, key and array element in `text`, which is valid TOML.

    A path is what one would index with: `("turns", 0, "replies", 1, "steps", 2, "text")`.
    """
    return _Scan(text).lines


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int | None:
    """The line of `path`, or of the nearest thing around it when it is not there itself (a missing key)."""
    for length in range(len(path), 0, -1):
        if (line := lines.get(path[:length])) is not None:
            return line
    return None


class _Scan:
    """One pass over the tokens; `lines` is what it is for."""

    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._tokens = _tokens(text)
        self._at = 0
        self._last_element: dict[KeyPath, int] = {}
        table: KeyPath = ()
        while self._at < len(self._tokens):
            if self._peek() == "\n":
                self._at += 1
            elif self._peek() == "[":
                table = self._header()
            else:
                self._pair(table)

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _line(self) -> int:
        return self._tokens[self._at][1]

    def _note(self, path: KeyPath, line: int) -> None:
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _header(self) -> KeyPath:
        """`[a.b]` or `[[a.b]]`: the path of the table that the next pairs belong to."""
        line = self._line()
        self._at += 1
        is_element = self._peek() == "["
        self._at += is_element
        *parents, name = self._keys("]")
        self._at += 1 + is_element
        path: KeyPath = ()
        for parent in parents:
            path += (parent,)
            if path in self._last_element:  # `[[a.b]]` is the `b` of the last `a`
                path += (self._last_element[path],)
        path += (name,)
        if is_element:
            self._last_element[path] = self._last_element.get(path, -1) + 1
            path += (self._last_element[path],)
        self._note(path, line)
        return path

    def _pair(self, table: KeyPath) -> None:
        line = self._line()
        path = table + tuple(self._keys("="))
        self._note(path, line)
        self._at += 1
        self._value(path)

    def _keys(self, end: str) -> list[str]:
        """A dotted key, up to the token `end`, which is left."""
        keys: list[str] = []
        while (token := self._peek()) != end:
            if token[0] in "\"'":
                keys.append(next(iter(tomllib.loads(f"{token} = 0"))))
            else:
                keys.extend(part for part in token.split(".") if part)
            self._at += 1
        return keys

    def _value(self, path: KeyPath) -> None:
        if self._peek() == "[":
            self._elements(path)
        elif self._peek() == "{":
            self._inline_table(path)
        else:
            while self._peek() not in ("\n", ",", "]", "}", ""):
                self._at += 1

    def _elements(self, path: KeyPath) -> None:
        self._at += 1
        index = 0
        while self._peek() != "]":
            if self._peek() in (",", "\n"):
                self._at += 1
                continue
            self._note((*path, index), self._line())
            self._value((*path, index))
            index += 1
        self._at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._at += 1
        while self._peek() != "}":
            if self._peek() in (",", "\n"):
                self._at += 1
            else:
                self._pair(path)
        self._at += 1


def _tokens(text: str) -> list[tuple[str, int]]:
    tokens: list[tuple[str, int]] = []
    line, counted = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        if match.lastgroup:
            tokens.append((match[0], line))
    return tokens

"""TOML that a person wrote, read and checked: every fault is an error that names the file, the line and the key.

What is wrong is a path into the values and a sentence; `TomlText.fault` makes the error of it. `explain` makes the two
of what msgspec says of a value that does not fit its Struct.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from acp_agent.errors import ScenarioError, SettingsError
from acp_agent.toml_lines import KeyPath, line_of, lines_of_keys

__all__ = ["Fault", "TomlText", "explain", "spell"]

Fault: TypeAlias = tuple[KeyPath, str]  # where, and what is wrong there
FileError: TypeAlias = type[ScenarioError] | type[SettingsError]

MAX_BYTES = 4 * 1024 * 1024


class TomlText(Struct, frozen=True):
    """One text and its values; `file` is what errors call it. All that is wrong with it is raised as `error`."""

    text: str
    file: str
    error: FileError
    values: dict[str, Any]

    @classmethod
    def load(cls, path: str | Path, error: FileError) -> TomlText:
        """Read a regular file of UTF-8; a byte order mark is skipped."""
        file = str(path)
        try:
            data = _read(path)
        except OSError as problem:
            raise error(f"cannot be read: {problem.strerror or problem}", file=file) from None
        if len(data) > MAX_BYTES:
            raise error(f"is larger than {MAX_BYTES} bytes", file=file)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as problem:
            raise error("is not UTF-8", file=file, line=data.count(b"\n", 0, problem.start) + 1) from None
        return cls.parse(text, file, error)

    @classmethod
    def parse(cls, text: str, file: str, error: FileError) -> TomlText:
        try:
            return cls(text, file, error, tomllib.loads(text))
        except RecursionError:
            raise error("is nested too deeply", file=file) from None
        except tomllib.TOMLDecodeError as problem:
            sentence, _, place = str(problem).partition(" (at ")
            known = re.match(r"line (\d+)", place)
            line = int(known[1]) if known else text.rstrip().count("\n") + 1
            raise error(f"is not TOML: {sentence}", file=file, line=line) from None

    def line(self, path: KeyPath) -> int:
        """The line of `path`, or of the nearest thing around it."""
        return line_of(path, lines_of_keys(self.text)) or 1

    def fault(self, path: KeyPath, sentence: str) -> ScenarioError | SettingsError:
        """The error to raise for what is wrong at `path`."""
        return self.error(sentence, file=self.file, line=self.line(path), key=spell(path))


def explain(message: str, wrong_choice: Callable[[str, str], str]) -> Fault:
    """The place and the problem in an error of msgspec's: `Expected ... - at `$.turns[0].when``.

    `wrong_choice(key, value)` says what is wrong with a value that is none of those that `key` may have.
    """
    problem, found, place = message.rpartition(" - at `$")
    problem = problem if found else message
    path: KeyPath = tuple(int(index) if index else key for key, index in re.findall(r"\.(\w+)|\[(\d+)\]", place))
    if unknown := re.fullmatch(r"Object contains unknown field `(.+)`", problem, re.DOTALL):
        return (*path, unknown[1]), "is not a key of this table"
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", problem):
        return (*path, missing[1]), "is missing"
    if value := re.fullmatch(r"Invalid (?:enum )?value '(.*)'", problem, re.DOTALL):
        return path, wrong_choice(str(path[-1]), value[1])
    if problem.startswith(("Expected `array` of length", "Expected `str` of length")):
        return path, "is empty"
    return path, problem.replace("`object`", "`table`").replace("Expected", "expected", 1)


def spell(path: KeyPath) -> str:
    """`turns[0].replies[1].after`: indexes count from 0, as in the errors of most tools; an odd key is quoted."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{_spell_key(part)}" for part in path).removeprefix(".")


def _spell_key(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key) else json.dumps(key)


def _read(path: str | Path) -> bytes:
    """At most one byte more than is taken. A pipe or a device, which could block or never end, is refused unread."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError("it is not a regular file")
        return file.read(MAX_BYTES + 1)

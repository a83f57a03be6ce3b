"""Walking a folder as git sees it: ignore files honoured, symlinks not followed, what git keeps for itself skipped."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.errors import ToolError
from acp_agent.tools.files import open_folder
from acp_agent.tools.paths import INTERNAL_FOLDERS, is_beneath

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["SKIPPED_FOLDERS", "FoundFile", "IgnoreRules", "match_globs", "walk_files"]

SKIPPED_FOLDERS = INTERNAL_FOLDERS | {"node_modules", "__pycache__", ".venv"}
IGNORE_FILES = (".gitignore", ".ignore")  # the second is ripgrep's; later rules win
MAX_IGNORE_BYTES = 1024 * 1024


class FoundFile(Struct, frozen=True):
    """A regular file: `name` in the open folder `folder`, a descriptor that lasts until the walk goes on."""

    path: str
    folder: int
    name: str


class IgnoreRules:
    """The rules of one folder, on top of those of the folders around it. The innermost that says something counts."""

    def __init__(self, folder: str, lines: Iterable[str], around: IgnoreRules | None) -> None:
        from pathspec import GitIgnoreSpec  # here and below: not on the way to the first search

        self._prefix = len(folder.rstrip(os.sep)) + 1
        self._spec = GitIgnoreSpec.from_lines(_usable(lines))
        self._around = around
        # Most files match no rule: one expression of them all says so before pathspec looks for the one that counts.
        patterns = [pattern.regex.pattern for pattern in self._spec.patterns if pattern.regex is not None]
        self._any = re.compile("|".join(re.sub(r"\?P<\w+>", "?:", pattern) for pattern in patterns) or r"(?!)")

    def ignores(self, path: str, *, is_folder: bool = False) -> bool:
        """Whether the absolute `path`, in the rules' folder, is to be skipped."""
        name = path[self._prefix :] + ("/" if is_folder else "")
        if self._any.match(name):
            said = self._spec.check_file(name).include
            if said is not None:
                return said
        return self._around.ignores(path, is_folder=is_folder) if self._around else False


def _usable(lines: Iterable[str]) -> list[str]:
    """The lines that are rules; a broken one is passed over, as git does."""
    from pathspec import GitIgnoreSpec

    usable = []
    for line in lines:
        with contextlib.suppress(ValueError):
            GitIgnoreSpec.from_lines([line])
            usable.append(line)
    return usable


def walk_files(start: str, roots: Sequence[str], *, outside: bool = False) -> Iterator[FoundFile | None]:
    """The files under the folder `start`, a real path, by name; each folder begins with a None, to stop at.

    Blocks: run it in a thread. A folder that cannot be read is passed over.
    """
    pending = [(start, _rules_around(start, roots))]
    while pending:
        path, around = pending.pop()
        yield None
        try:
            folder = open_folder(path, roots, outside=outside)
        except (OSError, ToolError):
            if path == start:
                raise
            continue
        try:
            rules = _add_rules(path, folder, around)
            files, folders = _read_folder(path, folder, rules)
            for name in files:
                yield FoundFile(os.path.join(path, name), folder, name)
            pending += [(inner, rules) for inner in reversed(folders)]
        finally:
            os.close(folder)


def _read_folder(path: str, folder: int, rules: IgnoreRules | None) -> tuple[list[str], list[str]]:
    """The names of the files and the paths of the folders that are neither ignored nor symlinks, sorted."""
    files, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            inner = os.path.join(path, entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            if (is_folder and entry.name in SKIPPED_FOLDERS) or (rules and rules.ignores(inner, is_folder=is_folder)):
                continue
            if is_folder:
                folders.append(inner)
            elif entry.is_file(follow_symlinks=False):
                files.append(entry.name)
    return sorted(files), sorted(folders)


def _rules_around(start: str, roots: Sequence[str]) -> IgnoreRules | None:
    """The rules of the folders between a root and `start`, outermost first."""
    root = next((root for root in map(os.path.realpath, roots) if is_beneath(start, root)), start)
    names = [name for name in start[len(root) :].split(os.sep) if name]
    rules: IgnoreRules | None = None
    path = root
    for name in (*names, ""):
        with contextlib.suppress(OSError, ToolError):
            folder = open_folder(path, roots)
            try:
                if path == root:
                    rules = _add_rules(path, folder, None, (os.path.join(".git", "info", "exclude"),))
                if path != start:
                    rules = _add_rules(path, folder, rules)
            finally:
                os.close(folder)
        path = os.path.join(path, name)
    if rules and start != root and rules.ignores(start, is_folder=True):
        return None  # who names an ignored folder means it
    return rules


def _add_rules(
    path: str, folder: int, around: IgnoreRules | None, names: Sequence[str] = IGNORE_FILES
) -> IgnoreRules | None:
    lines: list[str] = []
    for name in names:
        with contextlib.suppress(OSError):
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            with open(descriptor, "rb") as file:
                lines += file.read(MAX_IGNORE_BYTES).decode(errors="surrogateescape").splitlines()
    return IgnoreRules(path, lines, around) if lines else around


def match_globs(pattern: str) -> GitIgnoreSpec:
    """`pattern` as git's globs: a name at any depth, `**` for folders, and `{a,b}` besides. Raises `ToolError`."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(
            f"\\{line}" if line.startswith(("!", "#")) else line for line in _expand_braces(pattern)
        )
    except ValueError as error:
        raise ToolError(f"{pattern!r} is no usable glob: {error}.") from error


def _expand_braces(pattern: str) -> list[str]:
    match = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if match is None:
        return [pattern]
    expanded = (f"{pattern[: match.start()]}{part}{pattern[match.end() :]}" for part in match.group(1).split(","))
    return [line for part in expanded for line in _expand_braces(part)][:100]

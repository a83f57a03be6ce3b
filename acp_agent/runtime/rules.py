"""Standing decisions on tool calls, written as globs.

The rule it owns: a doubt never allows. An `allow` rule must cover all that a call touches, by name and by where the
names lead; a `deny` or `ask` rule is met by any part of it. So a shell command is allowed by `pytest*` only as long as
what the `*` stands for holds no operator of the shell, and denied by `rm *` wherever in it such a command stands.

In all globs `*` is any text, `?` any character, `[ab]` one of these; `*` takes `/` too, so `docs/*` and `docs/**` are
the same: all that is beneath.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from msgspec import Struct

from acp_agent.tools.base import Proposal
from acp_agent.tools.paths import real_name, shown_name

__all__ = ["PermissionRule", "Verdict"]

Verdict: TypeAlias = Literal["allow", "ask", "deny"]

_SHELL_OPERATORS = re.compile(r"[;&|`()<>\n\r]|\$[({]?")
_HARMLESS = r"[^;&|`()<>$\n\r]"
_WILDCARDS = re.compile(r"(\*+|\?|\[[^]]*\])")
_SPECIAL = re.compile(r"([*?[])")


class PermissionRule(Struct, frozen=True):
    """A standing decision on calls of `tool` (a glob on its name) whose key or path matches `pattern` (a glob).

    `base` is the folder that a relative pattern means paths in, in the folder's own spelling; without one, patterns for
    paths are absolute. `source` says where the rule is written, for people.
    """

    decision: Verdict
    tool: str
    pattern: str = "*"
    base: str = ""
    source: str = ""

    def matches(self, tool: str, proposal: Proposal) -> bool:
        """Whether the rule speaks of this call. Looks at the disk, for where links lead."""
        if not fnmatchcase(tool, self.tool):
            return False
        if self.decision == "allow" and proposal.sensitive and self.is_broad:
            return False
        if self.pattern == "*":
            return True
        paths = [location.path for location in proposal.locations]
        if self.decision == "allow":
            if paths:
                return all(self._is_path(path) and self._is_path(_where_it_leads(path)) for path in paths)
            return self._allows_key(proposal)
        return (
            self._is_text(proposal.key)
            or any(self._is_text(part) for part in _commands(proposal))
            or any(self._is_path(path) or self._is_path(_where_it_leads(path)) for path in paths)
        )

    @property
    def is_broad(self) -> bool:
        """Whether the pattern names no file: `*`, `docs/**`."""
        return not os.path.basename(self.pattern).strip("*?")

    def _is_text(self, text: str) -> bool:
        return bool(text) and fnmatchcase(text, self.pattern)

    def _is_path(self, path: str) -> bool:
        patterns = _beneath(self.base, self.pattern)
        if self.base:
            patterns += _beneath(os.path.realpath(self.base), self.pattern)
        return any(fnmatchcase(path, pattern) for pattern in patterns)

    def _allows_key(self, proposal: Proposal) -> bool:
        """A command is only as harmless as what its wildcards stand for."""
        is_harmless = proposal.kind != "execute" or _operators_only_as_written(self.pattern, proposal.key)
        return is_harmless and self._is_text(proposal.key)

    def __str__(self) -> str:
        return f"{self.decision} {self.tool}({self.pattern})" if self.pattern != "*" else f"{self.decision} {self.tool}"


def _commands(proposal: Proposal) -> list[str]:
    """The single commands of a command line, roughly: it errs towards too many."""
    if proposal.kind != "execute":
        return []
    return [part for part in map(str.strip, _SHELL_OPERATORS.split(proposal.key)) if part]


def _where_it_leads(path: str) -> str:
    return shown_name(os.path.realpath(real_name(path)))


def _beneath(base: str, pattern: str) -> list[str]:
    """The patterns for absolute paths. `docs/**` is the folder `docs` itself, too, and `**/.env` one at the top."""
    pattern = os.path.expanduser(pattern)
    if base and not os.path.isabs(pattern):
        pattern = pattern.removeprefix("./")
        while pattern.startswith("../"):
            base, pattern = os.path.dirname(base), pattern[3:]
        pattern = _SPECIAL.sub(r"[\1]", shown_name(base).rstrip(os.sep)) + os.sep + pattern
    patterns = [pattern, pattern.replace("/**/", "/")]
    return [*patterns, pattern.removesuffix("/**")] if pattern.endswith("/**") else patterns


def _operators_only_as_written(pattern: str, command: str) -> bool:
    """Whether the wildcards can stand for text that could not begin another command."""
    parts = _WILDCARDS.split(pattern)
    regex = [re.escape(literal) for literal in parts]
    regex[1::2] = [_HARMLESS + ("*" if wildcard.startswith("*") else "") for wildcard in parts[1::2]]
    return re.fullmatch("".join(regex), command) is not None

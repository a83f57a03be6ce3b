"""Paths as they are, as they are shown, and as they are judged.

A file name is bytes; what is shown is Unicode. Bytes that are not UTF-8 are written `\\xNN`, and a backslash that
would read like one is written `\\x5c`, so that a name shown by one tool opens the same file in another.
"""

from __future__ import annotations

import os
import re

from msgspec import Struct

from acp_agent.content import ContentItem, Location, TextContent, ToolContent
from acp_agent.errors import ToolError
from acp_agent.tools.base import ToolContext
from acp_agent.tools.text import visible

__all__ = ["Target", "is_beneath", "judge_entry", "judge_path", "real_name", "short_path", "shown_name"]

INTERNAL_FOLDERS = frozenset({".git", ".hg", ".svn", ".jj"})

_LOOKS_ESCAPED = re.compile(r"\\(?=x(?:[89a-f][0-9a-f]|5c))")
_ESCAPED = re.compile(r"(?:\\x(?:[89a-f][0-9a-f]|5c))+")
_SURROGATE = re.compile("[\udc80-\udcff]")


def shown_name(name: str) -> str:
    """A name from the disk as Unicode. `real_name` gives back exactly that name."""
    escaped = _LOOKS_ESCAPED.sub(r"\\x5c", name)
    return _SURROGATE.sub(lambda match: f"\\x{ord(match.group()) - 0xDC00:02x}", escaped)


def real_name(shown: str) -> str:
    """The name on the disk of what `shown_name` made, or of what a person typed."""
    return _ESCAPED.sub(lambda match: os.fsdecode(bytes.fromhex(match.group().replace("\\x", ""))), shown)


def is_beneath(path: str, root: str) -> bool:
    """Whether `path` is `root` or lies in it, by name; both absolute."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


class Target(Struct, frozen=True, kw_only=True):
    """A path as a call names it, judged: `path` is absolute, `real` is where it leads at this moment.

    `shown` and `label` (short, for titles) are Unicode. `outside` and `secret` are what the user must be asked for;
    `internal` is a version control's own file: a hook or setting written there would run by itself.
    """

    path: str
    real: str
    shown: str
    label: str
    outside: bool
    secret: bool
    internal: bool

    @property
    def location(self) -> Location:
        return Location(self.shown)

    @property
    def is_guarded(self) -> bool:
        return self.outside or self.secret

    def warning(self) -> list[ToolContent]:
        """What a person should know before they say yes; nothing of a file like any other."""
        if self.outside:
            text = f"{visible(shown_name(self.real))} is outside the folders of this session."
        elif self.secret:
            text = f"{self.label} may hold secrets."
        elif self.internal:
            text = f"{self.label} belongs to version control, which may run what stands there."
        else:
            return []
        return [ContentItem(TextContent(text))]


def judge_path(context: ToolContext, path: str) -> Target:
    """Where `path` leads, symlinks followed, and whether the user must be asked for it."""
    absolute = _resolve(context, path)
    return _judge(context, absolute, os.path.realpath(absolute))


def judge_entry(context: ToolContext, path: str) -> Target:
    """Like `judge_path`, for the directory entry itself: a last component that is a symlink is not followed."""
    absolute = _resolve(context, path)
    folder, name = os.path.split(absolute)
    return _judge(context, absolute, os.path.join(os.path.realpath(folder), name))


def _resolve(context: ToolContext, path: str) -> str:
    if "\0" in path:
        raise ToolError("A path cannot hold a null character.")
    return context.workspace.resolve(path)


def _judge(context: ToolContext, absolute: str, real: str) -> Target:
    inside = any(is_beneath(real, os.path.realpath(root)) for root in context.workspace.roots)
    label = short_path(absolute, context.cwd)
    if not inside and real != absolute:
        label = f"{label} (which is {visible(shown_name(real))})"
    return Target(
        path=absolute,
        real=real,
        shown=shown_name(absolute),
        label=label,
        outside=not inside,
        secret=context.workspace.is_secret(absolute),
        internal=not INTERNAL_FOLDERS.isdisjoint(real.split(os.sep)),
    )


def short_path(path: str, cwd: str) -> str:
    """`path` for a title: relative to `cwd` when it lies in it."""
    short = os.path.relpath(path, cwd) if is_beneath(path, cwd) else path
    return visible(shown_name(short))

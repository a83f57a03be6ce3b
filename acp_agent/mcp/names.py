"""Names of MCP tools as a model sees them: `mcp__{server}__{tool}`, at most 64 of `[A-Za-z0-9_-]`, unique, stable.

A server's part never contains `__` and never ends with `_`, so no two servers can meet in one name. What had to be
cut or would be taken twice ends in a few characters of a digest, which depends on the name alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

__all__ = ["server_slugs", "tool_names"]

_NAME_LIMIT = 64
_SLUG_LIMIT = 24
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_UNDERSCORES = re.compile(r"__+")


def server_slugs(names: Sequence[str]) -> list[str]:
    """A part of a tool's name for each server, in order; two servers of one name get different ones."""
    taken: set[str] = set()
    slugs: list[str] = []
    for position, name in enumerate(names):
        safe = _UNDERSCORES.sub("_", _UNSAFE.sub("_", name)).strip("_")
        slug = safe if safe and len(safe) <= _SLUG_LIMIT else _marked(safe, name, _SLUG_LIMIT)
        if slug in taken:
            slug = _marked(safe, f"{position} {name}", _SLUG_LIMIT)
        taken.add(slug)
        slugs.append(slug)
    return slugs


def tool_names(slug: str, names: Iterable[str]) -> dict[str, str]:
    """What the model calls each of a server's tools, by the server's own names."""
    prefix = f"mcp__{slug}__"
    room = _NAME_LIMIT - len(prefix)
    given: dict[str, str] = {}
    taken: set[str] = set()
    # A name that needs no change keeps itself, wherever it stands in the list.
    for name in sorted(dict.fromkeys(names), key=lambda name: (_UNSAFE.search(name) is not None, name)):
        safe = _UNSAFE.sub("_", name)
        fits = bool(safe) and len(safe) <= room and safe not in taken
        part = safe if fits else _marked(safe, name, room)
        taken.add(part)
        given[name] = prefix + part
    return given


def _marked(safe: str, name: str, room: int) -> str:
    """`safe` cut so that a digest of the whole `name` fits behind it."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{safe[: room - 7].rstrip('_')}_{digest}".lstrip("_")

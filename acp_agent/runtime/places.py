"""Where a session works: what a client may name, and whether two names are one place."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct

from acp_agent.errors import RequestError

__all__ = ["SessionPlace", "check_place", "same_path"]


class SessionPlace(Struct, kw_only=True):
    """Where a session works, as the client says at set-up: `mcp_servers` is for whoever attaches them."""

    cwd: str
    roots: list[str]
    mcp_servers: Sequence[object] = ()


def check_place(place: SessionPlace) -> None:
    """The paths are absolute, and the cwd is a directory: what a client got wrong is said by name."""
    if not os.path.isabs(place.cwd):
        raise RequestError.invalid_params(f"cwd must be an absolute path, not {place.cwd!r}.", "$.cwd")
    if not os.path.isdir(place.cwd):
        what = "is not a directory" if os.path.exists(place.cwd) else "does not exist"
        raise RequestError.invalid_params(f"cwd {place.cwd} {what}.", "$.cwd")
    for index, root in enumerate(place.roots):
        if not os.path.isabs(root):
            path = f"$.additionalDirectories[{index}]"
            raise RequestError.invalid_params(f"An additional directory must be absolute, not {root!r}.", path)


def same_path(one: str, other: str) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)

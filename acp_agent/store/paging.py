"""How a list of sessions is cut into pages: the key of the last header shown is where the next page begins.

A page stays right while sessions come and go: nothing is counted, so nothing shifts.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

__all__ = ["PageKey", "bounded", "decode_cursor", "encode_cursor", "place_of"]

LARGEST_PAGE = 1000


class PageKey(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A place in the list: newest `updated_at` first, ties by id."""

    updated_at: str
    session_id: str


def place_of(cwd: str) -> str:
    """The folder that `cwd` names, for comparing: `/a/b/` and `/a/./b` are `/a/b`. Touches no disk."""
    return os.path.normpath(cwd) if cwd else cwd


def bounded(limit: int) -> int:
    """How many headers a page may hold when `limit` were asked for."""
    return max(1, min(limit, LARGEST_PAGE))


def encode_cursor(key: PageKey) -> str:
    """The key as an opaque string that is safe in a URL."""
    return urlsafe_b64encode(msgspec.json.encode(key)).decode()


def decode_cursor(cursor: str) -> PageKey:
    """The key of a cursor. Raises `ValueError` for one that `encode_cursor` did not make."""
    try:
        key = msgspec.json.decode(urlsafe_b64decode(cursor), type=PageKey)
    except (ValueError, msgspec.DecodeError):
        key = None
    if key is None or encode_cursor(key) != cursor:  # lenient base64 reads many strings as one
        raise ValueError("This cursor does not belong to a session list")
    return key

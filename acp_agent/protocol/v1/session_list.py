"""Sessions that are kept: `session/list`, `session/delete`.

Source: https://agentclientprotocol.com/protocol/session-list and /session-delete
"""

from __future__ import annotations

from msgspec import field

from acp_agent.protocol.base import Lenient, Payload, Sifted

__all__ = [
    "DeleteSessionRequest",
    "DeleteSessionResponse",
    "ListSessionsRequest",
    "ListSessionsResponse",
    "SessionInfo",
]


class ListSessionsRequest(Payload, kw_only=True):
    """`cwd` filters by directory; `cursor` is the `next_cursor` of the page before, opaque."""

    cwd: str | None = None
    cursor: str | None = None


class SessionInfo(Payload, kw_only=True):
    """A row of the list. `updated_at` is ISO 8601 with its zone."""

    session_id: str
    cwd: str
    additional_directories: Sifted[list[str]] = field(default_factory=list)
    title: Lenient[str | None] = None
    updated_at: Lenient[str | None] = None


class ListSessionsResponse(Payload, kw_only=True):
    """One page. Without `next_cursor` it is the last."""

    sessions: Sifted[list[SessionInfo]]
    next_cursor: Lenient[str | None] = None


class DeleteSessionRequest(Payload, kw_only=True):
    """Drop a kept session."""

    session_id: str


class DeleteSessionResponse(Payload, kw_only=True):
    """It is not there any more, or never was."""

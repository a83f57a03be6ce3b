"""The seam of a protocol version: what `server` hands a connection over to once the version is settled."""

from __future__ import annotations

from typing import Protocol

from msgspec import Raw

from acp_agent.jsonrpc.connection import IncomingRequest, Work
from acp_agent.runtime.sessions import SessionManager

__all__ = ["Surface"]


class Surface(Protocol):
    """One version's words for the runtime: a `jsonrpc.Handler` that is also the runtime's `ClientPort`."""

    sessions: SessionManager

    def begin_request(self, request: IncomingRequest) -> Work | None: ...

    def receive_notification(self, method: str, params: Raw | None) -> None: ...

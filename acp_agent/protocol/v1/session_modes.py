"""Session modes: `session/set_mode` and what is said of them.

Source: https://agentclientprotocol.com/protocol/session-modes
"""

from __future__ import annotations

from acp_agent.protocol.base import Lenient, Payload, Sifted

__all__ = ["CurrentModeUpdate", "SessionMode", "SessionModeState", "SetSessionModeRequest", "SetSessionModeResponse"]


class SessionMode(Payload, kw_only=True):
    """A way of working that the user may choose."""

    id: str
    name: str
    description: Lenient[str | None] = None


class SessionModeState(Payload, kw_only=True):
    """The modes there are, and the one in force."""

    current_mode_id: str
    available_modes: Sifted[list[SessionMode]]


class SetSessionModeRequest(Payload, kw_only=True):
    """Change the mode, in a turn or between turns."""

    session_id: str
    mode_id: str


class SetSessionModeResponse(Payload, kw_only=True):
    """Changed."""


class CurrentModeUpdate(Payload, kw_only=True, tag_field="sessionUpdate", tag="current_mode_update"):
    """The mode is now this one, whoever changed it."""

    current_mode_id: str

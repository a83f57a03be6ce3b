"""`session/fork`: a new session that begins with another's conversation. Unstable: used only behind a flag.

Source: https://agentclientprotocol.com/rfds/session-fork
"""

from __future__ import annotations

from msgspec import field

from acp_agent.protocol.base import Lenient, OrEmpty, Payload, Sifted
from acp_agent.protocol.v1.session_config_options import SessionConfigOption
from acp_agent.protocol.v1.session_modes import SessionModeState
from acp_agent.protocol.v1.session_setup import McpServer

__all__ = ["ForkSessionRequest", "ForkSessionResponse", "SessionForkCapabilities"]


class SessionForkCapabilities(Payload, kw_only=True):
    """`session/fork` is answered."""


class ForkSessionRequest(Payload, kw_only=True):
    """Open a new session with the conversation of `session_id`."""

    session_id: str
    cwd: str
    mcp_servers: OrEmpty[list[McpServer]] = field(default_factory=list)
    additional_directories: OrEmpty[list[str]] = field(default_factory=list)


class ForkSessionResponse(Payload, kw_only=True):
    """`session_id` is the new one."""

    session_id: str
    modes: Lenient[SessionModeState | None] = None
    config_options: Sifted[list[SessionConfigOption] | None] = None

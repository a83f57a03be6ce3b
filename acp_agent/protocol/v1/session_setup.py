"""Opening and closing a session: `session/new`, `session/load`, `session/resume`, `session/close`, MCP servers.

Source: https://agentclientprotocol.com/protocol/session-setup. All paths are absolute. `additional_directories` is the
complete list of roots besides `cwd`; nothing is remembered from an earlier request.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from acp_agent.protocol.base import Lenient, NamedValues, OneOf, OrEmpty, Payload, Sifted
from acp_agent.protocol.v1.session_config_options import SessionConfigOption
from acp_agent.protocol.v1.session_modes import SessionModeState

__all__ = [
    "CloseSessionRequest",
    "CloseSessionResponse",
    "EnvVariable",
    "HttpHeader",
    "LoadSessionRequest",
    "LoadSessionResponse",
    "McpServer",
    "McpServerHttp",
    "McpServerSse",
    "McpServerStdio",
    "NewSessionRequest",
    "NewSessionResponse",
    "ResumeSessionRequest",
    "ResumeSessionResponse",
]


class EnvVariable(Payload, kw_only=True):
    """A variable of a process's environment."""

    name: str
    value: str


class HttpHeader(Payload, kw_only=True):
    """A header of every HTTP request. It may be a secret: never log it."""

    name: str
    value: str


class McpServer(OneOf):
    """An MCP server to connect to. `type` chooses http or sse; what has a command is read as stdio whatever it says."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: dict[str, Any]) -> type[McpServerHttp | McpServerSse | McpServerStdio]:
        match value.get("type"):
            case "http":
                return McpServerHttp
            case "sse":
                return McpServerSse
            case str(kind) if kind != "stdio" and "command" not in value:
                raise ValueError(f"Unknown type of MCP server {kind!r:.40}")
            case _:
                return McpServerStdio


class McpServerStdio(Payload, McpServer, kw_only=True):
    """A command to start, absolute, spoken to on its stdin and stdout. It has no `type` on the wire."""

    name: str
    command: str
    args: OrEmpty[list[str]]
    env: NamedValues[list[EnvVariable]]


class McpServerHttp(Payload, McpServer, kw_only=True, tag_field="type", tag="http"):
    """A server that speaks Streamable HTTP. Needs `mcpCapabilities.http`."""

    name: str
    url: str
    headers: NamedValues[list[HttpHeader]]


class McpServerSse(Payload, McpServer, kw_only=True, tag_field="type", tag="sse"):
    """A server that speaks HTTP with server-sent events. Needs `mcpCapabilities.sse`."""

    name: str
    url: str
    headers: NamedValues[list[HttpHeader]]


class NewSessionRequest(Payload, kw_only=True):
    """Open a session in `cwd`."""

    cwd: str
    mcp_servers: OrEmpty[list[McpServer]]
    additional_directories: OrEmpty[list[str]] = field(default_factory=list)


class NewSessionResponse(Payload, kw_only=True):
    """The session is open; updates for it may follow."""

    session_id: str
    modes: Lenient[SessionModeState | None] = None
    config_options: Sifted[list[SessionConfigOption] | None] = None


class LoadSessionRequest(Payload, kw_only=True):
    """Open a kept session and replay all of it before answering. `cwd` must be the session's own."""

    session_id: str
    cwd: str
    mcp_servers: OrEmpty[list[McpServer]]
    additional_directories: OrEmpty[list[str]] = field(default_factory=list)


class LoadSessionResponse(Payload, kw_only=True):
    """The replay is over."""

    modes: Lenient[SessionModeState | None] = None
    config_options: Sifted[list[SessionConfigOption] | None] = None


class ResumeSessionRequest(Payload, kw_only=True):
    """Open a kept session without a replay."""

    session_id: str
    cwd: str
    mcp_servers: OrEmpty[list[McpServer]] = field(default_factory=list)
    additional_directories: OrEmpty[list[str]] = field(default_factory=list)


class ResumeSessionResponse(Payload, kw_only=True):
    """The session is open; nothing was replayed."""

    modes: Lenient[SessionModeState | None] = None
    config_options: Sifted[list[SessionConfigOption] | None] = None


class CloseSessionRequest(Payload, kw_only=True):
    """Cancel what runs in the session and free what it holds."""

    session_id: str


class CloseSessionResponse(Payload, kw_only=True):
    """Closed."""

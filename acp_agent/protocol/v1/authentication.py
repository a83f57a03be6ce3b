"""Signing in and out: `authenticate`, `logout`, and the ways to sign in that `initialize` lists.

Source: https://agentclientprotocol.com/protocol/authentication
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from acp_agent.protocol.base import Lenient, OneOf, OrEmpty, Payload

__all__ = [
    "AgentAuthCapabilities",
    "AuthCapabilities",
    "AuthMethod",
    "AuthMethodAgent",
    "AuthMethodTerminal",
    "AuthenticateRequest",
    "AuthenticateResponse",
    "LogoutCapabilities",
    "LogoutRequest",
    "LogoutResponse",
]


class AuthCapabilities(Payload, kw_only=True):
    """Of the client. `terminal`: it can start the agent's command again in a terminal, to sign in there."""

    terminal: Lenient[bool] = False


class LogoutCapabilities(Payload, kw_only=True):
    """`logout` is answered."""


class AgentAuthCapabilities(Payload, kw_only=True):
    """Of the agent."""

    logout: Lenient[LogoutCapabilities | None] = None


class AuthMethod(OneOf):
    """A way to sign in. Every `type` but `terminal` reads as the agent's own."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: dict[str, Any]) -> type[AuthMethodAgent | AuthMethodTerminal]:
        return AuthMethodTerminal if value.get("type") == "terminal" else AuthMethodAgent


class AuthMethodAgent(Payload, AuthMethod, kw_only=True):
    """The agent does it itself when `authenticate` names this id. It has no `type` on the wire."""

    id: str
    name: str
    description: Lenient[str | None] = None


class AuthMethodTerminal(Payload, AuthMethod, kw_only=True, tag_field="type", tag="terminal"):
    """The client starts the agent's command in a terminal with these arguments and variables added."""

    id: str
    name: str
    description: Lenient[str | None] = None
    args: OrEmpty[list[str]] = field(default_factory=list)
    env: OrEmpty[dict[str, str]] = field(default_factory=dict)


class AuthenticateRequest(Payload, kw_only=True):
    """Sign in by the method of this id, one of those that were advertised."""

    method_id: str


class AuthenticateResponse(Payload, kw_only=True):
    """Signed in."""


class LogoutRequest(Payload, kw_only=True):
    """Sign out."""


class LogoutResponse(Payload, kw_only=True):
    """Signed out."""

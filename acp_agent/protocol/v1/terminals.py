"""Commands run by the client: `terminal/create`, `output`, `wait_for_exit`, `kill`, `release`.

Source: https://agentclientprotocol.com/protocol/terminals. Every terminal that was created must be released.
"""

from __future__ import annotations

from msgspec import field

from acp_agent.protocol.base import Lenient, NamedValues, OrEmpty, Payload, UInt32, UInt64
from acp_agent.protocol.v1.session_setup import EnvVariable

__all__ = [
    "CreateTerminalRequest",
    "CreateTerminalResponse",
    "KillTerminalRequest",
    "KillTerminalResponse",
    "ReleaseTerminalRequest",
    "ReleaseTerminalResponse",
    "TerminalExitStatus",
    "TerminalOutputRequest",
    "TerminalOutputResponse",
    "WaitForTerminalExitRequest",
    "WaitForTerminalExitResponse",
]


class CreateTerminalRequest(Payload, kw_only=True):
    """Start a command. Of its output the last `output_byte_limit` bytes are kept."""

    session_id: str
    command: str
    args: OrEmpty[list[str]] = field(default_factory=list)
    env: NamedValues[list[EnvVariable]] = field(default_factory=list)
    cwd: str | None = None
    output_byte_limit: UInt64 | None = None


class CreateTerminalResponse(Payload, kw_only=True):
    """Started; it may still run."""

    terminal_id: str


class TerminalOutputRequest(Payload, kw_only=True):
    """The output so far, without waiting."""

    session_id: str
    terminal_id: str


class TerminalExitStatus(Payload, kw_only=True):
    """How a command ended: by itself with a code, or by a signal."""

    exit_code: Lenient[UInt32 | None] = None
    signal: Lenient[str | None] = None


class TerminalOutputResponse(Payload, kw_only=True):
    """`exit_status` is there once the command has ended."""

    output: str
    truncated: bool
    exit_status: Lenient[TerminalExitStatus | None] = None


class WaitForTerminalExitRequest(Payload, kw_only=True):
    """Answered when the command has ended."""

    session_id: str
    terminal_id: str


class WaitForTerminalExitResponse(Payload, kw_only=True):
    """How it ended."""

    exit_code: Lenient[UInt32 | None] = None
    signal: Lenient[str | None] = None


class KillTerminalRequest(Payload, kw_only=True):
    """End the command; the id stays valid."""

    session_id: str
    terminal_id: str


class KillTerminalResponse(Payload, kw_only=True):
    """Killed."""


class ReleaseTerminalRequest(Payload, kw_only=True):
    """End the command if it runs, and give the id up."""

    session_id: str
    terminal_id: str


class ReleaseTerminalResponse(Payload, kw_only=True):
    """Released."""

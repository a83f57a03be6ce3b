"""`--trace`: every frame, both directions, as JSON lines. The file holds whole conversations; only its owner reads it.

The rule it owns: what a client hands on to MCP servers, keys and passwords mostly, is not written. Their names and
commands are, and what is plain in their addresses and arguments.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from acp_agent.errors import AcpAgentError
from acp_agent.mcp.redaction import HIDDEN, hide_secrets

if TYPE_CHECKING:
    from acp_agent.server import Trace

__all__ = ["open_trace"]

SERVERS = "mcpServers"


def open_trace(path: Path) -> Trace:
    """A trace that writes each frame as a JSON line: `time` in seconds since 1970, `direction`, `frame`."""
    try:
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab", buffering=0)
    except OSError as error:
        raise AcpAgentError(f"--trace {path}: {error.strerror}") from error

    def trace(direction: str, frame: bytes) -> None:
        entry = {"time": time.time(), "direction": direction, "frame": readable(frame)}
        file.write(msgspec.json.encode(entry) + b"\n")

    return trace


def readable(frame: bytes) -> object:
    """The frame as it is, without the secrets of MCP servers; one that is no JSON as text, as far as it may be read."""
    try:
        value = msgspec.json.decode(frame)
        return _without_secrets(value) if SERVERS.encode() in frame else msgspec.Raw(frame.strip())
    except (msgspec.DecodeError, RecursionError):
        plain, names_servers, _ = frame.decode(errors="replace").partition(SERVERS)
        return f"{plain}{names_servers}{HIDDEN}" if names_servers else plain


def _without_secrets(value: Any) -> Any:
    match value:
        case dict():
            return {key: _servers(each) if key == SERVERS else _without_secrets(each) for key, each in value.items()}
        case list():
            return [_without_secrets(each) for each in value]
    return value


def _servers(value: Any) -> Any:
    return [_server(each) for each in value] if isinstance(value, list) else HIDDEN


def _server(value: Any) -> Any:
    return {key: _field(key, each) for key, each in value.items()} if isinstance(value, dict) else HIDDEN


def _field(key: str, value: Any) -> Any:
    match key, value:
        case "name" | "type" | "command", str():
            return value
        case "url", str():
            return hide_secrets([value])[0]
        case "args", list():
            return hide_secrets([each for each in value if isinstance(each, str)])
        case "env" | "headers", dict():
            return dict.fromkeys(value, HIDDEN)
        case "env" | "headers", list():
            return [_named(each) for each in value]
        case _, None:
            return None
    return HIDDEN


def _named(value: Any) -> Any:
    match value:
        case {"name": str(name)}:
            return {"name": name, "value": HIDDEN}
    return HIDDEN

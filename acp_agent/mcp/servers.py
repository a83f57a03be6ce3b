"""Which MCP servers a session has: what is said of one, what is wrong with it, and how it does."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from acp_agent.errors import SettingsError

__all__ = ["McpFailure", "McpServer", "McpState", "McpStatus", "server_problem", "servers_from_settings"]

Transport: TypeAlias = Literal["stdio", "http", "sse"]
McpState: TypeAlias = Literal["connecting", "connected", "failed", "closed"]

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_WHERE = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_UNKNOWN_FIELD = re.compile(r"unknown field `(?P<name>[^`]*)`")


class McpServer(Struct, frozen=True, kw_only=True):
    """One server, of no protocol version: a command to start (`stdio`), or a URL (`http` is streamable HTTP).

    `env` is added to a minimal environment, not to ours. `start_timeout` is how many seconds it may take from the
    start to the list of its tools, `call_timeout` how many one call may take. `sampling` lets it use the session's
    model, at the user's cost; a client cannot say that of the servers it names.
    """

    name: str
    transport: Transport = "stdio"
    command: str = ""
    args: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    start_timeout: float = 10.0
    call_timeout: float = 300.0
    sampling: bool = False

    def __repr__(self) -> str:
        """Without arguments, environment, address and headers: they carry secrets, and a repr ends up in logs."""
        return f"McpServer(name={self.name!r}, transport={self.transport!r}, command={self.command!r})"


class McpFailure(Struct, frozen=True):
    """A server that cannot be used, and why: one sentence for the user, without secrets."""

    name: str
    reason: str


class McpStatus(Struct, frozen=True):
    """How one server does. `tools` are the names that the model sees; `detail` is the reason of a failure."""

    name: str
    transport: str
    state: McpState
    tools: list[str] = field(default_factory=list)
    detail: str = ""


def server_problem(server: McpServer) -> str | None:
    """What is wrong with the server as it is written, in one sentence; None if nothing is. Touches nothing."""
    if not server.name.strip():
        return "The server has no name."
    if server.start_timeout <= 0 or server.call_timeout <= 0:
        return "A timeout must be more than 0 seconds."
    return _command_problem(server) if server.transport == "stdio" else _url_problem(server)


def _command_problem(server: McpServer) -> str | None:
    if not server.command:
        return "The server has no command."
    if any("\0" in text for text in (server.command, *server.args, *server.env, *server.env.values())):
        return "The command, its arguments or its environment contain a NUL character."
    if any(not name or "=" in name for name in server.env):
        return "An environment variable's name is empty or contains '='."
    if os.sep in server.command and not os.path.isabs(server.command):
        return (
            f"The command {server.command!r} is a relative path; "
            "give an absolute one, or a bare name that is found on PATH."
        )
    return None


def _url_problem(server: McpServer) -> str | None:
    try:
        parts = urlsplit(server.url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        return "The URL is not an http or https address."
    for name, value in server.headers.items():
        if not _HEADER_NAME.fullmatch(name):
            return "A header's name is empty or contains a character that is not allowed there."
        if not value.isascii() or any(ord(character) < 32 and character != "\t" for character in value):
            return f"The header {name} has a value that cannot be sent."
    return None


class _ServerTable(Struct, forbid_unknown_fields=True):
    """`[mcp.servers.NAME]` as it is written; which transport it is follows from `command` or `url`."""

    transport: Transport | None = None
    command: str = ""
    args: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    start_timeout: float = 10.0
    call_timeout: float = 300.0
    sampling: bool = False


def servers_from_settings(table: Mapping[str, Any], file: str) -> list[McpServer]:
    """The agent's own servers, from the tables `[mcp.servers.NAME]` of a settings file: `{NAME: {...}}`.

    Raises `SettingsError` with the file and the key, and never with a value: it may be a secret.
    """
    return [_server_from_table(name, written, file) for name, written in table.items()]


def _server_from_table(name: str, written: object, file: str) -> McpServer:
    place = f"mcp.servers.{name}"
    try:
        read = msgspec.convert(written, _ServerTable)
    except msgspec.ValidationError as error:
        key, problem = _key_and_problem(str(error))
        raise SettingsError(problem, file=file, key=f"{place}.{key}" if key else place) from None
    if bool(read.command) == bool(read.url):
        raise SettingsError("exactly one of `command` and `url` is needed", file=file, key=place)
    transport: Transport = read.transport or ("http" if read.url else "stdio")
    if (transport == "stdio") != bool(read.command):
        needed = "command" if transport == "stdio" else "url"
        raise SettingsError(f"`{transport}` goes with `{needed}`", file=file, key=place)
    server = McpServer(
        name=name,
        transport=transport,
        command=read.command,
        args=read.args,
        env=read.env,
        url=read.url,
        headers=read.headers,
        start_timeout=read.start_timeout,
        call_timeout=read.call_timeout,
        sampling=read.sampling,
    )
    if wrong := server_problem(server):
        raise SettingsError(wrong, file=file, key=place)
    return server


def _key_and_problem(message: str) -> tuple[str, str]:
    """msgspec's message as the key it is about and what is wrong there."""
    if unknown := _UNKNOWN_FIELD.search(message):
        return unknown["name"], "unknown key"
    if where := _WHERE.search(message):
        return where["path"], message[: where.start()]
    return "", message

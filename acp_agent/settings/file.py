"""One `acp-agent.toml`, checked as a whole.

    [permissions]                                  # "TOOL" or "TOOL(PATTERN)", both globs
    allow = ["run_command(pytest*)", "write_file(docs/**)"]
    ask = ["mcp__github__*"]
    deny = ["read_file(**/*.pem)"]

    [mcp.servers.github]                           # a command to start, or a url
    command = "github-mcp"

    [tools]
    secret_patterns = ["*.secret"]                 # file names that are asked for, beside the built-in ones
    terminal = "auto"                              # or client, local: where commands run
    fetch_allow_private = false                    # whether fetch_url may reach this machine and its network

    [models]
    default = "openai:gpt-5"
    available = ["anthropic:claude-sonnet-4-5", "http://127.0.0.1:1234/v1#qwen"]

    [projects]
    trusted = ["~/code/site", "~/mine/*"]          # folders, as globs, whose own file may allow things and name servers

A pattern is compared with what the tool remembers answers under (a command, a URL) and with the paths that the call
touches; relative ones are beneath the session's folder, in a project's file beneath the folder of the file.
What is in a project's file may only make things stricter, whoever wrote it: `[models]`, `[projects]` and the last two
keys of `[tools]` are refused there, and `allow` and `[mcp.servers]` wait for trust (see `force`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct, field

from acp_agent.errors import SettingsError
from acp_agent.mcp.servers import McpServer, servers_from_settings
from acp_agent.runtime.rules import PermissionRule, Verdict
from acp_agent.toml_lines import KeyPath
from acp_agent.toml_text import TomlText, explain

__all__ = ["SettingsFile", "ToolSettings", "read_settings"]

DECISIONS: tuple[Verdict, ...] = ("deny", "ask", "allow")

TerminalChoice: TypeAlias = Literal["auto", "client", "local"]

_RULE = re.compile(r"([^()\s]+)(?:\((.+)\))?", re.DOTALL)
_PATH = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_USERS_ALONE: tuple[KeyPath, ...] = (
    ("models",),
    ("projects",),
    ("tools", "terminal"),
    ("tools", "fetch_allow_private"),
)


class ToolSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[tools]`. None is for what is not written."""

    terminal: TerminalChoice | None = None
    fetch_allow_private: bool | None = None
    secret_patterns: list[str] = field(default_factory=list)


class _Permissions(Struct, forbid_unknown_fields=True):
    allow: list[str] = field(default_factory=list)
    ask: list[str] = field(default_factory=list)
    deny: list[str] = field(default_factory=list)


class _Mcp(Struct, forbid_unknown_fields=True):
    servers: dict[str, Any] = field(default_factory=dict)


class _Models(Struct, forbid_unknown_fields=True):
    default: str | None = None
    available: list[str] = field(default_factory=list)


class _Projects(Struct, forbid_unknown_fields=True):
    trusted: list[str] = field(default_factory=list)


class _Written(Struct, forbid_unknown_fields=True):
    """The file as it is written."""

    permissions: _Permissions = field(default_factory=_Permissions)
    mcp: _Mcp = field(default_factory=_Mcp)
    tools: ToolSettings = field(default_factory=ToolSettings)
    models: _Models = field(default_factory=_Models)
    projects: _Projects = field(default_factory=_Projects)


class SettingsFile(Struct, frozen=True, kw_only=True):
    """What one file says. `models` are specs, the default first; `trusted` are absolute globs."""

    path: str = ""
    rules: list[PermissionRule] = field(default_factory=list)
    mcp_servers: list[McpServer] = field(default_factory=list)
    tools: ToolSettings = field(default_factory=ToolSettings)
    models: list[str] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)


def read_settings(path: Path, *, base: str, is_project: bool = False) -> SettingsFile:
    """The file at `path`, whose relative patterns are beneath `base`. Raises `SettingsError`: file, line, key."""
    toml = TomlText.load(path, SettingsError)
    if is_project:
        _refuse_what_is_the_users(toml)
    try:
        written = msgspec.convert(toml.values, _Written)
    except msgspec.ValidationError as error:
        raise toml.fault(*explain(str(error), _wrong_choice)) from None
    return SettingsFile(
        path=str(path),
        rules=list(_rules(toml, written.permissions, base)),
        mcp_servers=list(_servers(toml, written.mcp.servers)),
        tools=written.tools,
        models=_models(toml, written.models),
        trusted=list(_trusted(toml, written.projects.trusted)),
    )


def _wrong_choice(key: str, value: str) -> str:
    return f"{value!r} is not one of {', '.join(get_args(TerminalChoice))}"


def _refuse_what_is_the_users(toml: TomlText) -> None:
    for path in _USERS_ALONE:
        value: Any = toml.values
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            raise toml.fault(path, "belongs in your own settings file, not in a project's")


def _rules(toml: TomlText, written: _Permissions, base: str) -> Iterator[PermissionRule]:
    for decision in DECISIONS:
        for index, text in enumerate(getattr(written, decision)):
            path = ("permissions", decision, index)
            read = _RULE.fullmatch(text.strip())
            if read is None:
                raise toml.fault(path, f"{text!r} is no rule; write TOOL or TOOL(PATTERN), as run_command(pytest*)")
            source = f"{toml.file}:{toml.line(path)}"
            yield PermissionRule(decision, read[1], (read[2] or "*").strip(), base=base, source=source)


def _servers(toml: TomlText, written: dict[str, Any]) -> Iterator[McpServer]:
    for name, table in written.items():
        try:
            yield from servers_from_settings({name: table}, toml.file)
        except SettingsError as error:
            inner = error.key.removeprefix(f"mcp.servers.{name}")
            keys = [int(index) if index else key for key, index in _PATH.findall(inner)]
            raise toml.fault(("mcp", "servers", name, *keys), error.problem) from None


def _models(toml: TomlText, written: _Models) -> list[str]:
    specs: list[tuple[KeyPath, str]] = [(("models", "available", n), spec) for n, spec in enumerate(written.available)]
    if written.default is not None:
        specs.insert(0, (("models", "default"), written.default))
    if specs:
        from acp_agent.models.spec import parse_model_spec
    for path, spec in specs:
        try:
            parse_model_spec(spec)
        except SettingsError as error:
            raise toml.fault(path, error.problem) from None
    return list(dict.fromkeys(spec.strip() for _, spec in specs))


def _trusted(toml: TomlText, written: list[str]) -> Iterator[str]:
    for index, text in enumerate(written):
        folder = os.path.expanduser(text)
        if not os.path.isabs(folder):
            raise toml.fault(("projects", "trusted", index), f"{text!r} is not an absolute path")
        yield os.path.normpath(folder)

"""Servers as they are written: what is refused, and what a settings file may say."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from acp_agent.errors import SettingsError
from acp_agent.mcp.servers import McpServer, server_problem, servers_from_settings


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (McpServer(name="a", command="npx"), None),
        (McpServer(name="a", command="/usr/bin/npx"), None),
        (McpServer(name="a", transport="http", url="https://example.org/mcp"), None),
        (McpServer(name=" ", command="npx"), "no name"),
        (McpServer(name="a"), "no command"),
        (McpServer(name="a", command="bin/server"), "relative path"),
        (McpServer(name="a", command="npx", args=["a\0b"]), "NUL"),
        (McpServer(name="a", command="npx", env={"A=B": "c"}), "environment variable"),
        (McpServer(name="a", command="npx", start_timeout=0), "timeout"),
        (McpServer(name="a", transport="http", url="file:///etc/passwd"), "http or https"),
        (McpServer(name="a", transport="sse", url="http://[broken"), "http or https"),
        (McpServer(name="a", transport="http", url="http://h", headers={"X Y": "z"}), "header's name"),
        (McpServer(name="a", transport="http", url="http://h", headers={"X": "a\r\nB: c"}), "header X"),
    ],
)
def test_a_server_as_it_is_written_is_usable_or_has_a_problem_in_words(server: McpServer, problem: str | None) -> None:
    found = server_problem(server)
    assert found == problem if problem is None else problem in (found or "")


def test_settings_name_servers_by_command_or_by_address() -> None:
    servers = servers_from_settings(
        {
            "time": {"command": "uvx", "args": ["mcp-server-time"], "start_timeout": 30},
            "docs": {"url": "https://example.org/mcp", "headers": {"X": "y"}},
            "old": {"url": "https://example.org/sse", "transport": "sse"},
        },
        "acp-agent.toml",
    )
    assert [(server.name, server.transport) for server in servers] == [
        ("time", "stdio"),
        ("docs", "http"),
        ("old", "sse"),
    ]
    assert servers[0].start_timeout == 30.0


@pytest.mark.parametrize(
    ("table", "key", "problem"),
    [
        ({"a": {"comand": "x"}}, "mcp.servers.a.comand", "unknown key"),
        ({"a": {"command": "x", "args": ["y", 3]}}, "mcp.servers.a.args[1]", "Expected `str`, got `int`"),
        ({"a": {"command": "x", "transport": "ws"}}, "mcp.servers.a.transport", "Invalid enum value"),
        ({"a": {"command": "x", "url": "http://h"}}, "mcp.servers.a", "exactly one of"),
        ({"a": {}}, "mcp.servers.a", "exactly one of"),
        ({"a": {"command": "x", "transport": "http"}}, "mcp.servers.a", "`http` goes with `url`"),
        ({"a": {"command": "./x"}}, "mcp.servers.a", "relative path"),
        ({"a": 3}, "mcp.servers.a", "Expected `object`, got `int`"),
    ],
)
def test_a_wrong_setting_is_refused_with_file_and_key(table: dict[str, Any], key: str, problem: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        servers_from_settings(table, "acp-agent.toml")
    assert (refusal.value.file, refusal.value.key) == ("acp-agent.toml", key)
    assert problem in refusal.value.problem


def test_naming_servers_imports_neither_the_sdk_nor_what_comes_with_it() -> None:
    source = "import sys, acp_agent.mcp.toolset; print({'mcp', 'pydantic', 'jsonschema', 'httpx2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

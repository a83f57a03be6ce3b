"""Servers that others wrote, where they are installed."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from acp_agent.mcp.servers import McpServer
from tests.mcp.support import FakeContext, call, running, told, toolset_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

EVERYTHING = os.environ.get("MCP_SERVER_EVERYTHING") or shutil.which("mcp-server-everything")


@pytest.mark.skipif(find_spec("mcp_server_time") is None, reason="mcp-server-time is not installed")
async def test_the_time_server_of_pypi_tells_the_time() -> None:
    server = McpServer(name="time", command=sys.executable, args=["-m", "mcp_server_time"], start_timeout=30.0)
    async with running(toolset_of(server)) as toolset:
        output = await call(toolset, "get_current_time", {"timezone": "Europe/Paris"})
        assert "Europe/Paris" in told(output)


@pytest.mark.skipif(EVERYTHING is None, reason="@modelcontextprotocol/server-everything is not installed")
async def test_the_everything_server_of_npm_shows_progress_and_an_image() -> None:
    server = McpServer(name="everything", command=str(Path(EVERYTHING or "")), args=["stdio"], start_timeout=30.0)
    async with running(toolset_of(server)) as toolset:
        assert told(await call(toolset, "echo", {"message": "hi"})) == "Echo: hi"
        context = FakeContext()
        long = next(tool for tool in await toolset.tools() if "long-running" in tool.name or "longRunning" in tool.name)
        assert not (await call(toolset, long.name, {"duration": 1, "steps": 2}, context)).failed
        assert context.reports

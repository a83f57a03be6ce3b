"""Servers to start, and a context to call their tools with."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio

from acp_agent.content import Location, TextContent, ToolContent
from acp_agent.mcp.servers import McpServer
from acp_agent.mcp.toolset import McpToolset
from acp_agent.tools.base import Tool, ToolContext, ToolOutput

HERE = Path(__file__).parent


class FakeContext:
    """As much of a `ToolContext` as MCP tools use."""

    def __init__(self) -> None:
        self.reports: list[Sequence[ToolContent] | str] = []
        self.reported = anyio.Event()

    def report(self, content: Sequence[ToolContent] | str, *, locations: Sequence[Location] | None = None) -> None:
        self.reports.append(content)
        self.reported.set()


def plain_server(mode: str, **options: Any) -> McpServer:
    """`server_plain.py` in one of its modes."""
    fields: dict[str, Any] = {"name": mode, "args": [str(HERE / "server_plain.py"), mode]} | options
    return McpServer(command=sys.executable, **fields)


def sdk_server(**options: Any) -> McpServer:
    """`server_sdk.py` over stdio."""
    fields: dict[str, Any] = {"name": "sdk", "args": [str(HERE / "server_sdk.py")], "start_timeout": 30.0} | options
    return McpServer(command=sys.executable, **fields)


def toolset_of(*servers: McpServer, **options: Any) -> McpToolset:
    return McpToolset(servers, roots=[str(HERE)], cwd=str(HERE), **options)


@asynccontextmanager
async def running(toolset: McpToolset) -> AsyncIterator[McpToolset]:
    """The toolset, with each server connected or failed; closed in the end."""
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(toolset.run)
            await toolset.wait_ready(60)
            yield toolset
            await toolset.aclose()


async def tool_named(toolset: McpToolset, ending: str) -> Tool:
    return next(tool for tool in await toolset.tools() if tool.name.endswith(ending))


async def call(
    toolset: McpToolset, ending: str, arguments: dict[str, Any] | None = None, context: FakeContext | None = None
) -> ToolOutput:
    """Describe and run one tool, as the executor does after a yes."""
    tool = await tool_named(toolset, ending)
    running_call = cast("ToolContext", context or FakeContext())
    proposal = tool.describe(arguments or {}, running_call)
    await tool.prepare(proposal, running_call)
    return await tool.run(proposal, running_call)


def told(output: ToolOutput) -> str:
    """The text that the model reads."""
    return "\n".join(block.text for block in output.told or [] if isinstance(block, TextContent))


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does, which tells nobody; within five seconds."""
    with anyio.fail_after(5):
        while True:
            if condition():
                return
            await anyio.sleep(0.01)


def process_ids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()]


def is_running(pid: int) -> bool:
    """Whether the process is there, and not only waiting to be reaped by somebody else."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"

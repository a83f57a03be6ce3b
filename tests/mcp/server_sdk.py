"""An MCP server made with the official SDK: `server_sdk.py [http|sse]`; over HTTP it prints its port first."""

from __future__ import annotations

import base64
import socket
import sys

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import CallToolResult, EmbeddedResource, ResourceLink, TextContent, TextResourceContents, ToolAnnotations
from pydantic import BaseModel

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

server = MCPServer("sdk", instructions="Use add for sums.")


class Point(BaseModel):
    x: int
    y: int


class Size(BaseModel):
    """What the user is asked for."""

    size: str


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=True))
def look_up(query: str) -> str:
    """Look something up."""
    return query


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def move(point: Point) -> Point:
    """Move to a point."""
    return Point(x=point.x + 1, y=point.y + 1)


@server.tool()
def picture() -> Image:
    """Draw a pixel."""
    return Image(data=PIXEL, format="png")


@server.tool()
def sources() -> CallToolResult:
    """Name the sources."""
    return CallToolResult(
        content=[
            TextContent(text="Two sources."),
            ResourceLink(name="spec", uri="file:///spec.md"),
            EmbeddedResource(resource=TextResourceContents(uri="file:///notes.md", text="Notes.")),
        ]
    )


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("nothing works")


@server.tool()
async def copy(context: Context, count: int) -> str:
    """Copy files, telling how far it is."""
    for number in range(1, count + 1):
        await context.report_progress(number, count, "Copying")
    return "copied"


@server.tool()
async def order(context: Context) -> str:
    """Ask the user for a size."""
    answer = await context.elicit("Which size?", Size)
    return f"{answer.action} {answer.data.size if answer.action == 'accept' else ''}".strip()


@server.tool()
async def wait(context: Context) -> str:
    """Wait until told to stop."""
    await context.report_progress(0, None, "Waiting")
    await anyio.sleep_forever()
    return "never"


@server.tool()
async def where(context: Context) -> str:
    """Name the roots."""
    roots = await context.session.list_roots()
    return "\n".join(str(root.uri) for root in roots.roots)


@server.tool()
async def think(context: Context) -> str:
    """Let the client's model think."""
    from mcp_types import SamplingMessage

    message = SamplingMessage(role="user", content=TextContent(text="Hello?"))
    result = await context.session.create_message([message], max_tokens=10)
    return str(result.content.text)


@server.tool()
async def learn(context: Context) -> str:
    """Get another tool."""

    @server.tool(name="new_trick")
    def new_trick() -> str:
        """Do it."""
        return "ta-da"

    await context.session.send_tool_list_changed()
    return "learned"


async def serve_http(kind: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    app = server.sse_app() if kind == "sse" else server.streamable_http_app()
    await uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listener])


if len(sys.argv) > 1:
    anyio.run(serve_http, sys.argv[1])
else:
    server.run()

"""Servers at an address: streamable HTTP and SSE on loopback, and what goes wrong there."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Literal

import anyio
import pytest

from acp_agent.errors import ToolError
from acp_agent.mcp.servers import McpServer
from tests.mcp.support import HERE, FakeContext, call, running, told, toolset_of, until
from tests.requirements import requirement

pytestmark = [
    pytest.mark.anyio,
    # httpx2 leaves its generators of a stream that is closed early to the collector, which trio remarks on.
    pytest.mark.filterwarnings("ignore:Async generator 'http:ResourceWarning"),
]


@contextmanager
def serving(kind: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`server_sdk.py` over HTTP, and its port."""
    command = [sys.executable, str(HERE / "server_sdk.py"), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


@requirement("mcp-http")
@pytest.mark.parametrize(("kind", "path"), [("http", "/mcp"), ("sse", "/sse")])
async def test_a_server_at_an_address_is_called_with_progress_and_list_changes(
    kind: Literal["http", "sse"], path: str
) -> None:
    with serving(kind) as (_, port):
        server = McpServer(name=kind, transport=kind, url=f"http://127.0.0.1:{port}{path}")
        async with running(toolset_of(server)) as toolset:
            assert toolset.failures() == []
            assert told(await call(toolset, "add", {"a": 2, "b": 2})) == "4"
            context = FakeContext()
            assert told(await call(toolset, "copy", {"count": 2}, context)) == "copied"
            assert context.reports
            context = FakeContext()
            async with anyio.create_task_group() as group:
                group.start_soon(call, toolset, "wait", None, context)
                await context.reported.wait()
                group.cancel_scope.cancel()
            assert told(await call(toolset, "learn")) == "learned"
            await until(lambda: f"mcp__{kind}__new_trick" in toolset.status()[0].tools)


async def test_a_server_that_is_killed_fails_its_calls_and_not_the_agent() -> None:
    with serving("http") as (process, port):
        server = McpServer(name="web", transport="http", url=f"http://127.0.0.1:{port}/mcp")
        async with running(toolset_of(server)) as toolset:
            assert told(await call(toolset, "add", {"a": 1, "b": 2})) == "3"
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            with pytest.raises(ToolError, match="The MCP server web"):
                await call(toolset, "add", {"a": 1, "b": 2})
            await until(lambda: bool(toolset.failures()))
            assert toolset.failures()[0].reason.startswith("It cannot be reached")


async def test_an_address_where_nobody_listens_is_a_named_failure() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        server = McpServer(name="nobody", transport="http", url=f"http://127.0.0.1:{port}/mcp")
        async with running(toolset_of(server)) as toolset:
            (failure,) = toolset.failures()
            assert failure.reason.startswith("It cannot be reached")


class Refusing(BaseHTTPRequestHandler):
    """Answers 401 to everything and keeps the headers that it saw."""

    seen: list[tuple[str, str]]

    def do_POST(self) -> None:
        type(self).seen.append((self.path, self.headers.get("Authorization", "")))
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.send_response(401)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def refusing() -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """A server that wants another key than it gets."""
    seen: list[tuple[str, str]] = []
    handler = type("Handler", (Refusing,), {"seen": seen})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port, seen
        finally:
            server.shutdown()
            thread.join()


async def test_a_refusal_is_named_by_its_status_and_secrets_stay_out_of_every_text(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with refusing() as (port, seen):
        server = McpServer(
            name="locked",
            transport="http",
            url=f"http://127.0.0.1:{port}/mcp?api_key=query-s3cret",
            headers={"Authorization": "Bearer header-s3cret"},
        )
        async with running(toolset_of(server)) as toolset:
            (failure,) = toolset.failures()
    assert failure.reason == "It answered with HTTP 401 Unauthorized."
    assert seen[0] == ("/mcp?api_key=query-s3cret", "Bearer header-s3cret")
    output = capsys.readouterr()
    assert "s3cret" not in caplog.text + output.out + output.err + repr(server) + failure.reason


@pytest.mark.parametrize(
    ("statuses", "last"),
    [((401,), "HTTP 401 Unauthorized"), ((404, 200), ""), ((403, 405), "HTTP 403 Forbidden"), ((599,), "HTTP 599")],
)
async def test_only_a_refusal_of_the_last_request_is_remembered(statuses: tuple[int, ...], last: str) -> None:
    import httpx2

    from acp_agent.mcp.http import Refusals

    refusals = Refusals()
    for status in statuses:
        await refusals.note(httpx2.Response(status))
    assert refusals.last == last


async def test_user_and_password_of_an_address_are_sent_as_a_header() -> None:
    with refusing() as (port, seen):
        server = McpServer(name="locked", transport="http", url=f"http://user:pass%20word@127.0.0.1:{port}/mcp")
        async with running(toolset_of(server)) as toolset:
            assert [failure.name for failure in toolset.failures()] == ["locked"]
    assert seen[0] == ("/mcp", "Basic dXNlcjpwYXNzIHdvcmQ=")

"""One server of one session. The rule it owns: whoever opens a connection closes it, in the same task.

`run` is that task. It connects, lists the tools, and then waits to be told: that the list changed, that the server
went away (it is started once more, and again only after a call has succeeded in between), or that it is over.
Nothing that a server does comes out of it as an exception; it becomes the sentence in `detail`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import metadata
from typing import Any, Literal

import anyio
import mcp_types as mcp
from mcp import MCPError
from mcp.client import Client, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct

from acp_agent.content import clean_text
from acp_agent.errors import ToolError
from acp_agent.log import Logger
from acp_agent.mcp.answers import ClientAnswers
from acp_agent.mcp.failures import SDK_ERRORS, is_lost, one_sentence, was_refused
from acp_agent.mcp.http import Refusals, http_streams, redacted_logs
from acp_agent.mcp.names import tool_names
from acp_agent.mcp.noise import ServerNoise
from acp_agent.mcp.process import ServerProcess
from acp_agent.mcp.redaction import Redactor
from acp_agent.mcp.results import output_of
from acp_agent.mcp.servers import McpServer, McpState, server_problem
from acp_agent.mcp.stdio import stdio_streams
from acp_agent.mcp.tools import McpTool, OnProgress
from acp_agent.tools.base import ToolOutput
from acp_agent.tools.text import cut_text

__all__ = ["McpConnection"]

_CLOSE_LIMIT = 3.0
_PAGE_LIMIT = 50
_TOOL_LIMIT = 500
_INSTRUCTIONS_LIMIT = 4_096

# Every server of today understands the older handshake, and some go away, or are silent, when they are asked with
# the newer one first. So that one is tried second, with a server that refuses the older.
_Mode = Literal["legacy", "auto"]


class _End(Struct):
    """Why a connection ended: `refused` is an error that the server answered with before it was connected."""

    connected: bool = False
    refused: bool = False
    reason: str = ""


class McpConnection:
    """A server, from its start to its end. `state`, `detail`, `tools` and `instructions` are for reading."""

    def __init__(
        self,
        server: McpServer,
        *,
        slug: str,
        cwd: str,
        answers: ClientAnswers,
        log: Logger,
        on_change: Callable[[], None],
    ) -> None:
        """`slug` is the server's part of its tools' names; `on_change` is called when `state` has changed."""
        self.server = server
        self.state: McpState = "connecting"
        self.detail = ""
        self.tools: Sequence[McpTool] = ()
        self.instructions = ""
        self._slug = slug
        self._cwd = cwd
        self._answers = answers
        self._log = log
        self._on_change = on_change
        self._redact = Redactor(server)
        self._noise = ServerNoise(log, self._redact)
        self._refusals = Refusals()
        self._process: ServerProcess | None = None
        self._client: Client | None = None
        self._scope = anyio.CancelScope()
        self._wake = anyio.Event()  # something for `run` to look at: one of the next three
        self._closing = False
        self._lost = False
        self._stale = False
        self._state_changed = anyio.Event()
        self._restarts_left = 1

    async def run(self) -> None:
        """Connect and stay connected until `close`, or until the server has failed for good."""
        try:
            with redacted_logs(self._redact):
                await self._stay_connected()
        finally:
            self._client = None
            if self.state != "failed":
                self._become("closed")

    def close(self) -> None:
        """Let `run` end; what it takes down is bounded in time."""
        self._closing = True
        self._wake.set()
        if self._client is None:
            self._scope.cancel()
        else:
            self._scope.deadline = anyio.current_time() + _CLOSE_LIMIT

    async def call_tool(self, name: str, arguments: dict[str, Any], on_progress: OnProgress) -> ToolOutput:
        """Call one of the server's tools. Raises `ToolError` when there is no answer, or an error instead of one."""
        client = await self._usable_client()
        self._answers.call_started()
        try:
            with anyio.fail_after(self.server.call_timeout):
                result = await client.call_tool(name, arguments, progress_callback=on_progress)
        except TimeoutError:
            seconds = f"{self.server.call_timeout:g}"
            raise self._error(f"did not answer within {seconds} seconds; the call was cancelled.") from None
        except MCPError as error:
            if not self._was_lost(client, error):
                raise self._error(f"refused the call: {one_sentence(error)}") from error
            if client is self._client:
                self._note_lost()
            raise self._error("went away in the middle of the call.") from error
        except (ValueError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise self._error(f"gave an unusable answer: {one_sentence(error)}") from error
        finally:
            self._answers.call_ended()
        self._restarts_left = 1
        return output_of(result, self._redact)

    def _was_lost(self, client: Client, error: MCPError) -> bool:
        if client is not self._client:
            return True
        return self.server.transport != "stdio" and is_lost(error, self._refusals.last)

    async def _usable_client(self) -> Client:
        with anyio.move_on_after(self.server.start_timeout + _CLOSE_LIMIT):
            while self.state == "connecting":
                await self._state_changed.wait()
        if self._client is None:
            raise self._error(f"is not connected. {self.detail}")
        return self._client

    def _error(self, what: str) -> ToolError:
        return ToolError(self._redact.sentence(f"The MCP server {self.server.name} {what}", 1_000))

    async def _stay_connected(self) -> None:
        if problem := server_problem(self.server):
            self._become("failed", problem)
            return
        mode: _Mode = "legacy"
        while True:
            end = await self._live(mode)
            if self._closing:
                return
            if end.refused and mode == "legacy":
                mode = "auto"
                continue
            if not end.connected or not self._restarts_left:
                self._become("failed", end.reason)
                return
            self._restarts_left -= 1
            self._become("connecting", end.reason)

    async def _live(self, mode: _Mode) -> _End:
        """One connection, from its start to its end."""
        self._lost = self._stale = False
        self._refusals.last = ""
        end = _End()
        with anyio.CancelScope(deadline=anyio.current_time() + self.server.start_timeout) as scope:
            self._scope = scope
            if self._closing:
                scope.cancel()
            try:
                async with self._open_client(mode) as client, anyio.create_task_group() as group:
                    await self._list_tools(client)
                    self.instructions = cut_text(clean_text(client.instructions or ""), _INSTRUCTIONS_LIMIT)
                    end.connected, self._client, scope.deadline = True, client, float("inf")
                    self._become("connected")
                    group.start_soon(self._follow_changes, client)
                    await self._serve(client)
                    self._client, scope.deadline = None, anyio.current_time() + _CLOSE_LIMIT
                    group.cancel_scope.cancel()
            except* SDK_ERRORS as failures:
                self._log.debug("mcp connection ended", error=self._redact(repr(failures)))
                end.refused = not end.connected and was_refused(failures)
                end.reason = one_sentence(failures)
        self._client = None
        end.reason = self._reason(end, timed_out=scope.cancelled_caught)
        return end

    def _reason(self, end: _End, *, timed_out: bool) -> str:
        """The sentence that helps most: how the process ended, what the HTTP server said, or what the SDK did."""
        words = self._noise.last_words
        said = f" Its last words: {words}" if words else ""
        if timed_out and not end.connected:
            return f"It did not answer within {self.server.start_timeout:g} seconds.{said}"
        if self._process and not end.refused and (self._lost or end.connected):
            return f"It ended{self._process.how_it_ended}.{said}"
        if self._refusals.last:
            return f"It answered with {self._refusals.last}."
        return end.reason or "The connection was closed."

    def _open_client(self, mode: _Mode) -> Client:
        answers = self._answers
        return Client(
            self._open_transport(),
            mode=mode,
            cache=None,
            client_info=mcp.Implementation(name="acp-agent", version=_own_version()),
            list_roots_callback=answers.list_roots,
            elicitation_callback=answers.elicit,
            sampling_callback=answers.sample,
            logging_callback=self._take_log,
            message_handler=self._take_message,
        )

    def _open_transport(self) -> AbstractAsyncContextManager[Any]:
        if self.server.transport == "stdio":
            return stdio_streams(self._start_process, self._noise, self._note_lost)
        return http_streams(self.server, self._refusals)

    def _start_process(self) -> ServerProcess:
        server = self.server
        self._process = ServerProcess(server.command, server.args, env=server.env, cwd=self._cwd)
        return self._process

    async def _serve(self, client: Client) -> None:
        while not (self._closing or self._lost):
            if self._stale:
                self._stale = False
                await self._refresh(client)
            await self._wake.wait()
            self._wake = anyio.Event()

    async def _refresh(self, client: Client) -> None:
        """List the tools again; while the server cannot, those that it had are kept."""
        try:
            with anyio.fail_after(self.server.start_timeout):
                await self._list_tools(client)
        except (MCPError, TimeoutError, ValueError) as error:
            self._log.warning("mcp tools not listed again", error=self._redact(str(error)))

    async def _list_tools(self, client: Client) -> None:
        found: list[mcp.Tool] = []
        cursor: str | None = None
        try:
            for _ in range(_PAGE_LIMIT):
                page = await client.list_tools(cursor=cursor)
                found += page.tools
                cursor = page.next_cursor
                if cursor is None or len(found) >= _TOOL_LIMIT:
                    break
        except MCPError:
            if client.server_capabilities.tools is not None:
                raise
        names = tool_names(self._slug, [tool.name for tool in found[:_TOOL_LIMIT]])
        by_name = {tool.name: tool for tool in found[:_TOOL_LIMIT]}
        self.tools = [
            McpTool(tool, name=names[tool.name], server_name=self.server.name, caller=self) for tool in by_name.values()
        ]

    async def _follow_changes(self, client: Client) -> None:
        """The newer protocol says that the list changed only to who listens; the older one says it by itself."""
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._note_stale()
        except (MCPError, SubscriptionLost) as error:
            self._log.info("mcp tool changes are not followed", error=self._redact(str(error)))

    async def _take_message(self, message: IncomingMessage) -> None:
        if isinstance(message, mcp.ToolListChangedNotification):
            self._note_stale()

    async def _take_log(self, params: mcp.LoggingMessageNotificationParams) -> None:
        self._noise.add("log", f"{params.level}: {params.data}".encode("utf-8", "replace"))

    def _note_stale(self) -> None:
        self._stale = True
        self._wake.set()

    def _note_lost(self) -> None:
        self._lost = True
        self._wake.set()
        if self._client is not None and not self._closing:
            self._client = None
            self._become("connecting")

    def _become(self, state: McpState, detail: str = "") -> None:
        self.state, self.detail = state, self._redact.sentence(detail)
        if state == "failed":
            self.tools = ()
            self.instructions = ""
            self._log.warning("mcp server failed", reason=self.detail)
        self._state_changed.set()
        self._state_changed = anyio.Event()
        self._on_change()


def _own_version() -> str:
    try:
        return metadata.version("acp-agent")
    except metadata.PackageNotFoundError:
        return "0"

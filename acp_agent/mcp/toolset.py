"""The MCP servers of one session as one toolset. Knows nothing of the SDK until there is a server to start."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from acp_agent.log import get_logger
from acp_agent.mcp.names import server_slugs
from acp_agent.mcp.servers import McpFailure, McpServer, McpState, McpStatus
from acp_agent.tools.base import FormAnswer, Tool
from acp_agent.tools.text import cut_text

if TYPE_CHECKING:
    from acp_agent.mcp.answers import ClientAnswers
    from acp_agent.mcp.connection import McpConnection

__all__ = ["McpToolset"]

logger = get_logger("acp_agent.mcp")

_MISSING = "MCP servers need the official SDK: pip install 'acp-agent[mcp]'."
_STILL_STARTING = "It is still starting; its tools come when it has."
_INSTRUCTIONS_LIMIT = 16 * 1024
_SDK_LOGGERS = ("mcp", "client", "httpx2")


class McpToolset:
    """A toolset of the tools of all servers that are connected at the moment.

    `run` owns the connections: it is started once, in a task group that outlives the session's turns. Servers
    connect at the same time, in the background; one that cannot is a failure with a reason, and the others work.
    """

    def __init__(
        self,
        servers: Sequence[McpServer],
        *,
        roots: Sequence[str],
        cwd: str,
        log_name: str = "",
        ask_form: Callable[[str, Mapping[str, Any]], Awaitable[FormAnswer]] | None = None,
        sample: Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]] | None = None,
    ) -> None:
        """`roots` and `cwd` are absolute paths; `log_name` (the session's id) is said with each log event.

        `ask_form(message, schema)` shows a form when a server asks the user something; without it such a question is
        declined. `sample(server_name, params)` gives a server that may have one a completion: the params and the result
        are those of MCP's `sampling/createMessage`; it is not offered to other servers.
        """
        self.servers = list(servers)
        """As they are written, in order."""
        self._roots = list(roots)
        self._cwd = cwd
        self._log = logger.bind(session=log_name) if log_name else logger
        self._ask_form = ask_form
        self._sample = sample
        self._connections: list[McpConnection] = []
        self._missing = ""
        self._told: dict[int, str] = {}
        self._settled = anyio.Event()
        self._scope: anyio.CancelScope | None = None
        self._closing = False
        self._done = anyio.Event()

    async def run(self, *, ready: Callable[[], None] | None = None) -> None:
        """Start every server and stay until `aclose`, or until none can be used. Cancelling this closes everything.

        `ready` is called once, when each server is connected or has failed.
        """
        if self._closing or self._scope is not None:
            return
        try:
            with anyio.CancelScope() as self._scope:
                await self._load()
                self._check_settled()
                async with anyio.create_task_group() as group:
                    for connection in self._connections:
                        group.start_soon(connection.run)
                    await self._settled.wait()
                    if ready is not None:
                        ready()
        finally:
            self._settled.set()
            self._done.set()

    async def wait_ready(self, seconds: float) -> None:
        """Wait while a server starts, for the first time or once more, at most so long. `run` must be running."""
        with anyio.move_on_after(seconds):
            await self._settled.wait()

    async def tools(self) -> Sequence[Tool]:
        """What can be called now, in the order of the servers; a server that is being restarted keeps its tools."""
        return [tool for connection in self._connections for tool in connection.tools]

    def failures(self) -> list[McpFailure]:
        """The servers that cannot be used, in order."""
        return [McpFailure(status.name, status.detail) for status in self.status() if status.state == "failed"]

    def take_new_failures(self) -> list[McpFailure]:
        """The failures that this has not given yet; to still be starting is one as long as it lasts."""
        new: list[McpFailure] = []
        for position, status in enumerate(self.status()):
            reason = {"failed": status.detail, "connecting": _STILL_STARTING}.get(status.state, "")
            if reason and self._told.get(position) != reason:
                new.append(McpFailure(status.name, reason))
            self._told[position] = reason
        return new

    def instructions(self) -> str:
        """What the servers want a model to know, each under its name; at most 16 KiB in all."""
        texts = [
            f"# MCP server {connection.server.name}\n\n{connection.instructions}"
            for connection in self._connections
            if connection.instructions
        ]
        return cut_text("\n\n".join(texts), _INSTRUCTIONS_LIMIT)

    def status(self) -> list[McpStatus]:
        """How each server does, in order."""
        if not self._connections:
            state: McpState = "failed" if self._missing else "closed" if self._closing else "connecting"
            return [McpStatus(server.name, server.transport, state, detail=self._missing) for server in self.servers]
        return [
            McpStatus(
                connection.server.name,
                connection.server.transport,
                connection.state,
                [tool.name for tool in connection.tools],
                connection.detail,
            )
            for connection in self._connections
        ]

    async def aclose(self) -> None:
        """Close all connections at the same time, and wait until nothing is left of them; a few seconds at most."""
        self._closing = True
        if self._scope is None:
            return
        if not self._connections:
            self._scope.cancel()
        for connection in self._connections:
            connection.close()
        await self._done.wait()

    async def _load(self) -> None:
        """Import the SDK, in a thread because it takes most of a second, and make the connections."""
        if not self.servers:
            return
        try:
            connection, answers = await anyio.to_thread.run_sync(_import_sdk, abandon_on_cancel=True)
        except ImportError as error:
            self._missing = _MISSING
            self._log.warning("mcp sdk missing", error=str(error))
            return
        slugs = server_slugs([server.name for server in self.servers])
        self._connections = [
            connection(
                server,
                slug=slug,
                cwd=self._cwd,
                answers=answers(
                    server.name,
                    roots=self._roots,
                    ask_form=self._ask_form,
                    sample=self._sample if server.sampling else None,
                ),
                log=self._log.bind(server=server.name),
                on_change=self._check_settled,
            )
            for server, slug in zip(self.servers, slugs, strict=True)
        ]

    def _check_settled(self) -> None:
        """Called whenever a server's state has changed; after a crash there is something to wait for again."""
        if all(connection.state != "connecting" for connection in self._connections):
            self._settled.set()
        elif self._settled.is_set() and not self._closing:
            self._settled = anyio.Event()


def _import_sdk() -> tuple[type[McpConnection], type[ClientAnswers]]:
    from acp_agent.mcp.answers import ClientAnswers
    from acp_agent.mcp.connection import McpConnection

    for name in _SDK_LOGGERS:
        # With no handler at all Python prints warnings on stderr, which editors show as errors of ours.
        if not (sdk_logger := logging.getLogger(name)).handlers:
            sdk_logger.addHandler(logging.NullHandler())
    return McpConnection, ClientAnswers

"""One connection from its first byte to its last: negotiate, hand over to a surface, and end in order.

The rule it owns: all background work of a connection has one owner. When the client is gone, turns get the time they
are due, then everything ends: children, MCP servers, the journal, the outbox, in this order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import anyio
from msgspec import Raw

from acp_agent.errors import RequestError
from acp_agent.jsonrpc.connection import Connection, IncomingRequest, Work
from acp_agent.jsonrpc.framing import MAX_LINE
from acp_agent.protocol.base import Payload, UInt16
from acp_agent.protocol.codec import decode
from acp_agent.runtime.definition import AgentDefinition
from acp_agent.runtime.places import SessionPlace
from acp_agent.runtime.session import Session
from acp_agent.runtime.sessions import SessionManager, SessionService
from acp_agent.runtime.timers import Timers
from acp_agent.store.base import SessionStore
from acp_agent.surfaces.base import Surface
from acp_agent.transports.base import Wire

__all__ = ["AgentServer", "Trace"]

Trace: TypeAlias = Callable[[str, bytes], None]

FLUSH_SECONDS = 2.0
KNOWN_METHODS = frozenset(
    {
        "authenticate",
        "logout",
        "session/new",
        "session/load",
        "session/resume",
        "session/close",
        "session/list",
        "session/delete",
        "session/prompt",
        "session/set_mode",
        "session/set_config_option",
    }
)


class Probe(Payload, kw_only=True):
    """As much of `initialize` as every version has in common."""

    protocol_version: UInt16


class AgentServer:
    """Serves one agent over one wire. `drain` is how many seconds owed answers may take once the input has ended."""

    def __init__(
        self,
        definition: AgentDefinition,
        open_store: Callable[[], SessionStore],
        *,
        drain: float = 2.0,
        drain_tools: bool = False,
        max_line: int = MAX_LINE,
        trace: Trace | None = None,
    ) -> None:
        self.definition = definition
        self._open_store = open_store
        self.drain = drain
        self._drain_tools = drain_tools
        self._max_line = max_line
        self._trace = trace
        self._connection: Connection | None = None
        self._surface: Surface | None = None
        self._timers = Timers()

    async def serve(self, wire: Wire) -> None:
        """Read until the client is gone or `stop` is called; return when everything has ended."""
        async with Connection(wire, self, max_line=self._max_line, trace=self._trace) as connection:
            self._connection = connection
            connection.start(self._timers.run, "timers")
            await connection.run()
            await self._finish(connection)

    def stop(self) -> None:
        """End now, as at the end of the input but without waiting for prompts."""
        self.drain = 0.0
        self._drain_tools = False
        if self._connection is not None:
            self._connection.close()

    async def _finish(self, connection: Connection) -> None:
        if self._surface is not None:
            await self._surface.sessions.shutdown(drain=self.drain, wait_for_tools=self._drain_tools)
        with anyio.move_on_after(FLUSH_SECONDS):
            await connection.wait_until_answered()  # a list or a load that was asked for in the last moment
            await connection.drain()

    # before the version is settled ------------------------------------------------------------------------------------

    def begin_request(self, request: IncomingRequest) -> Work | None:
        """Only `initialize` is served here; what follows it in the same read meets the surface."""
        if request.method != "initialize":
            if request.method in KNOWN_METHODS:
                raise RequestError.invalid_request("The first request must be initialize.")
            raise RequestError.method_not_found(request.method)
        decode(request.params, Probe)
        assert self._connection is not None
        surface = self._surface = self._make_surface(self._connection)
        self._connection.handler = surface
        return surface.begin_request(request)

    def receive_notification(self, method: str, params: Raw | None) -> None:
        """Nothing can be meant yet."""

    def _make_surface(self, connection: Connection) -> Surface:
        """Version 1 is what every client speaks, and the answer to every other number."""
        from acp_agent.surfaces.v1 import SurfaceV1
        from acp_agent.surfaces.v1_port import EditorPort

        port = EditorPort(connection)
        surface = SurfaceV1(connection, self.definition, port)
        surface.sessions = SessionManager(
            self.definition,
            self._open_store,
            port,
            self._timers,
            spawn=connection.start,
            attach=self._attach_mcp,
        )
        return surface

    # MCP ------------------------------------------------------------------------------------------------------------

    def _attach_mcp(self, session: Session, place: SessionPlace) -> SessionService | None:
        """Connect the session's MCP servers in the background, if there are any; the answer does not wait.

        Of a session that is open they take the place of those that it has, unless they are the same.
        """
        servers = [*self.definition.mcp_servers, *session.setup.mcp_servers, *place.mcp_servers]
        if not (servers or session.services):
            return None
        from acp_agent.mcp.sampling import Sampler
        from acp_agent.mcp.toolset import McpToolset
        from acp_agent.runtime.terminals import ClientEditor

        assert self._connection is not None
        for old in [service for service in session.services if isinstance(service, McpToolset)]:
            if old.servers == servers:
                return None
            session.services.remove(old)
            session.toolsets.remove(old)
            self._connection.start(old.aclose, "mcp")
        if not servers:
            return None
        editor = ClientEditor(session.port, session.id)
        toolset = McpToolset(
            servers,
            roots=session.roots,
            cwd=session.cwd,
            log_name=session.id,
            ask_form=editor.ask_form if editor.can_show_forms else None,
            sample=Sampler(session.id, lambda: session.options.model),
        )
        self._connection.start(toolset.run, "mcp")
        return toolset

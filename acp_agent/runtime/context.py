"""What a running tool sees of its turn: `tools.base.ToolContext`, for one call."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from anyio import from_thread
from anyio.lowlevel import EventLoopToken

from acp_agent.content import Location, PlanEntry, ToolContent
from acp_agent.errors import DecodeError, ToolError
from acp_agent.runtime.calls import Call
from acp_agent.runtime.session import Session
from acp_agent.runtime.terminals import ClientEditor
from acp_agent.tools.base import Editor, Tool, ToolOutput, Workspace

__all__ = ["CallContext", "ContextHost"]


class ContextHost(Protocol):
    """The turn, as a context sees it."""

    session: Session
    cancelled: bool
    is_over: bool

    def find_call(self, call_id: str) -> Call | None: ...

    async def send_text(self, text: str) -> None: ...

    def send_plan(self, entries: Sequence[PlanEntry]) -> None: ...

    async def call_tool(self, tool: str | Tool, arguments: dict[str, Any] | None = None) -> ToolOutput: ...


class CallContext:
    """One call's context. `report` may be called from any thread; the rest belongs to the loop."""

    def __init__(self, turn: ContextHost, call_id: str, loop: EventLoopToken) -> None:
        self._turn = turn
        self._thread = threading.get_ident()
        self._loop = loop
        self.tool_call_id = call_id

    @property
    def session_id(self) -> str:
        return self._turn.session.id

    @property
    def cwd(self) -> str:
        return self._turn.session.cwd

    @property
    def roots(self) -> Sequence[str]:
        return self._turn.session.roots

    @property
    def workspace(self) -> Workspace:
        return self._turn.session.workspace

    @property
    def editor(self) -> Editor:
        session = self._turn.session
        return ClientEditor(session.port, session.id, self.tool_call_id, seconds=session.definition.editor_seconds)

    @property
    def cancelled(self) -> bool:
        return self._turn.cancelled

    def report(
        self, content: Sequence[ToolContent] | str | None = None, *, locations: Sequence[Location] | None = None
    ) -> None:
        """See `ToolContext.report`."""
        call = self._turn.find_call(self.tool_call_id)
        if call is None:
            return
        if threading.get_ident() == self._thread:
            call.report(content, locations=locations)
        else:
            from_thread.run_sync(lambda: call.report(content, locations=locations), token=self._loop)

    def on_finished(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Await `callback` after the final update of this call, on every path (to release a terminal)."""
        call = self._turn.find_call(self.tool_call_id)
        if call is not None:
            call.on_finished.append(callback)

    async def send_text(self, text: str) -> None:
        await self._turn.send_text(text)

    def send_plan(self, entries: Sequence[PlanEntry]) -> None:
        self._turn.send_plan(entries)

    async def set_mode(self, mode_id: str) -> None:
        """Raises `ToolError` for a mode that there is not."""
        session = self._turn.session
        if self._turn.is_over:
            raise ToolError("The turn is over.")
        try:
            session.set_option("mode", mode_id)
        except DecodeError as error:
            raise ToolError(error.problem) from None
        session.echo_options(mode_changed=True)

    async def call_tool(self, tool: str | Tool, arguments: dict[str, Any] | None = None) -> ToolOutput:
        """Run another tool inside this call: its own row, its own permission, this turn's cancel."""
        return await self._turn.call_tool(tool, arguments)

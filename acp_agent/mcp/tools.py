"""A server's tool as one of ours.

What a server says of its tool is a hint by somebody we do not know: it may spare a question only where it says that
nothing changes and nothing leaves the machine's closed world. What the user is asked shows the real name and arguments.
"""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import mcp_types as mcp
import msgspec

from acp_agent.content import ContentItem, TextContent, ToolKind, clean_json, clean_text
from acp_agent.errors import ToolError
from acp_agent.json_schema import inline_references
from acp_agent.mcp.results import progress_text
from acp_agent.mcp.schemas import ArgumentCheck
from acp_agent.tools.base import PermissionDefault, Proposal, Tool, ToolContext, ToolOutput
from acp_agent.tools.text import code_span, cut_text, fenced, visible

__all__ = ["McpTool", "ToolCaller"]

_DESCRIPTION_LIMIT = 4_096
_TITLE_LIMIT = 120
_KEY_LIMIT = 200
_SHOWN_LIMIT = 16 * 1024


class OnProgress(Protocol):
    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class ToolCaller(Protocol):
    """The connection, as a tool needs it."""

    async def call_tool(self, name: str, arguments: dict[str, Any], on_progress: OnProgress) -> ToolOutput:
        """Raises `ToolError` when there is no answer, or an error instead of one."""


class McpTool(Tool):
    """One tool of one server; made anew whenever the server's list changes."""

    def __init__(self, tool: mcp.Tool, *, name: str, server_name: str, caller: ToolCaller) -> None:
        self.name = name
        self.description = cut_text(clean_text(tool.description or tool.title or ""), _DESCRIPTION_LIMIT)
        self.input_schema = clean_json(inline_references(tool.input_schema))
        self.kind, self.permission, self.read_only = _judge(tool.annotations)
        self._tool_name = tool.name
        self._server_name = server_name
        self._caller = caller
        self._check = ArgumentCheck(tool.input_schema)

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        if problem := self._check.problem(arguments):
            raise ToolError(f"The arguments do not fit: {problem}.")
        encoded = msgspec.json.encode(arguments, order="deterministic").decode()
        title = visible(f"{self._server_name}: {self._tool_name}({_shown(arguments)})", _TITLE_LIMIT)
        label = code_span(visible(f"{self._server_name}: {self._tool_name}", 60))
        return Proposal(
            title=title,
            kind=self.kind,
            arguments=arguments,
            permission=self.permission,
            key=encoded if len(encoded) <= _KEY_LIMIT else hashlib.sha256(encoded.encode()).hexdigest(),
            scope=f"{label} with these arguments" if arguments else label,
            content=[_arguments_block(arguments)] if arguments else [],
            read_only=self.read_only,
        )

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        async def show(progress: float, total: float | None, message: str | None) -> None:
            context.report(progress_text(progress, total, message))

        return await self._caller.call_tool(self._tool_name, proposal.arguments, show)


def _judge(hints: mcp.ToolAnnotations | None) -> tuple[ToolKind, PermissionDefault, bool]:
    """Kind, default permission, and whether it only reads."""
    if hints is None or not hints.read_only_hint or hints.destructive_hint:
        return "other", "ask", False
    if hints.open_world_hint:
        return "fetch", "ask", True  # it changes nothing, but what it is asked goes out
    return "read", "allow", True


def _shown(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={msgspec.json.encode(value).decode()}" for name, value in arguments.items())


def _arguments_block(arguments: dict[str, Any]) -> ContentItem:
    """The arguments to be judged, whole where they fit; the raw input has them in any case."""
    written = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
    return ContentItem(TextContent(fenced(cut_text(written, _SHOWN_LIMIT), "json")))

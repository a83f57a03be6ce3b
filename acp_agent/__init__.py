"""The agent side of the Agent Client Protocol: build an agent, and every editor that speaks ACP can run it.

    from acp_agent import Agent, Turn

    agent = Agent("echo", version="0.1.0")

    @agent.on_prompt
    async def echo(turn: Turn) -> None:
        await turn.send_text(turn.text)

    agent.run()

Names are imported from where they live when they are first used, so that a program starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from acp_agent.agent import Agent
    from acp_agent.content import (
        AudioContent,
        ContentBlock,
        Diff,
        EmbeddedResource,
        ImageContent,
        Location,
        PlanEntry,
        ResourceLink,
        StopReason,
        TextContent,
    )
    from acp_agent.errors import (
        AcpAgentError,
        ConnectionClosed,
        ModelError,
        RequestError,
        ScenarioError,
        StoreError,
        ToolError,
    )
    from acp_agent.history import AssistantMessage, ToolResult, ToolUse, UserMessage
    from acp_agent.jsonrpc.connection import Connection
    from acp_agent.jsonrpc.framing import LineDecoder
    from acp_agent.jsonrpc.peer import Peer
    from acp_agent.mcp.servers import McpServer
    from acp_agent.models.base import Finish, Model, ModelEvent, ModelRequest, TextDelta, ThoughtDelta, UsageDelta
    from acp_agent.models.scenario import Scenario
    from acp_agent.models.scripted import ScriptedModel
    from acp_agent.runtime.client import ClientPort, PermissionOption
    from acp_agent.runtime.executor import ToolExecutor
    from acp_agent.runtime.permissions import PermissionMemory, PermissionPolicy, PermissionRule
    from acp_agent.runtime.session import Session
    from acp_agent.runtime.sessions import SessionManager
    from acp_agent.runtime.turn import ShownCall, Turn
    from acp_agent.runtime.workspace import DiskWorkspace, EditorWorkspace
    from acp_agent.server import AgentServer
    from acp_agent.store.base import SessionStore
    from acp_agent.store.memory import MemoryStore
    from acp_agent.store.sqlite import SqliteStore
    from acp_agent.surfaces.base import Surface
    from acp_agent.testing.checks_model import check_model
    from acp_agent.testing.checks_store import check_session_store
    from acp_agent.testing.client import TestClient
    from acp_agent.testing.transcript import Transcript
    from acp_agent.tools.base import Proposal, Tool, ToolContext, ToolOutput, Toolset, Workspace
    from acp_agent.tools.coding import coding_tools
    from acp_agent.transports.base import Wire
    from acp_agent.transports.memory import memory_pair
    from acp_agent.transports.stdio import claim_stdio, stdio_stream
    from acp_agent.transports.subprocess import spawn_agent
    from acp_agent.version import VERSION as __version__

_WHERE: Final = {
    "agent": "Agent",
    "content": (
        "AudioContent ContentBlock Diff EmbeddedResource ImageContent Location PlanEntry ResourceLink StopReason"
        " TextContent"
    ),
    "errors": "AcpAgentError ConnectionClosed ModelError RequestError ScenarioError StoreError ToolError",
    "history": "AssistantMessage ToolResult ToolUse UserMessage",
    "jsonrpc.connection": "Connection",
    "jsonrpc.framing": "LineDecoder",
    "jsonrpc.peer": "Peer",
    "mcp.servers": "McpServer",
    "models.base": "Finish Model ModelEvent ModelRequest TextDelta ThoughtDelta UsageDelta",
    "models.scenario": "Scenario",
    "models.scripted": "ScriptedModel",
    "runtime.client": "ClientPort PermissionOption",
    "runtime.executor": "ToolExecutor",
    "runtime.permissions": "PermissionMemory PermissionPolicy PermissionRule",
    "runtime.session": "Session",
    "runtime.sessions": "SessionManager",
    "runtime.turn": "ShownCall Turn",
    "runtime.workspace": "DiskWorkspace EditorWorkspace",
    "server": "AgentServer",
    "store.base": "SessionStore",
    "store.memory": "MemoryStore",
    "store.sqlite": "SqliteStore",
    "surfaces.base": "Surface",
    "testing.checks_model": "check_model",
    "testing.checks_store": "check_session_store",
    "testing.client": "TestClient",
    "testing.transcript": "Transcript",
    "tools.base": "Proposal Tool ToolContext ToolOutput Toolset Workspace",
    "tools.coding": "coding_tools",
    "transports.base": "Wire",
    "transports.memory": "memory_pair",
    "transports.stdio": "claim_stdio stdio_stream",
    "transports.subprocess": "spawn_agent",
}
_HOME: Final = {name: module for module, names in _WHERE.items() for name in names.split()}

__all__ = [
    "AcpAgentError",
    "Agent",
    "AgentServer",
    "AssistantMessage",
    "AudioContent",
    "ClientPort",
    "Connection",
    "ConnectionClosed",
    "ContentBlock",
    "Diff",
    "DiskWorkspace",
    "EditorWorkspace",
    "EmbeddedResource",
    "Finish",
    "ImageContent",
    "LineDecoder",
    "Location",
    "McpServer",
    "MemoryStore",
    "Model",
    "ModelError",
    "ModelEvent",
    "ModelRequest",
    "Peer",
    "PermissionMemory",
    "PermissionOption",
    "PermissionPolicy",
    "PermissionRule",
    "PlanEntry",
    "Proposal",
    "RequestError",
    "ResourceLink",
    "Scenario",
    "ScenarioError",
    "ScriptedModel",
    "Session",
    "SessionManager",
    "SessionStore",
    "ShownCall",
    "SqliteStore",
    "StopReason",
    "StoreError",
    "Surface",
    "TestClient",
    "TextContent",
    "TextDelta",
    "ThoughtDelta",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolExecutor",
    "ToolOutput",
    "ToolResult",
    "ToolUse",
    "Toolset",
    "Transcript",
    "Turn",
    "UsageDelta",
    "UserMessage",
    "Wire",
    "Workspace",
    "__version__",
    "check_model",
    "check_session_store",
    "claim_stdio",
    "coding_tools",
    "memory_pair",
    "spawn_agent",
    "stdio_stream",
]

if not TYPE_CHECKING:  # a type checker would take every name for one of ours

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return import_module("acp_agent.version").VERSION
        home = _HOME.get(name)
        if home is None:
            raise AttributeError(f"module 'acp_agent' has no attribute {name!r}")
        return getattr(import_module(f"acp_agent.{home}"), name)


def __dir__() -> list[str]:
    return __all__

"""What an agent is made of, as the runtime sees it. `agent.Agent` builds one; nothing here runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakSet

from msgspec import Struct, field

from acp_agent.content import StopReason
from acp_agent.events import Command
from acp_agent.models.base import Model
from acp_agent.runtime.auth import AuthProvider
from acp_agent.runtime.permissions import PermissionPolicy
from acp_agent.runtime.workspace import EDITOR_SECONDS, SECRET_PATTERNS
from acp_agent.tools.base import Tool, Toolset

if TYPE_CHECKING:
    from acp_agent.runtime.session import Session
    from acp_agent.runtime.turn import Turn

__all__ = ["AgentDefinition", "CommandHandler", "PromptHandler", "SessionCommand", "SessionSetup"]

PromptHandler: TypeAlias = "Callable[[Turn], Awaitable[StopReason | None]]"
CommandHandler: TypeAlias = "Callable[[Turn, str], Awaitable[StopReason | None]]"


class SessionCommand(Struct, frozen=True):
    """A slash command and what runs it: the handler gets the turn and what followed the name."""

    command: Command
    handler: CommandHandler


class SessionSetup(Struct, frozen=True, kw_only=True):
    """What differs between sessions by the folder they work in. `notices` are told in the session's first turn."""

    policy: PermissionPolicy
    mcp_servers: Sequence[Any] = ()
    secret_patterns: Sequence[str] = SECRET_PATTERNS
    notices: Sequence[str] = ()


class AgentDefinition(Struct, kw_only=True):
    """Everything that is fixed before the first byte is read. Times are in seconds.

    `editor_seconds` is how long the editor may take for one request about a file or a terminal.
    `set_up` makes what a session in a folder (its absolute cwd) needs, each time one is opened; it raises
    `SettingsError`, and then there is no session. Without it every session has `policy`.
    `unstable` names the parts of the protocol that are used although they may still change. `sessions` are those that
    live, which are told when `commands` change.
    """

    name: str
    version: str
    title: str | None = None
    handler: PromptHandler
    tools: list[Tool] = field(default_factory=list)
    toolsets: list[Toolset] = field(default_factory=list)
    commands: dict[str, SessionCommand] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    policy: PermissionPolicy = field(default_factory=PermissionPolicy)
    mode: str = "ask"
    accepts: frozenset[str] = frozenset({"image", "resource"})
    can_mcp: bool = True
    system_prompt: Callable[..., str] | None = None
    max_steps: int = 100
    max_waiting_prompts: int = 8
    cancel_grace: float = 3.0
    permission_timeout: float | None = None
    editor_seconds: float = EDITOR_SECONDS
    heartbeat: float | None = None
    mcp_servers: Sequence[Any] = ()
    mcp_wait: float = 10.0
    set_up: Callable[[str], SessionSetup] | None = None
    auth: AuthProvider | None = None
    unstable: frozenset[str] = frozenset()
    sessions: WeakSet[Session] = field(default_factory=WeakSet)

    @property
    def has_gates(self) -> bool:
        """Whether there is anything that a session mode could decide about."""
        return bool(self.tools or self.toolsets or self.models)

    def setup_for(self, cwd: str) -> SessionSetup:
        """What a session that works in `cwd` is made with. Raises `SettingsError`."""
        return SessionSetup(policy=self.policy) if self.set_up is None else self.set_up(cwd)

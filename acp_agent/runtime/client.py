"""The seam to the editor: all that the runtime may show it or ask of it. A surface implements it per version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from acp_agent.content import Location, PermissionKind, ToolContent, ToolKind, ToolStatus
from acp_agent.events import Event
from acp_agent.tools.base import FormAnswer, TerminalOutput

__all__ = ["ClientAbilities", "ClientPort", "PermissionAnswer", "PermissionOption", "PermissionQuestion"]


class ClientAbilities(Struct, frozen=True, kw_only=True):
    """What the client said it can, of no protocol version. What it did not say, it cannot."""

    read_text_file: bool = False
    write_text_file: bool = False
    terminal: bool = False
    form: bool = False
    url: bool = False
    boolean_options: bool = False
    notices: bool = False
    compaction: bool = False
    terminal_auth: bool = False


class PermissionOption(Struct, frozen=True):
    """One answer that the user may choose; `name` says its scope."""

    option_id: str
    name: str
    kind: PermissionKind


class PermissionQuestion(Struct, frozen=True, kw_only=True):
    """A call to be judged, whole: nothing of it needs to be looked up elsewhere."""

    tool_call_id: str
    title: str
    name: str
    kind: ToolKind
    status: ToolStatus
    content: list[ToolContent]
    locations: list[Location]
    raw_input: dict[str, Any]
    options: list[PermissionOption] = field(default_factory=list)


class PermissionAnswer(Struct, frozen=True):
    """`unusable` is an error, a malformed answer or a closed connection: not approved, whatever it says."""

    outcome: Literal["selected", "cancelled", "unusable"]
    option_id: str = ""


class ClientPort(Protocol):
    """The editor. `show` is a plain call; the rest are round trips that raise `RequestError` or `ConnectionClosed`."""

    abilities: ClientAbilities

    @property
    def full(self) -> bool:
        """More is waiting to be read than should be: whoever produces waits for room before going on."""

    def show(self, session_id: str, event: Event) -> None:
        """Tell an event that happened now. What the client knows itself (its own prompt) is not told again."""

    def replay(self, session_id: str, event: Event) -> None:
        """Tell an event of the past to a client that has none of it."""

    def show_chunk(self, session_id: str, role: Literal["agent", "thought"], message_id: str, text: str) -> None: ...

    async def wait_for_room(self) -> None: ...

    async def request_permission(self, session_id: str, question: PermissionQuestion) -> PermissionAnswer: ...

    async def read_text_file(
        self, session_id: str, path: str, *, line: int | None = None, limit: int | None = None
    ) -> str: ...

    async def write_text_file(self, session_id: str, path: str, content: str) -> None: ...

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        output_byte_limit: int,
    ) -> str: ...

    async def read_terminal(self, session_id: str, terminal_id: str) -> TerminalOutput: ...

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str) -> TerminalOutput: ...

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None: ...

    async def release_terminal(self, session_id: str, terminal_id: str) -> None: ...

    async def ask_form(
        self, session_id: str, message: str, schema: Mapping[str, Any], *, tool_call_id: str | None = None
    ) -> FormAnswer: ...

"""What a tool is, and what a tool may see: Protocols that `runtime` implements.

A call goes through three steps, so that a person can judge it before it acts:

    describe(arguments) -> Proposal     title, kind, places, permission key; changes nothing
    prepare(proposal)                   may read: the diff to be judged, or an early failure
    run(proposal)                       acts; reads again, and fails if the file changed meanwhile
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import UNSET, Struct, UnsetType, field

from acp_agent.content import ContentBlock, Location, PlanEntry, TextContent, ToolContent, ToolKind

__all__ = [
    "Editor",
    "FormAnswer",
    "PermissionDefault",
    "Proposal",
    "Terminal",
    "TerminalOutput",
    "TextFile",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "Toolset",
    "Workspace",
]

PermissionDefault: TypeAlias = Literal["allow", "ask", "deny"]


class Proposal(Struct, kw_only=True):
    """What one call would do.

    `title` is for a person to judge ("Edit src/app.py"); `content` is what is to be judged, a diff first.
    `key` is what "always" is remembered under, together with the tool's name; `scope` says it in words
    ("`pytest -q`"); an empty key cannot be remembered. `outside` marks a path outside the session's roots: asked
    every time, never remembered; `sensitive` a file (`.env`, a key) that no mode but `auto` lets pass unasked.
    `state` is the tool's own, from one step to the next.
    """

    title: str
    kind: ToolKind
    arguments: dict[str, Any]
    permission: PermissionDefault = "ask"
    key: str = ""
    scope: str = ""
    locations: list[Location] = field(default_factory=list)
    content: list[ToolContent] = field(default_factory=list)
    outside: bool = False
    sensitive: bool = False
    read_only: bool = False
    state: Any = None


class ToolOutput(Struct, kw_only=True):
    """What came of a call.

    `content` is shown and stands on its own (the diff first); `told` is what the model reads, the shown texts
    if not given. `raw_output` is any JSON, without repeating a long text that `content` has. `failed` is for a call
    that could not do its work; a command that ended with another exit code than 0 has done it.
    """

    content: list[ToolContent] = field(default_factory=list)
    told: list[ContentBlock] | None = None
    raw_output: Any = UNSET
    locations: list[Location] | UnsetType = UNSET
    failed: bool = False
    ends_turn: bool = False

    @classmethod
    def of_text(cls, text: str, *, raw_output: Any = UNSET) -> ToolOutput:
        """One text, shown and told."""
        from acp_agent.content import ContentItem

        return cls(content=[ContentItem(TextContent(text))], raw_output=raw_output)


class TextFile(Struct, kw_only=True):
    """A text file as it is: `text` with every line end kept, and what is needed to write it back byte-exact.

    `encoding` is a codec name; `bom` are the bytes before the text. `exists` is False for a file to be made.
    """

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    exists: bool = True


class Workspace(Protocol):
    """The session's files: through the editor when it can (unsaved buffers), else on disk. Paths are absolute."""

    cwd: str
    roots: Sequence[str]

    def resolve(self, path: str) -> str:
        """`path` made absolute against the session's cwd, `~` and `..` resolved by name. Touches no disk."""

    def is_inside(self, path: str) -> bool:
        """Whether the real path, symlinks resolved, lies in one of the roots, at this moment."""

    def is_secret(self, path: str) -> bool:
        """Whether the file is one to be asked for even inside the roots (`.env`, keys). May be called in a thread."""

    async def read_text(self, path: str, *, outside: bool = False) -> TextFile:
        """The whole file. Raises `FileMissing`, or `ToolError` for a binary or too large one.

        `outside` says that the user allowed a path outside the roots; without it such a path is refused, also when
        it became one since it was judged.
        """

    async def read_bytes(self, path: str, *, outside: bool = False, limit: int | None = None) -> bytes:
        """The bytes on disk, `limit` of them at most. Raises `ToolError`."""

    async def write_text(self, path: str, file: TextFile, *, outside: bool = False) -> None:
        """Write the whole file, atomically on disk, mode kept, missing folders made. Raises `ToolError`."""

    async def delete_file(self, path: str, *, outside: bool = False) -> None:
        """Delete a file, or a symlink itself. Raises `ToolError`; a folder is one."""

    async def move_file(self, source: str, destination: str, *, outside: bool = False) -> None:
        """Give a file another path, missing folders made. Raises `ToolError`, also when the destination exists."""


class TerminalOutput(Struct, kw_only=True):
    """What a terminal printed so far. `exit_code` and `signal` are None while it runs, or when unknown."""

    text: str
    truncated: bool = False
    exited: bool = False
    exit_code: int | None = None
    signal: str | None = None


class Terminal(Protocol):
    """A terminal of the editor's. Each verb has its own deadline; `release` may be called twice and never raises."""

    terminal_id: str

    async def output(self) -> TerminalOutput: ...

    async def wait(self) -> TerminalOutput:
        """Wait for the exit, as long as it takes; then the output with the exit status."""

    async def kill(self) -> None: ...

    async def release(self) -> None: ...


class FormAnswer(Struct, frozen=True):
    """What the user did with a form."""

    action: Literal["accept", "decline", "cancel"]
    values: Mapping[str, Any] = field(default_factory=dict)


class Editor(Protocol):
    """What a tool may ask of the editor. Ask only what `can_*` says it can."""

    @property
    def can_run_terminals(self) -> bool: ...

    @property
    def can_show_forms(self) -> bool: ...

    async def create_terminal(
        self, command: str, args: Sequence[str], *, cwd: str, env: Mapping[str, str], output_byte_limit: int
    ) -> Terminal:
        """Raises `EditorRefused`, or `ToolError` when it does not answer in time and may have started something."""

    async def ask_form(self, message: str, schema: Mapping[str, Any]) -> FormAnswer:
        """Show a form (elicitation); `schema` is of the protocol's flat kind. An unusable answer is a cancel."""


class ToolContext(Protocol):
    """One running call, as its tool sees it."""

    @property
    def session_id(self) -> str: ...

    @property
    def tool_call_id(self) -> str: ...

    @property
    def cwd(self) -> str: ...

    @property
    def roots(self) -> Sequence[str]: ...

    @property
    def workspace(self) -> Workspace: ...

    @property
    def editor(self) -> Editor: ...

    @property
    def cancelled(self) -> bool:
        """Whether the turn was cancelled: work in a thread looks here now and then and stops."""

    def report(self, content: Sequence[ToolContent] | str, *, locations: Sequence[Location] | None = None) -> None:
        """Show what there is so far, in place of what was shown before. Cheap: coalesced, at most four a second.

        May be called from a thread of the tool's own.
        """

    async def send_text(self, text: str) -> None:
        """Say something to the user, as a part of the answer."""

    def send_plan(self, entries: Sequence[PlanEntry]) -> None:
        """Show the plan, whole."""

    async def set_mode(self, mode_id: str) -> None:
        """Put the session into another mode. Raises `ToolError` for an unknown one."""

    async def call_tool(self, tool: str | Tool, arguments: dict[str, Any] | None = None) -> ToolOutput:
        """Run another tool inside this call: its own row, its own permission, this turn's cancel.

        A denied or failed call is an output with `failed` set, never an exception.
        """

    def on_finished(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Await `callback` once after the call's last update was shown, however it ended; also when cancelled.

        For what the update still names: a terminal is released here. It is shielded and must end by itself.
        """


class Tool(ABC):
    """A tool of the class kind; `@agent.tool` makes one of a plain function.

    `input_schema` is a JSON Schema of type object, without `$ref`. `read_only` says that calls may run at the
    same time as other read-only ones.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    kind: ToolKind = "other"
    permission: PermissionDefault = "ask"
    read_only: bool = False

    @abstractmethod
    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        """Check the arguments and say what the call would do. Raises `ToolError` for bad ones. Changes nothing."""

    async def prepare(self, proposal: Proposal, context: ToolContext) -> None:
        """Read what is needed to judge the call, and complete the proposal. Raises `ToolError` to fail early."""
        return

    @abstractmethod
    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        """Do it. Raises `ToolError` when it cannot be done; any other exception is a crash, logged as one."""


class Toolset(Protocol):
    """Tools that come and go, an MCP server's for one. Asked at each model step."""

    async def tools(self) -> Sequence[Tool]: ...

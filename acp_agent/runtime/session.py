"""One conversation: what is known of it, and the one way anything of it is said.

The rule it owns: what is emitted goes to the journal and to the client in the same order, by plain calls. While the
session is being loaded again, what happens meanwhile is held back and said after the load's answer (`hold`, `release`).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, Protocol

import anyio
from msgspec import Struct

from acp_agent.content import ContentBlock, TextContent, clean_struct, clean_text
from acp_agent.events import (
    Command,
    CommandsChanged,
    Event,
    HistoryAdded,
    MessageChunk,
    ModeChanged,
    NoticeRaised,
    OptionsChanged,
    PromptInserted,
    SessionInfoChanged,
    ToolCallProgress,
    UsageChanged,
)
from acp_agent.history import HistoryMessage, UserMessage
from acp_agent.runtime.client import ClientPort
from acp_agent.runtime.definition import AgentDefinition, SessionCommand, SessionSetup
from acp_agent.runtime.options import SessionOptions
from acp_agent.runtime.permissions import PermissionMemory, PermissionPolicy
from acp_agent.runtime.timers import Timer, Timers
from acp_agent.store.base import SessionHeader, SessionStore
from acp_agent.tools.base import Tool, Toolset, Workspace

__all__ = ["Service", "Session", "new_id", "now"]

KEEP_TEXT_SECONDS = 0.3
TITLE_LENGTH = 80


def now() -> str:
    """The time as the store and the wire write it: ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def new_id(kind: str) -> str:
    """An id that is never given twice, in this process or another."""
    return f"{kind}_{os.urandom(12).hex()}"


class ServiceFailure(Protocol):
    """A part of a service that cannot be used, and why, in one sentence."""

    @property
    def name(self) -> str: ...

    @property
    def reason(self) -> str: ...


class ServiceStatus(Protocol):
    """How one part of a service does; `detail` says why, when it does not."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def tools(self) -> Sequence[str]: ...

    @property
    def detail(self) -> str: ...


class Service(Protocol):
    """What lives with a session beside its turns: its MCP servers."""

    def status(self) -> Sequence[ServiceStatus]: ...

    async def wait_ready(self, seconds: float) -> None: ...

    def take_new_failures(self) -> Sequence[ServiceFailure]: ...

    def instructions(self) -> str: ...

    async def aclose(self) -> None: ...


class _Message(Struct):
    """A message that is being streamed; `unkept` is what the journal has not got yet."""

    role: Literal["agent", "thought"]
    message_id: str
    unkept: list[str]


class Session:
    """A conversation with one client. Not a task: turns run in it, one at a time."""

    def __init__(
        self,
        header: SessionHeader,
        *,
        definition: AgentDefinition,
        setup: SessionSetup,
        port: ClientPort,
        store: SessionStore,
        timers: Timers,
        workspace: Workspace,
    ) -> None:
        self.id = header.session_id
        self.header = header
        self.definition = definition
        self.setup = setup
        self.port = port
        self.store = store
        self.timers = timers
        self.workspace = workspace
        self.cwd = header.cwd
        self.roots: Sequence[str] = (header.cwd, *header.roots)
        self.history: list[HistoryMessage] = []
        self.memory = PermissionMemory()
        self.questions = anyio.Lock(fast_acquire=True)  # one question at a time
        self.options = SessionOptions(definition, header)
        self.toolsets: list[Toolset] = list(definition.toolsets)
        self.services: list[Service] = []
        self.notices: list[str] = list(setup.notices)
        self._own_commands: dict[str, SessionCommand] = {}
        self._told_commands: list[Command] | None = None  # None: nobody was told, or nobody listens any more
        definition.sessions.add(self)
        self._message: _Message | None = None
        self._keep_timer: Timer | None = None
        self._held: deque[list[Callable[[], None]]] = deque()
        self._released: anyio.Event | None = None

    # what is said ---------------------------------------------------------------------------------------------------

    def emit(self, event: Event, *, kept: Event | None = None) -> None:
        """Show one event and journal it, or what should be `kept` in its place. It ends the message being streamed.

        Both are made clean here: this is the border that everything but streamed text crosses.
        """
        self.end_message()
        event = clean_struct(event)
        if not isinstance(event, ToolCallProgress | NoticeRaised):
            self.store.append(self.id, [event if kept is None else clean_struct(kept)])
        self.show(event)

    def say(self, role: Literal["agent", "thought"], text: str) -> None:
        """Show a piece of a message. Pieces in a row, of one role, are one message under one id."""
        text = clean_text(text)
        message = self._message
        if message is None or message.role != role:
            self.end_message()
            message = self._message = _Message(role, new_id("msg"), [])
        if not message.unkept:
            self._keep_timer = self.timers.call_later(KEEP_TEXT_SECONDS, self.keep_text)
        message.unkept.append(text)
        if not self._held:
            self.port.show_chunk(self.id, role, message.message_id, text)
        else:
            message_id = message.message_id
            self._held[-1].append(lambda: self.port.show_chunk(self.id, role, message_id, text))

    def end_message(self) -> None:
        """The next piece begins a new message. The journal has the old one whole."""
        if self._message is not None:
            self.keep_text()
            self._message = None

    @property
    def message_id(self) -> str:
        """The id of the message being streamed, or an empty text."""
        return self._message.message_id if self._message else ""

    def keep_text(self) -> None:
        """The journal gets what was streamed so far."""
        if self._keep_timer is not None:
            self._keep_timer.cancel()
            self._keep_timer = None
        message = self._message
        if message is not None and message.unkept:
            text = TextContent("".join(message.unkept))
            message.unkept.clear()
            self.store.append(self.id, [MessageChunk(message.role, message.message_id, text)])

    def show(self, event: Event) -> None:
        """Show without journalling."""
        if not self._held:
            self.port.show(self.id, event)
        else:
            self._held[-1].append(lambda: self.port.show(self.id, event))

    def after_held(self, function: Callable[[], None]) -> None:
        """Call `function` behind all that was said so far: at once, or after what is held back."""
        if not self._held:
            function()
        else:
            self._held[-1].append(function)

    # being loaded while it lives --------------------------------------------------------------------------------------

    def hold(self) -> None:
        """From here on, keep back what is said: its history is being replayed. Each `hold` has its own `release`."""
        self.keep_text()
        if not self._held:
            self._released = anyio.Event()
        self._held.append([])

    def release(self) -> None:
        """Say what was kept back from the oldest `hold` to the next one; after the last, go on live."""
        for function in self._held.popleft():
            function()
        if not self._held and self._released is not None:
            self._released.set()

    async def wait_released(self) -> None:
        """Nothing may be asked of the client about a call that it has not been shown yet."""
        if self._held and self._released is not None:
            await self._released.wait()

    # what is known --------------------------------------------------------------------------------------------------

    @property
    def mode(self) -> str:
        return self.options.mode

    @property
    def policy(self) -> PermissionPolicy:
        return self.setup.policy

    def restore(self, header: SessionHeader) -> None:
        """Become the stored session that `header` tells of; its journal is read separately."""
        self.header = header
        self.options = SessionOptions(self.definition, header)
        header.mode, header.options = self.options.mode, self.options.values()

    def set_option(self, option_id: str, value: str | bool) -> None:
        """Change a setting: checked first, kept, but not echoed: see `echo_options`. Raises `DecodeError`."""
        self.options.set(option_id, value)
        self.header.mode = self.options.mode
        self.header.options = self.options.values()
        self.touch()

    def echo_options(self, *, mode_changed: bool) -> None:
        """Tell the client what the settings are now, by both of their names."""
        if mode_changed:
            self.emit(ModeChanged(self.mode))
        self.emit(OptionsChanged(self.options.as_list()))

    def set_title(self, title: str) -> None:
        """Name the session; told to the client at once."""
        title = " ".join(clean_text(title[: 4 * TITLE_LENGTH]).split())
        title = title if len(title) <= TITLE_LENGTH else title[: TITLE_LENGTH - 1] + "…"
        if title and title != self.header.title:
            self.header.title = title
            self.touch()
            self.emit(SessionInfoChanged(title=title, updated_at=self.header.updated_at))

    def set_usage(self, used: int, size: int, cost: float | None = None) -> None:
        """How full the context is after the last request, in tokens; `cost` (USD) is that request's, and is summed."""
        if cost is not None:
            self.header.cost = (self.header.cost or 0.0) + cost
        self.header.used, self.header.size = used, size
        self.keep_header()
        self.emit(UsageChanged(used, size, self.header.cost))

    def touch(self) -> None:
        """The session changed now: its header is written anew."""
        self.header.updated_at = now()
        self.keep_header()

    def keep_header(self) -> None:
        self.store.put_header(self.header)

    def add_prompt(self, message_id: str, content: list[ContentBlock]) -> None:
        """A prompt is told, journalled and part of the history. It came as JSON: it is clean, and may be large."""
        event, message = PromptInserted(message_id, content), UserMessage(message_id, content)
        self.history.append(message)
        self.store.append(self.id, [event, HistoryAdded(message)])
        self.show(event)
        self.touch()

    def add_history(self, message: HistoryMessage) -> None:
        message = clean_struct(message)
        self.history.append(message)
        self.store.append(self.id, [HistoryAdded(message)])

    def replace_history(self, messages: list[HistoryMessage]) -> None:
        """Start the model's history anew (compaction, /clear, a refusal); what was shown stays."""
        self.history = list(messages)
        events: list[Event] = [HistoryAdded(None, replaces=True)]
        events.extend(HistoryAdded(message) for message in messages)
        self.store.append(self.id, events)

    # what it can ----------------------------------------------------------------------------------------------------

    async def tools(self) -> dict[str, Tool]:
        """The tools that can be used now, by name; the agent's own win over a toolset's of the same name."""
        found: dict[str, Tool] = {}
        for toolset in self.toolsets:
            found.update((tool.name, tool) for tool in await toolset.tools())
        found.update((tool.name, tool) for tool in self.definition.tools)
        return found

    def commands(self) -> list[Command]:
        """All slash commands, as they are listed."""
        return [entry.command for entry in (self.definition.commands | self._own_commands).values()]

    def find_command(self, name: str) -> SessionCommand | None:
        """The session's own command of this name, else the agent's."""
        return self._own_commands.get(name) or self.definition.commands.get(name)

    def set_commands(self, commands: Iterable[SessionCommand]) -> None:
        """Give the session commands of its own, beside the agent's, in place of those it had. The client is told."""
        self._own_commands = {entry.command.name: entry for entry in commands}
        self.refresh_commands()

    def announce_commands(self) -> None:
        """The whole list, if there is any, at once. Not journalled: a replay tells the commands of its own day."""
        self._told_commands = self.commands()
        if self._told_commands:
            self.port.show(self.id, CommandsChanged(self._told_commands))

    def refresh_commands(self) -> None:
        """The whole list again, if it changed since it was told."""
        commands = self.commands()
        if self._told_commands not in (None, commands):
            self._told_commands = commands
            self.show(CommandsChanged(commands))

    def leave(self) -> None:
        """The session is closed here."""
        self._told_commands = None
        self.definition.sessions.discard(self)

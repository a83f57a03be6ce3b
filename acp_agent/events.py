"""What happens in a session, as facts of no protocol version: shown live, journalled, and replayed from the journal.

A surface turns an event into zero or more frames. `UNSET` means "unchanged". Collections replace as a whole.
`ToolCallProgress` is volatile: it is shown, never kept. `HistoryAdded`, `PromptInserted` and `TurnEnded` are kept;
what of them is shown is the surface's business.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType, field

from acp_agent.content import ContentBlock, Location, PlanEntry, StopReason, ToolContent, ToolKind, ToolStatus
from acp_agent.history import HistoryMessage

__all__ = [
    "Choice",
    "Command",
    "CommandsChanged",
    "CompactionChanged",
    "ConfigOption",
    "Event",
    "HistoryAdded",
    "MessageChunk",
    "ModeChanged",
    "NoticeRaised",
    "OptionsChanged",
    "PlanChanged",
    "PromptInserted",
    "SessionInfoChanged",
    "ToolCallChanged",
    "ToolCallOpened",
    "ToolCallProgress",
    "TurnEnded",
    "UsageChanged",
]


class PromptInserted(Struct, frozen=True, tag_field="event", tag="prompt"):
    """A prompt got a message id and a place in the conversation."""

    message_id: str
    content: list[ContentBlock]


class MessageChunk(Struct, frozen=True, gc=False, tag_field="event", tag="chunk"):
    """A piece of a message; the pieces of one `message_id`, joined, are the message, exactly once."""

    role: Literal["agent", "thought"]
    message_id: str
    content: ContentBlock


class ToolCallOpened(Struct, frozen=True, tag_field="event", tag="tool_call", omit_defaults=True):
    """A call is announced: always first, once per id. `raw_input` is the arguments object."""

    tool_call_id: str
    title: str
    name: str
    kind: ToolKind = "other"
    status: ToolStatus = "pending"
    content: list[ToolContent] = field(default_factory=list)
    locations: list[Location] = field(default_factory=list)
    raw_input: dict[str, Any] = field(default_factory=dict)


class ToolCallChanged(Struct, frozen=True, tag_field="event", tag="tool_call_update", omit_defaults=True):
    """A call moved on. The status is always given: some clients take a missing one for completed."""

    tool_call_id: str
    status: ToolStatus
    title: str | UnsetType = UNSET
    content: list[ToolContent] | UnsetType = UNSET
    locations: list[Location] | UnsetType = UNSET
    raw_input: dict[str, Any] | UnsetType = UNSET
    raw_output: Any = UNSET


class ToolCallProgress(Struct, frozen=True, tag_field="event", tag="tool_call_progress", omit_defaults=True):
    """A running call's content so far, a bounded tail. Volatile."""

    tool_call_id: str
    content: list[ToolContent] | UnsetType = UNSET
    title: str | UnsetType = UNSET
    locations: list[Location] | UnsetType = UNSET


class PlanChanged(Struct, frozen=True, tag_field="event", tag="plan"):
    """The plan, whole."""

    entries: list[PlanEntry]
    plan_id: str = "plan"


class ModeChanged(Struct, frozen=True, tag_field="event", tag="mode"):
    """The session mode is now this one."""

    mode_id: str


class Choice(Struct, frozen=True, omit_defaults=True):
    """One value of a select option, or one session mode."""

    value: str
    name: str
    description: str | None = None


class ConfigOption(Struct, frozen=True, omit_defaults=True):
    """A setting of a session: a select with `choices` and a string `value`, or without choices a boolean."""

    id: str
    name: str
    value: str | bool
    choices: list[Choice] = field(default_factory=list)
    category: str | None = None
    description: str | None = None


class OptionsChanged(Struct, frozen=True, tag_field="event", tag="options"):
    """All options with their values."""

    options: list[ConfigOption]


class Command(Struct, frozen=True, omit_defaults=True):
    """A slash command, without the slash. `hint` says what may follow its name."""

    name: str
    description: str
    hint: str | None = None


class CommandsChanged(Struct, frozen=True, tag_field="event", tag="commands"):
    """All commands."""

    commands: list[Command]


class SessionInfoChanged(Struct, frozen=True, tag_field="event", tag="session_info", omit_defaults=True):
    """`updated_at` is ISO 8601 with its zone. None clears."""

    title: str | UnsetType | None = UNSET
    updated_at: str | UnsetType | None = UNSET


class UsageChanged(Struct, frozen=True, tag_field="event", tag="usage", omit_defaults=True):
    """How full the context is: tokens of the last request, of `size`. `cost` is the session's so far."""

    used: int
    size: int
    cost: float | None = None
    currency: str = "USD"


class NoticeRaised(Struct, frozen=True, tag_field="event", tag="notice", omit_defaults=True):
    """Something the user should know that the model did not say. Not replayed."""

    severity: Literal["info", "warning", "error"]
    title: str
    description: str | None = None


class CompactionChanged(Struct, frozen=True, tag_field="event", tag="compaction", omit_defaults=True):
    """The history is being made shorter, or was; `summary` is what stands in for it."""

    compaction_id: str
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    summary: str | None = None
    error: str | None = None


class HistoryAdded(Struct, frozen=True, tag_field="event", tag="history"):
    """A message joined the model's history. Never shown. `replaces` drops everything before it (compaction, /clear)."""

    message: HistoryMessage | None
    replaces: bool = False


class TurnEnded(Struct, frozen=True, tag_field="event", tag="turn_ended", omit_defaults=True):
    """A turn is over: with a stop reason, or with the sentence of its error."""

    stop_reason: StopReason | None = None
    error: str | None = None


Event: TypeAlias = (
    PromptInserted
    | MessageChunk
    | ToolCallOpened
    | ToolCallChanged
    | ToolCallProgress
    | PlanChanged
    | ModeChanged
    | OptionsChanged
    | CommandsChanged
    | SessionInfoChanged
    | UsageChanged
    | NoticeRaised
    | CompactionChanged
    | HistoryAdded
    | TurnEnded
)

"""Tool calls, and asking leave for them: `session/request_permission`.

Source: https://agentclientprotocol.com/protocol/tool-calls. In an update what is absent is unchanged, and collections
replace. A status or kind that is set is always sent, also when it is the default.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from acp_agent.protocol.base import Leniency, Lenient, Payload, Sifted, UInt32, UnknownIs
from acp_agent.protocol.v1.content import ContentBlock

__all__ = [
    "CancelledPermissionOutcome",
    "Content",
    "Diff",
    "PermissionOption",
    "PermissionOptionKind",
    "PermissionToolCall",
    "RequestPermissionOutcome",
    "RequestPermissionRequest",
    "RequestPermissionResponse",
    "SelectedPermissionOutcome",
    "Terminal",
    "ToolCall",
    "ToolCallContent",
    "ToolCallLocation",
    "ToolCallStatus",
    "ToolCallUpdate",
    "ToolKind",
]

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
ToolCallStatus: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]
PermissionOptionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]

AnyKind: TypeAlias = Annotated[ToolKind | UnsetType, Leniency.DEFAULT_ON_ERROR, UnknownIs("other")]
FirstStatus: TypeAlias = Annotated[ToolCallStatus | UnsetType, Leniency.DEFAULT_ON_ERROR, UnknownIs("pending")]


class Content(Payload, kw_only=True, tag_field="type", tag="content"):
    """A block shown inside a tool call."""

    content: ContentBlock


class Diff(Payload, kw_only=True, tag_field="type", tag="diff"):
    """A file before and after. Without `old_text` the file is new."""

    path: str
    new_text: str
    old_text: Lenient[str | None] = None


class Terminal(Payload, kw_only=True, tag_field="type", tag="terminal"):
    """A terminal of the client, shown live inside a tool call."""

    terminal_id: str


ToolCallContent: TypeAlias = Content | Diff | Terminal


class ToolCallLocation(Payload, kw_only=True):
    """A place that the client may follow: absolute `path`, 1-based `line`."""

    path: str
    line: Lenient[UInt32 | None] = None


class ToolCall(Payload, kw_only=True, tag_field="sessionUpdate", tag="tool_call"):
    """A call is announced. Absent, `kind` means `other` and `status` means `pending`."""

    tool_call_id: str
    title: str
    name: Lenient[str | None] = None
    kind: AnyKind = UNSET
    status: FirstStatus = UNSET
    content: Sifted[list[ToolCallContent] | UnsetType] = UNSET
    locations: Sifted[list[ToolCallLocation] | UnsetType] = UNSET
    raw_input: Any = UNSET
    raw_output: Any = UNSET


class ToolCallUpdate(Payload, kw_only=True, tag_field="sessionUpdate", tag="tool_call_update"):
    """A call moved on."""

    tool_call_id: str
    title: Lenient[str | UnsetType] = UNSET
    name: Lenient[str | UnsetType] = UNSET
    kind: AnyKind = UNSET
    status: Lenient[ToolCallStatus | UnsetType] = UNSET
    content: Sifted[list[ToolCallContent] | UnsetType] = UNSET
    locations: Sifted[list[ToolCallLocation] | UnsetType] = UNSET
    raw_input: Any = UNSET
    raw_output: Any = UNSET


class PermissionToolCall(ToolCallUpdate, kw_only=True, tag=False):
    """A `ToolCallUpdate` inside a permission request, where it has no `sessionUpdate`."""


class PermissionOption(Payload, kw_only=True):
    """One answer that the user may choose."""

    option_id: str
    name: str
    kind: PermissionOptionKind


class RequestPermissionRequest(Payload, kw_only=True):
    """May this call run? It need not have been announced before."""

    session_id: str
    tool_call: PermissionToolCall
    options: list[PermissionOption]


class SelectedPermissionOutcome(Payload, kw_only=True, tag_field="outcome", tag="selected"):
    """The user chose the option of this id."""

    option_id: str


class CancelledPermissionOutcome(Payload, kw_only=True, tag_field="outcome", tag="cancelled"):
    """The turn was cancelled before the user chose."""


RequestPermissionOutcome: TypeAlias = SelectedPermissionOutcome | CancelledPermissionOutcome


class RequestPermissionResponse(Payload, kw_only=True):
    """The user's answer."""

    outcome: RequestPermissionOutcome

"""A turn: `session/prompt`, `session/cancel`, and the `session/update` notification with all its variants.

Source: https://agentclientprotocol.com/protocol/prompt-turn
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, UnsetType

from acp_agent.protocol.base import Lenient, Payload, Sifted, UInt64
from acp_agent.protocol.v1.agent_plan import Plan
from acp_agent.protocol.v1.content import ContentBlock
from acp_agent.protocol.v1.session_config_options import ConfigOptionUpdate
from acp_agent.protocol.v1.session_modes import CurrentModeUpdate
from acp_agent.protocol.v1.slash_commands import AvailableCommandsUpdate
from acp_agent.protocol.v1.tool_calls import ToolCall, ToolCallUpdate

__all__ = [
    "AgentMessageChunk",
    "AgentThoughtChunk",
    "CancelNotification",
    "CompactionSummaryChunk",
    "CompactionUpdate",
    "ContentChunk",
    "Cost",
    "Notice",
    "PromptRequest",
    "PromptResponse",
    "SessionInfoUpdate",
    "SessionNotification",
    "SessionUpdate",
    "StopReason",
    "UsageUpdate",
    "UserMessageChunk",
]

StopReason: TypeAlias = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


class PromptRequest(Payload, kw_only=True):
    """What the user says. Every block must be one that the agent said it takes."""

    session_id: str
    prompt: list[ContentBlock]


class PromptResponse(Payload, kw_only=True):
    """The turn is over."""

    stop_reason: StopReason


class CancelNotification(Payload, kw_only=True):
    """Stop the turn that runs in the session, if one does."""

    session_id: str


class ContentChunk(Payload, kw_only=True):
    """A piece of a message. Pieces with one `message_id` make one message."""

    content: ContentBlock
    message_id: Lenient[str | None] = None


class UserMessageChunk(ContentChunk, kw_only=True, tag_field="sessionUpdate", tag="user_message_chunk"):
    """The user said; sent when a conversation is replayed."""


class AgentMessageChunk(ContentChunk, kw_only=True, tag_field="sessionUpdate", tag="agent_message_chunk"):
    """The agent says."""


class AgentThoughtChunk(ContentChunk, kw_only=True, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    """The agent thinks."""


class SessionInfoUpdate(Payload, kw_only=True, tag_field="sessionUpdate", tag="session_info_update"):
    """UNSET is unchanged, None clears. `updated_at` is ISO 8601 with its zone."""

    title: Lenient[str | UnsetType | None] = UNSET
    updated_at: Lenient[str | UnsetType | None] = UNSET


class Cost(Payload, kw_only=True):
    """`currency` is an ISO 4217 code, or another unit such as `credits`."""

    amount: float
    currency: str


class UsageUpdate(Payload, kw_only=True, tag_field="sessionUpdate", tag="usage_update"):
    """How many tokens of the context are `used`, of `size`; `cost` is the session's so far."""

    used: UInt64
    size: UInt64
    cost: Lenient[Cost | None] = None


class Notice(Payload, kw_only=True, tag_field="sessionUpdate", tag="notice"):
    """Something to tell the user. `severity` is `info`, `warning`, `error` or another word; `title` is not empty."""

    severity: str
    title: str
    description: Lenient[str | None] = None


class CompactionUpdate(Payload, kw_only=True, tag_field="sessionUpdate", tag="compaction_update"):
    """The context is being made shorter. UNSET is unchanged, None clears.

    `status` is `in_progress`, `completed`, `failed`, `cancelled` or another word.
    """

    compaction_id: str
    status: str
    summary: Sifted[list[ContentBlock] | UnsetType | None] = UNSET
    error: Lenient[str | UnsetType | None] = UNSET


class CompactionSummaryChunk(Payload, kw_only=True, tag_field="sessionUpdate", tag="compaction_summary_chunk"):
    """A block more of a compaction's summary."""

    compaction_id: str
    content: ContentBlock


SessionUpdate: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCall
    | ToolCallUpdate
    | Plan
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | Notice
    | CompactionUpdate
    | CompactionSummaryChunk
)


class SessionNotification(Payload, kw_only=True):
    """Something happened in a session."""

    session_id: str
    update: SessionUpdate

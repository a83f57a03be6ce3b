"""What the model said and was told. What the user was shown is in `events`; the two differ.

The history is *whole* when each tool use has exactly one result after it, and each result its use before it.
Providers refuse anything else.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct, field

from acp_agent.content import ContentBlock, TextContent

__all__ = [
    "AssistantMessage",
    "HistoryMessage",
    "ToolResult",
    "ToolUse",
    "UserMessage",
    "make_whole",
    "missing_results",
]

INTERRUPTED = "Interrupted by the user before it finished."


class ToolUse(Struct, frozen=True, omit_defaults=True):
    """What a model wants run: a tool's name and its arguments, as a JSON object.

    `id` is the provider's own (they repeat theirs), or empty; the runtime mints the id that the editor sees
    and writes it to `call_id`. `problem` says why the arguments could not be read, if they could not.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    call_id: str = ""
    problem: str = ""


class UserMessage(Struct, frozen=True, tag_field="role", tag="user"):
    """What the user said: the blocks of one prompt, in order."""

    message_id: str
    content: list[ContentBlock]


class AssistantMessage(Struct, frozen=True, tag_field="role", tag="assistant", omit_defaults=True):
    """One reply of a model: its text, its thoughts, its tool uses in order.

    `native` is what the provider wants to see again unchanged (signed thinking blocks, for one), by provider.
    """

    message_id: str
    text: str = ""
    thought: str = ""
    tool_uses: list[ToolUse] = field(default_factory=list)
    native: dict[str, Any] | None = None


class ToolResult(Struct, frozen=True, tag_field="role", tag="tool", omit_defaults=True):
    """What the model is told of one tool use, by the runtime's `call_id`."""

    call_id: str
    name: str
    content: list[ContentBlock]
    failed: bool = False


HistoryMessage: TypeAlias = UserMessage | AssistantMessage | ToolResult


def make_whole(messages: list[HistoryMessage]) -> list[HistoryMessage]:
    """`messages` with a result for each tool use, right after its message, and no result without a use.

    A history is cut by a crash, a cancel or a trim; this repairs both directions and keeps everything else.
    """
    results = {message.call_id: message for message in messages if isinstance(message, ToolResult)}
    whole: list[HistoryMessage] = []
    for message in messages:
        if isinstance(message, ToolResult):
            continue  # placed behind its use below, or dropped when it has none
        whole.append(message)
        if isinstance(message, AssistantMessage):
            whole.extend(results.get(use.call_id) or _interrupted(use) for use in message.tool_uses)
    return whole


def missing_results(messages: list[HistoryMessage]) -> list[ToolResult]:
    """What the last reply of a turn that was cut still lacks: a result for each of its uses that has none."""
    answered: set[str] = set()
    for message in reversed(messages):
        match message:
            case ToolResult(call_id=call_id):
                answered.add(call_id)
            case AssistantMessage(tool_uses=uses):
                return [_interrupted(use) for use in uses if use.call_id not in answered]
            case UserMessage():
                break
    return []


def _interrupted(use: ToolUse) -> ToolResult:
    return ToolResult(use.call_id, use.name, [TextContent(INTERRUPTED)], failed=True)

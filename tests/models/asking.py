"""Asking a model in tests: a request in one line, and all that comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from acp_agent.content import TextContent
from acp_agent.history import HistoryMessage, UserMessage
from acp_agent.models.base import Finish, Model, ModelEvent, ModelRequest, TextDelta, ThoughtDelta, ToolSpec, ToolUse
from acp_agent.models.retry import RetryPolicy

READ = ToolSpec(
    "read_file",
    "Read a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
AT_ONCE = RetryPolicy(budget=5, first_delay=0.001, longest_delay=0.001)
NEVER = RetryPolicy(budget=0, short_tries=1)


def prompt(text: str = "Hello") -> UserMessage:
    return UserMessage("m1", [TextContent(text)])


def request(*messages: HistoryMessage, tools: Sequence[ToolSpec] = (), **more: Any) -> ModelRequest:
    return ModelRequest(session_id="s", messages=list(messages) or [prompt()], tools=list(tools), **more)


async def ask(model: Model, asked: ModelRequest | None = None) -> list[ModelEvent]:
    """All events of one request; the model is closed afterwards."""
    events: list[ModelEvent] = []
    try:
        async with aclosing(model.stream(asked or request())) as stream:
            events.extend([event async for event in stream])
    finally:
        await model.aclose()
    return events


def texts(events: list[ModelEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta)]


def thoughts(events: list[ModelEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, ThoughtDelta)]


def uses(events: list[ModelEvent]) -> list[ToolUse]:
    return [event for event in events if isinstance(event, ToolUse)]


def finish(events: list[ModelEvent]) -> Finish:
    assert isinstance(events[-1], Finish)
    return events[-1]

"""Keeping the model's history inside its context: old tool results are cut first, then a summary takes their place.

What the user asked last, and what was done about it, is never touched. What was shown stays shown.
"""

from __future__ import annotations

from contextlib import aclosing

import anyio
from msgspec.structs import replace

from acp_agent.content import TextContent, text_of
from acp_agent.errors import ModelError
from acp_agent.events import CompactionChanged
from acp_agent.history import AssistantMessage, HistoryMessage, ToolResult, UserMessage, make_whole
from acp_agent.models.base import Model, ModelRequest, TextDelta
from acp_agent.runtime.session import Session, new_id
from acp_agent.runtime.turn import Turn

__all__ = ["compact", "is_nearly_full", "make_room", "trim_results"]

NEARLY_FULL = 0.85
TRIMMED_TO = 400  # characters of an old tool result that stay
CHARACTERS_PER_TOKEN = 4  # a rough figure, used only for what no provider has counted yet
ENOUGH = 0.6

INSTRUCTIONS = (
    "Summarise the conversation so far for the assistant that will continue it and will not see it. Keep what the user"
    " wants and has decided, what was found out, which files were read or changed and how, what failed and why, and"
    " what is left to do. Be exact about names, paths and commands. Answer with the summary alone."
)
INTRODUCTION = "Summary of the conversation before this point:\n\n"


def is_nearly_full(session: Session) -> bool:
    """Whether the last request came close to the end of the context, by the provider's own count."""
    used, size = session.header.used, session.header.size
    return used is not None and size is not None and used >= NEARLY_FULL * size


async def make_room(turn: Turn, model: Model) -> None:
    """Bring the history back inside the context, the cheap way if that is enough."""
    session = turn.session
    trimmed = trim_results(session.history, _start_of_prompt(session.history))
    size = session.header.size or model.context_window
    saved = (_length(session.history) - _length(trimmed)) / CHARACTERS_PER_TOKEN
    if size is not None and (session.header.used or size) - saved <= ENOUGH * size:
        session.replace_history(trimmed)
        return
    await compact(turn, model)


async def compact(turn: Turn, model: Model) -> bool:
    """Put a summary by the model in the place of all before the last prompt. False if there is nothing to summarise.

    Raises `ModelError` when the model cannot; then, and when it is cancelled, nothing has changed.
    """
    session = turn.session
    start = _start_of_prompt(session.history)
    old = make_whole(session.history[:start])
    if not old:
        return False
    compaction_id = new_id("compaction")
    turn.show(CompactionChanged(compaction_id, "in_progress"))
    try:
        summary = await _summarise(model, session, trim_results(old, len(old)))
    except ModelError as error:
        turn.show(CompactionChanged(compaction_id, "failed", error=error.message))
        raise
    except anyio.get_cancelled_exc_class():
        turn.show(CompactionChanged(compaction_id, "cancelled"))
        raise
    told = UserMessage(new_id("msg"), [TextContent(INTRODUCTION + summary)])
    session.replace_history([told, *session.history[start:]])
    turn.show(CompactionChanged(compaction_id, "completed", summary=summary))
    return True


async def _summarise(model: Model, session: Session, messages: list[HistoryMessage]) -> str:
    asked = UserMessage(new_id("msg"), [TextContent(INSTRUCTIONS)])
    request = ModelRequest(session_id=f"{session.id}/summary", messages=[*messages, asked])
    try:
        async with aclosing(model.stream(request)) as events:
            parts = [event.text async for event in events if isinstance(event, TextDelta)]
    finally:
        model.forget(request.session_id)
    summary = "".join(parts).strip()
    if not summary:
        raise ModelError("The model gave no summary of the conversation.", kind="protocol")
    return summary


def trim_results(messages: list[HistoryMessage], before: int) -> list[HistoryMessage]:
    """The messages with long tool results cut, in those before index `before`."""
    return [
        _trimmed(message) if index < before and isinstance(message, ToolResult) else message
        for index, message in enumerate(messages)
    ]


def _trimmed(result: ToolResult) -> ToolResult:
    text = text_of(result.content)
    if len(text) <= 2 * TRIMMED_TO:
        return result
    cut = f"{text[:TRIMMED_TO]}\n[... {len(text) - TRIMMED_TO} characters of an old result were dropped]"
    return replace(result, content=[TextContent(cut)])


def _start_of_prompt(messages: list[HistoryMessage]) -> int:
    """Where the last prompt stands: it and what follows are kept as they are."""
    return max((index for index, message in enumerate(messages) if isinstance(message, UserMessage)), default=0)


def _length(messages: list[HistoryMessage]) -> int:
    return sum(
        len(message.text) + len(message.thought)
        if isinstance(message, AssistantMessage)
        else len(text_of(message.content))
        for message in messages
    )

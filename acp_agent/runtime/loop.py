"""The built-in agent loop: a model's reply, the tools it wants, the next reply, until it wants none."""

from __future__ import annotations

from contextlib import aclosing, suppress
from itertools import takewhile

from anyio import to_thread
from msgspec import Struct, structs

from acp_agent.content import StopReason, clean_json
from acp_agent.errors import ModelError
from acp_agent.history import AssistantMessage, HistoryMessage, ToolUse, UserMessage, make_whole
from acp_agent.models.base import Finish, Model, ModelRequest, TextDelta, ThoughtDelta, ToolSpec, UsageDelta
from acp_agent.runtime.compaction import compact, is_nearly_full, make_room
from acp_agent.runtime.session import new_id
from acp_agent.runtime.turn import Turn
from acp_agent.tools.base import Tool

__all__ = ["run_model"]

SILENT = "(The model had nothing to say.)"


class Reply(Struct):
    """One reply being received. What was received of it goes into the history however it ends."""

    text: list[str]
    thought: list[str]
    uses: list[ToolUse]
    finish: Finish | None = None
    usage: UsageDelta | None = None
    message_id: str = ""

    def message(self, *, whole: bool) -> AssistantMessage:
        """The reply as history; of one that was cut, what it said, without the tools it never got to use."""
        return AssistantMessage(
            self.message_id or new_id("msg"),
            "".join(self.text),
            "".join(self.thought),
            self.uses if whole else [],
            self.finish.native if self.finish else None,
        )


async def run_model(turn: Turn) -> StopReason:
    """Answer the prompt with the session's model. Raises `ModelError` when the provider fails."""
    session = turn.session
    model = session.options.model
    if model is None:
        raise ModelError("No model is configured.")
    turn.said = None
    spoke = False
    for _ in range(session.definition.max_steps):
        tools = await session.tools()
        reply = await _receive_within_context(turn, model, tools)
        spoke = spoke or any(text.strip() for text in reply.text)
        finish = reply.finish or Finish()
        if finish.reason == "refusal":
            session.replace_history(_before_prompt(session.history, turn.message_id))
            return "refusal"
        if not reply.uses:
            if not spoke and finish.reason == "end_turn":
                await turn.send_text(SILENT)
            return finish.reason
        await turn.executor.run_step(reply.uses, tools)
        spoke = True
        if turn.executor.ends_turn:
            return "end_turn"
        if finish.reason != "end_turn":
            return finish.reason
    return "max_turn_requests"


async def _receive_within_context(turn: Turn, model: Model, tools: dict[str, Tool]) -> Reply:
    """A reply, after making room where it is needed: by the count of the last one, or because the provider says so."""
    if is_nearly_full(turn.session):
        with suppress(ModelError):  # it is shown as failed, and there is still some room
            await make_room(turn, model)
    try:
        return await _receive(turn, model, tools)
    except ModelError as error:
        if error.kind != "context_overflow" or not await compact(turn, model):
            raise
    return await _receive(turn, model, tools)


async def _receive(turn: Turn, model: Model, tools: dict[str, Tool]) -> Reply:
    """One reply of the model, streamed to the client as it comes."""
    session = turn.session
    reply = Reply([], [], [])
    whole = False
    make_system = session.definition.system_prompt
    request = ModelRequest(
        session_id=session.id,
        messages=make_whole(session.history),
        tools=[ToolSpec(tool.name, tool.description, tool.input_schema) for tool in tools.values()],
        system=await to_thread.run_sync(make_system, session) if make_system else "",
        thought_level=session.options.thought_level,
    )
    try:
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                match event:
                    case TextDelta(text=text):
                        reply.text.append(text)
                        await turn.send_text(text)
                        if not reply.message_id:
                            reply.message_id = session.message_id
                    case ThoughtDelta(text=text):
                        reply.thought.append(text)
                        await turn.send_thought(text)
                    case ToolUse():
                        reply.uses.append(_with_id(event))
                    case UsageDelta():
                        reply.usage = event
                    case Finish():
                        reply.finish = event
        whole = True
    finally:
        if not turn.is_over:  # else the message is the next turn's
            session.end_message()
        if whole or any(reply.text):
            turn.add_history(reply.message(whole=whole))
    _tell_usage(turn, model, reply.usage)
    return reply


def _with_id(use: ToolUse) -> ToolUse:
    """Providers repeat their ids; ours are given once."""
    return structs.replace(use, call_id=new_id("call"), arguments=clean_json(use.arguments))


def _tell_usage(turn: Turn, model: Model, usage: UsageDelta | None) -> None:
    size = (usage.context_window if usage else None) or model.context_window
    if usage is not None and size:
        turn.send_usage(usage.input_tokens + usage.output_tokens, size, usage.cost)


def _before_prompt(history: list[HistoryMessage], message_id: str) -> list[HistoryMessage]:
    """A refused prompt, and what followed it, is not shown to the model again."""
    return list(takewhile(lambda each: not isinstance(each, UserMessage) or each.message_id != message_id, history))

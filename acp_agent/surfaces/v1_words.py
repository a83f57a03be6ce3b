"""Facts to ACP v1 and back: pure functions between `content`, `events`, `runtime.client` and `protocol.v1`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from acp_agent import content as facts
from acp_agent import events
from acp_agent.protocol.v1 import (
    agent_plan,
    prompt_turn,
    session_config_options,
    session_modes,
    slash_commands,
    tool_calls,
)
from acp_agent.protocol.v1 import content as words
from acp_agent.runtime.client import PermissionQuestion
from acp_agent.runtime.options import SessionOptions

__all__ = ["block_in", "block_out", "mode_state", "option_list", "permission_request", "pieces", "updates"]

PIECE = 8192  # characters: at most 48 KiB of JSON, whatever has to be escaped


def pieces(text: str) -> Iterator[str]:
    """`text` in pieces that fit a line which even old clients can read."""
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


# content blocks -------------------------------------------------------------------------------------------------------


def block_in(block: words.ContentBlock) -> facts.ContentBlock:
    """A block of a prompt, as the runtime knows it."""
    notes = _annotations_in(block.annotations)
    match block:
        case words.TextContent(text=text):
            return facts.TextContent(text, notes)
        case words.ImageContent():
            return facts.ImageContent(block.data, block.mime_type, block.uri, notes)
        case words.AudioContent():
            return facts.AudioContent(block.data, block.mime_type, notes)
        case words.ResourceLink():
            return facts.ResourceLink(
                block.name, block.uri, block.mime_type, block.title, block.description, block.size, notes
            )
        case words.EmbeddedResource(resource=resource):
            return _resource_in(resource, notes)


def _resource_in(resource: words.EmbeddedResourceResource, notes: dict[str, Any] | None) -> facts.EmbeddedResource:
    if isinstance(resource, words.BlobResourceContents):
        return facts.EmbeddedResource(resource.uri, blob=resource.blob, mime_type=resource.mime_type, annotations=notes)
    assert isinstance(resource, words.TextResourceContents)
    return facts.EmbeddedResource(resource.uri, text=resource.text, mime_type=resource.mime_type, annotations=notes)


def block_out(block: facts.ContentBlock) -> words.ContentBlock:
    """A block as v1 says it."""
    notes = _annotations_out(block.annotations)
    match block:
        case facts.TextContent(text=text):
            return words.TextContent(text=text, annotations=notes)
        case facts.ImageContent():
            return words.ImageContent(data=block.data, mime_type=block.mime_type, uri=block.uri, annotations=notes)
        case facts.AudioContent():
            return words.AudioContent(data=block.data, mime_type=block.mime_type, annotations=notes)
        case facts.ResourceLink():
            return words.ResourceLink(
                name=block.name,
                uri=block.uri,
                mime_type=block.mime_type,
                title=block.title,
                description=block.description,
                size=block.size,
                annotations=notes,
            )
        case facts.EmbeddedResource():
            return words.EmbeddedResource(resource=_resource_out(block), annotations=notes)


def _resource_out(block: facts.EmbeddedResource) -> words.TextResourceContents | words.BlobResourceContents:
    if block.blob is not None:
        return words.BlobResourceContents(uri=block.uri, blob=block.blob, mime_type=block.mime_type)
    return words.TextResourceContents(uri=block.uri, text=block.text or "", mime_type=block.mime_type)


def _annotations_in(notes: words.Annotations | None) -> dict[str, Any] | None:
    return msgspec.to_builtins(notes) if notes is not None else None


def _annotations_out(notes: dict[str, Any] | None) -> words.Annotations | None:
    return msgspec.convert(notes, words.Annotations) if notes is not None else None


# tool calls -----------------------------------------------------------------------------------------------------------


def _contents(items: Sequence[facts.ToolContent] | UnsetType) -> list[tool_calls.ToolCallContent] | UnsetType:
    return [_content(item) for item in items] if items is not UNSET else UNSET


def _content(item: facts.ToolContent) -> tool_calls.ToolCallContent:
    match item:
        case facts.ContentItem(content=block):
            return tool_calls.Content(content=block_out(block))
        case facts.Diff():
            return tool_calls.Diff(path=item.path, new_text=item.new_text, old_text=item.old_text)
        case facts.TerminalItem(terminal_id=terminal_id):
            return tool_calls.Terminal(terminal_id=terminal_id)


def _places(places: Sequence[facts.Location] | UnsetType) -> list[tool_calls.ToolCallLocation] | UnsetType:
    if places is UNSET:
        return UNSET
    return [tool_calls.ToolCallLocation(path=place.path, line=place.line) for place in places]


def permission_request(session_id: str, question: PermissionQuestion) -> tool_calls.RequestPermissionRequest:
    """The question, with all there is to judge."""
    return tool_calls.RequestPermissionRequest(
        session_id=session_id,
        tool_call=tool_calls.PermissionToolCall(
            tool_call_id=question.tool_call_id,
            title=question.title,
            name=question.name,
            kind=question.kind,
            status=question.status,
            content=_contents(question.content),
            locations=_places(question.locations),
            raw_input=question.raw_input,
        ),
        options=[
            tool_calls.PermissionOption(option_id=option.option_id, name=option.name, kind=option.kind)
            for option in question.options
        ],
    )


# settings -------------------------------------------------------------------------------------------------------------


def option_list(options: Sequence[events.ConfigOption]) -> list[session_config_options.SessionConfigOption]:
    return [_option(option) for option in options]


def _option(option: events.ConfigOption) -> session_config_options.SessionConfigOption:
    if isinstance(option.value, bool):
        return session_config_options.SessionConfigBoolean(
            id=option.id,
            name=option.name,
            current_value=option.value,
            description=option.description,
            category=option.category,
        )
    return session_config_options.SessionConfigSelect(
        id=option.id,
        name=option.name,
        current_value=option.value,
        options=[
            session_config_options.SessionConfigSelectOption(
                value=choice.value, name=choice.name, description=choice.description
            )
            for choice in option.choices
        ],
        description=option.description,
        category=option.category,
    )


def mode_state(options: SessionOptions) -> session_modes.SessionModeState | None:
    """The modes as v1 has them, beside the option that they are; None where there is nothing to choose."""
    modes = options.modes()
    if not modes:
        return None
    available = [
        session_modes.SessionMode(id=mode.value, name=mode.name, description=mode.description) for mode in modes
    ]
    return session_modes.SessionModeState(current_mode_id=options.mode, available_modes=available)


# events ---------------------------------------------------------------------------------------------------------------


def updates(event: events.Event) -> list[prompt_turn.SessionUpdate]:
    """The updates that tell `event`; none for what v1 has no words for."""
    match event:
        case events.MessageChunk():
            return _chunks(event)
        case events.ToolCallOpened():
            return [_tool_call(event)]
        case events.ToolCallChanged():
            return [_tool_call_update(event)]
        case events.ToolCallProgress():
            return [_tool_call_progress(event)]
        case events.PlanChanged(entries=entries):
            return [_plan(entries)]
        case events.ModeChanged(mode_id=mode_id):
            return [session_modes.CurrentModeUpdate(current_mode_id=mode_id)]
        case events.OptionsChanged(options=options):
            return [session_config_options.ConfigOptionUpdate(config_options=option_list(options))]
        case events.CommandsChanged(commands=commands):
            return [slash_commands.AvailableCommandsUpdate(available_commands=[_command(entry) for entry in commands])]
        case events.SessionInfoChanged():
            return [prompt_turn.SessionInfoUpdate(title=event.title, updated_at=event.updated_at)]
        case events.UsageChanged():
            return [_usage(event)]
        case events.NoticeRaised():
            return [prompt_turn.Notice(severity=event.severity, title=event.title, description=event.description)]
        case events.CompactionChanged():
            return [_compaction(event)]
        case events.PromptInserted(message_id=message_id, content=blocks):
            return list(_prompt(message_id, blocks))
        case events.HistoryAdded() | events.TurnEnded():
            return []


def _chunks(event: events.MessageChunk) -> list[prompt_turn.SessionUpdate]:
    kind = prompt_turn.AgentMessageChunk if event.role == "agent" else prompt_turn.AgentThoughtChunk
    block = event.content
    if isinstance(block, facts.TextContent) and len(block.text) > PIECE:
        blocks: list[words.ContentBlock] = [words.TextContent(text=piece) for piece in pieces(block.text)]
    else:
        blocks = [block_out(block)]
    return [kind(content=one, message_id=event.message_id) for one in blocks]


def _prompt(message_id: str, blocks: Sequence[facts.ContentBlock]) -> Iterator[prompt_turn.SessionUpdate]:
    for block in blocks:
        if isinstance(block, facts.TextContent) and len(block.text) > PIECE:
            for piece in pieces(block.text):
                yield prompt_turn.UserMessageChunk(content=words.TextContent(text=piece), message_id=message_id)
        else:
            yield prompt_turn.UserMessageChunk(content=block_out(block), message_id=message_id)


def _tool_call(event: events.ToolCallOpened) -> tool_calls.ToolCall:
    return tool_calls.ToolCall(
        tool_call_id=event.tool_call_id,
        title=event.title,
        name=event.name,
        kind=event.kind,
        status=event.status,
        content=_contents(event.content),
        locations=_places(event.locations),
        raw_input=event.raw_input,
    )


def _tool_call_update(event: events.ToolCallChanged) -> tool_calls.ToolCallUpdate:
    return tool_calls.ToolCallUpdate(
        tool_call_id=event.tool_call_id,
        title=event.title,
        status=event.status,
        content=_contents(event.content),
        locations=_places(event.locations),
        raw_input=event.raw_input,
        raw_output=event.raw_output,
    )


def _tool_call_progress(event: events.ToolCallProgress) -> tool_calls.ToolCallUpdate:
    return tool_calls.ToolCallUpdate(
        tool_call_id=event.tool_call_id,
        status="in_progress",
        title=event.title,
        content=_contents(event.content),
        locations=_places(event.locations),
    )


def _plan(entries: Sequence[facts.PlanEntry]) -> agent_plan.Plan:
    return agent_plan.Plan(
        entries=[
            agent_plan.PlanEntry(content=entry.content, priority=entry.priority, status=entry.status)
            for entry in entries
        ]
    )


def _command(command: events.Command) -> slash_commands.AvailableCommand:
    hint = slash_commands.UnstructuredCommandInput(hint=command.hint) if command.hint else None
    return slash_commands.AvailableCommand(name=command.name, description=command.description, input=hint)


def _usage(event: events.UsageChanged) -> prompt_turn.UsageUpdate:
    cost = prompt_turn.Cost(amount=event.cost, currency=event.currency) if event.cost is not None else None
    return prompt_turn.UsageUpdate(used=event.used, size=event.size, cost=cost)


def _compaction(event: events.CompactionChanged) -> prompt_turn.CompactionUpdate:
    summary: list[words.ContentBlock] | UnsetType = UNSET
    if event.summary is not None:
        summary = [words.TextContent(text=event.summary)]
    return prompt_turn.CompactionUpdate(
        compaction_id=event.compaction_id,
        status=event.status,
        summary=summary,
        error=event.error if event.error is not None else UNSET,
    )

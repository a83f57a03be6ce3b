"""Facts to the words of version 1 and back: every block, every event."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from acp_agent import content as facts
from acp_agent import events
from acp_agent.agent import Agent
from acp_agent.history import UserMessage
from acp_agent.runtime.turn import Turn
from acp_agent.surfaces.v1_words import PIECE, block_out, option_list, updates
from acp_agent.testing import TestClient
from tests.runtime.support import PlayedModel, handler_agent

pytestmark = pytest.mark.anyio

NOTES = {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-02T03:04:05Z"}

BLOCKS: list[tuple[dict[str, Any], facts.ContentBlock]] = [
    ({"type": "text", "text": "see", "annotations": NOTES}, facts.TextContent("see", NOTES)),
    (
        {"type": "image", "data": "AAAA", "mimeType": "image/png", "uri": "file:///a.png", "annotations": NOTES},
        facts.ImageContent("AAAA", "image/png", "file:///a.png", NOTES),
    ),
    (
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "annotations": NOTES},
        facts.AudioContent("AAAA", "audio/wav", NOTES),
    ),
    (
        {
            "type": "resource_link",
            "name": "notes",
            "uri": "file:///notes.md",
            "mimeType": "text/markdown",
            "title": "Notes",
            "description": "What was said",
            "size": 12,
            "annotations": NOTES,
        },
        facts.ResourceLink("notes", "file:///notes.md", "text/markdown", "Notes", "What was said", 12, NOTES),
    ),
    (
        {
            "type": "resource",
            "resource": {"uri": "file:///a", "text": "inside", "mimeType": "text/plain"},
            "annotations": NOTES,
        },
        facts.EmbeddedResource("file:///a", text="inside", mime_type="text/plain", annotations=NOTES),
    ),
    (
        {
            "type": "resource",
            "resource": {"uri": "file:///a.bin", "blob": "AAAA", "mimeType": "application/pdf"},
            "annotations": NOTES,
        },
        facts.EmbeddedResource("file:///a.bin", blob="AAAA", mime_type="application/pdf", annotations=NOTES),
    ),
    ({"type": "text", "text": "plain"}, facts.TextContent("plain")),
    (
        {"type": "resource", "resource": {"uri": "file:///empty", "text": ""}},
        facts.EmbeddedResource("file:///empty", text=""),
    ),
]


async def test_every_block_of_a_prompt_reaches_the_model_and_comes_back_in_a_load_as_it_was() -> None:
    model = PlayedModel()
    agent = Agent("sees all", model=model, accepts=("image", "audio", "resource"))
    async with TestClient(agent).connect() as client:
        await client.prompt([said for said, _ in BLOCKS])
        message = model.requests[-1].messages[0]
        assert isinstance(message, UserMessage)
        assert message.content == [known for _, known in BLOCKS]
        await client.load_session(client.session_id or "")
        chunks = client.updates(kind="user_message_chunk")
        assert [chunk.fields["content"] for chunk in chunks] == [said for said, _ in BLOCKS]
        assert len({chunk.fields["messageId"] for chunk in chunks}) == 1


async def test_every_block_that_an_agent_says_is_shown_and_loaded_as_it_was() -> None:
    async def work(turn: Turn) -> None:
        for _, known in BLOCKS:
            await turn.send_content(known)

    async with TestClient(handler_agent(work)).connect() as client:
        result = await client.prompt("show me")
        shown = [update.fields["content"] for update in result.updates if update.kind == "agent_message_chunk"]
        assert shown == [said for said, _ in BLOCKS]
        before = len(client.updates())
        await client.load_session(client.session_id or "")
        again = [update for update in client.updates()[before:] if update.kind == "agent_message_chunk"]
        assert [update.fields["content"] for update in again] == shown


async def test_a_long_prompt_is_replayed_in_pieces_under_one_id() -> None:
    text = "".join(chr(0x3042 + number % 80) for number in range(2 * PIECE + 100))
    async with TestClient(handler_agent(lambda turn: turn.send_text("Long."))).connect() as client:
        await client.prompt([{"type": "text", "text": text}, {"type": "text", "text": "short"}])
        await client.load_session(client.session_id or "")
        chunks = client.updates(kind="user_message_chunk")
        assert [len(chunk.text) for chunk in chunks] == [PIECE, PIECE, 100, 5]
        assert "".join(chunk.text for chunk in chunks) == text + "short"
        assert len({chunk.fields["messageId"] for chunk in chunks}) == 1


EVENTS: list[tuple[events.Event, list[dict[str, Any]]]] = [
    (
        events.MessageChunk("thought", "m1", facts.TextContent("hm")),
        [{"sessionUpdate": "agent_thought_chunk", "messageId": "m1", "content": {"type": "text", "text": "hm"}}],
    ),
    (
        events.ToolCallOpened("c1", "Edit a", "edit_file", kind="edit"),
        [
            {
                "sessionUpdate": "tool_call",
                "toolCallId": "c1",
                "title": "Edit a",
                "name": "edit_file",
                "kind": "edit",
                "status": "pending",
                "content": [],
                "locations": [],
                "rawInput": {},
            }
        ],
    ),
    (
        events.ToolCallChanged(
            "c1",
            "completed",
            content=[facts.Diff("/a", "new", "old"), facts.TerminalItem("t1")],
            locations=[facts.Location("/a", 3), facts.Location("/b")],
            raw_output={"lines": 1},
        ),
        [
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": "c1",
                "status": "completed",
                "content": [
                    {"type": "diff", "path": "/a", "newText": "new", "oldText": "old"},
                    {"type": "terminal", "terminalId": "t1"},
                ],
                "locations": [{"path": "/a", "line": 3}, {"path": "/b"}],
                "rawOutput": {"lines": 1},
            }
        ],
    ),
    (
        events.ToolCallProgress("c1", title="Half way"),
        [{"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "in_progress", "title": "Half way"}],
    ),
    (
        events.PlanChanged([facts.PlanEntry("first", "high", "in_progress")]),
        [
            {
                "sessionUpdate": "plan",
                "entries": [{"content": "first", "priority": "high", "status": "in_progress"}],
            }
        ],
    ),
    (events.ModeChanged("plan"), [{"sessionUpdate": "current_mode_update", "currentModeId": "plan"}]),
    (
        events.CommandsChanged([events.Command("ship", "Ship it.", "where"), events.Command("help", "Help.")]),
        [
            {
                "sessionUpdate": "available_commands_update",
                "availableCommands": [
                    {"name": "ship", "description": "Ship it.", "input": {"hint": "where"}},
                    {"name": "help", "description": "Help."},
                ],
            }
        ],
    ),
    (events.SessionInfoChanged(title=None), [{"sessionUpdate": "session_info_update", "title": None}]),
    (
        events.UsageChanged(5, 10, 0.25),
        [{"sessionUpdate": "usage_update", "used": 5, "size": 10, "cost": {"amount": 0.25, "currency": "USD"}}],
    ),
    (events.UsageChanged(5, 10), [{"sessionUpdate": "usage_update", "used": 5, "size": 10}]),
    (
        events.NoticeRaised("warning", "Careful", "It is hot."),
        [{"sessionUpdate": "notice", "severity": "warning", "title": "Careful", "description": "It is hot."}],
    ),
    (
        events.CompactionChanged("k1", "failed", error="No."),
        [{"sessionUpdate": "compaction_update", "compactionId": "k1", "status": "failed", "error": "No."}],
    ),
    (
        events.CompactionChanged("k1", "completed", summary="All."),
        [
            {
                "sessionUpdate": "compaction_update",
                "compactionId": "k1",
                "status": "completed",
                "summary": [{"type": "text", "text": "All."}],
            }
        ],
    ),
    (events.HistoryAdded(None, replaces=True), []),
    (events.TurnEnded("end_turn"), []),
]


@pytest.mark.parametrize(("event", "said"), EVENTS, ids=lambda value: type(value).__name__)
def test_each_event_is_said_in_these_words_and_what_did_not_change_is_left_out(
    event: events.Event, said: list[dict[str, Any]]
) -> None:
    assert msgspec.to_builtins(updates(event)) == said


def test_a_long_text_is_said_in_pieces_that_every_client_can_read() -> None:
    text = "\x00" * (2 * PIECE + 1)
    said = updates(events.MessageChunk("agent", "m1", facts.TextContent(text)))
    assert len(said) == 3
    assert all(len(msgspec.json.encode(piece)) < 64 * 1024 for piece in said)
    assert "".join(msgspec.to_builtins(piece)["content"]["text"] for piece in said) == text


def test_a_setting_is_a_choice_or_on_and_off() -> None:
    choices = [events.Choice("fast", "Fast", "Less thought"), events.Choice("deep", "Deep")]
    options = [
        events.ConfigOption("model", "Model", "deep", choices, "model", "Who answers"),
        events.ConfigOption("sound", "Sound", value=True, description="A sound at the end"),
    ]
    assert msgspec.to_builtins(option_list(options)) == [
        {
            "id": "model",
            "name": "Model",
            "type": "select",
            "currentValue": "deep",
            "options": [
                {"value": "fast", "name": "Fast", "description": "Less thought"},
                {"value": "deep", "name": "Deep"},
            ],
            "category": "model",
            "description": "Who answers",
        },
        {
            "id": "sound",
            "name": "Sound",
            "type": "boolean",
            "currentValue": True,
            "description": "A sound at the end",
        },
    ]


def test_a_resource_with_neither_text_nor_blob_is_an_empty_text() -> None:
    said = msgspec.to_builtins(block_out(facts.EmbeddedResource("file:///a")))
    assert said == {"type": "resource", "resource": {"uri": "file:///a", "text": ""}}

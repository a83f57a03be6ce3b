"""`decode` on what is hardly a message, and `encode`: what is absent is not sent."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from acp_agent.errors import DecodeError
from acp_agent.protocol.base import Payload
from acp_agent.protocol.codec import decode, encode
from acp_agent.protocol.v1 import content, elicitation, prompt_turn, session_list, session_setup, tool_calls

# Text, JSON and nothing at all.


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    raw = rb'{"sessionId":"s","prompt":[{"type":"text","text":"a\ud800b\ud83d\ude00"}]}'
    assert decode(raw, prompt_turn.PromptRequest).prompt == [content.TextContent(text="a�b\N{GRINNING FACE}")]


def test_bytes_that_are_not_utf8_become_the_replacement_character() -> None:
    raw = b'{"sessionId":"\xff"}'
    assert decode(raw, session_setup.CloseSessionRequest).session_id == "�"


@pytest.mark.parametrize("raw", [b"{", b'{"sessionId":NaN}', b"[" * 100_000, b'{"sessionId":' + b"[" * 100_000])
def test_what_is_no_json_fails(raw: bytes) -> None:
    with pytest.raises(DecodeError, match="JSON"):
        decode(raw, session_setup.CloseSessionRequest)


@pytest.mark.parametrize("depth", [500, 900, 950, 1000, 5000])
def test_deep_nesting_never_breaks_the_second_reading(depth: int) -> None:
    assert outcome_of_reading(b"[" * depth + b"]" * depth) in ("/w", "JSON is nested too deeply")


def outcome_of_reading(deep: bytes) -> str:
    without_servers = b'{"cwd":"/w","_meta":{"deep":' + deep + b"}}"
    try:
        return decode(without_servers, session_setup.NewSessionRequest).cwd
    except DecodeError as error:
        return error.problem


@pytest.mark.parametrize("raw", [None, b"", b"null", b" null ", msgspec.Raw(b"null"), msgspec.Raw(), memoryview(b"{}")])
def test_no_params_are_empty_params(raw: bytes | None) -> None:
    repairs: list[str] = []
    request = decode(raw, session_list.ListSessionsRequest, repairs.append)
    assert (request, repairs) == (session_list.ListSessionsRequest(), [])


def test_no_result_is_an_empty_result() -> None:
    assert decode(b"null", session_setup.LoadSessionResponse) == session_setup.LoadSessionResponse()


# What we send.


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            tool_calls.ToolCall(tool_call_id="t", title="x", kind="other", status="pending", content=[]),
            {
                "sessionUpdate": "tool_call",
                "toolCallId": "t",
                "title": "x",
                "kind": "other",
                "status": "pending",
                "content": [],
            },
        ),
        (
            tool_calls.PermissionToolCall(tool_call_id="t", status="pending", raw_input={}),
            {"toolCallId": "t", "status": "pending", "rawInput": {}},
        ),
        (prompt_turn.SessionInfoUpdate(title=None), {"sessionUpdate": "session_info_update", "title": None}),
        (
            prompt_turn.CompactionUpdate(compaction_id="c", status="failed", summary=None, error=None),
            {
                "sessionUpdate": "compaction_update",
                "compactionId": "c",
                "status": "failed",
                "summary": None,
                "error": None,
            },
        ),
        (session_list.ListSessionsResponse(sessions=[]), {"sessions": []}),
        (session_setup.NewSessionResponse(session_id="s", config_options=[]), {"sessionId": "s", "configOptions": []}),
        (session_setup.LoadSessionResponse(), {}),
        (elicitation.ElicitationSchema(), {"type": "object"}),
    ],
)
def test_what_is_set_is_sent_and_what_is_absent_is_not(value: Payload, expected: dict[str, Any]) -> None:
    assert json.loads(encode(value)) == expected

"""Anthropic's messages: blocks as events, signed thinking replayed, roles in turn."""

from __future__ import annotations

import json
import os
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest

from acp_agent.content import AudioContent, ImageContent, ResourceLink, TextContent
from acp_agent.errors import ModelError
from acp_agent.history import AssistantMessage, HistoryMessage, ToolResult, ToolUse, UserMessage
from acp_agent.models.anthropic import AnthropicModel
from acp_agent.models.base import Finish, UsageDelta
from tests.models.asking import AT_ONCE, NEVER, READ, ask, finish, prompt, request, texts, thoughts, uses
from tests.models.provider import FakeProvider, Status, Stream

pytestmark = pytest.mark.anyio

START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 2,
            "cache_read_input_tokens": 3,
            "output_tokens": 1,
        },
    },
}
STOP = {"type": "message_stop"}


def begin(index: int, type: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": type, **fields}}


def delta(index: int, type: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type, **fields}}


def end(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def reason(given: str) -> dict[str, Any]:
    usage = {"output_tokens": 7}
    return {"type": "message_delta", "delta": {"stop_reason": given, "stop_sequence": None}, "usage": usage}


TEXT = [begin(0, "text", text=""), delta(0, "text_delta", text="Hel"), delta(0, "text_delta", text="lo"), end(0)]
WHOLE = [START, *TEXT, reason("end_turn"), STOP]


def model(provider: FakeProvider, **options: Any) -> AnthropicModel:
    return AnthropicModel("m", base_url=provider.url, **({"retry": AT_ONCE} | options))


async def told(*events: dict[str, Any] | str, **how: Any) -> list[Any]:
    with FakeProvider(Stream(list(events), done=False, **how)) as provider:
        return await ask(model(provider, retry=NEVER), request(tools=[READ]))


async def sent(*messages: HistoryMessage) -> list[dict[str, Any]]:
    """The messages that the provider gets for a history."""
    with FakeProvider(Stream(WHOLE)) as provider:
        await ask(model(provider), request(*messages))
        answer: list[dict[str, Any]] = provider.body["messages"]
        return answer


async def test_text_is_streamed_with_the_cached_tokens_counted_in() -> None:
    events = await told(START, {"type": "ping"}, *TEXT, {"type": "a_new_one"}, reason("end_turn"), STOP)
    assert texts(events) == ["Hel", "lo"]
    assert events[-2:] == [UsageDelta(10, 7), Finish("end_turn")]


async def test_blocks_that_overlap_are_told_apart_by_index() -> None:
    events = await told(
        START,
        begin(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="Two files."),
        begin(1, "tool_use", id="toolu_a", name="read_file", input={}),
        begin(2, "tool_use", id="toolu_b", name="read_file", input={}),
        delta(1, "input_json_delta", partial_json='{"path"'),
        delta(2, "input_json_delta", partial_json='{"path": "b"}'),
        delta(0, "signature_delta", signature="sig"),
        end(0),
        delta(1, "input_json_delta", partial_json=': "a"}'),
        end(1),
        end(2),
        reason("tool_use"),
        STOP,
    )
    assert thoughts(events) == ["Two files."]
    assert uses(events) == [
        ToolUse("read_file", {"path": "a"}, id="toolu_a"),
        ToolUse("read_file", {"path": "b"}, id="toolu_b"),
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("tool_use", "end_turn"),
        ("pause_turn", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
        ("a_new_one", "end_turn"),
    ],
)
async def test_each_stop_reason_is_mapped(given: str, expected: str) -> None:
    assert finish(await told(START, *TEXT, reason(given), STOP)).reason == expected


async def test_signed_thoughts_go_back_unchanged_and_in_their_place() -> None:
    events = await told(
        START,
        begin(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="First."),
        delta(0, "signature_delta", signature="sig-1"),
        begin(1, "text", text=""),
        delta(1, "text_delta", text="\n"),
        begin(2, "redacted_thinking", data="opaque"),
        begin(3, "tool_use", id="toolu_a", name="read_file", input={}),
        delta(3, "input_json_delta", partial_json='{"path": "a"}'),
        reason("tool_use"),
        STOP,
    )
    assert texts(events) == []
    used = ToolUse("read_file", {"path": "a"}, id="toolu_a", call_id="call_1")
    said = AssistantMessage("m2", "", "First.", [used], native=finish(events).native)
    messages = await sent(prompt(), said, ToolResult("call_1", "read_file", [TextContent("text")]))
    assert messages[1]["content"] == [
        {"type": "thinking", "thinking": "First.", "signature": "sig-1"},
        {"type": "redacted_thinking", "data": "opaque"},
        {"type": "tool_use", "id": "call_1", "name": "read_file", "input": {"path": "a"}},
    ]


async def test_signed_thoughts_go_back_also_when_the_history_lost_the_tool_use() -> None:
    native = {
        "anthropic": [
            {"type": "thinking", "thinking": "First.", "signature": "sig-1"},
            {"type": "tool_use"},
            {"type": "thinking", "thinking": "unsigned", "signature": ""},
        ]
    }
    messages = await sent(prompt(), AssistantMessage("m2", "Said.", "First.", native=native), prompt())
    assert [block["type"] for block in messages[1]["content"]] == ["thinking", "text"]


async def test_anthropic_itself_is_asked_to_cache_what_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        if request.method == "GET":
            return httpx2.Response(200, json={"type": "model", "id": "m", "max_input_tokens": 5000})
        stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in WHOLE)
        return httpx2.Response(200, text=stream, headers={"content-type": "text/event-stream"})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        events = await ask(AnthropicModel("m", api_key=" some-key\n", http_client=http))
    assert UsageDelta(10, 7, context_window=5000) in events
    assert [str(request.url) for request in asked] == [
        "https://api.anthropic.com/v1/messages",
        "https://api.anthropic.com/v1/models/m",
    ]
    assert json.loads(asked[0].content)["cache_control"] == {"type": "ephemeral"}
    assert "some-key" in (asked[0].headers.get("x-api-key") or asked[0].headers["authorization"])


async def test_a_reply_without_signed_thoughts_keeps_nothing_native() -> None:
    assert finish(await told(*WHOLE)).native is None


async def test_results_and_the_prompt_after_them_are_one_user_message() -> None:
    two = [ToolUse("read_file", {"path": "a"}, call_id="c1"), ToolUse("read_file", {"path": "b"}, call_id="c2")]
    messages = await sent(
        prompt("Read"),
        AssistantMessage("m2", "Reading.", "", two),
        ToolResult("c1", "read_file", [TextContent("text"), ImageContent("aWI=", "image/png")]),
        ToolResult("c2", "read_file", [TextContent("no such file")], failed=True),
        AssistantMessage("m3", " \n"),
        prompt("Well?"),
    )
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    first, second, asked = messages[2]["content"]
    assert first == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [
            {"type": "text", "text": "text"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aWI="}},
        ],
    }
    assert second["is_error"] is True
    assert asked == {"type": "text", "text": "Well?"}


async def test_a_prompts_blocks_keep_their_order_and_empty_ones_are_left_out() -> None:
    content = [TextContent("  "), ResourceLink("a", "file:///a"), AudioContent("aWI=", "audio/wav"), TextContent("?")]
    (message,) = await sent(UserMessage("m1", content))
    assert [part["text"] for part in message["content"]] == ["[a](file:///a)", "[audio audio/wav]", "?"]


async def test_a_history_that_lost_its_beginning_still_begins_with_the_user() -> None:
    messages = await sent(AssistantMessage("m1", "Hi"), UserMessage("m2", []))
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert all(message["content"] for message in messages)


async def test_the_temperature_is_sent_and_tools_only_when_there_are_any() -> None:
    with FakeProvider(Stream(WHOLE)) as provider:
        asking = model(provider, temperature=0, max_tokens=9, thought_levels=("high", "low"), extra={"top_k": 1})
        await ask(asking, request(system="Be brief."))
        body = provider.body
        assert (body["temperature"], body["max_tokens"], body["top_k"], body["system"]) == (0, 9, 1, "Be brief.")
        assert body.keys().isdisjoint({"tools", "output_config", "thinking"})
        await ask(asking, request(tools=[READ], thought_level="low"))
        assert provider.body["output_config"] == {"effort": "low"}
        assert provider.body["tools"][0]["input_schema"] == READ.input_schema


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
        ({"type": "rate_limit_error", "message": "Slow"}, "rate_limit"),
        ({"type": "authentication_error", "message": "No"}, "auth"),
        ({"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8"}, "context_overflow"),
        ({"type": "invalid_request_error", "message": "Hm"}, "bad_request"),
        ({"type": "timeout_error", "message": "Late"}, "timeout"),
        ({"type": "not_found_error", "message": "Who?"}, "not_found"),
    ],
)
async def test_an_error_inside_the_stream_is_a_failure(error: dict[str, str], kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        await told(START, *TEXT, {"type": "error", "error": error})
    assert caught.value.kind == kind


@pytest.mark.parametrize("status", [401, 529])
async def test_an_http_error_keeps_its_status(status: int) -> None:
    answer = Status(status, {"type": "error", "error": {"type": "x", "message": "y"}})
    with FakeProvider(answer) as provider, pytest.raises(ModelError) as caught:
        await ask(model(provider, retry=NEVER))
    assert caught.value.status == status


async def test_an_empty_stream_and_one_that_breaks_off_are_failures() -> None:
    with pytest.raises(ModelError, match="nothing in it"):
        await told(START)
    with pytest.raises(ModelError, match="broke off"):
        await told(START, *TEXT)
    with pytest.raises(ModelError, match="cannot be read"):
        await told(START, "{broken")


async def test_without_a_key_anthropic_itself_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ModelError, match="ANTHROPIC_API_KEY") as caught:
        await ask(AnthropicModel("claude"))
    assert caught.value.kind == "auth"
    monkeypatch.setenv("ANTHROPIC_PROFILE", "missing")
    with pytest.raises(ModelError, match="credentials cannot be read") as caught:
        await ask(AnthropicModel("claude"))
    assert caught.value.kind == "auth"


async def test_a_stream_that_stays_open_after_its_end_is_not_waited_for() -> None:
    with FakeProvider(Stream(WHOLE, then="hang")) as provider, anyio.fail_after(5):
        assert texts(await ask(model(provider))) == ["Hel", "lo"]


async def test_a_consumer_that_leaves_early_leaves_no_connection_behind() -> None:
    with FakeProvider(Stream([START, *TEXT], then="hang")) as provider:
        asking = model(provider)
        async with aclosing(asking.stream(request())) as stream:
            assert await anext(stream)
        assert await anyio.to_thread.run_sync(provider.dropped.wait, 5)
        await asking.aclose()

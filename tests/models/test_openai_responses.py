"""The Responses API: items as events, encrypted reasoning replayed, nothing said twice."""

from __future__ import annotations

from typing import Any

import pytest

from acp_agent.content import ImageContent, TextContent
from acp_agent.errors import ModelError
from acp_agent.history import AssistantMessage, HistoryMessage, ToolResult, ToolUse
from acp_agent.models.base import Finish, UsageDelta
from acp_agent.models.openai_responses import OpenAIResponsesModel
from tests.models.asking import AT_ONCE, NEVER, READ, ask, finish, prompt, request, texts, thoughts, uses
from tests.models.provider import FakeProvider, Stream

pytestmark = pytest.mark.anyio


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def said(text: str, *, stage: str = "delta", index: int = 0) -> dict[str, Any]:
    piece = {"delta": text} if stage == "delta" else {"text": text}
    return event(f"output_text.{stage}", item_id="msg_1", output_index=index, content_index=0, **piece)


def item(stage: str, index: int, **fields: Any) -> dict[str, Any]:
    return event(f"output_item.{stage}", output_index=index, item=fields)


def done(kind: str = "completed", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 11, "output_tokens": 4, "total_tokens": 15}
    return event(kind, response={"id": "resp_1", "status": kind, "usage": usage, **fields})


def model(provider: FakeProvider, name: str = "m", **options: Any) -> OpenAIResponsesModel:
    return OpenAIResponsesModel(name, base_url=f"{provider.url}/v1", **({"retry": AT_ONCE} | options))


async def told(*events: dict[str, Any] | str) -> list[Any]:
    with FakeProvider(Stream(list(events), done=False)) as provider:
        return await ask(model(provider, retry=NEVER), request(tools=[READ]))


async def sent(*messages: HistoryMessage) -> list[dict[str, Any]]:
    with FakeProvider(Stream([done()])) as provider:
        await ask(model(provider), request(*messages))
        items: list[dict[str, Any]] = provider.body["input"]
        return items


async def test_the_text_that_follows_its_deltas_whole_is_not_shown_twice() -> None:
    whole = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
    events = await told(
        event("created", response={"id": "resp_1"}),
        item("added", 0, type="message"),
        said("Hel"),
        said("lo"),
        said("Hello", stage="done"),
        item("done", 0, **whole),
        done(output=[whole]),
    )
    assert texts(events) == ["Hel", "lo"]
    assert events[-2:] == [UsageDelta(11, 4), Finish("end_turn")]


async def test_text_that_comes_only_whole_is_shown() -> None:
    assert texts(await told(said("Hello", stage="done"), done())) == ["Hello"]


async def test_parallel_calls_are_told_apart_by_their_place() -> None:
    events = await told(
        item("added", 0, type="function_call", call_id="call_a", name="read_file", arguments=""),
        item("added", 1, type="function_call", call_id="call_b", name="read_file", arguments=""),
        event("function_call_arguments.delta", output_index=0, delta='{"path"'),
        event("function_call_arguments.delta", output_index=1, delta='{"path": "b"}'),
        event("function_call_arguments.delta", output_index=0, delta=': "a"}'),
        event("function_call_arguments.done", output_index=0, arguments='{"path": "a"}'),
        item("done", 0, type="function_call", call_id="call_a", name="read_file", arguments='{"path": "a"}'),
        item("done", 1, type="function_call", call_id="call_b", name="read_file", arguments='{"path": "b"}'),
        item("done", 2, type="function_call", call_id="call_c", name="read_file", arguments='{"path": "c"}'),
        done(),
    )
    assert [(use.id, use.arguments["path"]) for use in uses(events)] == [
        ("call_a", "a"),
        ("call_b", "b"),
        ("call_c", "c"),
    ]


async def test_arguments_sent_only_with_their_done_event_count_once() -> None:
    events = await told(
        item("added", 0, type="function_call", call_id="call_a", name="read_file", arguments=""),
        event("function_call_arguments.done", output_index=0, arguments='{"path": "a"}'),
        item("done", 0, type="function_call", call_id="call_a", name="read_file", arguments='{"path": "a"}'),
        done(),
    )
    assert uses(events) == [ToolUse("read_file", {"path": "a"}, id="call_a")]


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (done(), "end_turn"),
        (done("incomplete", incomplete_details={"reason": "max_output_tokens"}), "max_tokens"),
        (done("incomplete", incomplete_details={"reason": "content_filter"}), "refusal"),
        (done("incomplete", incomplete_details={"reason": "a_new_one"}), "end_turn"),
    ],
)
async def test_each_end_is_mapped(last: dict[str, Any], reason: str) -> None:
    assert finish(await told(said("x"), last)).reason == reason


async def test_a_refusal_is_shown_and_is_one() -> None:
    refused = event("refusal.delta", output_index=0, content_index=0, delta="I can not.")
    events = await told(refused, event("refusal.done", output_index=0, content_index=0, refusal="I can not."), done())
    assert (texts(events), finish(events).reason) == (["I can not."], "refusal")


async def test_reasoning_is_a_thought_and_goes_back_encrypted_in_its_place() -> None:
    events = await told(
        event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="Hm."),
        event("reasoning_summary_text.done", output_index=0, summary_index=0, text="Hm."),
        item("done", 0, type="reasoning", id="rs_1", summary=[], encrypted_content="opaque"),
        item("done", 1, type="function_call", call_id="call_a", name="read_file", arguments="{}"),
        done(),
    )
    assert thoughts(events) == ["Hm."]
    used = AssistantMessage("m2", "", "Hm.", [ToolUse("read_file", {}, call_id="c1")], native=finish(events).native)
    items = await sent(prompt(), used, ToolResult("c1", "read_file", [TextContent("text")]))
    assert items[1:] == [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque"},
        {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "text"},
    ]


async def test_open_reasoning_is_a_thought_and_reasoning_that_led_to_nothing_does_not_go_back() -> None:
    open_reasoning = event("reasoning_text.delta", output_index=0, content_index=0, delta="Hm.")
    assert thoughts(await told(open_reasoning, done())) == ["Hm."]
    native = {"openai_responses": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}]}
    items = await sent(prompt(), AssistantMessage("m2", "", "Hm.", native=native))
    assert [item["role"] for item in items] == ["user"]


async def test_the_history_becomes_items() -> None:
    items = await sent(
        prompt("Look"),
        AssistantMessage("m2", "Looking.", "", [ToolUse("read_file", {"path": "a"}, call_id="c1")]),
        ToolResult("c1", "read_file", [ImageContent("aWI=", "image/png")]),
        AssistantMessage("m3"),
    )
    assert items[0] == {"role": "user", "content": [{"type": "input_text", "text": "Look"}]}
    assert items[1] == {"role": "assistant", "content": "Looking."}
    assert items[3]["output"] == [{"type": "input_image", "image_url": "data:image/png;base64,aWI=", "detail": "auto"}]
    assert len(items) == 4


async def test_nothing_is_stored_and_reasoning_is_asked_for_only_where_there_is_some() -> None:
    with FakeProvider(Stream([done()])) as provider:
        await ask(model(provider, temperature=0.0, max_tokens=5), request(system="Be brief."))
        body = provider.body
        assert (body["store"], body["instructions"], body["max_output_tokens"]) == (False, "Be brief.", 5)
        assert body.keys().isdisjoint({"reasoning", "include", "tools"})
        await ask(model(provider, "gpt-5"), request(tools=[READ], thought_level="high"))
        assert provider.body["reasoning"] == {"summary": "auto", "effort": "high"}
        assert provider.body["tools"][0]["parameters"] == READ.input_schema


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        ({"type": "error", "code": "server_error", "message": "boom"}, "overloaded"),
        (event("failed", response={"error": {"code": "rate_limit_exceeded", "message": "slow"}}), "rate_limit"),
        (event("failed", response={"error": {"code": "context_length_exceeded", "message": ""}}), "context_overflow"),
        (event("failed", response={}), "other"),
    ],
)
async def test_an_error_inside_the_stream_is_a_failure(last: dict[str, Any], kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        await told(said("x"), last)
    assert caught.value.kind == kind


async def test_a_stream_without_its_end_is_a_failure() -> None:
    with pytest.raises(ModelError, match="broke off"):
        await told(said("x"))
    with pytest.raises(ModelError, match="nothing in it"):
        await told(event("created", response={}))

"""Chat completions: what the provider streams, as events; the history, as its messages."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest

from acp_agent.content import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent
from acp_agent.errors import ModelError
from acp_agent.history import AssistantMessage, ToolResult, ToolUse, UserMessage
from acp_agent.models.base import Finish, ToolSpec, UsageDelta
from acp_agent.models.openai import OpenAIModel
from tests.models.asking import AT_ONCE, NEVER, READ, ask, finish, prompt, request, texts, thoughts, uses
from tests.models.provider import FakeProvider, Silence, Status, Stream

pytestmark = pytest.mark.anyio
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": fields, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def call(index: int | None, arguments: Any = None, *, id: str | None = None, name: str | None = None) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return delta(tool_calls=[{"index": index, "id": id, "type": "function", "function": function}])


def usage(given: int, made: int) -> dict[str, Any]:
    return {"choices": [], "usage": {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}}


def model(provider: FakeProvider, **options: Any) -> OpenAIModel:
    return OpenAIModel("m", base_url=f"{provider.url}/v1", **({"retry": AT_ONCE} | options))


async def told(*events: dict[str, Any] | str, **how: Any) -> list[Any]:
    """What the model says when the provider streams `events`."""
    with FakeProvider(Stream(list(events), **how)) as provider:
        return await ask(model(provider, retry=NEVER), request(tools=[READ]))


async def failure_of(*answers: Any, **options: Any) -> ModelError:
    with FakeProvider(*answers) as provider, pytest.raises(ModelError) as caught:
        await ask(model(provider, **({"retry": NEVER} | options)))
    return caught.value


async def test_text_is_streamed_piece_by_piece_with_the_usage_and_the_end() -> None:
    events = await told(
        delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"), END, usage(9, 2)
    )
    assert texts(events) == ["Hel", "lo"]
    assert events[-2:] == [UsageDelta(9, 2), Finish("end_turn")]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
async def test_thinking_is_a_thought_under_both_of_its_names(key: str) -> None:
    events = await told(delta(**{key: "Let me "}), delta(**{key: "see."}), delta(content="Yes"), END)
    assert (thoughts(events), texts(events)) == (["Let me ", "see."], ["Yes"])


async def test_parallel_tool_calls_come_in_fragments_and_are_told_apart_by_index() -> None:
    events = await told(
        call(0, "", id="call_a", name="read_file"),
        call(1, "", id="call_b", name="read_file"),
        call(0, '{"pa'),
        call(1, '{"path": "b"}'),
        call(0, 'th": "a"}', id="", name=""),
        delta("tool_calls"),
    )
    assert uses(events) == [
        ToolUse("read_file", {"path": "a"}, id="call_a"),
        ToolUse("read_file", {"path": "b"}, id="call_b"),
    ]
    assert finish(events).reason == "end_turn"


@pytest.mark.parametrize("index", [0, None])
async def test_whole_calls_that_share_an_index_are_two_calls(index: int | None) -> None:
    events = await told(
        call(index, {"path": "a"}, id="call_a", name="read_file"),
        call(index, '{"path": "b"}', id="call_b", name="read_file"),
        delta("tool_calls"),
    )
    assert [use.arguments for use in uses(events)] == [{"path": "a"}, {"path": "b"}]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"path": "a', "not one JSON object"),
        ('{"path": "a"}{"path": "a"}', "not one JSON object"),
        ('"{\\"path\\": \\"a\\"}"', "not an object"),
        ("[1]", "not an object"),
        ('{"path": NaN}', "not one JSON object"),
        ("[" * 100_000, "too deeply"),
    ],
)
async def test_arguments_that_are_no_object_become_a_call_with_a_problem(arguments: str, problem: str) -> None:
    (use,) = uses(await told(call(0, arguments, id="c", name="read_file"), delta("tool_calls")))
    assert (use.name, use.arguments) == ("read_file", {})
    assert problem in use.problem


async def test_arguments_cut_by_the_token_limit_say_so() -> None:
    events = await told(call(0, '{"path": "a', id="c", name="read_file"), delta("length"))
    assert "limit of tokens" in uses(events)[0].problem
    assert finish(events).reason == "max_tokens"


async def test_a_call_without_a_name_and_one_without_arguments_are_still_calls() -> None:
    events = await told(call(0, "{}", id="c"), call(1, None, id="d", name="read_file"), delta("tool_calls"))
    assert [(use.name, bool(use.problem)) for use in uses(events)] == [("unnamed", True), ("read_file", False)]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("stop", "end_turn"),
        ("tool_calls", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("a_new_one", "end_turn"),
    ],
)
async def test_each_stop_reason_is_mapped(given: str, reason: str) -> None:
    assert finish(await told(delta(content="x"), delta(given))).reason == reason


async def test_a_refusal_is_shown_and_is_one() -> None:
    events = await told(delta(refusal="I can not."), END)
    assert (texts(events), finish(events).reason) == (["I can not."], "refusal")


async def test_leading_white_space_waits_for_words() -> None:
    events = await told(delta(content="\n"), delta(content="\n"), delta(content="Hi"), delta(content="\n"), END)
    assert texts(events) == ["\n\nHi", "\n"]


async def test_white_space_before_a_tool_call_is_never_shown() -> None:
    events = await told(delta(content="\n"), call(0, "{}", id="c", name="read_file"), delta("tool_calls"))
    assert texts(events) == []


@pytest.mark.parametrize(
    "again",
    [
        delta("stop", content="Hello"),
        {"choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]},
    ],
)
async def test_a_message_repeated_after_its_deltas_is_not_shown_twice(again: dict[str, Any]) -> None:
    events = await told(delta(content="Hel"), delta(content="lo"), again, delta(content="Hello"))
    assert "".join(texts(events)) == "Hello"


async def test_a_long_message_repeated_before_its_end_is_not_shown_twice() -> None:
    events = await told(delta(content="Hello, "), delta(content="world"), delta(content="Hello, world"), END)
    assert "".join(texts(events)) == "Hello, world"


async def test_a_word_said_twice_stays_said_twice() -> None:
    assert "".join(texts(await told(delta(content="ha"), delta(content="ha"), delta(content="ha"), END))) == "hahaha"


async def test_a_message_that_comes_only_whole_is_shown() -> None:
    whole = {"choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]}
    assert texts(await told(whole)) == ["Hello"]


async def test_a_reply_of_nothing_but_an_end_is_a_reply() -> None:
    assert await told(END) == [Finish("end_turn")]


async def test_usage_of_zero_is_not_reported() -> None:
    assert not [event for event in await told(delta(content="x"), END, usage(0, 0)) if isinstance(event, UsageDelta)]


async def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    broken = '{"choices":[{"delta":{"content":"a\\ud83d"}}]}'
    assert texts(await told(broken, END)) == ["a\ufffd"]


@pytest.mark.parametrize("broken", ["{not json", '{"choices": 3}', '{"choices": [{"delta": {"content": 5}}]}', "[]"])
async def test_a_broken_chunk_is_a_failure(broken: str) -> None:
    with pytest.raises(ModelError) as caught:
        await told(delta(content="x"), broken, END)
    assert caught.value.kind == "protocol"


async def test_an_empty_stream_is_a_failure() -> None:
    with pytest.raises(ModelError, match="nothing in it") as caught:
        await told()
    assert (caught.value.kind, caught.value.retryable) == ("protocol", True)


@pytest.mark.parametrize("then", ["cut", "reset"])
async def test_a_stream_that_breaks_off_is_a_failure(then: str) -> None:
    with pytest.raises(ModelError) as caught:
        await told(delta(content="x"), then=then)
    assert caught.value.kind == "connection"


async def test_a_stream_that_ends_early_is_a_failure() -> None:
    with pytest.raises(ModelError, match="broke off"):
        await told(delta(content="x"), done=False)


async def test_an_answer_that_is_no_stream_is_a_failure() -> None:
    with pytest.raises(ModelError) as caught:
        await told(END, content_type="text/html")
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"message": "boom", "type": "server_error"}, "overloaded", True),
        ({"message": "slow down", "code": 429}, "rate_limit", True),
        ({"message": "odd"}, "other", False),
        ("just words", "other", False),
    ],
)
async def test_an_error_inside_the_stream_is_a_failure(error: Any, kind: str, retryable: bool) -> None:
    with pytest.raises(ModelError) as caught:
        await told(delta(content="x"), {"error": error})
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)


@pytest.mark.parametrize(
    ("status", "error", "kind", "retryable"),
    [
        (400, {"message": "no such field"}, "bad_request", False),
        (400, {"message": "x", "code": "context_length_exceeded"}, "context_overflow", False),
        (400, {"message": "request exceeds the available context size"}, "context_overflow", False),
        (401, {"message": "bad key"}, "auth", False),
        (403, {"message": "not yours"}, "auth", False),
        (404, {"message": "no model"}, "not_found", False),
        (422, {"message": "hm"}, "bad_request", False),
        (429, {"message": "slow down"}, "rate_limit", True),
        (429, {"message": "spent", "code": "insufficient_quota"}, "rate_limit", False),
        (500, {"message": "boom"}, "overloaded", True),
        (503, {"message": "boom"}, "overloaded", True),
        (529, {"message": "boom"}, "overloaded", True),
    ],
)
async def test_each_http_status_has_its_kind(status: int, error: Any, kind: str, retryable: bool) -> None:
    failure = await failure_of(Status(status, {"error": error}))
    assert (failure.kind, failure.status, failure.retryable) == (kind, status, retryable)


async def test_an_error_page_is_one_short_sentence() -> None:
    failure = await failure_of(Status(502, "<html>" + "x" * 9000, {"content-type": "text/html"}))
    assert failure.message == "The model server at 127.0.0.1 is overloaded or failing (502)."


async def test_no_key_is_told_to_anyone() -> None:
    answer = Status(400, {"error": {"message": "bad key my-secret-key or sk-proj-abcdef1234 at http://u:pw@host/"}})
    failure = await failure_of(answer, api_key="my-secret-key")
    assert not any(secret in str(failure) for secret in ("my-secret-key", "abcdef1234", "pw"))


@pytest.mark.parametrize("reset", [True, False])
async def test_no_answer_at_all_is_a_failure(reset: bool) -> None:
    failure = await failure_of(Silence(reset), timeout=0.1)
    assert (failure.kind, failure.retryable) == ("connection" if reset else "timeout", True)


async def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(ModelError, match=r"127\.0\.0\.1 cannot be reached") as caught:
        await ask(OpenAIModel("m", base_url="http://127.0.0.1:9/v1", retry=AT_ONCE))
    assert caught.value.kind == "connection"


async def test_a_server_that_does_not_speak_tls_is_a_failure() -> None:
    with FakeProvider(Stream([END])) as provider, pytest.raises(ModelError) as caught:
        await ask(OpenAIModel("m", base_url=provider.url.replace("http", "https"), retry=NEVER))
    assert (caught.value.kind, caught.value.retryable) == ("connection", False)


async def test_the_prompts_blocks_keep_their_order() -> None:
    content = [
        TextContent("Look:"),
        ImageContent("aWI=", "image/png"),
        ResourceLink("a.py", "file:///a.py"),
        EmbeddedResource("file:///b.py", text="b = 1"),
        AudioContent("aWI=", "audio/wav"),
    ]
    with FakeProvider(Stream([END])) as provider:
        await ask(model(provider), request(UserMessage("m1", content)))
        (message,) = provider.body["messages"]
    assert message["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aWI="}},
        {"type": "text", "text": "[a.py](file:///a.py)"},
        {"type": "text", "text": '<resource uri="file:///b.py">\nb = 1\n</resource>'},
        {"type": "text", "text": "[audio audio/wav]"},
    ]


async def test_the_history_becomes_messages_with_the_runtimes_ids() -> None:
    history = [
        prompt("Read a"),
        AssistantMessage("m2", "", "", [ToolUse("read_file", {"path": "a"}, id="dup", call_id="call.1/é")]),
        ToolResult("call.1/é", "read_file", [TextContent("no such file")], failed=True),
        AssistantMessage("m3"),
        prompt("Well?"),
    ]
    with FakeProvider(Stream([END])) as provider:
        await ask(model(provider), request(*history, system="Be brief."))
        messages = provider.body["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "user"]
    made = messages[2]["tool_calls"][0]
    assert made["function"] == {"name": "read_file", "arguments": '{"path":"a"}'}
    assert made["id"] == messages[3]["tool_call_id"]
    assert made["id"].isascii()
    assert "/" not in made["id"]
    assert messages[3]["content"] == "The call failed: no such file"


async def test_pictures_of_tool_results_follow_all_results_of_the_step() -> None:
    two = [ToolUse("read_file", {}, call_id="c1"), ToolUse("read_file", {}, call_id="c2")]
    picture = ToolResult("c1", "read_file", [ImageContent("aWI=", "image/png")])
    with FakeProvider(Stream([END])) as provider:
        step = [prompt(), AssistantMessage("m2", tool_uses=two), picture, ToolResult("c2", "read_file", [])]
        for history in (step, [*step, AssistantMessage("m3", "A pixel.")]):
            await ask(model(provider), request(*history))
            messages = provider.body["messages"]
            assert [message["role"] for message in messages][:5] == ["user", "assistant", "tool", "tool", "user"]
            assert messages[4]["content"][0]["type"] == "image_url"


async def test_thoughts_go_back_within_the_turn_and_not_after_it() -> None:
    events = await told(delta(reasoning_content="Hm."), call(0, "{}", id="c", name="read_file"), delta("tool_calls"))
    used = AssistantMessage("m2", "", "Hm.", [ToolUse("read_file", {}, call_id="c1")], native=finish(events).native)
    turn = [prompt(), used, ToolResult("c1", "read_file", [TextContent("a")])]
    with FakeProvider(Stream([END])) as provider:
        asking = model(provider)
        await ask(asking, request(*turn))
        assert provider.body["messages"][1]["reasoning_content"] == "Hm."
        await ask(asking, request(*turn, prompt("Next")))
        assert "reasoning_content" not in provider.body["messages"][1]


async def test_tools_are_sent_only_when_there_are_any_and_stand_on_their_own() -> None:
    schema = {
        "$ref": "#/$defs/Args",
        "$defs": {
            "Args": {"type": "object", "properties": {"node": {"$ref": "#/$defs/Node"}}},
            "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "$ref": {"type": "string"}}},
        },
    }
    with FakeProvider(Stream([END])) as provider:
        asking = model(provider)
        await ask(asking)
        assert "tools" not in provider.body
        await ask(asking, request(tools=[ToolSpec("walk", "Walk.", schema)]))
        parameters = provider.body["tools"][0]["function"]["parameters"]
    assert parameters == {
        "type": "object",
        "properties": {"node": {"type": "object", "properties": {"next": {}, "$ref": {"type": "string"}}}},
    }


async def test_a_tools_name_that_the_provider_would_refuse_comes_back_as_it_was() -> None:
    tool = ToolSpec("größe.messen", "Measure.", {"type": "object"})
    with FakeProvider(Stream([END])) as provider:
        await ask(model(provider), request(tools=[tool]))
        name = provider.body["tools"][0]["function"]["name"]
    assert name.isascii()
    with FakeProvider(Stream([call(0, "{}", id="c", name=name), delta("tool_calls")])) as provider:
        assert uses(await ask(model(provider), request(tools=[tool])))[0].name == tool.name


async def test_options_and_extra_fields_reach_the_provider() -> None:
    with FakeProvider(Stream([END])) as provider:
        options = {"temperature": 0.5, "max_tokens": 7, "extra": {"top_k": 3, "stream_options": None}}
        await ask(
            model(provider, thought_levels=("medium", "high"), **options),
            request(thought_level="high"),
        )
        body = provider.body
    assert (body["temperature"], body["max_tokens"], body["top_k"], body["reasoning_effort"]) == (0.5, 7, 3, "high")
    assert body["stream"] is True
    assert "stream_options" not in body


async def test_openai_itself_has_its_own_word_for_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        stream = f"data: {json.dumps(END)}\n\n"
        return httpx2.Response(200, text=stream, headers={"content-type": "text/event-stream"})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        await ask(OpenAIModel("gpt-5", api_key="some-key", max_tokens=5, http_client=http))
    (only,) = asked
    assert str(only.url) == "https://api.openai.com/v1/chat/completions"
    assert json.loads(only.content)["max_completion_tokens"] == 5


async def test_the_key_is_read_again_for_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    keys = iter(["first-key", "second-key", None])
    with FakeProvider(Stream([END])) as provider:
        asking = model(provider, api_key=lambda: next(keys))
        for _ in range(3):
            async with aclosing(asking.stream(request())) as stream:
                assert [event async for event in stream]
        await asking.aclose()
        sent = [asked.headers["authorization"] for asked in provider.asked]
    assert sent == ["Bearer first-key", "Bearer second-key", "Bearer none"]


async def test_without_a_key_openai_itself_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY") as caught:
        await ask(OpenAIModel("gpt-4o"))
    assert caught.value.kind == "auth"


@pytest.mark.parametrize(
    ("models", "window"),
    [
        (None, None),
        ("not json", None),
        ({"data": [{"id": "m", "max_model_len": 900}, {"id": "n", "max_model_len": 7}]}, 900),
        ({"data": [{"id": "vendor/m", "aliases": ["m"], "context_length": 800}, {"id": "n"}]}, 800),
        ({"data": [{"id": "weights.gguf", "meta": {"n_ctx": 700, "n_ctx_train": 9999}}]}, 700),
        ({"data": [{"id": "a", "context_length": 1}, {"id": "b", "context_length": 2}]}, None),
        ({"data": [{"id": "m", "context_length": "many"}]}, None),
    ],
)
async def test_the_server_is_asked_once_how_much_the_model_can_hold(models: Any, window: int | None) -> None:
    with FakeProvider(Stream([delta(content="x"), END, usage(3, 1)]), models=models) as provider:
        asking = model(provider)
        for _ in range(2):
            assert UsageDelta(3, 1, context_window=window) in await ask(asking)
        assert provider.looked_up == ["/v1/models"]
        assert asking.context_window == window


async def test_a_window_that_was_given_is_not_asked_for() -> None:
    with FakeProvider(Stream([END, usage(3, 1)])) as provider:
        assert UsageDelta(3, 1, context_window=50) in await ask(model(provider, context_window=50))
        assert provider.looked_up == []


async def test_an_injected_http_client_is_used_and_left_open() -> None:
    with FakeProvider(Stream([END])) as provider:
        async with httpx2.AsyncClient(headers={"x-mine": "yes"}) as http:
            await ask(model(provider, http_client=http))
            assert not http.is_closed
        assert provider.asked[0].headers["x-mine"] == "yes"


async def test_a_connection_is_used_again_for_the_next_request() -> None:
    with FakeProvider(Stream([delta(content="x"), END])) as provider:
        async with httpx2.AsyncClient() as http:
            asking = model(provider, http_client=http)
            await ask(asking)
            pool = http._transport._pool  # type: ignore[attr-defined]  # nothing public tells how many there are
            (kept,) = pool.connections
            await ask(asking)
            assert pool.connections == [kept]


@pytest.mark.parametrize("answer", [Stream([delta(content="x")], then="hang"), Silence()])
async def test_a_cancel_leaves_no_connection_behind(answer: Stream | Silence) -> None:
    with FakeProvider(answer) as provider, anyio.fail_after(10):
        asking = model(provider)
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                async with aclosing(asking.stream(request())) as stream:
                    async for _ in stream:
                        tasks.cancel_scope.cancel()

            tasks.start_soon(run)
            if isinstance(answer, Silence):
                assert await anyio.to_thread.run_sync(provider.reached.wait, 5)
                tasks.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(provider.dropped.wait, 5)
        await asking.aclose()


async def test_a_consumer_that_leaves_early_leaves_no_connection_behind() -> None:
    with FakeProvider(Stream([delta(content="x"), delta(content="y")], then="hang")) as provider:
        asking = model(provider)
        async with aclosing(asking.stream(request())) as stream:
            assert await anext(stream)
        assert await anyio.to_thread.run_sync(provider.dropped.wait, 5)
        await asking.aclose()

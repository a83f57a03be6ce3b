"""OpenAI's Responses API, which its own reasoning models are best reached by.

Source: https://platform.openai.com/docs/api-reference/responses-streaming. Nothing is stored at the provider: the
reasoning comes back encrypted and is sent again, in its place, with the history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from acp_agent.content import ContentBlock
from acp_agent.history import AssistantMessage, HistoryMessage, ToolResult, ToolUse, UserMessage
from acp_agent.json_schema import inline_references
from acp_agent.models.base import ModelEvent, ModelRequest, ToolSpec
from acp_agent.models.openai import open_ai_provider, reasoning_levels
from acp_agent.models.prompts import (
    image_of,
    json_text,
    provider_id,
    provider_name,
    result_text,
    spoken,
    use_id,
)
from acp_agent.models.provider import ApiKey, SdkResponse
from acp_agent.models.remote import RemoteModel
from acp_agent.models.replies import Reason, Reply, stop_reason
from acp_agent.models.retry import RetryPolicy

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

__all__ = ["OpenAIResponsesModel"]

INCOMPLETE: Mapping[str, Reason] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
LAST = ("response.completed", "response.incomplete", "response.failed")


class _Item(Struct, omit_defaults=True):
    """An item of the output: a message, a function call, or reasoning."""

    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    encrypted_content: str | None = None
    summary: list[dict[str, Any]] = field(default_factory=list)


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None


class _Incomplete(Struct):
    reason: str | None = None


class _Response(Struct):
    usage: _Usage | None = None
    error: Any = None
    incomplete_details: _Incomplete | None = None


class _Event(Struct):
    type: str = ""
    output_index: int = 0
    content_index: int = 0
    summary_index: int = 0
    delta: Any = None
    text: str | None = None
    refusal: str | None = None
    arguments: str | None = None
    item: _Item | None = None
    response: _Response | None = None
    error: Any = None
    code: str | None = None
    message: str | None = None


class OpenAIResponsesModel(RemoteModel["AsyncOpenAI", _Event]):
    """A model behind the Responses API. The arguments are those of `OpenAIModel`."""

    event_type = _Event

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: ApiKey = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        context_window: int | None = None,
        thought_levels: Sequence[str] | None = None,
        extra: Mapping[str, Any] | None = None,
        timeout: float = 600.0,
        retry: RetryPolicy | None = None,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        super().__init__(
            name,
            open_ai_provider(base_url, api_key, timeout, http_client),
            context_window=context_window,
            thought_levels=reasoning_levels(name) if thought_levels is None else thought_levels,
            extra=extra,
            retry=retry,
        )
        self._options = {"temperature": temperature, "max_output_tokens": max_tokens}

    def open(self, client: AsyncOpenAI, request: ModelRequest) -> AbstractAsyncContextManager[SdkResponse]:
        items: Any = _items(request.messages)
        own: dict[str, Any] = {
            "instructions": request.system or None,
            "tools": [_tool(tool) for tool in request.tools] or None,
        }
        if self.thought_levels:
            effort = self.effort(request)
            own["reasoning"] = {"summary": "auto"} | ({"effort": effort} if effort else {})
            own["include"] = ["reasoning.encrypted_content"]
        return client.responses.with_streaming_response.create(
            model=self.name, input=items, stream=True, store=False, extra_body=self.body({**self._options, **own})
        )

    def read(self, reply: Reply) -> _Reading:
        return _Reading(reply)

    def error_in(self, event: _Event) -> Any:
        if event.type == "error":
            return event.error or {"code": event.code, "message": event.message}
        if event.type == "response.failed":
            return (event.response.error if event.response else None) or {}
        return None

    def is_last(self, event: _Event) -> bool:
        return event.type in LAST


class _Reading:
    """A `done` event repeats its deltas, and counts only when there were none."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._streamed: set[tuple[str, int, int]] = set()
        self._items: dict[int, dict[str, Any]] = {}
        self._refused = False

    def take(self, event: _Event) -> Iterator[ModelEvent]:
        kind, _, stage = event.type.removeprefix("response.").rpartition(".")
        match kind:
            case "output_text" | "refusal":
                self._refused |= kind == "refusal"
                yield from self._reply.say(self._fresh(event, kind, stage, event.content_index))
            case "reasoning_text":
                yield from self._reply.think(self._fresh(event, kind, stage, event.content_index))
            case "reasoning_summary_text":
                yield from self._reply.think(self._fresh(event, kind, stage, event.summary_index))
            case "function_call_arguments":
                self._reply.call(event.output_index, arguments=self._fresh(event, kind, stage, 0))
            case "output_item":
                self._take_item(event.output_index, event.item or _Item(), stage)
        if event.response is not None and event.type in LAST:
            self._finish(event.response)

    def close(self, window: int | None) -> Iterator[ModelEvent]:
        items = [self._items[index] for index in sorted(self._items)]
        reasoned = any(item["type"] == "reasoning" for item in items)
        return self._reply.close({"openai_responses": items} if reasoned else None, window)

    def _fresh(self, event: _Event, kind: str, stage: str, part: int) -> str:
        key = (kind, event.output_index, part)
        known = key in self._streamed
        self._streamed.add(key)
        if stage == "delta":
            return event.delta if isinstance(event.delta, str) else ""
        return "" if known else event.text or event.refusal or event.arguments or ""

    def _take_item(self, index: int, item: _Item, stage: str) -> None:
        match item.type:
            case "function_call":
                whole = stage == "done" and ("function_call_arguments", index, 0) not in self._streamed
                self._reply.call(index, id=item.call_id, name=item.name, arguments=item.arguments if whole else None)
                self._items[index] = {"type": "function_call"}  # filled from the history, which has the id that counts
            case "reasoning" if item.encrypted_content:
                kept = {"id": item.id, "summary": item.summary, "encrypted_content": item.encrypted_content}
                self._items[index] = {"type": "reasoning", **kept}
            case "message":
                self._items[index] = {"type": "message"}

    def _finish(self, response: _Response) -> None:
        if response.usage is not None:
            self._reply.count(response.usage.input_tokens, response.usage.output_tokens)
        if self._refused:
            self._reply.reason = "refusal"
        elif response.incomplete_details is not None:
            self._reply.reason = stop_reason(INCOMPLETE, response.incomplete_details.reason or "")
        else:
            self._reply.reason = "end_turn"


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": provider_name(tool.name),
        "description": tool.description,
        "parameters": inline_references(tool.input_schema),
        "strict": False,
    }


def _items(history: Sequence[HistoryMessage]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for message in history:
        match message:
            case UserMessage():
                items.append({"role": "user", "content": list(map(_part, message.content))})
            case AssistantMessage():
                items.extend(_assistant(message))
            case ToolResult():
                output = {"call_id": provider_id(message.call_id), "output": _output(message)}
                items.append({"type": "function_call_output", **output})
    return items


def _assistant(message: AssistantMessage) -> list[dict[str, Any]]:
    """The reply's items in the order in which they came, its reasoning included."""
    calls = [_call(use) for use in message.tool_uses]
    text = [{"role": "assistant", "content": message.text}] if message.text.strip() else []
    native: list[dict[str, Any]] = (message.native or {}).get("openai_responses") or []
    waiting = {"message": iter(text), "function_call": iter(calls)}
    items: list[dict[str, Any]] = []
    for item in native:
        source = waiting.get(item["type"])
        items.extend([item] if source is None else [found for found in [next(source, None)] if found])
    if items and not text and not calls:
        return []  # reasoning that led to nothing is refused
    return [*items, *waiting["message"], *waiting["function_call"]]


def _call(use: ToolUse) -> dict[str, Any]:
    call = {"call_id": use_id(use), "name": provider_name(use.name), "arguments": json_text(use.arguments)}
    return {"type": "function_call", **call}


def _output(result: ToolResult) -> str | list[dict[str, Any]]:
    if not any(map(image_of, result.content)):
        return result_text(result)
    return [_part(block) for block in result.content]


def _part(block: ContentBlock) -> dict[str, Any]:
    image = image_of(block)
    if image is None:
        return {"type": "input_text", "text": spoken(block)}
    return {"type": "input_image", "image_url": f"data:{image.mime_type};base64,{image.data}", "detail": "auto"}

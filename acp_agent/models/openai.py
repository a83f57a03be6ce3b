"""OpenAI's chat completions, and every server that speaks them: Ollama, llama.cpp, vLLM, LM Studio, OpenRouter.

Source: https://platform.openai.com/docs/api-reference/chat. The stream is decoded leniently, because the servers
differ in what they leave out and in what they say twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

from acp_agent.content import ContentBlock
from acp_agent.errors import ModelError
from acp_agent.history import AssistantMessage, ToolResult, UserMessage
from acp_agent.json_schema import inline_references
from acp_agent.models.base import ModelEvent, ModelRequest, ToolSpec
from acp_agent.models.prompts import (
    image_of,
    json_text,
    provider_id,
    provider_name,
    result_text,
    spoken,
    use_id,
)
from acp_agent.models.provider import ApiKey, Provider, SdkResponse, address_of
from acp_agent.models.remote import RemoteModel
from acp_agent.models.replies import Reason, Reply, stop_reason
from acp_agent.models.retry import RetryPolicy

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

__all__ = ["OpenAIModel", "open_ai_provider", "reasoning_levels"]

ADDRESS = "OPENAI_BASE_URL"
REASONS: Mapping[str, Reason] = {
    "stop": "end_turn",
    "tool_calls": "end_turn",
    "function_call": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
}


class _Function(Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _ToolPart(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct):
    content: str | None = None
    reasoning_content: str | None = None  # llama.cpp, vLLM, DeepSeek
    reasoning: str | None = None  # OpenRouter, Ollama
    refusal: str | None = None
    tool_calls: list[_ToolPart] | None = None


class _Choice(Struct):
    delta: _Delta | None = None
    message: _Delta | None = None  # the whole, from servers that end a stream with it
    finish_reason: str | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


class OpenAIModel(RemoteModel["AsyncOpenAI", _Chunk]):
    """A model behind chat completions.

    `base_url` names another server than OpenAI's (or than `OPENAI_BASE_URL`); such a one needs no key. `api_key` is
    the key or gives it (default: `OPENAI_API_KEY`). `max_tokens` limits one reply, `timeout` is how many seconds the
    server may be silent. `extra` is added to each request's body as it is, and takes a field out by None.
    `http_client` is used as it is and never closed here. `stream` raises `ModelError`.
    """

    event_type = _Chunk

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
        at_openai = address_of(base_url, ADDRESS) is None  # which has renamed the limit; the others have not
        self._options = {
            "stream_options": {"include_usage": True},
            "temperature": temperature,
            "max_completion_tokens" if at_openai else "max_tokens": max_tokens,
        }

    def open(self, client: AsyncOpenAI, request: ModelRequest) -> AbstractAsyncContextManager[SdkResponse]:
        messages: Any = _messages(request)
        tools = [_tool(tool) for tool in request.tools] or None
        body = self.body({**self._options, "tools": tools, "reasoning_effort": self.effort(request)})
        return client.chat.completions.with_streaming_response.create(
            model=self.name, messages=messages, stream=True, extra_body=body
        )

    def read(self, reply: Reply) -> _Reading:
        return _Reading(reply)

    def error_in(self, event: _Chunk) -> Any:
        return event.error or None


class _Reading:
    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._keys: dict[int, int] = {}  # the tool use that an index stands for at the moment
        self._thoughts: list[str] = []
        self._refused = False

    def take(self, event: _Chunk) -> Iterator[ModelEvent]:
        if event.usage is not None:
            self._reply.count(event.usage.prompt_tokens, event.usage.completion_tokens)
        for choice in (event.choices or [])[:1]:
            delta = choice.delta
            if choice.message is not None and not self._reply.has_text:
                delta = choice.message
            if delta is not None and self._reply.reason is None:
                yield from self._take_delta(delta, closing=choice.finish_reason is not None)
            if choice.finish_reason is not None:
                self._finish(choice.finish_reason)

    def close(self, window: int | None) -> Iterator[ModelEvent]:
        thoughts = "".join(self._thoughts)
        return self._reply.close({"openai": {"reasoning_content": thoughts}} if thoughts else None, window)

    def _take_delta(self, delta: _Delta, *, closing: bool) -> Iterator[ModelEvent]:
        if delta.reasoning_content:
            self._thoughts.append(delta.reasoning_content)
        self._refused |= bool(delta.refusal)
        yield from self._reply.think(delta.reasoning_content or delta.reasoning)
        yield from self._reply.say(delta.content, closing=closing)
        yield from self._reply.say(delta.refusal, closing=closing)
        for part in delta.tool_calls or ():
            function = part.function or _Function()
            self._reply.call(self._key(part), id=part.id, name=function.name, arguments=function.arguments)

    def _finish(self, given: str) -> None:
        if self._reply.reason is None:
            self._reply.reason = "refusal" if self._refused else stop_reason(REASONS, given)

    def _key(self, part: _ToolPart) -> int:
        """The tool use that the part belongs to: its index's, unless a new id begins another under the same index."""
        index = part.index or 0
        key = self._keys.get(index)
        known = None if key is None else self._reply.call_id(key)
        begins = part.id and known and part.id != known and part.function is not None and part.function.name
        if key is None or begins:
            key = self._keys[index] = self._reply.calls
        return key


def open_ai_provider(
    base_url: str | None, api_key: ApiKey, timeout: float, http_client: httpx2.AsyncClient | None
) -> Provider[AsyncOpenAI]:
    """The way to OpenAI, or to the server at `base_url`, for both adapters. Retries are ours alone."""

    def connect(key: str | None) -> AsyncOpenAI:
        from httpx2 import Timeout
        from openai import AsyncOpenAI

        if key is None and address is None:
            raise ModelError("OpenAI needs an API key: set OPENAI_API_KEY", kind="auth")
        return AsyncOpenAI(
            api_key=key or "none",
            base_url=address,
            timeout=Timeout(timeout, connect=min(timeout, 10.0)),
            max_retries=0,
            http_client=http_client,
        )

    address = address_of(base_url, ADDRESS)
    return Provider(
        "openai",
        connect,
        error_name="OpenAIError",
        label=f"the model server at {urlsplit(address).hostname}" if address else "OpenAI",
        api_key=api_key,
        key_variable="OPENAI_API_KEY",
        models_path="/models" if address else None,
        owns_http=http_client is None,
    )


def reasoning_levels(name: str) -> tuple[str, ...]:
    """The levels of effort that OpenAI's own reasoning models take, the default first; none for others."""
    return ("medium", "low", "high") if re.match(r"o\d|gpt-[5-9]", name) else ()


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {
        "name": provider_name(tool.name),
        "description": tool.description,
        "parameters": inline_references(tool.input_schema),
    }
    return {"type": "function", "function": function}


def _messages(request: ModelRequest) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
    turn_begins = max((i for i, m in enumerate(request.messages) if isinstance(m, UserMessage)), default=0)
    pictures: list[dict[str, Any]] = []  # of tool results, which may only be text here
    for place, message in enumerate(request.messages):
        if pictures and not isinstance(message, ToolResult):
            messages.append({"role": "user", "content": pictures})
            pictures = []
        match message:
            case UserMessage():
                messages.append({"role": "user", "content": _content(message.content)})
            case AssistantMessage():
                messages.extend(_assistant(message, in_turn=place > turn_begins))
            case ToolResult():
                messages.append(_result(message))
                pictures.extend(part for part in map(_part, message.content) if part["type"] == "image_url")
    return messages + ([{"role": "user", "content": pictures}] if pictures else [])


def _assistant(message: AssistantMessage, *, in_turn: bool) -> list[dict[str, Any]]:
    """The message, or none when it is empty. Some models want the thoughts of the running turn's tool uses back."""
    if not message.text.strip() and not message.tool_uses:
        return []
    said: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if message.tool_uses:
        said["tool_calls"] = [
            {
                "id": use_id(use),
                "type": "function",
                "function": {"name": provider_name(use.name), "arguments": json_text(use.arguments)},
            }
            for use in message.tool_uses
        ]
        if in_turn:
            said |= (message.native or {}).get("openai") or {}
    return [said]


def _result(result: ToolResult) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": provider_id(result.call_id), "content": result_text(result)}


def _content(blocks: Sequence[ContentBlock]) -> str | list[dict[str, Any]]:
    """Plain text where that is all: each server takes it, while not each takes a list of parts."""
    if any(image_of(block) for block in blocks):
        return [_part(block) for block in blocks]
    return "\n".join(map(spoken, blocks))


def _part(block: ContentBlock) -> dict[str, Any]:
    image = image_of(block)
    if image is None:
        return {"type": "text", "text": spoken(block)}
    return {"type": "image_url", "image_url": {"url": f"data:{image.mime_type};base64,{image.data}"}}

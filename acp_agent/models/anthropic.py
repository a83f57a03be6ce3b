"""Anthropic's messages, and the servers that speak them.

Source: https://docs.anthropic.com/en/api/messages-streaming. What the model thought is signed, and goes back
unchanged and in its place: the order of a reply's blocks is kept as `native`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

from acp_agent.content import ContentBlock
from acp_agent.errors import ModelError
from acp_agent.history import AssistantMessage, HistoryMessage, ToolResult, ToolUse, UserMessage
from acp_agent.json_schema import inline_references
from acp_agent.models.base import ModelEvent, ModelRequest, ToolSpec
from acp_agent.models.prompts import (
    image_of,
    provider_id,
    provider_name,
    spoken,
    use_id,
)
from acp_agent.models.provider import ApiKey, Provider, SdkResponse, address_of
from acp_agent.models.remote import RemoteModel
from acp_agent.models.replies import Reason, Reply, stop_reason
from acp_agent.models.retry import RetryPolicy

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic

__all__ = ["AnthropicModel"]

ADDRESS = "ANTHROPIC_BASE_URL"
REASONS: Mapping[str, Reason] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "end_turn",
    "pause_turn": "end_turn",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}


class _Block(Struct):
    type: str = ""
    id: str | None = None
    name: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    input: dict[str, Any] | None = None


class _Delta(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Usage(Struct):
    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None


class _Message(Struct):
    usage: _Usage | None = None


class _Event(Struct):
    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None
    error: Any = None


class AnthropicModel(RemoteModel["AsyncAnthropic", _Event]):
    """A Claude model.

    `max_tokens` limits one reply. `thinking` is the request's field of that name, as it is. `base_url` names another
    server than Anthropic's (or than `ANTHROPIC_BASE_URL`), without `/v1`; such a one needs no key. `api_key` is the key
    or gives it (default: `ANTHROPIC_API_KEY`, then what else the SDK finds). `timeout` is how many seconds the server
    may be silent. `extra` is added to each request's body as it is, and takes a field out by None. `http_client` is
    used as it is and never closed here. `stream` raises `ModelError`.
    """

    event_type = _Event

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: ApiKey = None,
        temperature: float | None = None,
        max_tokens: int = 16_384,
        thinking: Mapping[str, Any] | None = None,
        context_window: int | None = None,
        thought_levels: Sequence[str] = (),
        extra: Mapping[str, Any] | None = None,
        timeout: float = 600.0,
        retry: RetryPolicy | None = None,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        super().__init__(
            name,
            _provider(base_url, api_key, timeout, http_client),
            context_window=context_window,
            thought_levels=thought_levels,
            extra=extra,
            retry=retry,
        )
        at_anthropic = address_of(base_url, ADDRESS) is None
        self._max_tokens = max_tokens
        self._options = {
            "temperature": temperature,  # for which the SDK has no argument any more
            "thinking": thinking,
            "cache_control": {"type": "ephemeral"} if at_anthropic else None,  # or each step pays for all before it
        }

    def open(self, client: AsyncAnthropic, request: ModelRequest) -> AbstractAsyncContextManager[SdkResponse]:
        messages: Any = _messages(request.messages)
        effort = self.effort(request)
        own = {
            "system": request.system or None,
            "tools": [_tool(tool) for tool in request.tools] or None,
            "output_config": {"effort": effort} if effort else None,
        }
        return client.messages.with_streaming_response.create(
            model=self.name,
            max_tokens=self._max_tokens,
            messages=messages,
            stream=True,
            extra_body=self.body({**self._options, **own}),
        )

    def read(self, reply: Reply) -> _Reading:
        return _Reading(reply)

    def error_in(self, event: _Event) -> Any:
        return (event.error or {}) if event.type == "error" else None

    def is_last(self, event: _Event) -> bool:
        return event.type == "message_stop"


class _Reading:
    """Blocks are told apart by index: one may begin before another ends."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._blocks: dict[int, dict[str, Any]] = {}
        self._usage = _Usage()

    def take(self, event: _Event) -> Iterator[ModelEvent]:
        for usage in (event.usage, event.message.usage if event.message else None):
            if usage is not None:
                self._count(usage)
        match event:
            case _Event(type="content_block_start", content_block=_Block() as block):
                yield from self._begin(event.index, block)
            case _Event(type="content_block_delta", delta=_Delta() as delta):
                yield from self._go_on(event.index, delta)
            case _Event(type="message_delta", delta=_Delta(stop_reason=str(given))):
                self._reply.reason = stop_reason(REASONS, given)

    def close(self, window: int | None) -> Iterator[ModelEvent]:
        usage = self._usage
        cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
        self._reply.count((usage.input_tokens or 0) + cached, usage.output_tokens)
        return self._reply.close(self._native(), window)

    def _begin(self, index: int, block: _Block) -> Iterator[ModelEvent]:
        match block.type:
            case "text":
                self._blocks[index] = {"type": "text", "text": block.text or ""}
                yield from self._reply.say(block.text)
            case "thinking":
                kept = {"type": "thinking", "thinking": block.thinking or "", "signature": block.signature or ""}
                self._blocks[index] = kept
                yield from self._reply.think(block.thinking)
            case "redacted_thinking":
                self._blocks[index] = {"type": "redacted_thinking", "data": block.data or ""}
            case "tool_use":
                self._blocks[index] = {"type": "tool_use"}  # filled from the history, which has the id that counts
                self._reply.call(index, id=block.id, name=block.name, arguments=block.input or "")

    def _go_on(self, index: int, delta: _Delta) -> Iterator[ModelEvent]:
        block = self._blocks.get(index, {})
        match delta.type:
            case "text_delta":
                block["text"] = block.get("text", "") + (delta.text or "")
                yield from self._reply.say(delta.text)
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + (delta.thinking or "")
                yield from self._reply.think(delta.thinking)
            case "signature_delta":
                block["signature"] = block.get("signature", "") + (delta.signature or "")
            case "input_json_delta":
                self._reply.call(index, arguments=delta.partial_json)

    def _count(self, usage: _Usage) -> None:
        """The last count stands; what an event leaves out stays."""
        for name in usage.__struct_fields__:
            if (value := getattr(usage, name)) is not None:
                setattr(self._usage, name, value)

    def _native(self) -> dict[str, Any] | None:
        """The blocks in order, when there is something among them that only the provider understands."""
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        return {"anthropic": blocks} if any(map(_is_signed, blocks)) else None


def _provider(
    base_url: str | None, api_key: ApiKey, timeout: float, http_client: httpx2.AsyncClient | None
) -> Provider[AsyncAnthropic]:
    """The way to Anthropic, or to the server at `base_url`. Retries are ours alone."""

    def connect(key: str | None) -> AsyncAnthropic:
        from anthropic import AnthropicError, AsyncAnthropic
        from httpx2 import Timeout

        try:
            client = AsyncAnthropic(
                api_key=key or ("none" if address else None),
                base_url=address,
                timeout=Timeout(timeout, connect=min(timeout, 10.0)),
                max_retries=0,
                http_client=http_client,
            )
        except AnthropicError as error:
            raise ModelError(f"Anthropic's credentials cannot be read: {error}", kind="auth") from error
        if client.api_key is None and client.auth_token is None and client.credentials is None:
            raise ModelError("Anthropic needs an API key: set ANTHROPIC_API_KEY", kind="auth")
        return client

    address = address_of(base_url, ADDRESS)
    return Provider(
        "anthropic",
        connect,
        error_name="AnthropicError",
        label=f"the model server at {urlsplit(address).hostname}" if address else "Anthropic",
        api_key=api_key,
        key_variable="ANTHROPIC_API_KEY",
        models_path="/v1/models" if address else "/v1/models/{name}",
        owns_http=http_client is None,
    )


def _is_signed(block: dict[str, Any]) -> bool:
    return block["type"] == "redacted_thinking" or bool(block.get("signature"))


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "name": provider_name(tool.name),
        "description": tool.description,
        "input_schema": inline_references(tool.input_schema),
    }


def _messages(history: Sequence[HistoryMessage]) -> list[dict[str, Any]]:
    """The history with its roles in turn, the user's first: results and prompts that follow each other are one."""
    messages: list[dict[str, Any]] = []
    for message in history:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        content = _content(message)
        if not content:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += content
        else:
            messages.append({"role": role, "content": content})
    if messages and messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": [_text("(The conversation before this is gone.)")]})
    return messages


def _content(message: HistoryMessage) -> list[dict[str, Any]]:
    match message:
        case UserMessage():
            return _blocks(message.content) or [_text("(empty message)")]
        case AssistantMessage():
            return _assistant(message)
        case ToolResult():
            result = {
                "type": "tool_result",
                "tool_use_id": provider_id(message.call_id),
                "content": _blocks(message.content),
                "is_error": message.failed,
            }
            return [{key: value for key, value in result.items() if value}]


def _assistant(message: AssistantMessage) -> list[dict[str, Any]]:
    """The reply as the provider gave it, if it was one of its own; else its text, then its tool uses."""
    uses = [_tool_use(use) for use in message.tool_uses]
    native: list[dict[str, Any]] = (message.native or {}).get("anthropic") or []
    if sum(block["type"] == "tool_use" for block in native) != len(uses):
        native = [block for block in native if _is_signed(block)]
    if not native:
        return ([_text(message.text)] if message.text.strip() else []) + uses
    waiting = iter(uses)
    blocks = [next(waiting) if block["type"] == "tool_use" else block for block in native]
    kept = [block for block in blocks if _is_worth_keeping(block)]
    if message.text.strip() and not any(block["type"] == "text" for block in kept):
        kept.append(_text(message.text))
    return kept + list(waiting)


def _is_worth_keeping(block: dict[str, Any]) -> bool:
    """Not an empty text, nor a thought without its signature, both of which are refused."""
    match block["type"]:
        case "text":
            return bool(block["text"].strip())
        case "thinking":
            return bool(block["signature"])
    return True


def _tool_use(use: ToolUse) -> dict[str, Any]:
    return {"type": "tool_use", "id": use_id(use), "name": provider_name(use.name), "input": use.arguments}


def _blocks(blocks: Sequence[ContentBlock]) -> list[dict[str, Any]]:
    parts = map(_block, blocks)
    return [part for part in parts if part["type"] != "text" or part["text"].strip()]


def _block(block: ContentBlock) -> dict[str, Any]:
    image = image_of(block)
    if image is None:
        return _text(spoken(block))
    return {"type": "image", "source": {"type": "base64", "media_type": image.mime_type, "data": image.data}}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}

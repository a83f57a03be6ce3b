"""A server's wish for a completion, answered by the session's model. Only servers that the user trusts with it get one.

Params and result are the JSON of MCP's `sampling/createMessage`. The conversation of the session is not shown to the
model, nor what it answers to the session; the tools a server would like it to have are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from acp_agent.content import ContentBlock, ImageContent, TextContent, clean_json
from acp_agent.errors import ModelError
from acp_agent.history import AssistantMessage, HistoryMessage, UserMessage
from acp_agent.models.base import Finish, Model, ModelRequest, TextDelta

__all__ = ["Sampler"]

_CHARACTERS_PER_TOKEN = 4


class Sampler:
    """Completions for the servers of one session; `find_model` says by which model at that moment."""

    def __init__(self, session_id: str, find_model: Callable[[], Model | None]) -> None:
        self._session_id = session_id
        self._find_model = find_model

    async def __call__(self, server_name: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raises `ModelError` when there is no model, it fails, or what is asked is more than text and images."""
        model = self._find_model()
        if model is None:
            raise ModelError("This session has no model.")
        request = ModelRequest(
            session_id=f"{self._session_id}/sampling/{server_name}",
            messages=list(_messages(params.get("messages", []))),
            system=clean_json(params.get("systemPrompt") or ""),
        )
        room = params.get("maxTokens", 0) * _CHARACTERS_PER_TOKEN
        try:
            text, reason = await _complete(model, request, room)
        finally:
            model.forget(request.session_id)
        content = {"type": "text", "text": text}
        return {"role": "assistant", "content": content, "model": model.name, "stopReason": reason}


async def _complete(model: Model, request: ModelRequest, room: int) -> tuple[str, str]:
    """The text, of about `room` characters at most, and why it ends there."""
    text = ""
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta(text=more):
                    text += more
                case Finish(reason="max_tokens"):
                    return text, "maxTokens"
            if len(text) > room:
                return text[:room], "maxTokens"
    return text, "endTurn"


def _messages(written: list[dict[str, Any]]) -> Iterator[HistoryMessage]:
    for number, message in enumerate(written):
        content = message["content"] if isinstance(message["content"], list) else [message["content"]]
        blocks = [_block(block) for block in clean_json(content)]
        if message["role"] == "user":
            yield UserMessage(f"sampling-{number}", blocks)
        else:
            text = "".join(block.text for block in blocks if isinstance(block, TextContent))
            yield AssistantMessage(f"sampling-{number}", text)


def _block(block: dict[str, Any]) -> ContentBlock:
    match block:
        case {"type": "text", "text": str(text)}:
            return TextContent(text)
        case {"type": "image", "data": str(data), "mimeType": str(mime_type)}:
            return ImageContent(data, mime_type)
    raise ModelError("Only texts and images can be sampled from.")

"""What each provider's messages need of the history and the tools: ids, names and labels that it accepts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from msgspec import json

from acp_agent.content import ContentBlock, EmbeddedResource, ImageContent, ResourceLink, text_of
from acp_agent.history import ToolResult, ToolUse
from acp_agent.models.base import ToolSpec

__all__ = [
    "image_of",
    "json_text",
    "provider_id",
    "provider_name",
    "result_text",
    "spoken",
    "tool_names",
    "use_id",
]

LONGEST_ID = 40
LONGEST_NAME = 64
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")


def provider_id(call_id: str) -> str:
    """`call_id` in letters that every provider takes, still unique."""
    return _made_safe(call_id, LONGEST_ID)


def provider_name(name: str) -> str:
    """A tool's name in letters that every provider takes, still unique."""
    return _made_safe(name, LONGEST_NAME)


def use_id(use: ToolUse) -> str:
    """The id that a tool use has in a request: the runtime's, or the provider's when there is no runtime."""
    return provider_id(use.call_id or use.id)


def _made_safe(text: str, longest: int) -> str:
    safe = _UNSAFE.sub("_", text)
    if safe == text and 0 < len(text) <= longest:
        return text
    mark = sha256(text.encode("utf-8", "replace")).hexdigest()[:10]
    return f"{safe[: longest - 11]}_{mark}"


def image_of(block: ContentBlock) -> ImageContent | None:
    """The picture in a block, if it is one of a kind that models see."""
    match block:
        case ImageContent(mime_type=mime_type, data=data) if mime_type in PICTURES and data:
            return block
        case EmbeddedResource(mime_type=str(mime_type), blob=str(data), uri=uri) if mime_type in PICTURES and data:
            return ImageContent(data, mime_type, uri=uri)
    return None


def spoken(block: ContentBlock) -> str:
    """A block as text; what cannot be text is named."""
    if isinstance(block, ResourceLink) and block.description:
        return f"{text_of([block])} ({block.description})"
    return text_of([block])


def result_text(result: ToolResult) -> str:
    """A tool's result as text, for providers that have no other sign of failure."""
    text = "\n".join(map(spoken, result.content)) or "(no output)"
    return f"The call failed: {text}" if result.failed else text


def json_text(value: Any) -> str:
    """A JSON value as the text that some providers want."""
    return json.encode(value).decode()


def tool_names(tools: Iterable[ToolSpec]) -> dict[str, str]:
    """From the names that the provider is given to the tools' own."""
    return {provider_name(tool.name): tool.name for tool in tools}

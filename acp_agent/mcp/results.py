"""What a server's tool returned, as our output: every kind of content, none of it without a limit."""

from __future__ import annotations

from typing import Any

import mcp_types as mcp
import msgspec
from msgspec import UNSET

from acp_agent.content import (
    AudioContent,
    ContentBlock,
    ContentItem,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    clean_json,
    clean_text,
)
from acp_agent.mcp.redaction import Redactor
from acp_agent.tools.base import ToolOutput
from acp_agent.tools.text import DISPLAY_LIMIT, MODEL_LIMIT, cut_text

__all__ = ["output_of", "progress_text"]

_BINARY_LIMIT = 4 * 1024 * 1024  # characters of base64 in one result: with the rest it stays in one frame
_STRUCTURED_LIMIT = 16 * 1024  # bytes of structured content beside what is shown
_BLOCK_LIMIT = 64


def output_of(result: mcp.CallToolResult, redact: Redactor) -> ToolOutput:
    """The result of a call. An error's text is without the server's secrets; a result is passed as it is."""
    blocks = _bounded([_block(block) for block in result.content])
    structured = clean_json(result.structured_content)
    if structured is not None and not blocks:
        blocks = [TextContent(_json(structured))]
    if result.is_error:
        blocks = [TextContent(redact(block.text)) if isinstance(block, TextContent) else block for block in blocks]
    return ToolOutput(
        content=[ContentItem(block) for block in _cut(blocks, DISPLAY_LIMIT)],
        told=_cut(blocks, MODEL_LIMIT) or [TextContent("The tool returned nothing.")],
        raw_output=structured if structured is not None and len(_json(structured)) <= _STRUCTURED_LIMIT else UNSET,
        failed=bool(result.is_error),
    )


def progress_text(progress: float, total: float | None, message: str | None) -> str:
    """A progress notification in words: `Copying (3 of 4)`."""
    amount = f"{progress:g} of {total:g}" if total else f"{progress:g}"
    return f"{cut_text(clean_text(message), 1_000)} ({amount})" if message else f"Progress: {amount}"


def _block(block: mcp.ContentBlock) -> ContentBlock:
    annotations = _annotations(block)
    match block:
        case mcp.TextContent(text=text):
            return TextContent(clean_text(text), annotations)
        case mcp.ImageContent(data=data, mime_type=mime_type):
            return ImageContent(data, clean_text(mime_type), annotations=annotations)
        case mcp.AudioContent(data=data, mime_type=mime_type):
            return AudioContent(data, clean_text(mime_type), annotations)
        case mcp.ResourceLink():
            return ResourceLink(
                name=clean_text(block.name),
                uri=clean_text(str(block.uri)),
                mime_type=block.mime_type,
                title=block.title,
                description=block.description,
                size=block.size if block.size is None or block.size >= 0 else None,
                annotations=annotations,
            )
        case mcp.EmbeddedResource(resource=resource):
            uri, kind = clean_text(str(resource.uri)), resource.mime_type
            if isinstance(resource, mcp.TextResourceContents):
                return EmbeddedResource(uri, text=clean_text(resource.text), mime_type=kind, annotations=annotations)
            return EmbeddedResource(uri, blob=resource.blob, mime_type=kind, annotations=annotations)


def _annotations(block: mcp.ContentBlock) -> dict[str, Any] | None:
    if block.annotations is None:
        return None
    return clean_json(block.annotations.model_dump(by_alias=True, mode="json", exclude_none=True)) or None


def _bounded(blocks: list[ContentBlock]) -> list[ContentBlock]:
    """The blocks, without binary data beyond the limit and without more blocks than anybody reads."""
    kept: list[ContentBlock] = []
    room = _BINARY_LIMIT
    for block in blocks[:_BLOCK_LIMIT]:
        size = _binary_size(block)
        room -= size
        if size and room < 0:
            kept.append(TextContent(f"[{size:,} characters of binary data left out: too large]"))
        else:
            kept.append(block)
    if len(blocks) > _BLOCK_LIMIT:
        kept.append(TextContent(f"[{len(blocks) - _BLOCK_LIMIT} more parts left out]"))
    return kept


def _binary_size(block: ContentBlock) -> int:
    match block:
        case ImageContent(data=data) | AudioContent(data=data) | EmbeddedResource(blob=str(data)):
            return len(data)
    return 0


def _cut(blocks: list[ContentBlock], limit: int) -> list[ContentBlock]:
    """The blocks with their texts cut so that all of them together have about `limit` bytes."""
    share = max(limit // max(sum(_is_text(block) for block in blocks), 1), 512)
    return [_cut_block(block, share) for block in blocks]


def _is_text(block: ContentBlock) -> bool:
    return isinstance(block, TextContent) or (isinstance(block, EmbeddedResource) and block.text is not None)


def _cut_block(block: ContentBlock, limit: int) -> ContentBlock:
    match block:
        case TextContent(text=text, annotations=annotations):
            return TextContent(cut_text(text, limit), annotations)
        case EmbeddedResource(uri=uri, text=str(text), mime_type=kind, annotations=annotations):
            return EmbeddedResource(uri, text=cut_text(text, limit), mime_type=kind, annotations=annotations)
    return block


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()

"""What is said and shown, of no protocol version: blocks, tool kinds, statuses, diffs, plans, stop reasons.

Source: https://agentclientprotocol.com/protocol/content and /tool-calls. Both protocol versions carry these facts;
`surfaces` translates them into each version's words.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Struct

__all__ = [
    "AudioContent",
    "ContentBlock",
    "ContentItem",
    "Diff",
    "EmbeddedResource",
    "ImageContent",
    "Location",
    "PermissionKind",
    "PlanEntry",
    "PlanPriority",
    "PlanStatus",
    "ResourceLink",
    "StopReason",
    "TerminalItem",
    "TextContent",
    "ToolContent",
    "ToolKind",
    "ToolStatus",
    "clean_json",
    "clean_struct",
    "clean_text",
    "text_of",
]

S = TypeVar("S", bound=Struct)

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
ToolStatus: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]
StopReason: TypeAlias = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
PermissionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]
PlanPriority: TypeAlias = Literal["high", "medium", "low"]
PlanStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


class TextContent(Struct, frozen=True, gc=False, tag_field="type", tag="text", omit_defaults=True):
    """Plain text or Markdown."""

    text: str
    annotations: dict[str, Any] | None = None


class ImageContent(Struct, frozen=True, tag_field="type", tag="image", omit_defaults=True):
    """`data` is base64."""

    data: str
    mime_type: str
    uri: str | None = None
    annotations: dict[str, Any] | None = None


class AudioContent(Struct, frozen=True, tag_field="type", tag="audio", omit_defaults=True):
    """`data` is base64."""

    data: str
    mime_type: str
    annotations: dict[str, Any] | None = None


class ResourceLink(Struct, frozen=True, tag_field="type", tag="resource_link", omit_defaults=True):
    """A thing named, not included. It is never fetched on its own."""

    name: str
    uri: str
    mime_type: str | None = None
    title: str | None = None
    description: str | None = None
    size: int | None = None
    annotations: dict[str, Any] | None = None


class EmbeddedResource(Struct, frozen=True, tag_field="type", tag="resource", omit_defaults=True):
    """A thing included: exactly one of `text` and `blob` (base64) is set."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None
    annotations: dict[str, Any] | None = None


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class ContentItem(Struct, frozen=True, tag_field="type", tag="content"):
    """A block shown inside a tool call."""

    content: ContentBlock


class Diff(Struct, frozen=True, tag_field="type", tag="diff", omit_defaults=True):
    """A file before and after. `path` is absolute; `old_text` is None for a new file."""

    path: str
    new_text: str
    old_text: str | None = None


class TerminalItem(Struct, frozen=True, tag_field="type", tag="terminal"):
    """The editor's terminal `terminal_id`, shown live inside a tool call."""

    terminal_id: str


ToolContent: TypeAlias = ContentItem | Diff | TerminalItem


class Location(Struct, frozen=True, omit_defaults=True):
    """A place the editor may follow: absolute `path`, 1-based `line`."""

    path: str
    line: int | None = None


class PlanEntry(Struct, frozen=True, omit_defaults=True):
    """One step of a plan; a plan is always sent whole."""

    content: str
    priority: PlanPriority = "medium"
    status: PlanStatus = "pending"


def clean_text(text: str) -> str:
    """The border that text crosses once: what is not Unicode (a lone surrogate) becomes U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_json(value: Any) -> Any:
    """`value` with each string in it, keys too, made clean."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_json(key): clean_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(item) for item in value]
    return value


def clean_struct(struct: S) -> S:
    """`struct`, if JSON can carry it; else a copy in which every string is clean and what has no JSON is its `repr`."""
    try:
        msgspec.json.encode(struct)
    except (TypeError, ValueError, OverflowError, RecursionError):
        copy: S = _carried(struct)
        return copy
    return struct


def _carried(value: Any) -> Any:
    if isinstance(value, Struct):
        return type(value)(**{name: _carried(getattr(value, name)) for name in value.__struct_fields__})
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(key)): _carried(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_carried(item) for item in value]
    if value is UNSET:
        return value
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return clean_text(repr(value))
    return value


def text_of(blocks: list[ContentBlock] | tuple[ContentBlock, ...]) -> str:
    """The blocks as one text, each other kind as a short label, in order."""
    parts: list[str] = []
    for block in blocks:
        match block:
            case TextContent(text=text):
                parts.append(text)
            case ResourceLink(name=name, uri=uri):
                parts.append(f"[{name}]({uri})")
            case EmbeddedResource(uri=uri, text=str(text)):
                parts.append(f'<resource uri="{uri}">\n{text}\n</resource>')
            case EmbeddedResource(uri=uri):
                parts.append(f"[binary resource {uri}]")
            case ImageContent(mime_type=mime_type):
                parts.append(f"[image {mime_type}]")
            case AudioContent(mime_type=mime_type):
                parts.append(f"[audio {mime_type}]")
    return "\n".join(parts)

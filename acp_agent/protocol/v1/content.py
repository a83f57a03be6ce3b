"""Content blocks: what prompts, messages and tool calls are made of, in MCP's shapes.

Source: https://agentclientprotocol.com/protocol/content
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from acp_agent.protocol.base import Lenient, OneOf, Payload, Sifted

__all__ = [
    "Annotations",
    "AudioContent",
    "BlobResourceContents",
    "ContentBlock",
    "EmbeddedResource",
    "EmbeddedResourceResource",
    "ImageContent",
    "ResourceLink",
    "Role",
    "TextContent",
    "TextResourceContents",
]

Role: TypeAlias = Literal["assistant", "user"]


class Annotations(Payload, kw_only=True):
    """Whom a block is for and how much it matters. `last_modified` is ISO 8601, `priority` 0 to 1."""

    audience: Sifted[list[Role] | None] = None
    last_modified: Lenient[str | None] = None
    priority: Lenient[float | None] = None


class TextContent(Payload, kw_only=True, tag_field="type", tag="text"):
    """Plain text or Markdown. Every agent takes it."""

    text: str
    annotations: Lenient[Annotations | None] = None


class ImageContent(Payload, kw_only=True, tag_field="type", tag="image"):
    """`data` is base64. In prompts only with `promptCapabilities.image`."""

    data: str
    mime_type: str
    uri: Lenient[str | None] = None
    annotations: Lenient[Annotations | None] = None


class AudioContent(Payload, kw_only=True, tag_field="type", tag="audio"):
    """`data` is base64. In prompts only with `promptCapabilities.audio`."""

    data: str
    mime_type: str
    annotations: Lenient[Annotations | None] = None


class ResourceLink(Payload, kw_only=True, tag_field="type", tag="resource_link"):
    """A resource named, not included. Every agent takes it. `size` is in bytes."""

    name: str
    uri: str
    description: Lenient[str | None] = None
    mime_type: Lenient[str | None] = None
    size: Lenient[int | None] = None
    title: Lenient[str | None] = None
    annotations: Lenient[Annotations | None] = None


class EmbeddedResourceResource(OneOf):
    """What is embedded: text when there is a `text`, else a blob."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: dict[str, Any]) -> type[TextResourceContents | BlobResourceContents]:
        return TextResourceContents if "text" in value else BlobResourceContents


class TextResourceContents(Payload, EmbeddedResourceResource, kw_only=True):
    """A text resource, whole."""

    text: str
    uri: str
    mime_type: Lenient[str | None] = None


class BlobResourceContents(Payload, EmbeddedResourceResource, kw_only=True):
    """A binary resource, whole, in base64."""

    blob: str
    uri: str
    mime_type: Lenient[str | None] = None


class EmbeddedResource(Payload, kw_only=True, tag_field="type", tag="resource"):
    """A resource included. In prompts only with `promptCapabilities.embeddedContext`."""

    resource: EmbeddedResourceResource
    annotations: Lenient[Annotations | None] = None


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource

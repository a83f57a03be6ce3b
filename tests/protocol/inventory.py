"""What version 1's Structs say of themselves, in the terms in which the tests compare them with others."""

from __future__ import annotations

import functools
import importlib
import operator
import pkgutil
from collections.abc import Callable
from types import UnionType
from typing import Any, Union, get_args, get_origin

import acp.schema
import msgspec
from pydantic import TypeAdapter

from acp_agent.protocol import v1
from acp_agent.protocol.base import Leniency, Payload
from acp_agent.protocol.v1.methods import AGENT_METHODS, CANCEL_REQUEST, CLIENT_METHODS, UNSTABLE_AGENT_METHODS

ALL_METHODS = (*AGENT_METHODS, *UNSTABLE_AGENT_METHODS, *CLIENT_METHODS, CANCEL_REQUEST)

OFFICIAL_NAMES = {
    "AudioContent": "AudioContentBlock",
    "AuthMethodTerminal": "TerminalAuthMethod",
    "BooleanPropertySchema": "ElicitationBooleanPropertySchema",
    "CancelledPermissionOutcome": "DeniedOutcome",
    "Content": "ContentToolCallContent",
    "Diff": "FileEditToolCallContent",
    "ElicitationAcceptAction": "AcceptElicitationResponse",
    "ElicitationCancelAction": "CancelElicitationResponse",
    "ElicitationDeclineAction": "DeclineElicitationResponse",
    "EmbeddedResource": "EmbeddedResourceContentBlock",
    "ImageContent": "ImageContentBlock",
    "IntegerPropertySchema": "ElicitationIntegerPropertySchema",
    "McpServerHttp": "HttpMcpServer",
    "McpServerSse": "SseMcpServer",
    "MultiSelectPropertySchema": "ElicitationMultiSelectPropertySchema",
    "NumberPropertySchema": "ElicitationNumberPropertySchema",
    "PermissionToolCall": "ToolCallUpdate",
    "Plan": "AgentPlanUpdate",
    "ResourceLink": "ResourceContentBlock",
    "SelectedPermissionOutcome": "AllowedOutcome",
    "SessionConfigBoolean": "SessionConfigOptionBoolean",
    "SessionConfigSelect": "SessionConfigOptionSelect",
    "StringPropertySchema": "ElicitationStringPropertySchema",
    "Terminal": "TerminalToolCallContent",
    "TextContent": "TextContentBlock",
    "ToolCall": "ToolCallStart",
    "ToolCallUpdate": "ToolCallProgress",
}
"""What the official Python models call the Structs that they do not call as the schema does."""

OFFICIAL_UNIONS = {
    "ElicitationFormMode": ("CreateFormSessionElicitationRequest", "CreateFormRequestElicitationRequest"),
    "ElicitationUrlMode": ("CreateUrlSessionElicitationRequest", "CreateUrlRequestElicitationRequest"),
    "SetSessionConfigOptionRequest": ("SetSessionConfigOptionBooleanRequest", "SetSessionConfigOptionSelectRequest"),
}
"""Structs that the official models split in two, by which fields are there."""

NEWER = {
    "Notice": "session notices, stable since 9 October 2026",
    "NoticeCapabilities": "session notices",
    "CompactionUpdate": "session compaction, stable since 9 October 2026",
    "CompactionSummaryChunk": "session compaction",
    "CompactionCapabilities": "session compaction",
}
"""Structs that schema 1.19, which the official models were made from, does not have, and where they come from."""

NEWER_FIELDS = {
    ("ToolCall", "name"): "tool call names, stable since schema 1.22",
    ("ToolCallUpdate", "name"): "tool call names",
    ("PermissionToolCall", "name"): "tool call names",
    ("ClientSessionCapabilities", "notices"): "session notices",
    ("ClientSessionCapabilities", "compaction"): "session compaction",
}
NEWER_UPDATES = {"notice", "compaction_update", "compaction_summary_chunk"}

UNSTABLE_FIELDS = {
    ("AgentCapabilities", "providers"),
    ("AgentCapabilities", "nes"),
    ("AgentCapabilities", "positionEncoding"),
    ("ClientCapabilities", "plan"),
    ("ClientCapabilities", "nes"),
    ("ClientCapabilities", "positionEncodings"),
    ("McpCapabilities", "acp"),
    ("PromptResponse", "usage"),
}
"""Fields of the official models for features of the unstable protocol that are not spoken here."""


def structs() -> dict[str, type[Payload]]:
    """Every concrete Struct of version 1, by name."""
    pages = [importlib.import_module(f"{v1.__name__}.{page.name}") for page in pkgutil.iter_modules(v1.__path__)]
    found = [value for page in pages for value in vars(page).values() if isinstance(value, type)]
    concrete = [each for each in found if issubclass(each, Payload) and each is not Payload]
    return {each.__name__: each for each in concrete if each.__name__ not in ("_Scoped", "ContentChunk")}


def fields(struct: type[Payload]) -> dict[str, bool]:
    """The names on the wire, and whether they are required; the tag is a field like others."""
    tag = {str(struct.__struct_config__.tag_field): True} if struct.__struct_config__.tag else {}
    return tag | {each.encode_name: each.required for each in msgspec.structs.fields(struct)}


def leniency(struct: type[Payload]) -> dict[str, Leniency]:
    """The mark of each field that has one."""
    marks = {each.encode_name: getattr(each.type, "__metadata__", ()) for each in msgspec.structs.fields(struct)}
    return {name: mark for name, found in marks.items() for mark in found if isinstance(mark, Leniency)}


def members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


@functools.cache
def official_reader(struct: type[Payload]) -> Callable[[Any], Any]:
    """Reads JSON as the official model, and gives back what it understood of it. Raises pydantic's error."""
    names = OFFICIAL_UNIONS.get(struct.__name__) or (OFFICIAL_NAMES.get(struct.__name__, struct.__name__),)
    adapter: TypeAdapter[Any] = TypeAdapter(
        functools.reduce(operator.or_, (getattr(acp.schema, name) for name in names))
    )

    def read(payload: Any) -> Any:
        model = adapter.validate_python(payload)
        return adapter.dump_python(model, mode="json", by_alias=True, exclude_unset=True)

    return read

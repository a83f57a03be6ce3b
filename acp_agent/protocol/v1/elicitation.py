"""Asking the user: `elicitation/create` with a form or a web page, `elicitation/complete`.

Source: https://agentclientprotocol.com/protocol/elicitation. Its sets are open: what is unknown is kept as it came, as
a dict, and never acted on; what is known must be right.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import UNSET, UnsetType, field

from acp_agent.protocol.base import Lenient, OneOf, Payload, Sifted, UInt32, UInt64
from acp_agent.protocol.v1.cancellation import RequestId

__all__ = [
    "BooleanPropertySchema",
    "CompleteElicitationNotification",
    "CreateElicitationRequest",
    "CreateElicitationResponse",
    "ElicitationAcceptAction",
    "ElicitationCancelAction",
    "ElicitationCapabilities",
    "ElicitationContentValue",
    "ElicitationDeclineAction",
    "ElicitationFormCapabilities",
    "ElicitationFormMode",
    "ElicitationPropertySchema",
    "ElicitationSchema",
    "ElicitationUrlCapabilities",
    "ElicitationUrlMode",
    "EnumOption",
    "IntegerPropertySchema",
    "MultiSelectItems",
    "MultiSelectPropertySchema",
    "NumberPropertySchema",
    "StringFormat",
    "StringMultiSelectItems",
    "StringPropertySchema",
    "TitledMultiSelectItems",
    "UnknownElicitationAction",
    "UnknownElicitationMode",
    "UnknownMultiSelectItems",
    "UnknownPropertySchema",
]

StringFormat: TypeAlias = Literal["email", "uri", "date", "date-time"]
ElicitationContentValue: TypeAlias = str | int | float | bool | list[str]


class ElicitationFormCapabilities(Payload, kw_only=True):
    """The client shows forms."""


class ElicitationUrlCapabilities(Payload, kw_only=True):
    """The client opens web pages."""


class ElicitationCapabilities(Payload, kw_only=True):
    """How the client can ask its user; `{}` is in no way."""

    form: Lenient[ElicitationFormCapabilities | None] = None
    url: Lenient[ElicitationUrlCapabilities | None] = None


class ElicitationPropertySchema(OneOf):
    """One field of a form, by its `type`."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: dict[str, Any]) -> type[Payload | UnknownPropertySchema]:
        match value.get("type"):
            case "string":
                return StringPropertySchema
            case "number":
                return NumberPropertySchema
            case "integer":
                return IntegerPropertySchema
            case "boolean":
                return BooleanPropertySchema
            case "array":
                return MultiSelectPropertySchema
            case str():
                return UnknownPropertySchema
            case _:
                raise ValueError("A property has a `type`, which is a string")


class UnknownPropertySchema(ElicitationPropertySchema, dict[str, Any]):
    """A field of a later protocol, as it came."""


class EnumOption(Payload, kw_only=True):
    """A value with the name that the user sees."""

    const: str
    title: str
    description: Lenient[str | None] = None


class StringPropertySchema(Payload, ElicitationPropertySchema, kw_only=True, tag_field="type", tag="string"):
    """A text, or one of a few (`enum`, or `one_of` with names). Lengths are in characters."""

    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    min_length: UInt32 | None = None
    max_length: UInt32 | None = None
    pattern: str | None = None
    format: StringFormat | None = None
    default: Lenient[str | None] = None
    enum: list[str] | None = None
    one_of: list[EnumOption] | None = None


class NumberPropertySchema(Payload, ElicitationPropertySchema, kw_only=True, tag_field="type", tag="number"):
    """A number."""

    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    minimum: float | None = None
    maximum: float | None = None
    default: Lenient[float | None] = None


class IntegerPropertySchema(Payload, ElicitationPropertySchema, kw_only=True, tag_field="type", tag="integer"):
    """A whole number."""

    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    minimum: int | None = None
    maximum: int | None = None
    default: Lenient[int | None] = None


class BooleanPropertySchema(Payload, ElicitationPropertySchema, kw_only=True, tag_field="type", tag="boolean"):
    """A tick."""

    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    default: Lenient[bool | None] = None


class MultiSelectItems(OneOf):
    """What a multi-select offers: plain strings by `type`, or values with names."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: dict[str, Any]) -> type[Payload | UnknownMultiSelectItems]:
        match value.get("type"):
            case "string":
                return StringMultiSelectItems
            case str():
                return UnknownMultiSelectItems
            case _:
                return TitledMultiSelectItems


class UnknownMultiSelectItems(MultiSelectItems, dict[str, Any]):
    """Items of a later protocol, as they came."""


class StringMultiSelectItems(Payload, MultiSelectItems, kw_only=True, tag_field="type", tag="string"):
    """Values that are their own names."""

    enum: list[str]


class TitledMultiSelectItems(Payload, MultiSelectItems, kw_only=True):
    """Values with names."""

    any_of: list[EnumOption]


class MultiSelectPropertySchema(Payload, ElicitationPropertySchema, kw_only=True, tag_field="type", tag="array"):
    """Some of a few."""

    items: MultiSelectItems
    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    min_items: UInt64 | None = None
    max_items: UInt64 | None = None
    default: Sifted[list[str] | None] = None


class ElicitationSchema(Payload, kw_only=True, tag_field="type", tag="object"):
    """A form: fields by name. Its `type`, always `object`, is always sent."""

    properties: dict[str, ElicitationPropertySchema] = field(default_factory=dict)
    required: list[str] | None = None
    title: Lenient[str | None] = None
    description: Lenient[str | None] = None


class CreateElicitationRequest(OneOf):
    """A question to the user, by its `mode`.

    It belongs to a session (`session_id`, perhaps to one of its tool calls) or to a request of the client's that is
    still open (`request_id`, while signing in, say).
    """

    __slots__ = ()

    @classmethod
    def choose(cls, value: dict[str, Any]) -> type[Payload | UnknownElicitationMode]:
        match value.get("mode"):
            case "form":
                return ElicitationFormMode
            case "url":
                return ElicitationUrlMode
            case str():
                return UnknownElicitationMode
            case _:
                raise ValueError("An elicitation has a `mode`, which is a string")


class UnknownElicitationMode(CreateElicitationRequest, dict[str, Any]):
    """A question of a later protocol, as it came."""


class _Scoped(Payload, kw_only=True):
    """What both modes have: the words, and where the question belongs."""

    message: str
    session_id: str | UnsetType = UNSET
    tool_call_id: Lenient[str | None] = None
    request_id: RequestId | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.session_id is UNSET and self.request_id is UNSET:
            raise ValueError("An elicitation has a `sessionId` or a `requestId`")


class ElicitationFormMode(_Scoped, CreateElicitationRequest, kw_only=True, tag_field="mode", tag="form"):
    """Fill in a form. Never for secrets."""

    requested_schema: ElicitationSchema


class ElicitationUrlMode(_Scoped, CreateElicitationRequest, kw_only=True, tag_field="mode", tag="url"):
    """Open a web page; `elicitation/complete` says when that is done."""

    elicitation_id: str
    url: str


class CreateElicitationResponse(OneOf):
    """What the user did, by its `action`."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: dict[str, Any]) -> type[Payload | UnknownElicitationAction]:
        match value.get("action"):
            case "accept":
                return ElicitationAcceptAction
            case "decline":
                return ElicitationDeclineAction
            case "cancel":
                return ElicitationCancelAction
            case str():
                return UnknownElicitationAction
            case _:
                raise ValueError("An answer has an `action`, which is a string")


class ElicitationAcceptAction(Payload, CreateElicitationResponse, kw_only=True, tag_field="action", tag="accept"):
    """The user answered; check `content` against the form again."""

    content: dict[str, ElicitationContentValue] | None = None


class ElicitationDeclineAction(Payload, CreateElicitationResponse, kw_only=True, tag_field="action", tag="decline"):
    """The user said no."""


class ElicitationCancelAction(Payload, CreateElicitationResponse, kw_only=True, tag_field="action", tag="cancel"):
    """The user said nothing."""


class UnknownElicitationAction(CreateElicitationResponse, dict[str, Any]):
    """An answer of a later protocol, as it came; to be treated as cancel."""


class CompleteElicitationNotification(Payload, kw_only=True):
    """What was to be done on the web page is done."""

    elicitation_id: str

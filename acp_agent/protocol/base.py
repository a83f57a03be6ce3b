"""What both protocol versions' Structs stand on: marks of leniency, unions chosen by hand, `decode` and `encode`.

The rule it owns: an ordinary message is one strict C call. Only when that fails is the message read again, field by
field, by `protocol.repair`, which forgives exactly what the marks on the fields say and nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import Flag, auto
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct, field

__all__ = [
    "Leniency",
    "Lenient",
    "NamedValues",
    "OneOf",
    "OrEmpty",
    "Payload",
    "Sifted",
    "UInt16",
    "UInt32",
    "UInt64",
    "UnknownIs",
    "decode",
    "encode",
]

T = TypeVar("T")
P = TypeVar("P", bound="Payload | OneOf")


class Leniency(Flag):
    """What is forgiven in one field; without a mark a wrong value fails the message."""

    DEFAULT_ON_ERROR = auto()
    SKIP_BAD_ITEMS = auto()
    EMPTY_WHEN_NULL = auto()
    TAKE_OBJECT = auto()


class UnknownIs(Struct, frozen=True):
    """A mark: a string outside the closed set reads as `value`."""

    value: str


Lenient: TypeAlias = Annotated[T, Leniency.DEFAULT_ON_ERROR]
"""Null or a wrong type reads as the field's default."""

Sifted: TypeAlias = Annotated[T, Leniency.DEFAULT_ON_ERROR | Leniency.SKIP_BAD_ITEMS]
"""A list whose bad items are dropped; null or no list at all reads as the default (empty, when it is required)."""

OrEmpty: TypeAlias = Annotated[T, Leniency.EMPTY_WHEN_NULL]
"""A list or map that reads as empty when it is null or left out; its items are strict."""

NamedValues: TypeAlias = Annotated[T, Leniency.EMPTY_WHEN_NULL | Leniency.TAKE_OBJECT]
"""As `OrEmpty`, for a list of `{name, value}`; an object `{name: value}` is taken too."""

UInt16: TypeAlias = Annotated[int, Meta(ge=0, le=0xFFFF)]
UInt32: TypeAlias = Annotated[int, Meta(ge=0, le=0xFFFFFFFF)]
UInt64: TypeAlias = Annotated[int, Meta(ge=0)]


class Payload(Struct, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """An object on the wire. What is None or UNSET is not sent; unknown keys are ignored.

    Payloads are trees, never part of a cycle, so the garbage collector need not look at them.
    """

    meta: Lenient[dict[str, Any] | None] = field(default=None, name="_meta")


class OneOf:
    """A union whose members share no tag that msgspec could go by. The members are its subclasses."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: dict[str, Any]) -> type[Struct | dict[str, Any]]:
        """Which member the JSON object `value` is: a `Payload`, or a `dict` for one that is kept as it came.

        Raises `ValueError` when it can be none.
        """
        raise NotImplementedError


def decode(
    raw: bytes | bytearray | memoryview | Raw | None, type_: type[P], on_repair: Callable[[str], None] | None = None
) -> P:
    """Read one JSON value as `type_`; none, empty or null reads as `{}`.

    `on_repair` is told, in a sentence that names the path, of each thing that was forgiven.
    Raises `DecodeError` with the path of what cannot be.
    """
    key: type = type_  # mypy takes the class of an unhashable instance for unhashable itself
    try:
        value: P = _decoder(key).decode(b"{}" if raw is None else raw)
    except (msgspec.DecodeError, RecursionError):
        from acp_agent.protocol.repair import read

        return read(b"" if raw is None else raw, type_, on_repair)
    return value


def encode(value: Payload) -> bytes:
    """`value` as one line of JSON, without the newline."""
    return msgspec.json.encode(value)


@functools.cache
def _decoder(type_: type) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_, dec_hook=_read_one_of)


def _read_one_of(type_: type[OneOf], value: Any) -> Any:
    """msgspec asks here for each `OneOf`."""
    if not isinstance(value, dict):
        raise ValueError("Expected `object`")
    member = type_.choose(value)
    return msgspec.convert(value, member, dec_hook=_read_one_of) if issubclass(member, Struct) else member(value)

"""What both protocol versions' Structs stand on: marks of leniency, and unions chosen by hand."""

from __future__ import annotations

from enum import Flag, auto
from typing import Annotated, Any, TypeAlias, TypeVar

from msgspec import Meta, Struct, field

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
]

T = TypeVar("T")


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

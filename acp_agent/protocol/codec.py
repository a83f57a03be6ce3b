"""JSON to Structs and back.

The rule it owns: an ordinary message is one strict C call. Only when that fails is the message read again, field by
field, by `protocol.repair`, which forgives exactly what the marks on the fields say and nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from acp_agent.protocol.base import OneOf, Payload

__all__ = ["decode", "encode"]

P = TypeVar("P", bound="Payload | OneOf")


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

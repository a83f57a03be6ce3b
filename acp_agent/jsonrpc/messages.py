"""The JSON-RPC 2.0 message: an envelope that is judged here, around payloads that stay raw.

Reading is cheap for a good line and thorough for a bad one: what a `Defect` says is found out in a second look.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from acp_agent.errors import INTERNAL_ERROR, RequestError

__all__ = ["Defect", "ErrorObject", "Message", "id_key", "read_error", "read_message"]

_UTF8_STEP = 64 * 1024

# Any escape but that of a plain character; the group is half of a surrogate pair on its own.
_ESCAPE = re.compile(rb"\\(?:[^u]|u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..))")


class Message(Struct, gc=False):
    """What was in the object, `UNSET` where nothing was. The raw members share the memory of their line."""

    id: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Defect(Struct):
    """A line that is no message: the error to answer with, and the id to say (`null` where none could be read)."""

    error: RequestError
    id: bytes = b"null"


class ErrorObject(Struct, omit_defaults=True):
    """`error` of a response."""

    code: int
    message: str
    data: Any = None


_decode_message = msgspec.json.Decoder(Message).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_check_syntax = msgspec.json.Decoder(Raw).decode


def read_message(line: bytes | bytearray) -> Message | Defect:
    """A line is UTF-8 JSON of one object, or it has a defect. Unknown members are ignored, `jsonrpc` among them."""
    if not line.isascii() and not _is_utf8(line):
        return Defect(RequestError.parse_error("The line is not valid UTF-8."))
    try:
        message = _decode_message(line)
    except msgspec.ValidationError:
        return _find_defect(line)
    except msgspec.DecodeError as problem:
        return _read_again(line, problem)
    except RecursionError:
        return Defect(RequestError.parse_error("The line is nested too deeply."))
    if message.id is not UNSET and not _is_id(bytes(message.id)):
        return Defect(RequestError.invalid_request("`id` must be a string, a number or null."))
    return message


def _read_again(line: bytes | bytearray, problem: msgspec.DecodeError) -> Message | Defect:
    """JSON may escape half of a surrogate pair (a text cut in the middle of an emoji); msgspec refuses such a line."""
    mended = _ESCAPE.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], line)
    return Defect(RequestError.parse_error(f"{problem}.")) if mended == line else read_message(mended)


def _find_defect(line: bytes | bytearray) -> Defect:
    """Why a line that may be JSON is not a message."""
    try:
        _check_syntax(line)
        members = _decode_members(line)
    except msgspec.ValidationError:
        return Defect(RequestError.invalid_request(_not_an_object(line)))
    except msgspec.DecodeError as problem:
        return Defect(RequestError.parse_error(f"{problem}."))
    except RecursionError:
        return Defect(RequestError.parse_error("The line is nested too deeply."))
    id = bytes(members.get("id", b"null"))
    return Defect(RequestError.invalid_request("`method` must be a string."), id if _is_id(id) else b"null")


def _not_an_object(line: bytes | bytearray) -> str:
    if line.lstrip().startswith(b"["):
        return "Batches are not supported: send each message on a line of its own."
    return "A message is a JSON object."


def _is_utf8(line: bytes | bytearray) -> bool:
    """Checked in steps, so that a long line is not in memory a second time."""
    view, position = memoryview(line), 0
    try:
        while position < len(view):
            last = position + _UTF8_STEP >= len(view)
            position += codecs.utf_8_decode(view[position : position + _UTF8_STEP], "strict", last)[1]
    except UnicodeDecodeError:
        return False
    return True


def _is_id(raw: bytes) -> bool:
    return raw[:1] in b'"-0123456789' or raw == b"null"


def id_key(raw: bytes) -> bytes:
    """One key for all spellings of an id: `"a"` and `"\\u0061"`, `3` and `3.0`. `3` and `"3"` are different ids."""
    if raw.isdigit() or (raw.startswith(b'"') and b"\\" not in raw):
        return raw
    try:
        value = msgspec.json.decode(raw)
    except msgspec.DecodeError:  # a number that no float can hold
        return raw
    if isinstance(value, float):
        return str(int(value)).encode() if value.is_integer() else raw
    return msgspec.json.encode(value)


class _LooseError(Struct):
    code: Any = None
    message: Any = None
    data: Any = None


def read_error(raw: Raw) -> RequestError:
    """The peer's error, as far as it can be made out: some send a bare string."""
    try:
        error = msgspec.json.decode(raw, type=_LooseError)
    except (msgspec.DecodeError, RecursionError):
        return RequestError(INTERNAL_ERROR, "The error could not be read")
    code = error.code if type(error.code) is int else INTERNAL_ERROR
    return RequestError(code, error.message if isinstance(error.message, str) else "Unknown error", error.data)

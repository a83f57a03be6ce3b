"""The second reading of a message that the strict one refused: field by field, forgiving what the marks allow.

Rare, so written for clarity: it walks the Structs' own annotations. It also gives the exact path of what is wrong,
and reads text that is not Unicode (lone surrogates, bad UTF-8) with U+FFFD in its place.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, NoReturn, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Struct, UnsetType

from acp_agent.content import clean_json
from acp_agent.errors import DecodeError
from acp_agent.protocol.base import Leniency, OneOf, UnknownIs

__all__ = ["read"]

T = TypeVar("T")

NO_LENIENCY = Leniency(0)


def read(
    raw: bytes | bytearray | memoryview | msgspec.Raw, type_: type[T], on_repair: Callable[[str], None] | None = None
) -> T:
    """What `protocol.codec.decode` does, without the fast path. Raises `DecodeError`."""
    reader = _Reader(on_repair or (lambda problem: None))
    try:
        value = _parse(bytes(memoryview(raw)))
        result: T = reader.read({} if value is None else value, type_, "$")
    except RecursionError:
        raise DecodeError("JSON is nested too deeply") from None
    return result


def _parse(data: bytes) -> Any:
    if not data.strip():
        return {}
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return _parse_unclean(data)


def _parse_unclean(data: bytes) -> Any:
    """The standard library reads a lone surrogate, where msgspec refuses it."""
    try:
        return clean_json(json.loads(data.decode(errors="replace"), parse_constant=_refuse_constant))
    except ValueError as error:
        raise DecodeError(f"JSON is malformed: {error}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class _Field(Struct, frozen=True):
    """One field of a Struct, with its marks taken out of its annotation."""

    attribute: str
    name: str
    hint: Any
    required: bool
    leniency: Leniency
    unknown: str | None
    make_default: Callable[[], Any]


@functools.cache
def _fields(type_: type[Struct]) -> tuple[_Field, ...]:
    return tuple(_field(info) for info in msgspec.structs.fields(type_))


def _field(info: msgspec.structs.FieldInfo) -> _Field:
    marks = info.type.__metadata__ if get_origin(info.type) is Annotated else ()
    return _Field(
        attribute=info.name,
        name=info.encode_name,
        hint=info.type,
        required=info.required,
        leniency=next((mark for mark in marks if isinstance(mark, Leniency)), NO_LENIENCY),
        unknown=next((mark.value for mark in marks if isinstance(mark, UnknownIs)), None),
        make_default=_make_default(info),
    )


def _make_default(info: msgspec.structs.FieldInfo) -> Callable[[], Any]:
    """A required field has a default only for repairs, and only lists are repaired so."""
    if info.default_factory is not NODEFAULT:
        factory: Callable[[], Any] = info.default_factory
        return factory
    return list if info.default is NODEFAULT else (lambda: info.default)


class _Reader:
    """Reads JSON values as what a hint says. `at` is the path of the value in the message."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report

    def read(self, value: Any, hint: Any, at: str) -> Any:
        bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        if isinstance(bare, type) and issubclass(bare, Struct):
            return self._read_struct(_expect(value, dict, at), bare, at)
        if isinstance(bare, type) and issubclass(bare, OneOf):
            return self._read_one_of(_expect(value, dict, at), bare, at)
        origin, arguments = get_origin(bare), get_args(bare)
        if origin in (Union, UnionType):
            return self._read_union(value, hint, arguments, at)
        if origin is list:
            return [self.read(each, arguments[0], f"{at}[{n}]") for n, each in enumerate(_expect(value, list, at))]
        if origin is dict:
            return {key: self.read(each, arguments[1], f"{at}.{key}") for key, each in _expect(value, dict, at).items()}
        return _read_leaf(value, hint, at)

    def _read_one_of(self, value: dict[str, Any], union: type[OneOf], at: str) -> Any:
        try:
            member = union.choose(value)
        except ValueError as error:
            raise DecodeError(str(error), at) from None
        return self.read(value, member, at) if issubclass(member, Struct) else member(value)

    def _read_struct(self, source: dict[str, Any], type_: type[Struct], at: str) -> Struct:
        values = {each.attribute: self._read_field(source, each, f"{at}.{each.name}") for each in _fields(type_)}
        try:
            return type_(**values)
        except ValueError as error:  # from a __post_init__
            raise DecodeError(str(error), at) from None

    def _read_field(self, source: dict[str, Any], of: _Field, at: str) -> Any:
        if of.name not in source:
            return self._default_for_missing(of, at)
        value = source[of.name]
        if value is None and of.leniency and not _takes_none(of.hint):
            return self._default_for_null(of, at)
        if isinstance(value, dict) and Leniency.TAKE_OBJECT in of.leniency:
            self._report(f"{at}: an object was taken for a list")
            value = [{"name": name, "value": each} for name, each in value.items()]
        try:
            if isinstance(value, list) and Leniency.SKIP_BAD_ITEMS in of.leniency:
                return self._sift(value, of.hint, at)
            return self.read(value, of.hint, at)
        except DecodeError as error:
            if Leniency.DEFAULT_ON_ERROR not in of.leniency:
                raise
            self._report(f"{error.path}: {error.problem}; ignored")
            return of.unknown if of.unknown is not None and isinstance(value, str) else of.make_default()

    def _default_for_missing(self, of: _Field, at: str) -> Any:
        if of.required and Leniency.EMPTY_WHEN_NULL not in of.leniency:
            raise DecodeError("A required field is missing", at)
        if of.required:
            self._report(f"{at}: missing; taken as empty")
        return of.make_default()

    def _default_for_null(self, of: _Field, at: str) -> Any:
        if of.required:
            self._report(f"{at}: null; taken as empty")
        return of.make_default()

    def _sift(self, values: list[Any], hint: Any, at: str) -> list[Any]:
        item = _item_of(hint)
        kept = []
        for n, value in enumerate(values):
            try:
                kept.append(self.read(value, item, f"{at}[{n}]"))
            except DecodeError as error:
                self._report(f"{error.path}: {error.problem}; {at}[{n}] was dropped")
        return kept

    def _read_union(self, value: Any, hint: Any, members: tuple[Any, ...], at: str) -> Any:
        if value is None and NoneType in members:
            return None
        members = tuple(member for member in members if member not in (NoneType, UnsetType))
        if len(members) == 1:
            return self.read(value, members[0], at)
        if all(isinstance(member, type) and issubclass(member, Struct) for member in members):
            return self.read(value, _choose_by_tag(_expect(value, dict, at), members, at), at)
        return _read_leaf(value, hint, at)


def _choose_by_tag(value: dict[str, Any], members: tuple[type[Struct], ...], at: str) -> type[Struct]:
    """A known tag settles it: its payload must then fit, nothing else is tried."""
    tag_field = str(members[0].__struct_config__.tag_field)
    if tag_field not in value:
        raise DecodeError("A required field is missing", f"{at}.{tag_field}")
    for member in members:
        if member.__struct_config__.tag == value[tag_field]:
            return member
    raise DecodeError(f"Unknown value {value[tag_field]!r:.80}", f"{at}.{tag_field}")


def _read_leaf(value: Any, hint: Any, at: str) -> Any:
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        problem, _, inner = str(error).partition(" - at `$")
        raise DecodeError(problem, at + inner.removesuffix("`")) from None


def _expect(value: Any, kind: type[T], at: str) -> T:
    if not isinstance(value, kind):
        raise DecodeError(f"Expected `{_json_name(kind)}`, got `{_json_name(type(value))}`", at)
    return value


def _json_name(kind: type) -> str:
    return {dict: "object", list: "array", NoneType: "null"}.get(kind, kind.__name__)


def _takes_none(hint: Any) -> bool:
    return NoneType in _members(hint)


def _item_of(hint: Any) -> Any:
    """`X` of a `list[X]`, alone or in a union."""
    return next(get_args(member)[0] for member in _members(hint) if get_origin(member) is list)


def _members(hint: Any) -> tuple[Any, ...]:
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return get_args(bare) if get_origin(bare) in (Union, UnionType) else (bare,)

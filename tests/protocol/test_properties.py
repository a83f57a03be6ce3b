"""Whatever can be said with the Structs, the official models understand, and we read back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Meta, UnsetType

from acp_agent.protocol.base import OneOf, Payload
from acp_agent.protocol.codec import decode, encode
from acp_agent.protocol.v1 import elicitation, prompt_turn, session_config_options, tool_calls
from acp_agent.protocol.v1.methods import Method
from tests.protocol.inventory import ALL_METHODS, NEWER, NEWER_FIELDS, NEWER_UPDATES, members, official_reader

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
INT64 = st.integers(-(2**63), 2**63 - 1)

LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: INT64,
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    NoneType: st.none(),
    UnsetType: st.just(UNSET),
    Any: JSON,
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """What a field with this annotation may hold."""
    if get_origin(hint) is Annotated:
        bare, *marks = get_args(hint)
        bounds = next((mark for mark in marks if isinstance(mark, Meta)), None)
        return st.integers(bounds.ge, bounds.le or 2**63 - 1) if bounds else values(bare)
    if hint in LEAVES:
        return LEAVES[hint]
    if isinstance(hint, type) and issubclass(hint, OneOf) and not issubclass(hint, Payload):
        return one_of(hint)
    if isinstance(hint, type) and issubclass(hint, Payload):
        return payloads(hint)
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) is list:
        return lists(get_args(hint)[0])
    if get_origin(hint) is dict:
        return st.dictionaries(TEXT, values(get_args(hint)[1]), max_size=2)
    return st.one_of([values(member) for member in said(members(hint))])


def said(union: tuple[Any, ...]) -> list[Any]:
    return [each for each in union if getattr(each, "__name__", "") not in NEWER]


def one_of(union: type[OneOf]) -> st.SearchStrategy[Any]:
    return st.one_of([payloads(each) for each in union.__subclasses__() if issubclass(each, Payload)])


def lists(item: Any) -> st.SearchStrategy[list[Any]]:
    """A select's choices are all of one sort."""
    if item is session_config_options.SessionConfigSelectChoice:
        return st.one_of([st.lists(payloads(each), max_size=2) for each in item.__subclasses__()])
    return st.lists(values(item), max_size=2)


@functools.cache
def payloads(struct: type[Payload]) -> st.SearchStrategy[Any]:
    if struct in SPECIAL:
        return SPECIAL[struct]()
    return built(struct)


def built(struct: type[Payload], **given_values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    unsaid = {name for owner, name in NEWER_FIELDS if owner == struct.__name__}
    spoken = [each for each in msgspec.structs.fields(struct) if each.encode_name not in unsaid]
    strategies = {each.name: values(each.type) for each in spoken if each.name not in given_values}
    return st.builds(struct, **(strategies | given_values))


def set_option() -> st.SearchStrategy[Any]:
    request = session_config_options.SetSessionConfigOptionRequest
    word = built(request, value=TEXT, type=st.none())
    return word | built(request, value=st.booleans(), type=st.just("boolean"))


def option(struct: type[Payload]) -> st.SearchStrategy[Any]:
    """The official models lose a category that is none of the known words, which the schema allows."""
    return built(struct, category=st.none() | st.sampled_from(["mode", "model", "model_config", "thought_level"]))


def form() -> st.SearchStrategy[Any]:
    in_session = built(elicitation.ElicitationFormMode, session_id=TEXT, request_id=st.just(UNSET))
    return in_session | built(
        elicitation.ElicitationFormMode, session_id=st.just(UNSET), tool_call_id=st.none(), request_id=INT64 | TEXT
    )


def web_page() -> st.SearchStrategy[Any]:
    return built(
        elicitation.ElicitationUrlMode,
        session_id=TEXT,
        request_id=st.just(UNSET),
        url=st.just("https://example.com/login"),
    )


SPECIAL: dict[type[Payload], Callable[[], st.SearchStrategy[Any]]] = {
    session_config_options.SetSessionConfigOptionRequest: set_option,
    session_config_options.SessionConfigSelect: lambda: option(session_config_options.SessionConfigSelect),
    session_config_options.SessionConfigBoolean: lambda: option(session_config_options.SessionConfigBoolean),
    tool_calls.CancelledPermissionOutcome: lambda: st.just(tool_calls.CancelledPermissionOutcome()),  # has no `_meta`
    elicitation.ElicitationFormMode: form,
    elicitation.ElicitationUrlMode: web_page,
}


def messages(method: Method) -> st.SearchStrategy[Any]:
    return st.one_of([values(each) for each in (method.params, method.result) if each is not None])


@pytest.mark.parametrize("method", ALL_METHODS, ids=lambda method: method.name)
def test_what_we_say_is_understood_by_the_official_models_and_by_us(method: Method) -> None:
    @settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(messages(method))
    def check(message: Any) -> None:
        sent = encode(message)
        plain = msgspec.json.decode(sent)
        assert official_reader(type(message))(plain) == plain
        type_ = method.params if isinstance(message, method.params) else method.result
        assert type_ is not None
        again = decode(sent, type_)
        assert isinstance(again, Payload)
        assert encode(again) == sent

    check()


def test_only_the_newer_updates_are_left_out_of_the_comparison() -> None:
    left_out = {each for each in get_args(prompt_turn.SessionUpdate) if each.__name__ in NEWER}
    assert {each.__struct_config__.tag for each in left_out} == NEWER_UPDATES

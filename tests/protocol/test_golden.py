"""Messages written by hand from the spec: we read each and write it back the same, and the official models read it so.

A file is a page of the spec, an entry an exchange: a method, its params, and its result if it has one. `newer` says
that the official models do not know it yet.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from acp_agent.protocol.base import OneOf, Payload
from acp_agent.protocol.codec import decode, encode
from acp_agent.protocol.v1.prompt_turn import SessionUpdate
from tests.protocol.inventory import ALL_METHODS, official_reader

METHODS = {method.name: method for method in ALL_METHODS}
EXCHANGES = [
    pytest.param(exchange, id=f"{page.stem}: {exchange['title']}")
    for page in sorted((Path(__file__).parent / "golden" / "v1").glob("*.json"))
    for exchange in json.loads(page.read_bytes())
]


def messages(exchange: dict[str, Any]) -> list[tuple[type[Payload | OneOf], Any]]:
    method = METHODS[exchange["method"]]
    found: list[tuple[type[Payload | OneOf], Any]] = [(method.params, exchange["params"])]
    if "result" in exchange:
        assert method.result is not None
        found.append((method.result, exchange["result"]))
    return found


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_a_message_is_read_without_repair_and_written_back_the_same(exchange: dict[str, Any]) -> None:
    for type_, golden in messages(exchange):
        repairs: list[str] = []
        value = decode(json.dumps(golden).encode(), type_, repairs.append)
        assert isinstance(value, Payload)
        assert json.loads(encode(value)) == golden
        assert repairs == []


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_the_slow_reading_of_a_message_is_the_same(exchange: dict[str, Any]) -> None:
    for type_, golden in messages(exchange):
        with_a_bad_meta = golden | {"_meta": 3}
        repairs: list[str] = []
        value = decode(json.dumps(with_a_bad_meta).encode(), type_, repairs.append)
        assert isinstance(value, Payload)
        assert json.loads(encode(value)) == {key: each for key, each in golden.items() if key != "_meta"}
        assert repairs == ["$._meta: Expected `object`, got `int`; ignored"]


@pytest.mark.parametrize("exchange", [each for each in EXCHANGES if "newer" not in each.values[0]])
def test_the_official_models_read_a_message_as_it_is_meant(exchange: dict[str, Any]) -> None:
    for type_, golden in messages(exchange):
        value = decode(json.dumps(golden).encode(), type_)
        assert official_reader(type(value))(golden) == golden


def test_every_method_has_a_golden_exchange() -> None:
    covered = {each.values[0]["method"] for each in EXCHANGES if "result" in each.values[0]}
    assert covered == {method.name for method in ALL_METHODS if method.result is not None}
    assert {each.values[0]["method"] for each in EXCHANGES} == METHODS.keys()


def test_every_update_has_a_golden_message() -> None:
    updates = [each.values[0]["params"].get("update", {}) for each in EXCHANGES]
    assert {update.get("sessionUpdate") for update in updates} - {None} == {
        member.__struct_config__.tag for member in get_args(SessionUpdate)
    }

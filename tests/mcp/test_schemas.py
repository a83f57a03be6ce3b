"""A server's schemas, as models get them and as arguments are checked by them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from acp_agent.json_schema import inline_references
from acp_agent.mcp.schemas import ArgumentCheck

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node", "description": "The root."}},
    "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "name": {"type": "string"}}}},
}


def test_references_are_put_in_place_and_one_to_itself_takes_anything() -> None:
    schema = inline_references(TREE)
    assert "$ref" not in json.dumps(schema)
    root = schema["properties"]["root"]
    assert root["description"] == "The root."
    assert root["properties"] == {"next": {}, "name": {"type": "string"}}


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"$ref": "#/nowhere"}, {"$ref": "https://example.org/s"}])
def test_a_schema_is_an_object_whatever_the_server_says(schema: dict[str, Any]) -> None:
    assert inline_references(schema) == {"type": "object", "properties": {}}


def test_a_schema_that_would_explode_is_bounded() -> None:
    definitions = {
        f"d{level}": {"properties": {side: {"$ref": f"#/$defs/d{level + 1}"} for side in "abcdefgh"}}
        for level in range(12)
    }
    schema = inline_references({"$defs": definitions, "$ref": "#/$defs/d0"})
    assert len(json.dumps(schema)) < 500_000


def test_arguments_are_checked_by_the_schema_as_the_server_wrote_it() -> None:
    check = ArgumentCheck(TREE)
    assert check.problem({"root": {"next": {"name": "leaf"}}}) is None
    assert check.problem({"root": {"next": {"name": 3}}}) == "3 is not of type 'string' (at $.root.next.name)"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"$ref": "https://example.org/never-fetched"}}},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
    ],
)
def test_a_schema_that_cannot_be_used_leaves_the_judgement_to_the_server(schema: dict[str, Any]) -> None:
    assert ArgumentCheck(schema).problem({"a": "b"}) is None

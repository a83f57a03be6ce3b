"""The same comparison with the JSON Schema, which also says what a reader forgives. Skipped where it is not at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from acp_agent.protocol.base import Leniency
from acp_agent.protocol.v1 import agent_plan, content, elicitation, prompt_turn, tool_calls
from tests.protocol.inventory import ALL_METHODS, fields, leniency, structs

SCHEMA = Path(__file__).parents[3] / "shared" / "schema" / "v1" / "schema.json"

pytestmark = pytest.mark.skipif(not SCHEMA.exists(), reason="the JSON Schema is not at hand")

STRUCTS = structs()
UNSTABLE = {"ForkSessionRequest", "ForkSessionResponse", "SessionForkCapabilities"}

SCHEMA_NAMES = {
    "AgentMessageChunk": ("ContentChunk",),
    "AgentThoughtChunk": ("ContentChunk",),
    "UserMessageChunk": ("ContentChunk",),
    "CancelledPermissionOutcome": (),
    "ElicitationCancelAction": (),
    "ElicitationDeclineAction": (),
    "ElicitationFormMode": ("CreateElicitationRequest", "ElicitationFormMode"),
    "ElicitationUrlMode": ("CreateElicitationRequest", "ElicitationUrlMode"),
    "PermissionToolCall": ("ToolCallUpdate",),
    "SessionConfigBoolean": ("SessionConfigOption", "SessionConfigBoolean"),
    "SessionConfigSelect": ("SessionConfigOption", "SessionConfigSelect"),
}
"""Which definitions a Struct is put together from, where it is not the one of its own name."""

SCOPE = {"sessionId": False, "requestId": False, "toolCallId": False}
VALUE = {"value": True, "type": False}
EXTRA_FIELDS = {
    "ElicitationFormMode": SCOPE,
    "ElicitationUrlMode": SCOPE,
    "SetSessionConfigOptionRequest": VALUE,
    "SessionCapabilities": {"fork": False},
}
"""Fields that a definition takes from the alternatives inside it, and the one that is unstable."""

NOT_COMPARED = {
    ("ElicitationSchema", "type"),  # our tag: whatever is there reads as `object`
    ("ToolCall", "rawInput"),  # any JSON: nothing is wrong that could be forgiven
    ("ToolCall", "rawOutput"),
    ("ToolCallUpdate", "rawInput"),
    ("ToolCallUpdate", "rawOutput"),
    ("PermissionToolCall", "rawInput"),
    ("PermissionToolCall", "rawOutput"),
}
"""Fields whose mark in the schema has no counterpart here."""

MARKS = {
    "x-deserialize-default-on-error": Leniency.DEFAULT_ON_ERROR,
    "x-deserialize-skip-invalid-items": Leniency.SKIP_BAD_ITEMS,
    "x-deserialize-default-on-null": Leniency.EMPTY_WHEN_NULL,
}


@pytest.fixture(scope="module")
def definitions() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMA.read_bytes())["$defs"]
    return found


def parts(name: str, definitions: dict[str, Any]) -> list[dict[str, Any]]:
    return [definitions[each] for each in SCHEMA_NAMES.get(name, (name,))]


@pytest.mark.parametrize("name", sorted(STRUCTS.keys() - UNSTABLE))
def test_a_struct_has_the_fields_of_the_schema(name: str, definitions: dict[str, Any]) -> None:
    expected = {"_meta": False} | EXTRA_FIELDS.get(name, {})
    for part in parts(name, definitions):
        expected |= {key: key in part.get("required", ()) for key in part.get("properties", {})}
    config = STRUCTS[name].__struct_config__
    tag = {config.tag_field} if config.tag else set()
    ours = fields(STRUCTS[name])
    assert {key: ours[key] for key in ours.keys() - tag} == {key: expected[key] for key in expected.keys() - tag}


@pytest.mark.parametrize("name", sorted(STRUCTS.keys() - UNSTABLE))
def test_a_struct_forgives_what_the_schema_marks(name: str, definitions: dict[str, Any]) -> None:
    ours = leniency(STRUCTS[name])
    for part in parts(name, definitions):
        for key, schema in part.get("properties", {}).items():
            if (name, key) not in NOT_COMPARED:
                forgiven = ours.get(key, Leniency(0)) & ~Leniency.TAKE_OBJECT
                assert forgiven == marks(schema), key


def marks(schema: dict[str, Any]) -> Leniency:
    found = Leniency(0)
    for mark, rule in MARKS.items():
        found |= rule if schema.get(mark) else Leniency(0)
    return found


def words(schema: dict[str, Any]) -> set[str]:
    return {each["const"] for each in schema["oneOf"]}


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("ToolKind", tool_calls.ToolKind),
        ("ToolCallStatus", tool_calls.ToolCallStatus),
        ("PermissionOptionKind", tool_calls.PermissionOptionKind),
        ("PlanEntryPriority", agent_plan.PlanEntryPriority),
        ("PlanEntryStatus", agent_plan.PlanEntryStatus),
        ("StopReason", prompt_turn.StopReason),
        ("Role", content.Role),
        ("StringFormat", elicitation.StringFormat),
    ],
)
def test_a_closed_set_has_the_words_of_the_schema(name: str, ours: Any, definitions: dict[str, Any]) -> None:
    assert set(get_args(ours)) == words(definitions[name])


@pytest.mark.parametrize(
    ("name", "tag_field", "ours"),
    [
        ("SessionUpdate", "sessionUpdate", prompt_turn.SessionUpdate),
        ("ContentBlock", "type", content.ContentBlock),
        ("ToolCallContent", "type", tool_calls.ToolCallContent),
        ("RequestPermissionOutcome", "outcome", tool_calls.RequestPermissionOutcome),
    ],
)
def test_a_union_has_the_tags_of_the_schema(name: str, tag_field: str, ours: Any, definitions: dict[str, Any]) -> None:
    expected = {member["properties"][tag_field]["const"] for member in definitions[name]["oneOf"]}
    assert {str(member.__struct_config__.tag) for member in get_args(ours)} == expected


def test_each_method_has_the_params_and_the_result_of_the_schema(definitions: dict[str, Any]) -> None:
    expected: dict[str, set[str]] = {}
    for name, definition in definitions.items():
        if "x-method" in definition:
            expected.setdefault(definition["x-method"], set()).add(name)
    ours = {
        method.name: {each.__name__ for each in (method.params, method.result) if each is not None}
        for method in ALL_METHODS
        if method.name != "session/fork"
    }
    assert ours == expected

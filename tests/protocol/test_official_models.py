"""Every Struct is compared with the official Python models: names, what is required, closed sets, tags, methods."""

from __future__ import annotations

from typing import Any, get_args

import acp.meta
import acp.schema
import pytest

from acp_agent.protocol.base import Payload
from acp_agent.protocol.v1 import agent_plan, content, elicitation, prompt_turn, tool_calls
from acp_agent.protocol.v1.methods import AGENT_METHODS, CANCEL_REQUEST, CLIENT_METHODS, UNSTABLE_AGENT_METHODS
from tests.protocol.inventory import (
    NEWER,
    NEWER_FIELDS,
    NEWER_UPDATES,
    OFFICIAL_NAMES,
    OFFICIAL_UNIONS,
    UNSTABLE_FIELDS,
    fields,
    structs,
)
from tests.requirements import requirement

STRUCTS = structs()
COMPARED = [name for name in STRUCTS if name not in NEWER and name not in OFFICIAL_UNIONS]


def official_fields(name: str) -> dict[str, bool]:
    model = getattr(acp.schema, OFFICIAL_NAMES.get(name, name))
    found = {each.alias or attribute: each.is_required() for attribute, each in model.model_fields.items()}
    always_sent = {"type": True} if name == "ElicitationSchema" else {}  # there it may be left out
    return {"_meta": False} | found | always_sent


def known_fields(name: str, struct: type[Payload]) -> dict[str, bool]:
    newer = {wire_name for owner, wire_name in NEWER_FIELDS if owner == name}
    return {wire_name: required for wire_name, required in fields(struct).items() if wire_name not in newer}


@pytest.mark.parametrize("name", COMPARED)
def test_a_struct_has_the_fields_of_the_official_model(name: str) -> None:
    unstable = {wire_name for owner, wire_name in UNSTABLE_FIELDS if owner == name}
    expected = {key: required for key, required in official_fields(name).items() if key not in unstable}
    assert known_fields(name, STRUCTS[name]) == expected


@pytest.mark.parametrize("name", OFFICIAL_UNIONS)
def test_a_struct_that_the_official_models_split_has_the_fields_of_both_halves(name: str) -> None:
    halves = [official_fields(half) for half in OFFICIAL_UNIONS[name]]
    everywhere = {key for key in halves[0] if all(half.get(key) for half in halves)}
    assert fields(STRUCTS[name]) == {key: key in everywhere for half in halves for key in half}


@pytest.mark.parametrize("name", NEWER)
def test_what_is_called_newer_is_not_in_the_official_models(name: str) -> None:
    assert not hasattr(acp.schema, name)


@pytest.mark.parametrize(("owner", "wire_name"), NEWER_FIELDS)
def test_a_field_that_is_called_newer_is_not_in_the_official_models(owner: str, wire_name: str) -> None:
    assert wire_name not in official_fields(owner)


@pytest.mark.parametrize(
    ("ours", "official"),
    [
        (tool_calls.ToolKind, acp.schema.ToolKind),
        (tool_calls.ToolCallStatus, acp.schema.ToolCallStatus),
        (tool_calls.PermissionOptionKind, acp.schema.PermissionOptionKind),
        (agent_plan.PlanEntryPriority, acp.schema.PlanEntryPriority),
        (agent_plan.PlanEntryStatus, acp.schema.PlanEntryStatus),
        (prompt_turn.StopReason, acp.schema.StopReason),
    ],
)
def test_a_closed_set_has_the_official_words(ours: Any, official: Any) -> None:
    assert set(get_args(ours)) == set(get_args(official))


def official_tags(models: Any, tag_field: str) -> set[str]:
    return {get_args(model.model_fields[tag_field].annotation)[0] for model in models}


def our_tags(union: Any) -> set[str]:
    return {str(member.__struct_config__.tag) for member in get_args(union)}


def test_the_session_updates_have_the_official_tags() -> None:
    models = get_args(acp.schema.SessionNotification.model_fields["update"].annotation)
    unstable = {"plan_update", "plan_removed"}
    assert our_tags(prompt_turn.SessionUpdate) - NEWER_UPDATES == official_tags(models, "session_update") - unstable


def test_the_other_tagged_unions_have_the_official_tags() -> None:
    models = acp.schema
    blocks = (
        models.TextContentBlock,
        models.ImageContentBlock,
        models.AudioContentBlock,
        models.ResourceContentBlock,
        models.EmbeddedResourceContentBlock,
    )
    items = (models.ContentToolCallContent, models.FileEditToolCallContent, models.TerminalToolCallContent)
    outcomes = get_args(models.RequestPermissionResponse.model_fields["outcome"].annotation)
    assert our_tags(content.ContentBlock) == official_tags(blocks, "type")
    assert our_tags(tool_calls.ToolCallContent) == official_tags(items, "type")
    assert our_tags(tool_calls.RequestPermissionOutcome) == official_tags(outcomes, "outcome")


TAGGED = [name for name in COMPARED if STRUCTS[name].__struct_config__.tag and name != "ElicitationSchema"]


@pytest.mark.parametrize("name", TAGGED)
def test_a_tag_is_the_official_one(name: str) -> None:
    config = STRUCTS[name].__struct_config__
    model = getattr(acp.schema, OFFICIAL_NAMES.get(name, name))
    by_alias = {each.alias or key: each for key, each in model.model_fields.items()}
    assert get_args(by_alias[str(config.tag_field)].annotation) == (config.tag,)


UNSTABLE_PREFIXES = ("providers/", "mcp/", "nes/", "document/")


def test_the_methods_that_clients_call_are_the_official_ones() -> None:
    ours = {method.name for method in (*AGENT_METHODS, *UNSTABLE_AGENT_METHODS)}
    assert ours == {name for name in acp.meta.AGENT_METHODS.values() if not name.startswith(UNSTABLE_PREFIXES)}
    assert len(AGENT_METHODS) == 13


@requirement("extension-names")
def test_the_methods_that_agents_call_are_the_official_ones() -> None:
    ours = {method.name for method in CLIENT_METHODS}
    assert ours == {name for name in acp.meta.CLIENT_METHODS.values() if not name.startswith(UNSTABLE_PREFIXES)}
    assert len(CLIENT_METHODS) == 11


def test_the_methods_without_a_result_are_the_notifications() -> None:
    everything = (*AGENT_METHODS, *UNSTABLE_AGENT_METHODS, *CLIENT_METHODS, CANCEL_REQUEST)
    assert {method.name for method in everything if method.result is None} == {
        "session/cancel",
        "session/update",
        "elicitation/complete",
        "$/cancel_request",
    }


def test_an_elicitation_is_one_of_the_official_kinds() -> None:
    assert elicitation.CreateElicitationRequest.choose({"mode": "form"}) is elicitation.ElicitationFormMode
    assert elicitation.CreateElicitationRequest.choose({"mode": "url"}) is elicitation.ElicitationUrlMode

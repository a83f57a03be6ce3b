"""Every frame that a test client hears is held against the official models, and the schema where it is at hand.

The models forgive much, so what they understood is compared with what was sent: nothing may have been dropped, but for
what is newer than they are.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from acp_agent.protocol.base import OneOf, Payload
from acp_agent.protocol.v1.methods import AGENT_METHODS, CANCEL_REQUEST, CLIENT_METHODS
from acp_agent.testing.transcript import Frame
from tests.protocol.inventory import NEWER_UPDATES, official_reader

SCHEMA = Path(__file__).parents[2] / "shared" / "schema" / "v1" / "schema.json"
OF_A_KIND = 50  # frames of one kind in one transcript: the schema takes a millisecond for each
RESULTS = {method.name: method.result for method in AGENT_METHODS if method.result is not None}
PARAMS = {method.name: method.params for method in (*CLIENT_METHODS, CANCEL_REQUEST)}


def check_frames(transcript: Iterable[Frame]) -> None:
    """Raise `AssertionError` for the frames of the agent's that the official models or schema do not know."""
    asked: dict[Any, str | None] = {}
    told: Counter[str] = Counter()
    faults: list[str] = []
    for frame in transcript:
        if frame.direction == "to_agent":
            if frame.is_request:
                asked[repr(frame.id)] = frame.method
        elif found := payload_of(frame, asked.get(repr(frame.id))):
            kind = told_kind(frame)
            told[kind] += 1
            faults += [f"{fault}\n  {frame}" for fault in find_faults(*found, with_schema=told[kind] <= OF_A_KIND)]
    assert not faults, "Not as the official models have it:\n" + "\n".join(faults)


def find_faults(struct: type[Payload | OneOf], payload: Any, *, with_schema: bool) -> list[str]:
    faults = [model_fault(struct, payload), schema_fault(struct.__name__, payload) if with_schema else None]
    return [fault for fault in faults if fault]


def payload_of(frame: Frame, answered: str | None) -> tuple[type[Payload | OneOf], Any] | None:
    """What the frame carries, and the Struct whose name says what it should be; None for an error."""
    if frame.method is not None:
        return PARAMS[frame.method], frame.params
    struct = RESULTS.get(answered or "")
    return (struct, frame.message["result"]) if struct is not None and "result" in frame.message else None


def told_kind(frame: Frame) -> str:
    return str(frame.params.get("update", {}).get("sessionUpdate", frame.method))


def model_fault(struct: Any, payload: Any) -> str | None:
    kind = payload.get("update", {}).get("sessionUpdate")
    if kind in NEWER_UPDATES:
        return None
    known = without_names(payload)
    try:
        understood = official_reader(struct)(known)
    except ValidationError as error:
        return str(error)
    return None if understood == known else f"The model understood {understood}"


def without_names(payload: dict[str, Any]) -> dict[str, Any]:
    """`payload` without the `name` of its tool call, which is newer than the models."""
    for place in ("update", "toolCall"):
        call = payload.get(place)
        if isinstance(call, dict) and "toolCallId" in call:
            return payload | {place: {key: value for key, value in call.items() if key != "name"}}
    return payload


def schema_fault(name: str, payload: Any) -> str | None:
    validator = schema_validator(name)
    errors = [error.message for error in validator.iter_errors(payload)] if validator else []
    return f"{name}: {errors[0][:300]}" if errors else None


@functools.cache
def schema_validator(name: str) -> Any:
    if not SCHEMA.exists() or find_spec("jsonschema") is None:
        return None
    import jsonschema

    definitions = json.loads(SCHEMA.read_text())["$defs"]
    if name not in definitions:
        return None
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions})

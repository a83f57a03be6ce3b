"""What our agent promises beyond the protocol, checked on every transcript: clients in the field rely on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from acp_agent.testing.transcript import Frame, Transcript, update_of

CALL_FIELDS = {"toolCallId", "title", "kind", "status", "content", "locations", "rawInput"}
MESSAGES = ("agent_message_chunk", "agent_thought_chunk", "user_message_chunk")


def check_house_rules(transcript: Transcript) -> None:
    """Raise `AssertionError` that names each rule that was broken."""
    asked: dict[Any, str] = {}
    faults: list[str] = []
    for frame in transcript:
        if frame.index == transcript.closed_at:
            asked.clear()  # nobody is there to answer
        if frame.direction == "to_agent":
            if frame.is_response:
                asked.pop(frame.id, None)
            continue
        if frame.method == "session/request_permission":
            asked[frame.id] = frame.params["toolCall"]["toolCallId"]
        elif frame.method == "$/cancel_request":
            asked.pop(frame.params["requestId"], None)
        faults += [f"{fault}: {frame}" for fault in find_faults(frame, set(asked.values()))]
    assert not faults, "The agent broke its own rules:\n" + "\n".join(faults)


def find_faults(frame: Frame, being_asked: set[str]) -> Iterator[str]:
    if frame.method == "session/request_permission":
        call = frame.params["toolCall"]
        if missing := CALL_FIELDS - call.keys():
            yield f"a question does not show {', '.join(sorted(missing))}"
        kinds = {option["kind"] for option in frame.params["options"]}
        if not {"allow_once", "reject_once"} <= kinds:
            yield "a question has no plain yes and no"
        yield from call_faults(call)
    elif frame.method == "session/update":
        update = update_of(frame)
        if update.kind in MESSAGES and not update.fields.get("messageId"):
            yield "a message has no id"
        if update.kind in ("tool_call", "tool_call_update"):
            if "status" not in update.fields:
                yield "an update of a call does not say its status"
            if update.kind == "tool_call_update" and update.fields["toolCallId"] in being_asked:
                yield "a call is updated while its question is open"
            yield from call_faults(update.fields)


def call_faults(call: dict[str, Any]) -> Iterator[str]:
    content, locations = call.get("content") or [], call.get("locations") or []
    diffs = [item for item in content if item["type"] == "diff"]
    if diffs and content[0] is not diffs[0]:
        yield "a diff is not the first that is shown"
    if diffs and locations and locations[0]["path"] != diffs[0]["path"]:
        yield "the first location is not the file of the diff"
    if not all(os.path.isabs(each["path"]) for each in (*diffs, *locations)):
        yield "a path is not absolute"
    if any(each.get("line", 1) < 1 for each in locations):
        yield "a line does not count from 1"
    if "rawInput" in call:
        raw_input = call["rawInput"]
        shown = (raw_input.get(name, "") for name in ("command", "description")) if isinstance(raw_input, dict) else [0]
        if not all(isinstance(value, str) for value in shown):
            yield "rawInput is not an object with texts for command and description"

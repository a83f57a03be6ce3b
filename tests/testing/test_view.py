"""The fold of tool calls: patched by what is present, tolerant of what is odd."""

from __future__ import annotations

from typing import Any

import pytest

from acp_agent.testing import ToolCallView, Update

OPENING: dict[str, Any] = {
    "title": "Read a file",
    "kind": "read",
    "status": "pending",
    "content": [{"type": "content", "content": {"type": "text", "text": "first"}}],
    "locations": [{"path": "/a", "line": 3}],
    "rawInput": {"path": "/a"},
}


def opened(call_id: str = "c1", /, **fields: Any) -> Update:
    return _about(call_id, "tool_call", OPENING | fields)


def update(call_id: str = "c1", /, **fields: Any) -> Update:
    return _about(call_id, "tool_call_update", fields)


def _about(call_id: str, what: str, fields: dict[str, Any]) -> Update:
    return Update(0, 0.0, "s1", what, {"sessionUpdate": what, "toolCallId": call_id} | fields)


def test_what_is_absent_is_unchanged_and_collections_replace() -> None:
    content = [{"type": "diff", "path": "/a", "oldText": None, "newText": "x"}]
    view = ToolCallView([opened(), update(status="completed", content=content), update(rawOutput="done")])
    row = view["c1"]
    assert (row.title, row.kind, row.status, row.raw_input) == ("Read a file", "read", "completed", {"path": "/a"})
    assert (row.content, row.diffs, row.text, row.raw_output) == (content, content, "", "done")
    assert row.locations == [{"path": "/a", "line": 3}]


def test_an_empty_list_replaces_too() -> None:
    row = ToolCallView([opened(), update(content=[], locations=[])])["c1"]
    assert (row.content, row.locations) == ([], [])


def test_null_is_unchanged_in_version_1_and_clears_in_version_2() -> None:
    updates = [opened(status="in_progress"), update(title=None, kind=None, status=None, content=None, rawInput=None)]
    unchanged = ToolCallView(updates)["c1"]
    assert (unchanged.title, unchanged.kind, unchanged.status, unchanged.text) == (
        "Read a file",
        "read",
        "in_progress",
        "first",
    )
    cleared = ToolCallView(updates, null_clears=True)["c1"]
    assert (cleared.title, cleared.kind, cleared.status, cleared.content, cleared.raw_input) == (
        "",
        "other",
        "pending",
        [],
        None,
    )


def test_an_update_whose_opening_never_came_makes_a_row() -> None:
    row = ToolCallView([update(status="in_progress", title="Late")])["c1"]
    assert (row.was_opened, row.title, row.kind, row.statuses) == (False, "Late", "other", ["in_progress"])
    assert ToolCallView([opened()])["c1"].was_opened


def test_unknown_kinds_and_statuses_are_kept_as_they_came() -> None:
    row = ToolCallView([opened(kind="teleport", status="queued"), update(status="exploded")])["c1"]
    assert (row.kind, row.status, row.statuses, row.is_over) == ("teleport", "exploded", ["queued", "exploded"], False)


def test_in_progress_may_be_skipped_and_repeated_statuses_count_once() -> None:
    row = ToolCallView([opened(), update(status="completed")])["c1"]
    assert row.statuses == ["pending", "completed"]
    assert row.is_over
    busy = ToolCallView([opened(), update(status="in_progress"), update(status="in_progress"), update()])["c1"]
    assert busy.statuses == ["pending", "in_progress"]


def test_a_status_that_is_left_out_at_the_opening_is_pending() -> None:
    row = ToolCallView([_about("c1", "tool_call", {"title": "t"})])["c1"]
    assert (row.status, row.statuses) == ("pending", ["pending"])


def test_titles_may_change() -> None:
    assert ToolCallView([opened(), update(title="Read two files")])["c1"].title == "Read two files"


def test_rows_stay_in_the_order_of_their_appearance() -> None:
    view = ToolCallView([opened("b"), opened("a"), update("b", status="completed")])
    assert [row.tool_call_id for row in view] == ["b", "a"]
    assert len(view) == 2
    with pytest.raises(KeyError):
        view["c"]


def test_other_updates_are_left_alone() -> None:
    view = ToolCallView()
    assert view.apply(Update(0, 0.0, "s1", "agent_message_chunk", {"content": {"type": "text", "text": "x"}})) is None
    assert len(view) == 0


def test_views_that_came_to_be_in_different_ways_may_look_the_same() -> None:
    live = ToolCallView([opened(), update(status="in_progress"), update(status="completed", rawOutput=3)])
    replayed = ToolCallView([opened(status="completed", rawOutput=3)])
    assert live.snapshot() == replayed.snapshot()
    assert live["c1"].statuses != replayed["c1"].statuses
    assert ToolCallView([opened(), update(status="failed")]).snapshot() != live.snapshot()

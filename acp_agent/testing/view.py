"""Tool calls as a client keeps them: rows by `toolCallId`, patched by whatever fields an update has.

The fold is tolerant, as clients have to be: unknown kinds and statuses are kept as they came, `in_progress` may be
skipped, titles may change, and an update whose opening never came makes a row. Absent is unchanged. So is null in
protocol version 1; in version 2 it clears (`null_clears`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct, field

from acp_agent.testing.transcript import Update

__all__ = ["ToolCallRow", "ToolCallView"]

FINAL = ("completed", "failed")


class ToolCallRow(Struct, kw_only=True):
    """One call as it looks now. `statuses` are the different ones it had, in order, as they were sent.

    `content` and `locations` are the JSON objects of the protocol. `was_opened` is False when only updates came.
    """

    tool_call_id: str
    title: str = ""
    name: str | None = None
    kind: str = "other"
    status: str = "pending"
    content: list[dict[str, Any]] = field(default_factory=list)
    locations: list[dict[str, Any]] = field(default_factory=list)
    raw_input: Any = None
    raw_output: Any = None
    statuses: list[str] = field(default_factory=list)
    was_opened: bool = False

    @property
    def is_over(self) -> bool:
        return self.status in FINAL

    @property
    def text(self) -> str:
        """The texts of its content, joined by newlines."""
        blocks = (item.get("content") or {} for item in self.content if item.get("type") == "content")
        return "\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))

    @property
    def diffs(self) -> list[dict[str, Any]]:
        return [item for item in self.content if item.get("type") == "diff"]

    def patch(self, fields: dict[str, Any], *, null_clears: bool = False) -> None:
        """Take over the fields that are present."""
        for wire_name, attribute in FIELDS.items():
            if wire_name not in fields:
                continue
            value = fields[wire_name]
            if value is not None:
                setattr(self, attribute, value)
            elif null_clears:
                setattr(self, attribute, getattr(ToolCallRow(tool_call_id=""), attribute))
        if not self.statuses or self.statuses[-1] != self.status:
            self.statuses.append(self.status)


FIELDS: Final = {
    "title": "title",
    "name": "name",
    "kind": "kind",
    "status": "status",
    "content": "content",
    "locations": "locations",
    "rawInput": "raw_input",
    "rawOutput": "raw_output",
}


class ToolCallView:
    """The rows of one session, in the order in which they appeared."""

    def __init__(self, updates: Iterable[Update] = (), *, null_clears: bool = False) -> None:
        self._rows: dict[str, ToolCallRow] = {}
        self._null_clears = null_clears
        for update in updates:
            self.apply(update)

    def apply(self, update: Update) -> ToolCallRow | None:
        """Fold one update in; the row it changed, or None if it is not about a tool call."""
        if update.kind not in ("tool_call", "tool_call_update"):
            return None
        call_id = str(update.fields.get("toolCallId", ""))
        row = self._rows.get(call_id)
        if row is None:
            row = self._rows[call_id] = ToolCallRow(tool_call_id=call_id)
        row.was_opened = row.was_opened or update.kind == "tool_call"
        row.patch(update.fields, null_clears=self._null_clears)
        return row

    @property
    def rows(self) -> list[ToolCallRow]:
        return list(self._rows.values())

    def __iter__(self) -> Iterator[ToolCallRow]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, tool_call_id: str) -> ToolCallRow:
        return self._rows[tool_call_id]

    def snapshot(self) -> list[dict[str, Any]]:
        """All that is on show, as plain values: equal for two views that look the same, however they came to be."""
        return [{name: getattr(row, name) for name in ("tool_call_id", *FIELDS.values())} for row in self]

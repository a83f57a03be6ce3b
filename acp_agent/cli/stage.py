"""What can be seen of a conversation, in a few verbs: who draws it need not know the protocol.

A `Director` folds `session/update`s and permission requests into calls of a `Stage`; the plain and the live stage
draw them. What an agent sends is cleaned here, once: no text of it can move a cursor or hide a part of a question.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from acp_agent.cli.diffs import DiffLine, count_changes, diff_lines
from acp_agent.testing.transcript import Update
from acp_agent.testing.view import ToolCallRow, ToolCallView

__all__ = ["Call", "Choice", "DiffBody", "Director", "PlanEntry", "Speaker", "Stage", "Summary", "TextBody", "clean"]

Speaker: TypeAlias = Literal["user", "agent", "thought"]

MAX_LINES = 24  # of one diff or output, unless it is to be judged
SPEAKERS: Final[dict[str, Speaker]] = {
    "user_message_chunk": "user",
    "agent_message_chunk": "agent",
    "agent_thought_chunk": "thought",
}
ESCAPES: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")
UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class PlanEntry(Struct, frozen=True):
    """`status` is `pending`, `in_progress` or `completed`."""

    content: str
    status: str


class TextBody(Struct, frozen=True):
    """Output, or what a file holds. `path` says of which file, if that is known."""

    text: str
    path: str = ""


class DiffBody(Struct, frozen=True):
    """`path` is as people say it: relative to where the session works. `counts` is like `+3 -1`, of the whole."""

    path: str
    lines: list[DiffLine]
    counts: str
    left_out: int = 0


class Call(Struct, frozen=True):
    """A tool call as it looks now. `body` is what of it has not been shown before; `tail` what it prints, so far."""

    id: str
    title: str
    kind: str
    status: str
    body: list[TextBody | DiffBody] = field(default_factory=list)
    tail: str = ""

    @property
    def is_over(self) -> bool:
        return self.status in ("completed", "failed")


class Choice(Struct, frozen=True):
    """One answer to a permission question. `kind` is `allow_once`, `allow_always`, `reject_once` or `reject_always`."""

    id: str
    name: str
    kind: str


class Summary(Struct, frozen=True):
    """How it went: `facts` and `steps` are pairs of a short label and a sentence."""

    heading: str
    is_good: bool
    facts: list[tuple[str, str]]
    steps: list[tuple[str, str]]


class Stage(Protocol):
    """Draws. Every text that it is given is clean."""

    def say(self, speaker: Speaker, text: str, *, begins: bool) -> None:
        """A piece of a message; `begins` says that it is the first one."""

    def show_plan(self, entries: list[PlanEntry]) -> None: ...

    def show_call(self, call: Call) -> None:
        """A call appeared, or changed."""

    def show_question(self, call: Call, choices: Sequence[Choice]) -> None:
        """May it run? `call.body` is what is to be judged."""

    def show_answer(self, call: Call, answer: str, *, allowed: bool) -> None: ...

    def note(self, text: str) -> None:
        """Anything else that is worth a line."""


class Director:
    """Tells a stage what happens in one session. `root` is where the session works, `everything` also small news."""

    def __init__(self, stage: Stage, root: str = "", *, everything: bool = False) -> None:
        self._calls = ToolCallView()
        self._stage = stage
        self._root = root
        self._everything = everything
        self._message: tuple[Speaker, object] | None = None
        self._shown: dict[str, list[TextBody | DiffBody]] = {}

    @property
    def rows(self) -> list[ToolCallRow]:
        """The tool calls that were shown, as they look now."""
        return [row for row in self._calls if not is_plan_keeping(row)]

    def take(self, update: Update) -> None:
        """Show one `session/update`."""
        update = Update(update.index, update.at, update.session_id, update.kind, clean_fields(update.fields))
        speaker = SPEAKERS.get(update.kind)
        if speaker:
            self._say(speaker, update)
            return
        row = self._calls.apply(update)
        if row is not None:
            if not is_plan_keeping(row):
                self._stage.show_call(self._call(row, [cut(body) for body in self._news(row)] if row.is_over else []))
        elif update.kind == "plan":
            self._stage.show_plan(plan_of(update.fields))
        elif update.kind == "notice" or self._everything:
            self._stage.note(news(update))

    def prompt(self, text: str) -> None:
        """Show what the user says."""
        self._message = None
        self._stage.say("user", clean(text), begins=True)

    def ask(self, tool_call: dict[str, Any], choices: Sequence[Choice]) -> Call:
        """Show a permission question; the call it is about."""
        fields = clean_fields(tool_call) | {"sessionUpdate": "tool_call_update"}
        row = self._calls.apply(Update(0, 0, "", "tool_call_update", fields))
        assert row is not None
        call = self._call(row, self._news(row))  # whole: nobody can judge what is left out
        self._stage.show_question(call, [Choice(each.id, clean(each.name), each.kind) for each in choices])
        return call

    def answer(self, call: Call, choice: Choice | None, by: str = "") -> None:
        """Show what was chosen, None for nothing, and `by` whom or what if not by hand."""
        name = clean(choice.name) if choice else "dismissed"
        allowed = choice is not None and choice.kind.startswith("allow")
        self._stage.show_answer(call, f"{name} ({by})" if by else name, allowed=allowed)

    def _say(self, speaker: Speaker, update: Update) -> None:
        message = (speaker, update.fields.get("messageId"))
        text = text_of_block(update.fields.get("content"))
        if text:
            self._stage.say(speaker, text, begins=message != self._message)
            self._message = message

    def _call(self, row: ToolCallRow, body: list[TextBody | DiffBody]) -> Call:
        last = self._body(row, row.content[-1]) if row.content and row.status == "in_progress" else None
        tail = last.text if isinstance(last, TextBody) else ""
        return Call(row.tool_call_id, row.title.replace("\n", " "), row.kind, row.status, body, tail)

    def _news(self, row: ToolCallRow) -> list[TextBody | DiffBody]:
        """What of its content was not shown before; now it is."""
        shown = self._shown.setdefault(row.tool_call_id, [])
        items = [self._body(row, item) for item in row.content]
        news = [body for body in items if body is not None and body not in shown]
        shown += news
        return news

    def _body(self, row: ToolCallRow, item: dict[str, Any]) -> TextBody | DiffBody | None:
        if item.get("type") == "diff":
            lines = diff_lines(item.get("oldText"), str(item.get("newText", "")))
            return DiffBody(self._relative(str(item.get("path", ""))), lines, count_changes(lines))
        if item.get("type") == "terminal":
            return TextBody(f"(terminal {item.get('terminalId')})")
        text = without_fence(text_of_block(item.get("content")))
        path = str(row.locations[0].get("path", "")) if row.kind == "read" and row.locations else ""
        return TextBody(text, path) if text else None

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self._root) if self._root and path.startswith(self._root + os.sep) else path


def is_plan_keeping(row: ToolCallRow) -> bool:
    """The call that only says the plan, which is shown itself."""
    return row.name == "update_plan" and row.status != "failed"


def plan_of(fields: dict[str, Any]) -> list[PlanEntry]:
    entries = fields.get("entries") or []
    return [PlanEntry(str(each.get("content", "")), str(each.get("status", "pending"))) for each in entries]


def news(update: Update) -> str:
    """An update of a kind that has no drawing of its own, in words."""
    fields = update.fields
    match update.kind:
        case "notice":
            return ": ".join(str(fields[name]) for name in ("title", "description") if fields.get(name))
        case "usage_update":
            return f"context: {fields.get('used')} of {fields.get('size')} tokens"
        case "available_commands_update":
            names = ", ".join(f"/{command.get('name')}" for command in fields.get("availableCommands") or [])
            return f"commands: {names or 'none'}"
        case "session_info_update":
            return f"title: {fields.get('title')}"
        case "current_mode_update":
            return f"mode: {fields.get('currentModeId')}"
        case _:
            return update.kind.replace("_", " ")


def text_of_block(block: object) -> str:
    """A content block as text; what is none is named."""
    if not isinstance(block, dict):
        return ""
    text = block.get("text")
    if isinstance(text, str):
        return text
    resource = block.get("resource")
    uri = block.get("uri") or (resource.get("uri") if isinstance(resource, dict) else None)
    return f"({block.get('type')}{f' {uri}' if uri else ''})"


def without_fence(text: str) -> str:
    """What is inside a text that is one block of code."""
    lines = text.strip("\n").split("\n")
    is_fenced = len(lines) > 1 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if is_fenced else "\n".join(lines)


def cut(body: TextBody | DiffBody) -> TextBody | DiffBody:
    """The beginning of what is long."""
    lines = body.lines if isinstance(body, DiffBody) else body.text.split("\n")
    left_out = len(lines) - MAX_LINES
    if left_out <= 0:
        return body
    if isinstance(body, DiffBody):
        return DiffBody(body.path, body.lines[:MAX_LINES], body.counts, left_out)
    return TextBody("\n".join([*body.text.split("\n")[:MAX_LINES], f"... {left_out} more lines"]), body.path)


def clean(text: str) -> str:
    """Without what a terminal would obey, or what would show a text in another order than it is read."""
    return UNSEEN.sub("", ESCAPES.sub("", text))


def clean_fields(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: clean_value(value) for name, value in fields.items()}


def clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return clean_fields(value)
    return [clean_value(item) for item in value] if isinstance(value, list) else value

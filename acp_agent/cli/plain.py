"""A conversation as plain lines: for pipes, logs, and terminals that do not draw. Each block says who."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final, TextIO

from acp_agent.cli.diffs import DiffLine
from acp_agent.cli.stage import Call, Choice, DiffBody, PlanEntry, Speaker, Summary, TextBody
from acp_agent.cli.terminal import forget_typed, read_typed

__all__ = ["Lines", "PlainStage"]

LABEL = 10  # characters
STATES: Final = {"in_progress": "running"}
BOXES: Final = {"completed": "[x]", "in_progress": "[>]"}


class Lines:
    """Labelled blocks of lines. What `stamp` gives is written before each label."""

    def __init__(self, out: TextIO, stamp: Callable[[], str] = str) -> None:
        self._out = out
        self._stamp = stamp
        self._label: str | None = None
        self._margin = ""
        self._owed = ""  # newlines that are written when more follows

    def block(self, label: str, text: str) -> None:
        """A whole block, of one line or several."""
        self.end()
        self.piece(label, text)
        self.end()

    def piece(self, label: str, text: str) -> None:
        """More of a block: it goes on while the label is the same and nothing ends it."""
        if label != self._label:
            self.end()
            stamp = self._stamp()
            self._margin = " " * (len(stamp) + LABEL)
            self._label = label
            stamp = stamp if label else " " * len(stamp)
            self._out.write(f"{stamp}{label:{LABEL}}")
        body = self._owed + text
        text = body.rstrip("\n")
        self._owed = body[len(text) :]
        first, *further = text.split("\n")
        self._out.write("\n".join([first, *(f"{self._margin}{line}" if line else "" for line in further)]))
        self._out.flush()

    def end(self) -> None:
        """End the block, if one is open."""
        if self._label is not None:
            self._out.write("\n")
            self._out.flush()
        self.ended()

    def ended(self) -> None:
        """The block was ended by somebody else: who typed into it pressed Enter."""
        self._label, self._owed = None, ""


class PlainStage(AbstractContextManager["PlainStage"]):
    """Draws on `lines`. States of calls are lines of their own, each once."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._states: dict[str, str] = {}

    def __exit__(self, *_: object) -> None:
        self._lines.end()

    async def animate(self) -> None:
        """Nothing here moves by itself."""

    def say(self, speaker: Speaker, text: str, *, begins: bool) -> None:
        if begins:
            self._lines.end()
        self._lines.piece(speaker, text)

    def show_plan(self, entries: list[PlanEntry]) -> None:
        text = "\n".join(f"{BOXES.get(entry.status, '[ ]')} {entry.content}" for entry in entries)
        self._lines.block("plan", text or "none")

    def show_call(self, call: Call) -> None:
        state = STATES.get(call.status, call.status)
        if self._states.get(call.id) != state:
            self._states[call.id] = state
            self._lines.block("tool", f"{call.title}: {state}")
        self._show_body(call)

    def show_question(self, call: Call, choices: Sequence[Choice]) -> None:
        self._lines.block("question", f"{call.title}?")
        self._show_body(call)
        self._lines.block("options", "\n".join(f"{number}. {each.name}" for number, each in enumerate(choices, 1)))

    async def choose(self, choices: Sequence[Choice]) -> Choice | None:
        """Ask at the terminal until a number fits. None when nobody is there any more."""
        forget_typed()
        while True:
            self._lines.piece(f"1 to {len(choices)}?", "")
            typed = await read_typed()
            if not typed:
                return None
            self._lines.ended()
            number = typed.strip()
            if number.isdecimal() and 0 < int(number) <= len(choices):
                return choices[int(number) - 1]

    def show_answer(self, call: Call, answer: str, *, allowed: bool) -> None:
        self._lines.block("answer", answer)

    def note(self, text: str) -> None:
        self._lines.block("note", text)

    def finish(self, summary: Summary) -> None:
        self._lines.block("summary", summary.heading)
        for label, text in summary.facts:
            self._lines.block(f"  {label}", text)
        for label, text in summary.steps:
            self._lines.block("next", f"{label}: {text}")

    def _show_body(self, call: Call) -> None:
        for body in call.body:
            if isinstance(body, TextBody):
                self._lines.block("", "\n".join(f"| {line}".rstrip() for line in body.text.split("\n")))
            else:
                self._lines.block("diff", diff_text(body))


def diff_text(diff: DiffBody) -> str:
    rest = [f"... {diff.left_out} more lines"] if diff.left_out else []
    return "\n".join([f"{diff.path} ({diff.counts})", *map(diff_line, diff.lines), *rest])


def diff_line(line: DiffLine) -> str:
    return f"@@ line {line.number} @@" if line.sign == "@" else f"{line.sign} {line.text}".rstrip()

"""A conversation on a terminal, drawn with rich: what is settled scrolls up, what still moves is redrawn at the bottom.

At the bottom are the message that streams in, the calls that are open, the question, the plan. They are redrawn some
times a second from the loop itself, so nothing flickers and no thread draws.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final

import anyio
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.padding import Padding
from rich.panel import Panel
from rich.segment import Segment
from rich.spinner import Spinner
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from acp_agent.cli.stage import Call, Choice, DiffBody, PlanEntry, Speaker, Summary, TextBody
from acp_agent.cli.terminal import forget_typed, read_typed, single_keys

__all__ = ["LiveStage"]

FRAME = 0.08  # seconds
STREAMED = 8000  # characters of a message that are drawn while it grows
BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"
END_OF_INPUT = "\x04"  # Ctrl-D
TAIL = 6  # lines of what a call prints
THEME = "ansi_dark"
GLYPHS: Final = {"pending": ("○", "dim"), "completed": ("✓", "green"), "failed": ("✗", "red")}
STEPS: Final = {"pending": ("○", "dim"), "in_progress": ("▸", "bold cyan"), "completed": ("✓", "green")}
SIGNS: Final = {" ": "dim", "+": "green", "-": "red", "@": "cyan"}


class LiveStage(AbstractContextManager["LiveStage"]):
    """Draws on a terminal, from entering it until `finish`, or until it is left."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._stack = ExitStack()
        self._spinner = Spinner("dots", style="cyan")
        self._began = time.monotonic()
        self._said: tuple[Speaker, str] | None = None
        self._calls: dict[str, Call] = {}
        self._question: Panel | None = None
        self._is_asking = False
        self._plan: list[PlanEntry] = []
        self._last_group = ""
        self._live = Live(
            console=self._console,
            get_renderable=self._picture,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="visible",
        )

    def __enter__(self) -> LiveStage:
        self._stack.enter_context(single_keys())
        self._stack.enter_context(self._live)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    async def animate(self) -> None:
        while True:
            await anyio.sleep(FRAME)
            self._refresh()

    # what happens ---------------------------------------------------------------------------------------------------

    def say(self, speaker: Speaker, text: str, *, begins: bool) -> None:
        if begins or self._said is None or self._said[0] != speaker:
            self._settle()
            self._said = (speaker, text)
        else:
            self._said = (speaker, self._said[1] + text)
        if speaker == "user":
            self._settle()

    def show_plan(self, entries: list[PlanEntry]) -> None:
        self._plan = entries

    def show_call(self, call: Call) -> None:
        self._settle()
        if not call.is_over:
            self._calls[call.id] = call
            return
        self._calls.pop(call.id, None)
        self._put("calls", self._row(call), *map(drawn, call.body))

    def show_question(self, call: Call, choices: Sequence[Choice]) -> None:
        """What is to be judged scrolls up, however long it is; the answers stay in sight."""
        self._settle()
        self._calls.pop(call.id, None)  # until it is answered, the question stands for it
        heading = Text.assemble(("? ", "bold yellow"), (call.title, "bold"))
        self._put("question", heading, *map(drawn, call.body))
        self._question = question_panel(call, choices)
        self._refresh()

    async def choose(self, choices: Sequence[Choice]) -> Choice | None:
        """A key answers. None when nobody is there any more."""
        forget_typed()
        self._is_asking = True
        self._refresh()
        try:
            while typed := await read_typed():
                for key in typed:
                    if key == END_OF_INPUT:
                        return None
                    if key in "123456789" and int(key) <= len(choices):
                        return choices[int(key) - 1]
            return None
        finally:
            self._is_asking = False

    def show_answer(self, call: Call, answer: str, *, allowed: bool) -> None:
        self._question = None
        self._put("question", Text.assemble("  ", (f"→ {answer}", "green" if allowed else "red")))

    def note(self, text: str) -> None:
        self._settle()
        self._put("note", Text(text, style="dim"))

    def finish(self, summary: Summary) -> None:
        self._settle()
        plan, self._plan = self._plan, []
        self._stack.close()
        if plan:
            self._put("plan", plan_panel(plan))
        self._put("summary", summary_panel(summary))

    # drawing --------------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """The message that streamed in is whole: it scrolls up."""
        if self._said is not None:
            speaker, text = self._said
            self._said = None
            self._put(speaker, message(speaker, text))

    def _put(self, group: str, *parts: RenderableType) -> None:
        """Print for good, above what moves. A line is left free between groups."""
        free = [] if self._last_group in ("", group) else [""]
        self._last_group = group
        with self._at_once():
            self._console.print(Group(*free, *parts))

    def _refresh(self) -> None:
        with self._at_once():
            self._live.refresh()

    @contextmanager
    def _at_once(self) -> Iterator[None]:
        """Terminals that know synchronised output show nothing half drawn; others take no notice."""
        out = self._console.file
        out.write(BEGIN)
        try:
            yield
        finally:
            out.write(END)
            out.flush()

    def _picture(self) -> RenderableType:
        parts: list[RenderableType] = []
        if self._said is not None:
            speaker, text = self._said
            parts += ["", message(speaker, text[-STREAMED:])]
        if self._calls:
            parts += [""] if self._last_group != "calls" or parts else []
            parts += [part for call in self._calls.values() for part in self._open_call(call)]
        if self._question is not None:
            parts += ["", self._question]
        parts += ["", plan_panel(self._plan)] if self._plan else [""]
        return LastLines(Group(*parts, self._footer()))

    def _open_call(self, call: Call) -> Iterator[RenderableType]:
        yield self._row(call)
        if call.status == "in_progress" and call.tail:
            tail = "\n".join(call.tail.split("\n")[-TAIL:])
            yield Padding(Text(tail, style="dim"), (0, 0, 0, 4))

    def _row(self, call: Call) -> RenderableType:
        row = Table.grid(padding=(0, 1))
        glyph: RenderableType = (
            self._spinner if call.status == "in_progress" else Text(*GLYPHS.get(call.status, GLYPHS["pending"]))
        )
        row.add_row(glyph, Text.assemble(call.title, (f"  {call.kind}", "dim")))
        return row

    def _footer(self) -> RenderableType:
        row = Table.grid(padding=(0, 1))
        glyph = Text("?", "bold yellow") if self._is_asking else self._spinner
        words = "your turn" if self._is_asking else f"{time.monotonic() - self._began:.0f} s"
        row.add_row(glyph, Text(f"{words} · Ctrl-C stops", style="dim"))
        return row


class LastLines:
    """As much of the end of something as the terminal has room for."""

    def __init__(self, content: RenderableType) -> None:
        self._content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._content, options.update(height=None), pad=False)
        for index, line in enumerate(lines[-max(1, console.height - 1) :]):
            if index:
                yield Segment.line()
            yield from line


def message(speaker: Speaker, text: str) -> RenderableType:
    match speaker:
        case "user":
            return Text.assemble(("> ", "bold blue"), (text, "bold"))
        case "thought":
            return Padding(Text(text.strip("\n"), style="dim italic"), (0, 0, 0, 2))
        case "agent":
            return Markdown(text, code_theme=THEME)


def drawn(body: TextBody | DiffBody) -> RenderableType:
    return Padding(drawn_text(body) if isinstance(body, TextBody) else drawn_diff(body), (0, 0, 0, 2))


def drawn_text(body: TextBody) -> RenderableType:
    lexer = Syntax.guess_lexer(body.path) if body.path else "text"
    highlighted = Syntax("", lexer, theme=THEME, background_color="default").highlight(body.text)
    highlighted.rstrip()
    bar = Text("│ ", style="dim")
    return Text("\n").join(bar + line for line in highlighted.split("\n", allow_blank=True))


def drawn_diff(diff: DiffBody) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="dim")
    table.add_column()
    table.add_column()
    syntax = Syntax("", Syntax.guess_lexer(diff.path), theme=THEME, background_color="default")
    for line in diff.lines:
        if line.sign == "@":
            table.add_row("", Text("⋯", "cyan"), "")
            continue
        code = syntax.highlight(line.text)
        code.rstrip()
        style = SIGNS[line.sign]
        if line.sign != " ":
            code.stylize(style)
        table.add_row(str(line.number), Text(line.sign, style), code)
    heading = Text.assemble((diff.path, "bold"), (f"  {diff.counts}", "dim"))
    rest = [Text(f"... {diff.left_out} more lines", "dim")] if diff.left_out else []
    return Group(heading, table, *rest)


def question_panel(call: Call, choices: Sequence[Choice]) -> Panel:
    options = Table.grid(padding=(0, 1))
    for number, choice in enumerate(choices, 1):
        style = "green" if choice.kind.startswith("allow") else "red"
        options.add_row(Text(f"{number}", f"bold {style}"), Text(choice.name))
    title = Text.assemble(("May it? ", "bold yellow"), call.title)
    return Panel(options, title=title, title_align="left", border_style="yellow", expand=False, padding=(0, 1))


def plan_panel(entries: list[PlanEntry]) -> Panel:
    rows = Table.grid(padding=(0, 1))
    for entry in entries:
        glyph, style = STEPS.get(entry.status, STEPS["pending"])
        rows.add_row(Text(glyph, style), Text(entry.content, "" if style == "dim" else style))
    done = sum(entry.status == "completed" for entry in entries)
    title = Text.assemble(("Plan", "bold"), f" {done}/{len(entries)}")
    return Panel(rows, title=title, title_align="left", border_style="dim", expand=False, padding=(0, 1))


def summary_panel(summary: Summary) -> Panel:
    style = "green" if summary.is_good else "red"
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    for label, text in summary.facts:
        facts.add_row(label, Text(text))
    steps = Table.grid(padding=(0, 2))
    steps.add_column(style="cyan", no_wrap=True)
    for label, text in summary.steps:
        steps.add_row(label, Text(text))
    title = Text(summary.heading, f"bold {style}")
    return Panel(Group(facts, "", steps), title=title, title_align="left", border_style=style, padding=(1, 2))

"""What the live stage draws."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from rich.text import Text

from acp_agent.cli.diffs import diff_lines
from acp_agent.cli.live import LastLines, LiveStage, drawn
from acp_agent.cli.stage import Call, Choice, DiffBody, PlanEntry, Summary, TextBody

CHOICES = [Choice("y", "Yes", "allow_once"), Choice("n", "No", "reject_once")]


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=60, height=12)


def plain(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())


def test_what_moves_never_takes_more_lines_than_the_terminal_has(console: Console) -> None:
    content = Text("\n".join(str(number) for number in range(100)))
    lines = console.render_lines(LastLines(content), pad=False)
    assert ["".join(segment.text for segment in line) for line in lines] == [str(number) for number in range(89, 100)]


def test_a_message_scrolls_up_when_it_is_whole(console: Console) -> None:
    with LiveStage(console) as stage:
        stage.say("agent", "It is **quite** ", begins=True)
        stage.say("agent", "done.", begins=False)
        assert "done" not in plain(console)
        stage.say("thought", "Really?", begins=True)
        assert "It is quite done." in plain(console)


def test_calls_scroll_up_when_they_are_over_with_what_they_have_to_show(console: Console) -> None:
    with LiveStage(console) as stage:
        stage.show_call(Call("1", "Run it", "execute", "pending"))
        stage.show_call(Call("1", "Run it", "execute", "in_progress", tail="so far"))
        assert "✗" not in plain(console)
        stage.show_call(Call("1", "Run it", "execute", "failed", [TextBody("No such thing.")]))
    assert re.search(r"✗ Run it  execute *\n  │ No such thing\.", plain(console))


def test_a_state_that_nobody_knows_is_drawn_as_one_that_waits(console: Console) -> None:
    with LiveStage(console) as stage:
        stage.show_call(Call("1", "Run it", "execute", "paused"))
        stage.show_question(Call("1", "Run it", "execute", "paused"), CHOICES)
    assert "? Run it" in plain(console)


def test_a_question_shows_its_options_until_it_is_answered(console: Console) -> None:
    with LiveStage(console) as stage:
        call = Call("1", "Edit a.py", "edit", "pending", [DiffBody("a.py", diff_lines("a = 1\n", "a = 2\n"), "+1 -1")])
        stage.show_question(call, CHOICES)
        shown = plain(console)
        assert re.search(r"1 - a = 1 +\n  1 \+ a = 2", shown)
        assert re.search(r"│ 1 Yes +│\n│ 2 No +│", shown)
        stage.show_answer(call, "No", allowed=False)
    assert "  → No" in plain(console)


def test_a_diff_has_colours_for_what_goes_and_what_comes(console: Console) -> None:
    console.print(drawn(DiffBody("a.txt", diff_lines("a\n", "b\n"), "+1 -1")))
    assert isinstance(console.file, io.StringIO)
    raw = console.file.getvalue()
    assert re.search(r"\x1b\[31[;0-9]*ma", raw)
    assert re.search(r"\x1b\[32[;0-9]*mb", raw)


def test_the_end_shows_the_plan_and_the_summary_and_gives_the_cursor_back(console: Console) -> None:
    with LiveStage(console) as stage:
        stage.show_plan([PlanEntry("One", "completed"), PlanEntry("Two", "pending")])
        stage.finish(Summary("The turn is over.", True, [("time", "1.0 s")], [("next", "do more")]))
    shown = plain(console)
    assert shown.index("Plan 1/2") < shown.index("The turn is over.") < shown.index("do more")
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().rindex("\x1b[?25h") > console.file.getvalue().rindex("\x1b[?25l")

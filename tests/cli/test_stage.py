"""What a director makes of updates."""

from __future__ import annotations

import io
from typing import Any

from acp_agent.cli.plain import Lines, PlainStage
from acp_agent.cli.stage import MAX_LINES, Choice, Director, clean
from acp_agent.testing.transcript import Update


class Show:
    """A director over a plain stage, and what it drew."""

    def __init__(self, *, everything: bool = False) -> None:
        self._out = io.StringIO()
        self.lines = Lines(self._out)
        self.director = Director(PlainStage(self.lines), "/project", everything=everything)

    def take(self, kind: str, **fields: Any) -> None:
        self.director.take(Update(0, 0.0, "s", kind, {"sessionUpdate": kind, **fields}))

    def said(self, kind: str, text: str, message_id: str = "m") -> None:
        self.take(kind, messageId=message_id, content={"type": "text", "text": text})

    @property
    def drawn(self) -> list[str]:
        self.lines.end()
        return self._out.getvalue().splitlines()


def output(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}


def test_pieces_of_one_message_make_one_block() -> None:
    show = Show()
    show.said("agent_message_chunk", "One, ")
    show.said("agent_message_chunk", "two\n\n")
    show.said("agent_message_chunk", "three.\n")
    assert show.drawn == ["agent     One, two", "", "          three."]


def test_another_message_or_another_speaker_begins_a_block() -> None:
    show = Show()
    show.said("agent_thought_chunk", "Hm.", "a")
    show.said("agent_message_chunk", "One.", "b")
    show.said("agent_message_chunk", "Two.", "c")
    assert show.drawn == ["thought   Hm.", "agent     One.", "agent     Two."]


def test_a_state_is_said_once_however_often_it_is_sent() -> None:
    show = Show()
    show.take("tool_call", toolCallId="1", title="Run it", status="pending")
    for text in ("a", "ab", "abc"):
        show.take("tool_call_update", toolCallId="1", status="in_progress", content=[output(text)])
    show.take("tool_call_update", toolCallId="1", status="completed", content=[output("```\nabc\n```")])
    assert show.drawn == [
        "tool      Run it: pending",
        "tool      Run it: running",
        "tool      Run it: completed",
        "          | abc",
    ]


def test_what_was_judged_is_not_shown_again_when_the_call_ends() -> None:
    show = Show()
    diff = {"type": "diff", "path": "/project/a.txt", "oldText": "one\ntwo\n", "newText": "one\n2\n"}
    show.take("tool_call", toolCallId="1", title="Edit a.txt", status="pending")
    call = show.director.ask({"toolCallId": "1", "content": [diff]}, [Choice("y", "Yes", "allow_once")])
    show.director.answer(call, Choice("y", "Yes", "allow_once"))
    show.take("tool_call_update", toolCallId="1", status="completed", content=[diff, output("2 lines")])
    assert show.drawn == [
        "tool      Edit a.txt: pending",
        "question  Edit a.txt?",
        "diff      a.txt (+1 -1)",
        "            one",
        "          - two",
        "          + 2",
        "options   1. Yes",
        "answer    Yes",
        "tool      Edit a.txt: completed",
        "          | 2 lines",
    ]


def test_a_question_about_a_call_that_nobody_announced_is_shown() -> None:
    show = Show()
    call = show.director.ask({"toolCallId": "9", "title": "Deploy"}, [Choice("n", "No", "reject_once")])
    show.director.answer(call, None)
    assert show.drawn == ["question  Deploy?", "options   1. No", "answer    dismissed"]


def test_of_what_is_long_the_beginning_is_shown_but_all_of_what_is_to_be_judged() -> None:
    show = Show()
    text = "".join(f"{number}\n" for number in range(100))
    diff = {"type": "diff", "path": "/elsewhere/new.txt", "newText": text}
    show.take("tool_call", toolCallId="1", title="Write", status="completed", content=[diff, output(text)])
    assert "diff      /elsewhere/new.txt (+100 -0)" in show.drawn
    assert f"          ... {100 - MAX_LINES} more lines" in show.drawn
    assert f"          | ... {100 - MAX_LINES} more lines" in show.drawn
    show = Show()
    show.director.ask({"toolCallId": "2", "title": "Write", "content": [diff]}, [])
    assert "          + 99" in show.drawn


def test_the_plan_is_drawn_and_the_call_that_keeps_it_is_not() -> None:
    show = Show()
    show.take("tool_call", toolCallId="1", title="Update the plan", name="update_plan", status="pending")
    entries = [{"content": "One", "status": "completed"}, {"content": "Two", "status": "pending"}]
    show.take("plan", entries=entries)
    assert show.drawn == ["plan      [x] One", "          [ ] Two"]
    assert show.director.rows == []


def test_small_news_are_for_those_who_want_everything() -> None:
    for everything, drawn in ((False, []), (True, ["note      mode: plan", "note      context: 5 of 100 tokens"])):
        show = Show(everything=everything)
        show.take("current_mode_update", currentModeId="plan")
        show.take("usage_update", used=5, size=100)
        assert show.drawn == drawn
    show = Show()
    show.take("notice", severity="warning", title="Server down", description="It did not start.")
    assert show.drawn == ["note      Server down: It did not start."]


def test_content_that_is_no_text_is_named() -> None:
    show = Show()
    blocks = [{"type": "image", "data": "AAAA"}, {"type": "resource_link", "uri": "file:///a", "name": "a"}]
    content = [{"type": "content", "content": block} for block in blocks] + [{"type": "terminal", "terminalId": "t1"}]
    show.take("tool_call", toolCallId="1", title="Look", status="completed", content=content)
    assert show.drawn[1:] == [
        "          | (image)",
        "          | (resource_link file:///a)",
        "          | (terminal t1)",
    ]


def test_nothing_that_an_agent_sends_moves_the_cursor_or_turns_the_text_around() -> None:
    assert clean("\x1b[31mred\x1b[0m \x1b]0;title\x07a\rb\x00\u202ec\x9b2Jd\te\nf") == "red abc2Jd\te\nf"
    show = Show()
    show.said("agent_message_chunk", "\x1b[2Jhere")
    show.take("tool_call", toolCallId="1", title="Run \x1b[8mrm -rf\x1b[0m\nit", status="pending")
    assert show.drawn == ["agent     here", "tool      Run rm -rf it: pending"]

"""A scenario file is checked as a whole; what is wrong is named with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.errors import ScenarioError
from acp_agent.models.scenario import (
    ErrorStep,
    FinishStep,
    Scenario,
    SleepStep,
    TextStep,
    ThoughtStep,
    ToolUseStep,
    UsageStep,
)

EXAMPLES = Path(__file__).parents[2] / "examples"

WHOLE = """
name = "deploy"
prompts = ["Deploy, please"]

[[turns]]
when = "(?i)deploy"
  [[turns.replies]]
  steps = [
    { type = "thought", text = "They want a release." },
    { type = "sleep", seconds = 0.4 },
    { type = "text", text = "la ", repeat = 1000000, every = 1 },
    { type = "usage", input_tokens = 10, output_tokens = 2, context_window = 100, cost = 1 },
    { type = "tool_use", name = "deploy", arguments = { to = "staging", tags = ["a", { b = 1.5 }] }, id = "t1" },
  ]
  [[turns.replies]]
  after = "failed"
  steps = [{ type = "error", message = "no", kind = "overloaded", status = 529, retryable = true }]
  [[turns.replies]]
  steps = [{ type = "finish", reason = "refusal" }]
"""


def test_every_key_and_step_is_read() -> None:
    scenario = Scenario.parse(WHOLE)
    assert (scenario.name, scenario.prompts) == ("deploy", ["Deploy, please"])
    (turn,) = scenario.turns
    assert turn.when is not None
    assert turn.when.search("please DEPLOY it")
    assert [reply.after for reply in turn.replies] == [None, "failed", None]
    assert [step for reply in turn.replies for step in reply.steps] == [
        ThoughtStep("They want a release."),
        SleepStep(0.4),
        TextStep("la ", 1_000_000, 1),
        UsageStep(10, 2, 100, 1),
        ToolUseStep("deploy", {"to": "staging", "tags": ["a", {"b": 1.5}]}, "t1"),
        ErrorStep("no", "overloaded", 529, True),
        FinishStep("refusal"),
    ]


def reply(steps: str) -> str:
    return f"[[turns]]\n\n[[turns.replies]]\nsteps = [\n{steps}\n]"


TEXT = '{ type = "text", text = "hi" }'
USE = '{ type = "tool_use", name = "x" }'


@pytest.mark.parametrize(
    ("text", "line", "key", "problem"),
    [
        ("", 1, "turns", "is missing"),
        ("\nturns = []", 2, "turns", "is empty"),
        (f"name = ''\n{reply(TEXT)}", 1, "name", "is empty"),
        ("turns = 3", 1, "turns", "expected `array`, got `int`"),
        ("[[turns]]\nreplies = []", 2, "turns[0].replies", "is empty"),
        ("# one\n[[turns]]\nwhen = ''", 2, "turns[0].replies", "is missing"),
        ("nme = 'x'\n" + reply(TEXT), 1, "nme", "is not a key of this table"),
        (reply(TEXT) + "\nwehn = 'x'", 7, "turns[0].replies[0].wehn", "is not a key of this table"),
        (
            reply(TEXT) + "\nafter = 'denied'",
            7,
            "turns[0].replies[0].after",
            "'denied' is not one of completed, failed",
        ),
        (reply(""), 4, "turns[0].replies[0].steps", "is empty"),
        (reply(f"{TEXT},\n3"), 6, "turns[0].replies[0].steps[1]", "expected `table`, got `int`"),
        (
            reply('{ type = "txt", text = "" }'),
            5,
            "turns[0].replies[0].steps[0].type",
            "'txt' is not one of text, thought",
        ),
        (reply('{ text = "hi" }'), 5, "turns[0].replies[0].steps[0].type", "is missing"),
        (reply('{ type = "text" }'), 5, "turns[0].replies[0].steps[0].text", "is missing"),
        (reply('{ type = "text", text = 3 }'), 5, "turns[0].replies[0].steps[0].text", "expected `str`, got `int`"),
        (
            reply(f'{TEXT},\n{TEXT},\n{{ type = "text", text = "", repeat = 0 }}'),
            7,
            "turns[0].replies[0].steps[2].repeat",
            ">= 1",
        ),
        (
            reply('{ type = "thought", text = "", repeat = 2 }'),
            5,
            "turns[0].replies[0].steps[0].repeat",
            "is not a key",
        ),
        (reply('{ type = "sleep", seconds = -0.1 }'), 5, "turns[0].replies[0].steps[0].seconds", ">= 0"),
        (reply('{ type = "sleep", seconds = nan }'), 5, "turns[0].replies[0].steps[0].seconds", ">= 0"),
        (reply('{ type = "sleep", seconds = true }'), 5, "turns[0].replies[0].steps[0].seconds", "got `bool`"),
        (reply('{ type = "text", text = "", every = -1 }'), 5, "turns[0].replies[0].steps[0].every", ">= 0"),
        (reply('{ type = "tool_use", name = "" }'), 5, "turns[0].replies[0].steps[0].name", "is empty"),
        (
            reply('{ type = "tool_use", name = "x", arguments = [] }'),
            5,
            "turns[0].replies[0].steps[0].arguments",
            "`table`",
        ),
        (
            reply('{ type = "tool_use", name = "x", arguments = { a = [1,\n { b = 2020-01-01 }] } }'),
            6,
            "turns[0].replies[0].steps[0].arguments.a[1].b",
            "arguments are JSON",
        ),
        (
            reply('{ type = "tool_use", name = "x", arguments = { a = inf } }'),
            5,
            "turns[0].replies[0].steps[0].arguments.a",
            "arguments are JSON",
        ),
        (
            reply('{ type = "usage", input_tokens = -1, output_tokens = 1 }'),
            5,
            "turns[0].replies[0].steps[0].input_tokens",
            ">= 0",
        ),
        (reply('{ type = "error", message = "" }'), 5, "turns[0].replies[0].steps[0].message", "is empty"),
        (
            reply('{ type = "error", message = "x", kind = "bad" }'),
            5,
            "turns[0].replies[0].steps[0].kind",
            "'bad' is not one of auth, not_found",
        ),
        (
            reply('{ type = "finish", reason = "stop" }'),
            5,
            "turns[0].replies[0].steps[0].reason",
            "'stop' is not one of end_turn, max_tokens, max_turn_requests, refusal",
        ),
        (
            reply('{ type = "finish", reason = "cancelled" }'),
            5,
            "turns[0].replies[0].steps[0].reason",
            "the user's doing",
        ),
        (
            "[[turns]]\n\nwhen = '''\n['''\nreplies = [{ steps = [{ type = 'finish' }] }]",
            3,
            "turns[0].when",
            "is not a regular expression",
        ),
        ("[[turns]]\nwhen = 3\nreplies = [{ steps = [{ type = 'finish' }] }]", 2, "turns[0].when", "expected `str`"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(text: str, line: int, key: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(text, file="demo.toml")
    error = caught.value
    assert (error.file, error.line, error.key) == ("demo.toml", line, key)
    assert problem in error.problem
    assert str(error).startswith(f"demo.toml:{line}: {key}: ")


@pytest.mark.parametrize(
    ("text", "line"),
    [("name = 'x'\n\nname = 'y'\n", 3), ("a = 1\nb = [1,\n2\n", 3), ("a = 1\nb = \n", 2), ("a = '\n", 1)],
)
def test_a_syntax_error_is_named_with_its_line(text: str, line: int) -> None:
    with pytest.raises(ScenarioError, match="is not TOML") as caught:
        Scenario.parse(text, file="demo.toml")
    assert (caught.value.file, caught.value.line) == ("demo.toml", line)


def test_a_retried_failure_may_be_followed_by_a_reply() -> None:
    text = reply('{ type = "error", message = "busy", retryable = true }') + f"\n[[turns.replies]]\nsteps = [{TEXT}]"
    assert len(Scenario.parse(text).turns[0].replies) == 2


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"missing\.toml: cannot be read: No such file"):
        Scenario.load(tmp_path / "missing.toml")
    with pytest.raises(ScenarioError, match="cannot be read: Is a directory"):
        Scenario.load(tmp_path)


def test_a_file_that_is_not_utf8_is_named_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "latin.toml"
    file.write_bytes(b"# one\n# two\nname = 'caf\xe9'\n")
    with pytest.raises(ScenarioError, match=r"latin\.toml:3: is not UTF-8"):
        Scenario.load(file)


def test_a_byte_order_mark_and_windows_line_ends_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "windows.toml"
    file.write_bytes(b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode())
    assert Scenario.load(file).name == "deploy"


def test_values_nested_without_end_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"demo\.toml: is nested too deeply"):
        Scenario.parse("a = " + "[" * 20_000, file="demo.toml")


def test_the_example_and_the_built_in_scenario_are_whole() -> None:
    assert Scenario.load(EXAMPLES / "scenario.toml").prompts
    assert Scenario.builtin().prompts == ["Fix the greeting, and run its test."]


def test_what_is_never_reached_is_no_mistake() -> None:
    behind_a_finish = reply(f'{{ type = "finish" }},\n{TEXT}')
    behind_the_last_reply = reply(TEXT) + f"\n[[turns.replies]]\nsteps = [{TEXT}]"
    first_with_after = reply(USE) + "\nafter = 'failed'"
    for text in (behind_a_finish, behind_the_last_reply, first_with_after):
        assert len(Scenario.parse(text).turns) == 1

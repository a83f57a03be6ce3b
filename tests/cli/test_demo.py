"""The demo as a program, without a terminal."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli import scenarios
from tests.cli.scenarios import COMMAND, environment, is_running, leftovers, run, write


@pytest.mark.slow
def test_the_built_in_demo_plans_reads_asks_edits_runs_and_says_what_to_do_next(tmp_path: Path) -> None:
    began = time.monotonic()
    done = run(tmp_path, "demo", "--yes")
    seconds = time.monotonic() - began
    assert (done.returncode, done.stderr) == (0, "")
    for shown in (
        "user      Fix the greeting, and run its test.",
        "plan      [>] Read greeting.py",
        "tool      Read greeting.py: completed",
        "question  Edit greeting.py?",
        '          +     return f"Hello, {name}!"',
        "options   1. Allow once",
        "answer    Allow once (--yes)",
        "| ok: Hello, Ada!",
        "| [exit code 0]",
        "          [x] Run test_greeting.py",
        "summary   The turn is over.",
        "  files   greeting.py (+1 -1)",
        "  calls   3 completed",
        "  asked   2 allowed",
        "next      in an editor: ",
        "next      with a model: ",
    ):
        assert shown in done.stdout
    assert "Traceback" not in done.stdout
    assert 2 < seconds < 20
    assert leftovers(tmp_path) == []


def test_with_yes_everything_is_allowed_once_and_each_state_of_a_call_is_shown(tmp_path: Path) -> None:
    done = run(tmp_path, "demo", write(tmp_path, scenarios.EDIT), "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    states = [line.rpartition(": ")[2] for line in lines if line.startswith("tool")]
    assert states == ["pending", "running", "completed"]
    assert "agent     I will **mend** it." in lines
    assert "answer    Allow once (--yes)" in lines
    assert "  files   greeting.py (+1 -1)" in lines
    assert done.stdout.count('return f"Hello, {name}!"') == 1  # the diff is shown once, with its question


def test_with_no_everything_is_rejected_and_that_is_a_turn_too(tmp_path: Path) -> None:
    done = run(tmp_path, "demo", write(tmp_path, scenarios.EDIT), "--no")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    states = [line.rpartition(": ")[2] for line in lines if line.startswith("tool")]
    assert states == ["pending", "failed"]
    assert '          -     return "Hello, name!"' in lines
    assert "answer    Reject (--no)" in lines
    assert "agent     Then not." in lines
    assert "  files   nothing changed" in lines
    assert "  asked   1 rejected" in lines


def test_without_a_terminal_and_an_answer_it_says_what_is_missing(tmp_path: Path) -> None:
    done = run(tmp_path, "demo")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("acp-agent: ")
    assert done.stderr.count("\n") == 1
    assert "--yes" in done.stderr
    assert "--no" in done.stderr


def test_a_broken_scenario_is_refused_with_file_line_and_key(tmp_path: Path) -> None:
    file = write(tmp_path, scenarios.EDIT.replace('text = "A line', 'txt = "A line'))
    done = run(tmp_path, "demo", file, "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        rf"acp-agent: {re.escape(file)}:\d+: turns\[0\]\.replies\[0\]\.steps\[0\]\S*: .+\n", done.stderr
    )
    assert leftovers(tmp_path) == []


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    done = run(tmp_path, "demo", "nowhere.toml", "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "acp-agent: nowhere.toml: cannot be read: No such file or directory\n"


def test_a_scenario_that_waits_for_a_word_needs_a_prompt(tmp_path: Path) -> None:
    text = scenarios.EDIT.replace('prompts = ["Fix it."]', "").replace("[[turns]]", '[[turns]]\nwhen = "mend"', 1)
    file = write(tmp_path, text)
    done = run(tmp_path, "demo", file, "--no")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--prompt TEXT" in done.stderr
    done = run(tmp_path, "demo", file, "--no", "--prompt", "please mend it")
    assert done.returncode == 0
    assert "user      please mend it" in done.stdout
    assert "agent     Then not." in done.stdout


def test_a_scenario_that_takes_any_prompt_gets_one(tmp_path: Path) -> None:
    file = write(tmp_path, scenarios.EDIT.replace('prompts = ["Fix it."]', ""))
    done = run(tmp_path, "demo", file, "--no")
    assert done.returncode == 0
    assert "user      Go ahead." in done.stdout


def test_a_turn_that_fails_is_told_and_the_exit_code_is_1(tmp_path: Path) -> None:
    done = run(tmp_path, "demo", write(tmp_path, scenarios.FAILING), "--yes")
    assert (done.returncode, done.stderr) == (1, "")
    assert "summary   The turn failed: " in done.stdout
    assert "The provider is on fire." in done.stdout
    assert leftovers(tmp_path) == []


def test_an_agent_that_dies_is_told_and_the_exit_code_is_1(tmp_path: Path) -> None:
    done = run(tmp_path, "demo", write(tmp_path, scenarios.DEADLY), "--yes")
    assert (done.returncode, done.stderr) == (1, "")
    assert "summary   The agent ended before the turn did." in done.stdout
    assert leftovers(tmp_path) == []


def test_no_process_is_left_of_the_agent_nor_of_what_it_started(tmp_path: Path) -> None:
    done = run(tmp_path, "demo", write(tmp_path, scenarios.PROCESSES), "--yes")
    found = re.search(r"pids (\d+) (\d+)", done.stdout)
    assert found
    assert [is_running(int(pid)) for pid in found.groups()] == [False, False]
    assert leftovers(tmp_path) == []


def test_neither_a_model_nor_rules_of_the_users_take_part(tmp_path: Path) -> None:
    settings = tmp_path / "settings" / "acp-agent"
    settings.mkdir(parents=True)
    (settings / "acp-agent.toml").write_text("this is no TOML")
    more = {"ACP_AGENT_MODEL": "openai:gpt-nowhere", "XDG_CONFIG_HOME": str(settings.parent)}
    done = run(tmp_path, "demo", write(tmp_path, scenarios.EDIT), "--yes", **more)
    assert done.returncode == 0
    assert "agent     It is mended." in done.stdout


def test_it_works_without_rich(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['rich'] = None; sys.argv[0] = 'acp-agent'; from acp_agent.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "demo", write(tmp_path, scenarios.EDIT), "--yes"],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "agent     It is mended." in done.stdout


def test_a_reader_that_leaves_ends_the_demo_quietly(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "demo", write(tmp_path, scenarios.ENDLESS), "--yes"],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stdout.readline().startswith(b"note")
        process.stdout.close()
        _, complaints = process.communicate(timeout=20)
    assert (process.returncode, complaints) == (1, b"")
    assert leftovers(tmp_path) == []

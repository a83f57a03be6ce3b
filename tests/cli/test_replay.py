"""A trace as a conversation."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from acp_agent.errors import RequestError
from acp_agent.testing import TestClient
from tests.cli import scenarios
from tests.cli.scenarios import run, write


def trace(folder: Path, *frames: tuple[float, str, Any], more: str = "") -> str:
    """A trace file of these frames: time, direction, frame."""
    path = folder / "trace.jsonl"
    lines = [json.dumps({"time": time, "direction": direction, "frame": frame}) for time, direction, frame in frames]
    path.write_text("\n".join([*lines, more]))
    return str(path)


def update(**fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": fields}}


@pytest.mark.anyio
async def test_what_an_agent_traced_reads_as_the_conversation_it_was(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    serve = [sys.executable, "-m", "acp_agent", "serve", "--scenario", write(tmp_path, scenarios.EDIT)]
    command = [*serve, "--state-dir", str(tmp_path / "state"), "--trace", str(file)]
    project = tmp_path / "project"
    project.mkdir()
    (project / "greeting.py").write_text('return "Hello, name!"\n')
    with anyio.fail_after(20):
        async with TestClient(command, cwd=project).connect() as client:
            await client.prompt("Fix it.")
            with pytest.raises(RequestError):
                await client.request("no/such")
            client.send_raw(b"rubbish\n")
    done = await anyio.to_thread.run_sync(run, tmp_path, "replay", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    shown = [line[10:] for line in done.stdout.splitlines()]
    assert done.stdout.startswith("   0.000  client    asks: initialize #1 (protocolVersion 1, ")
    for line in (
        "user      Fix it.",
        "agent     I will **mend** it.",
        "plan      [>] Mend it",
        "tool      Edit greeting.py: pending",
        "agent     asks: session/request_permission #1",
        "question  Edit greeting.py?",
        "diff      greeting.py (+1 -1)",
        '          + return f"Hello, {name}!"',
        "options   1. Allow once",
        "answer    Allow once",
        "tool      Edit greeting.py: running",
        "tool      Edit greeting.py: completed",
        "agent     It is mended.",
        "client    asks: no/such #4",
        "client    sends what is no JSON: rubbish",
    ):
        assert line in shown
    assert any("(stopReason end_turn)" in line for line in shown)
    assert any("answers with an error: no/such #4 after" in line for line in shown)
    assert any("answers with an error: what could not be read" in line for line in shown)
    assert not any(line.startswith("skipped") for line in shown)


def test_times_count_from_the_first_frame_and_an_answer_says_how_long_it_took(tmp_path: Path) -> None:
    file = trace(
        tmp_path,
        (1000.0, "in", {"id": 7, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}}),
        (1000.5, "out", update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "Hi, "})),
        (1001.0, "out", update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "you."})),
        (1001.25, "out", {"id": 7, "result": {"stopReason": "end_turn"}}),
        (1002.0, "in", {"id": 8, "method": "session/list", "params": {}}),
    )
    shown = run(tmp_path, "replay", file).stdout.splitlines()
    assert "   0.500  agent     Hi, you." in shown
    assert "   1.250  agent     answers: session/prompt #7 after 1.250 s (stopReason end_turn)" in shown
    assert shown[-2:] == ["   2.000  note      never answered: session/list #8", "   2.000  end       5 frames"]


def test_bad_lines_are_named_by_their_number_and_skipped(tmp_path: Path) -> None:
    file = trace(
        tmp_path,
        (1.0, "in", {"id": 1, "method": "initialize", "params": {}}),
        (2.0, "out", update(sessionUpdate="plan", entries=["what is this"])),
        (3.0, "sideways", {}),
        more='{"time": 4\n\n["no frame"]\n{"time": 5, "direction": "out", "frame": {"id": 1, "result": null}}\n',
    )
    done = run(tmp_path, "replay", file)
    assert (done.returncode, done.stderr) == (0, "")
    skipped = [line.split("skipped   ")[1] for line in done.stdout.splitlines() if "skipped" in line]
    assert [line.partition(":")[0] for line in skipped] == ["line 2", "line 3", "line 4", "line 6"]
    assert "agent     answers: initialize #1 after 4.000 s" in done.stdout


def test_an_agent_that_was_started_again_begins_anew(tmp_path: Path) -> None:
    start = {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    file = trace(tmp_path, (1.0, "in", start), (9.0, "in", start))
    shown = run(tmp_path, "replay", file).stdout
    assert "never answered: initialize #0" in shown
    assert shown.count("   0.000  client    asks: initialize #0 (protocolVersion 1)") == 2


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("nowhere", "acp-agent: nowhere: No such file or directory\n"),
        ("empty", "acp-agent: empty holds no frame; is it a file that --trace wrote?\n"),
        (".", "acp-agent: .: Is a directory\n"),
    ],
)
def test_a_file_that_is_no_trace_is_one_line(tmp_path: Path, name: str, complaint: str) -> None:
    (tmp_path / "empty").touch()
    done = run(tmp_path, "replay", name)
    assert (done.returncode, done.stderr) == (2, complaint)
    assert os.listdir(tmp_path / "temporary") == []

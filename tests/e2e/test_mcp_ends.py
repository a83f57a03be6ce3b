"""However a session or the agent ends, nothing of its MCP servers is left."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.editor import Pipe, children_of, is_alive
from tests.e2e.mcp_scenes import initialize, new_session, play, processes_noted, server_json
from tests.e2e.test_process import wait_for

pytestmark = pytest.mark.slow

GRACE = 5.0


def started(pipe: Pipe, *servers: dict[str, Any]) -> None:
    """A session whose servers run: its first turn is over."""
    initialize(pipe)
    new_session(pipe, servers)
    pipe.write(pipe.prompt("hello"))
    assert pipe.answer(3)["result"] == {"stopReason": "end_turn"}


def server(mode: str, folder: Path, name: str = "") -> dict[str, Any]:
    return server_json(mode, name=name or mode, env={"PID_FILE": str(folder / "pids"), "CANCEL_FILE": "/dev/null"})


def end_by(pipe: Pipe, end: str) -> None:
    process = pipe.process
    assert process.stdin is not None
    match end:
        case "close" | "delete":
            pipe.write({"id": 9, "method": f"session/{end}", "params": {"sessionId": pipe.session_id}})
            assert "result" in pipe.answer(9)
        case "stdin":
            process.stdin.close()
            assert process.wait(GRACE) == 0
        case _:
            process.send_signal(getattr(signal, end))
            process.wait(GRACE)


@pytest.mark.parametrize("end", ["close", "delete", "stdin", "SIGTERM", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize("mode", ["grandchild", "stubborn"])
def test_an_end_leaves_no_server_and_nothing_that_a_server_started(end: str, mode: str, tmp_path: Path) -> None:
    with Pipe("--scenario", play(tmp_path, {"hello": []}), cwd=tmp_path) as pipe:
        started(pipe, server(mode, tmp_path))
        running = processes_noted(tmp_path / "pids")
        assert len(running) == 2
        assert all(map(is_alive, running))
        end_by(pipe, end)
        assert not any(map(is_alive, running))  # at once: it was waited for
        assert pipe.process.poll() is not None or children_of(pipe.process.pid) == []


@pytest.mark.parametrize("end", ["close", "stdin", "SIGTERM", "SIGKILL"])
def test_an_end_in_the_middle_of_a_call_leaves_no_server(end: str, tmp_path: Path) -> None:
    scenario = play(tmp_path, {"hello": [], "work": [("mcp__slow__work", {})]})
    with Pipe("--scenario", scenario, "--mode", "auto", cwd=tmp_path) as pipe:
        started(pipe, server("slow", tmp_path))
        running = processes_noted(tmp_path / "pids")
        pipe.write(pipe.prompt("work", 4))
        pipe.read_until(lambda message: "in_progress" in str(message))
        end_by(pipe, end)
        wait_for(lambda: not any(map(is_alive, running)))


@pytest.mark.parametrize("mode", ["grandchild", "silent", "stubborn"])
def test_an_agent_that_is_killed_leaves_no_server_and_nothing_that_a_server_started(mode: str, tmp_path: Path) -> None:
    """Nobody is there to end them: they read the end of their input, and what does not go by that is seen to."""
    count = 2 if mode == "silent" else 3
    with Pipe("--scenario", play(tmp_path, {"hello": []}), cwd=tmp_path) as pipe:
        initialize(pipe)
        new_session(pipe, [server(mode, tmp_path), server("good", tmp_path)])
        wait_for(lambda: len(processes_noted(tmp_path / "pids")) == count, 10)
        wait_for(lambda: len(children_of(pipe.process.pid)) == count + 2)  # a guard for each server
        running = children_of(pipe.process.pid)
        assert set(processes_noted(tmp_path / "pids")) < set(running)
        pipe.process.kill()
        pipe.process.wait(GRACE)
        wait_for(lambda: not any(map(is_alive, running)))


@pytest.mark.parametrize("end", ["close", "stdin", "SIGTERM"])
def test_an_end_while_servers_still_start_leaves_none(end: str, tmp_path: Path) -> None:
    with Pipe(cwd=tmp_path) as pipe:
        initialize(pipe)
        new_session(pipe, [server("silent", tmp_path), server("good", tmp_path)])
        wait_for(lambda: processes_noted(tmp_path / "pids") != [], 10)
        end_by(pipe, end)
        wait_for(lambda: not any(map(is_alive, processes_noted(tmp_path / "pids"))))
        assert pipe.process.poll() is not None or children_of(pipe.process.pid) == []


def test_a_cancelled_call_leaves_the_server_and_closing_it_then_leaves_nothing(tmp_path: Path) -> None:
    scenario = play(tmp_path, {"hello": [], "work": [("mcp__slow__work", {})]})
    with Pipe("--scenario", scenario, "--mode", "auto", cwd=tmp_path) as pipe:
        started(pipe, server("slow", tmp_path))
        (pid,) = processes_noted(tmp_path / "pids")
        pipe.write(pipe.prompt("work", 4))
        pipe.read_until(lambda message: "in_progress" in str(message))
        pipe.write({"method": "session/cancel", "params": {"sessionId": pipe.session_id}})
        assert pipe.answer(4)["result"] == {"stopReason": "cancelled"}
        assert is_alive(pid)
        end_by(pipe, "close")
        assert not is_alive(pid)


def test_closing_ten_servers_takes_no_longer_than_the_slowest(tmp_path: Path) -> None:
    took: list[float] = []
    for count in (1, 10):
        (folder := tmp_path / str(count)).mkdir()
        with Pipe("--scenario", play(folder, {"hello": []}), cwd=folder) as pipe:
            started(pipe, *(server("stubborn", folder, f"s{number}") for number in range(count)))
            start = time.monotonic()
            end_by(pipe, "close")
            took.append(time.monotonic() - start)
            assert len(processes_noted(folder / "pids")) == 2 * count
            assert not any(map(is_alive, processes_noted(folder / "pids")))
    one, ten = took
    assert ten < one + 1

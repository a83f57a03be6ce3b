"""What broke agents at their start and their end: exits, signals, kills, children.

Proved whole by other tests:

    it stays when stdin closes in a tool (agentclientprotocol/claude-agent-acp#325)
        e2e/test_process.py::test_an_end_in_the_middle_of_a_command_leaves_no_process_and_no_traceback
    it stays when stdin closes in a question (agentclientprotocol/claude-agent-acp#325)
        e2e/test_process.py::test_a_question_that_nobody_can_answer_any_more_ends_the_turn_as_cancelled
    requests to a client that is gone hang (agentclientprotocol/rust-sdk#250)
        jsonrpc/test_connection.py::test_a_request_in_flight_fails_at_once_and_so_does_a_later_one
    a killed process loses what was answered (zed-industries/zed#59323)
        store/test_crash.py::test_a_killed_process_loses_nothing_confirmed_and_only_the_last_moment_of_the_rest
    an MCP server outlives a killed agent (kdlbs/kandev#1249)
        mcp/test_toolset.py::test_a_server_reads_eof_when_the_agent_is_killed
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.editor import Pipe, is_alive
from tests.requirements import requirement

SCENARIO = """
[[turns]]
when = "remember"
  [[turns.replies]]
  steps = [{ type = "text", text = "I will remember it." }]

[[turns]]
when = "talk"
  [[turns.replies]]
  steps = [{ type = "text", text = "on and on ", repeat = 3000, every = 0.01 }]

[[turns]]
when = "act"
  [[turns.replies]]
  steps = [{ type = "tool_use", name = "run_command", arguments = { command = "sleep 300" } }]
"""
SERVER = Path(__file__).parents[1] / "mcp" / "server_plain.py"


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    return str(path)


def wait_gone(pids: list[int], seconds: float = 5.0) -> None:
    """Within a deadline: the operating system does not tell."""
    deadline = time.monotonic() + seconds
    while alive := [pid for pid in pids if is_alive(pid)]:
        assert time.monotonic() < deadline, f"{alive} still run"
        time.sleep(0.01)


def is_chunk(message: dict[str, Any]) -> bool:
    return "agent_message_chunk" in str(message)


def replayed(scenario: str, session_id: str, cwd: Path) -> list[dict[str, Any]]:
    """The updates with which another process loads the session."""
    with Pipe("--scenario", scenario, cwd=cwd) as pipe:
        params = {"sessionId": session_id, "cwd": str(cwd), "mcpServers": []}
        pipe.write(
            {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
            {"id": 2, "method": "session/load", "params": params},
        )
        assert "result" in pipe.answer(2)
        return [message["params"]["update"] for message in pipe.received if message.get("method") == "session/update"]


def said(updates: list[dict[str, Any]], kind: str) -> str:
    return "".join(update["content"]["text"] for update in updates if update["sessionUpdate"] == kind)


# agentclientprotocol/claude-agent-acp#325
def test_it_leaves_when_stdin_closes_in_the_middle_of_an_answer(scenario: str, tmp_path: Path) -> None:
    with Pipe("--scenario", scenario, cwd=tmp_path) as pipe:
        pipe.open_session()
        pipe.write(pipe.prompt("talk"))
        pipe.read_until(is_chunk)
        assert pipe.process.stdin is not None
        pipe.process.stdin.close()
        assert pipe.answer(3)["result"] == {"stopReason": "cancelled"}
        assert pipe.process.wait(4) == 0


# jin-bo/agentao#78, zed-industries/zed#59323
@pytest.mark.parametrize(
    "end", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL], ids=lambda end: end.name
)
def test_a_conversation_outlives_every_signal(end: signal.Signals, scenario: str, tmp_path: Path) -> None:
    """What was answered is there, and of the turn that was cut, what was told half a second ago."""
    with Pipe("--scenario", scenario, cwd=tmp_path) as pipe:
        pipe.open_session()
        pipe.write(pipe.prompt("remember"))
        pipe.answer(3)
        pipe.write(pipe.prompt("talk", 4))
        for _ in range(100):
            pipe.read_until(is_chunk)
        pipe.process.send_signal(end)
        assert pipe.process.wait(5) == (-signal.SIGKILL if end == signal.SIGKILL else 0)
    updates = replayed(scenario, pipe.session_id, tmp_path)
    assert said(updates, "user_message_chunk") == "remembertalk"
    heard = said(updates, "agent_message_chunk")
    assert heard.startswith("I will remember it.on and on ")
    assert heard.count("on and on") >= 40


# zed-industries/zed#59323
def test_a_call_that_was_killed_with_the_process_is_loaded_as_failed(scenario: str, tmp_path: Path) -> None:
    with Pipe("--scenario", scenario, cwd=tmp_path) as pipe:
        pipe.open_session()
        pipe.write(pipe.prompt("act"))
        pipe.read_until(lambda message: message.get("method") == "session/request_permission")
        time.sleep(0.1)  # a fact is on disk within 50 ms
        pipe.process.kill()
    updates = replayed(scenario, pipe.session_id, tmp_path)
    calls = [update for update in updates if update["sessionUpdate"].startswith("tool_call")]
    assert [call["status"] for call in calls] == ["pending", "failed"]
    assert calls[0]["toolCallId"] == calls[1]["toolCallId"]


HOOKED = """
import os
from collections.abc import AsyncGenerator

import anyio
from acp_agent import Agent, Finish, Model, TextDelta


class Slow(Model):
    name = "slow"

    async def stream(self, request):
        yield TextDelta("here")
        yield Finish()

    async def aclose(self) -> None:
        await anyio.sleep(0.25)
        with open(os.environ["MARKER"], "w") as marker:
            marker.write("closed")


agent = Agent("hooked", model=Slow())
"""


# can1357/oh-my-pi#4788, agentclientprotocol/python-sdk#108
@pytest.mark.parametrize("end", ["stdin", "SIGTERM"])
def test_what_closes_slowly_is_waited_for(end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hooked.py").write_text(HOOKED)
    monkeypatch.setenv("MARKER", str(tmp_path / "marker"))
    with Pipe("hooked:agent", cwd=tmp_path) as pipe:
        pipe.open_session()
        pipe.write(pipe.prompt("hello"))
        pipe.answer(3)
        assert pipe.process.stdin is not None
        pipe.process.stdin.close() if end == "stdin" else pipe.process.send_signal(signal.SIGTERM)
        assert pipe.process.wait(5) == 0
    assert (tmp_path / "marker").read_text() == "closed"


# kdlbs/kandev#1249, openclaw/openclaw#35886
@requirement("close-frees")
@pytest.mark.parametrize("end", ["session/close", "stdin", "SIGTERM"])
def test_no_mcp_server_outlives_its_session_nor_what_it_started(end: str, scenario: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    env = [{"name": "PID_FILE", "value": str(pids)}]
    server = {"name": "parent", "command": sys.executable, "args": [str(SERVER), "grandchild"], "env": env}
    with Pipe("--scenario", scenario, cwd=tmp_path) as pipe:
        params = {"cwd": str(tmp_path), "mcpServers": [server]}
        pipe.write(
            {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
            {"id": 2, "method": "session/new", "params": params},
        )
        pipe.session_id = pipe.answer(2)["result"]["sessionId"]
        pipe.write(pipe.prompt("remember"))
        assert pipe.answer(3)["result"] == {"stopReason": "end_turn"}
        running = [int(pid) for pid in pids.read_text().split()]
        assert len(running) == 2
        assert all(map(is_alive, running))
        assert pipe.process.stdin is not None
        if end == "stdin":
            pipe.process.stdin.close()
        elif end.startswith("SIG"):
            pipe.process.send_signal(getattr(signal, end))
        else:
            pipe.write({"id": 4, "method": end, "params": {"sessionId": pipe.session_id}})
            assert pipe.answer(4)["result"] == {}
        wait_gone(running)


# nexu-io/open-design#717, MoonshotAI/kimi-cli#1284
def test_it_needs_no_terminal_no_home_and_no_settings(tmp_path: Path) -> None:
    with Pipe(cwd=tmp_path, env={"HOME": "/nonexistent"}, start_new_session=True) as pipe:
        pipe.open_session()
        pipe.write(pipe.prompt("hello"))
        assert pipe.answer(3)["result"] == {"stopReason": "end_turn"}
        assert pipe.process.stdin is not None
        assert pipe.process.stderr is not None
        pipe.process.stdin.close()
        assert pipe.process.wait(5) == 0
        assert pipe.process.stderr.read() == b""

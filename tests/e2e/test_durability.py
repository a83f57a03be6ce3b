"""Sessions that outlive the process, in the installed program: kills, two processes, damage, many and long ones."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from acp_agent.content import ContentItem, TextContent
from acp_agent.events import MessageChunk, PromptInserted, ToolCallChanged, ToolCallOpened, TurnEnded
from acp_agent.store.base import SessionHeader
from acp_agent.store.sqlite import SqliteStore
from acp_agent.testing import ToolCallView
from tests.e2e.crash_loop import ROOT, run_rounds, update_of
from tests.e2e.editor import Pipe
from tests.e2e.test_process import MIB, resident

OPENED = int(os.environ.get("CHURN", "1000"))  # sessions, after the first 1,000
CHURN_GROWTH = 8 * MIB
JOURNAL_MIB = 50


def test_what_was_answered_survives_kill_9_at_any_moment(tmp_path: Path) -> None:
    tally = run_rounds(tmp_path, rounds=15, seconds=60, seed=random.randrange(10**6))
    assert tally["rounds"] > 1
    assert tally["rows"] > 0


@pytest.mark.parametrize("moment", ["in_progress", "session/request_permission", "cut text"])
def test_a_turn_that_a_kill_cut_is_closed_at_load_and_a_strict_model_goes_on(moment: str, tmp_path: Path) -> None:
    env = os.environ | {"CRASH_STATE": str(tmp_path), "PYTHONPATH": ROOT}
    done, slow = ["use", "look", {"name": "a"}], ["use", "work", {"seconds": 300}]
    ends = {
        "in_progress": [done, slow],
        "session/request_permission": [done, ["use", "change", {"name": "b", "answer": "never"}], slow],
        "cut text": [["text", "cut text", 8], ["pause", 300]],
    }
    script = {"number": 1, "replies": [[["text", "First ", 6], done], ends[moment]]}
    with Pipe("tests.e2e.crash_agent:agent", cwd=tmp_path, env=env) as pipe:
        session_id = pipe.open_session()
        pipe.write(pipe.prompt(json.dumps(script)))
        calls = 2 if moment == "in_progress" else 0
        pipe.read_until(lambda message: moment in str(message) and str(pipe.received).count("completed") >= calls)
        time.sleep(0.6 if moment == "cut text" else 0.1)
    with Pipe("tests.e2e.crash_agent:agent", cwd=tmp_path, env=env) as pipe:
        initialize(pipe)
        assert "result" in load(pipe, session_id, 2)
        updates = [update_of(message) for message in pipe.received if message.get("method") == "session/update"]
        calls_shown = ToolCallView(updates)
        cut = [row for row in calls_shown if "Interrupted: the agent stopped" in row.text]
        assert len(cut) == {"in_progress": 1, "session/request_permission": 2, "cut text": 0}[moment]
        assert {row.status for row in cut} <= {"failed"}
        assert all(row.is_over for row in calls_shown)
        assert ("cut text" in str(updates)) is (moment == "cut text")
        assert say(pipe, "known", 3) == "[1]"  # and no word of what a strict provider would have refused
        follow = {"number": 2, "replies": [[["use", "look", {"name": "a"}]]]}
        assert say(pipe, json.dumps(follow), 4) == "end of 2"


# one session, two processes -------------------------------------------------------------------------------------------


def initialize(pipe: Pipe) -> None:
    pipe.write({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
    pipe.answer(1)


def load(pipe: Pipe, session_id: str, request_id: int, method: str = "session/load") -> dict[str, Any]:
    pipe.session_id = session_id
    params = {"sessionId": session_id, "cwd": str(pipe.cwd), "mcpServers": []}
    pipe.write({"id": request_id, "method": method, "params": params})
    return pipe.answer(request_id)


def test_a_session_that_another_process_has_is_refused_by_its_pid_and_free_when_that_is_killed(
    scenario: str, tmp_path: Path
) -> None:
    with Pipe("--scenario", scenario, cwd=tmp_path) as first, Pipe("--scenario", scenario, cwd=tmp_path) as second:
        session_id = first.open_session()
        first.write(first.prompt("quick"))
        first.answer(3)
        initialize(second)
        for number, method in enumerate(("session/load", "session/resume", "session/delete"), start=2):
            error = load(second, session_id, number, method)["error"]
            assert error["message"] == "The session cannot be opened"
            assert f"(pid {first.process.pid})" in error["data"]["details"]
        first.write(first.prompt("quick", 4))
        assert first.answer(4)["result"] == {"stopReason": "end_turn"}
        first.process.kill()
        first.process.wait(5)
        second.received.clear()
        assert "result" in load(second, session_id, 5)
        assert str(second.received).count("quick answer") == 2
        second.write(second.prompt("quick", 6))
        assert second.answer(6)["result"] == {"stopReason": "end_turn"}


@pytest.mark.parametrize("flags", [[], ["--unstable", "fork"]])
def test_fork_is_there_with_its_flag_and_only_then(flags: list[str], scenario: str, tmp_path: Path) -> None:
    with Pipe("--scenario", scenario, *flags, cwd=tmp_path) as pipe:
        source = pipe.open_session()
        offered = pipe.received[0]["result"]["agentCapabilities"]["sessionCapabilities"]
        assert ("fork" in offered) is bool(flags)
        assert say(pipe, "quick", 3) == "quick answer"
        answer = load(pipe, source, 4, "session/fork")
        if not flags:
            assert answer["error"]["code"] == -32601
            return
        pipe.session_id = answer["result"]["sessionId"]
        assert pipe.session_id != source
        assert say(pipe, "quick", 5) == "quick answer"
        pipe.received.clear()
        pipe.write({"id": 6, "method": "session/close", "params": {"sessionId": pipe.session_id}})
        pipe.answer(6)
        load(pipe, pipe.session_id, 7)
        assert str(pipe.received).count("quick answer") == 2


# damage ---------------------------------------------------------------------------------------------------------------


def garble(state: Path) -> None:
    (state / "sessions.db").write_bytes(os.urandom(20_000))


def truncate(state: Path) -> None:
    os.truncate(state / "sessions.db", 1000)


def come_from_a_newer_version(state: Path) -> None:
    with closing(sqlite3.connect(state / "sessions.db")) as database:
        database.execute("INSERT INTO migrations VALUES (99, 'telepathy')")
        database.commit()


def make_it_a_file(state: Path) -> None:
    shutil.rmtree(state)
    state.write_text("no directory")


def say(pipe: Pipe, text: str, request_id: int) -> str:
    """What the agent said, whole."""
    pipe.received.clear()
    pipe.write(pipe.prompt(text, request_id))
    assert pipe.answer(request_id)["result"] == {"stopReason": "end_turn"}
    updates = [message["params"]["update"] for message in pipe.received if message.get("method") == "session/update"]
    return "".join(update["content"]["text"] for update in updates if update["sessionUpdate"] == "agent_message_chunk")


def end(pipe: Pipe) -> None:
    """Leave, as an editor does; the agent follows quietly."""
    assert pipe.process.stdin is not None
    assert pipe.process.stderr is not None
    pipe.process.stdin.close()
    assert pipe.process.wait(5) == 0
    assert pipe.process.stderr.read() == b""


@pytest.mark.parametrize("damage", [garble, truncate, come_from_a_newer_version, make_it_a_file])
def test_with_a_damaged_store_new_sessions_work_and_the_user_is_told_once(
    damage: Callable[[Path], None], scenario: str, tmp_path: Path
) -> None:
    state, log = tmp_path / "state", tmp_path / "agent.log"
    with Pipe("--scenario", scenario, "--log-file", str(log), cwd=tmp_path) as pipe:
        lost = pipe.open_session()
        say(pipe, "quick", 3)
        end(pipe)
    damage(state)
    before = {path.name: path.read_bytes() for path in state.iterdir()} if state.is_dir() else {}
    with Pipe("--scenario", scenario, "--log-file", str(log), cwd=tmp_path) as pipe:
        pipe.open_session()
        first, second = say(pipe, "quick", 3), say(pipe, "quick", 4)
        assert f"Sessions cannot be saved in {state}/sessions.db" in first
        assert first.endswith("quick answer")
        assert second == "quick answer"
        pipe.write({"id": 5, "method": "session/close", "params": {"sessionId": pipe.session_id}})
        assert pipe.answer(5)["result"] == {}
        assert "result" in load(pipe, pipe.session_id, 6)
        assert say(pipe, "quick", 7) == "quick answer"
        assert "error" in load(pipe, lost, 8)
        end(pipe)
    assert str(state / "sessions.db") in log.read_text()
    if damage is come_from_a_newer_version:
        assert (state / "sessions.db").read_bytes() == before["sessions.db"]


# many -----------------------------------------------------------------------------------------------------------------


IN_MEMORY = """
from acp_agent import Agent, Turn

agent = Agent("echo")

@agent.on_prompt
async def echo(turn: Turn) -> None:
    await turn.send_text(turn.text)
"""


def churn(pipe: Pipe, count: int, *, prompts: bool) -> None:
    """Open, use and close `count` sessions, 50 at a time."""
    place = {"cwd": str(pipe.cwd), "mcpServers": []}
    for start in range(10, 10 + 200 * (count // 50), 200):
        news = range(start, start + 50)
        pipe.write(*({"id": number, "method": "session/new", "params": place} for number in news))
        ids = [session["result"]["sessionId"] for session in answers(pipe, 50)]
        if prompts:
            prompt = [{"type": "text", "text": "quick"}]
            pipe.write(
                *(
                    {
                        "id": start + 50 + index,
                        "method": "session/prompt",
                        "params": {"sessionId": each, "prompt": prompt},
                    }
                    for index, each in enumerate(ids)
                )
            )
            assert all(answer["result"] == {"stopReason": "end_turn"} for answer in answers(pipe, 50))
        closes = ({"sessionId": each} for each in ids)
        pipe.write(
            *(
                {"id": start + 100 + index, "method": "session/close", "params": each}
                for index, each in enumerate(closes)
            )
        )
        assert all(answer["result"] == {} for answer in answers(pipe, 50))
        pipe.received.clear()


def answers(pipe: Pipe, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while len(found) < count:
        message = pipe.read()
        if "method" not in message:
            found.append(message)
    return found


def measure_churn(kind: str, scenario: str, cwd: Path, count: int, *, prompts: bool) -> list[float]:
    """MiB in use after 1,000 sessions, and after `count` more."""
    arguments = ["--scenario", scenario] if kind == "disk" else ["memory:agent"]
    (cwd / "memory.py").write_text(IN_MEMORY)
    with Pipe(*arguments, cwd=cwd) as pipe:
        initialize(pipe)
        sizes: list[float] = []
        for part in (1000, count):
            churn(pipe, part, prompts=prompts)
            sizes.append(resident(pipe.process.pid) / MIB)
        print(f"{kind}, prompts {prompts}, {count} sessions: {sizes[0]:.1f} MiB, then {sizes[1]:.1f} MiB")
        return sizes


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "disk"])
@pytest.mark.parametrize("prompts", [False, True])
def test_sessions_that_are_closed_leave_no_memory_behind(
    kind: str, prompts: bool, scenario: str, tmp_path: Path
) -> None:
    first, last = measure_churn(kind, scenario, tmp_path, OPENED, prompts=prompts)
    assert (last - first) * MIB < CHURN_GROWTH


# long -----------------------------------------------------------------------------------------------------------------


def write_long_session(cwd: Path, size: int) -> str:
    """A kept session of `size` bytes: turns of a long answer and a call with much output."""

    async def write() -> None:
        store = SqliteStore(cwd / "state")
        moment = "2026-01-01T00:00:00Z"
        store.put_header(SessionHeader(session_id="long", cwd=str(cwd), created_at=moment, updated_at=moment))
        text, written, turn = "0123456789abcdef" * 1024, 0, 0
        while written < size:
            turn += 1
            output = [ContentItem(TextContent(text))]
            store.append(
                "long",
                [
                    PromptInserted(f"user-{turn}", [TextContent("go on")]),
                    *(MessageChunk("agent", f"agent-{turn}", TextContent(text)) for _ in range(4)),
                    ToolCallOpened(f"call-{turn}", "Work", "work"),
                    ToolCallChanged(f"call-{turn}", "completed", content=output),
                    TurnEnded("end_turn"),
                ],
            )
            written += 5 * len(text)
            await store.commit()
        await store.aclose()

    anyio.run(write)
    return "long"


def test_a_long_session_is_replayed_in_little_memory_while_another_one_is_heard(scenario: str, tmp_path: Path) -> None:
    session_id = write_long_session(tmp_path, JOURNAL_MIB * MIB)
    with Pipe("--scenario", scenario, cwd=tmp_path) as pipe:
        other = pipe.open_session()
        pipe.write(pipe.prompt("wait"))
        pipe.read_until(lambda message: "waiting" in str(message))
        base = peak = resident(pipe.process.pid)
        params = {"sessionId": session_id, "cwd": str(tmp_path), "mcpServers": []}
        pipe.write({"id": 4, "method": "session/load", "params": params})
        began, size, count = time.monotonic(), 0, 0
        asked, heard, cancels = 0.0, [], 3
        while (message := pipe.read()).get("id") != 4 or "method" in message:
            pipe.received.clear()
            count += 1
            size += len(str(message))
            if message.get("id") == 3 and "method" not in message:
                assert message["result"] == {"stopReason": "cancelled"}
                heard.append(time.monotonic() - asked)
                asked = 0.0
            if count % 500 == 0:
                peak = max(peak, resident(pipe.process.pid))
                if not asked and len(heard) < cancels:
                    if heard:
                        pipe.session_id = other
                        pipe.write(pipe.prompt("wait"))
                    asked = time.monotonic()
                    pipe.write({"method": "session/cancel", "params": {"sessionId": other}})
        took = time.monotonic() - began
    latencies = [f"{each * 1000:.0f} ms" for each in heard]
    print(
        f"{size / MIB:.0f} MiB replayed in {took:.1f} s, {(peak - base) / MIB:.1f} MiB more in use, cancels {latencies}"
    )
    assert size > JOURNAL_MIB * MIB
    assert len(heard) == cancels
    assert max(heard) < 1.0
    assert peak - base < 24 * MIB

"""The installed program as a process: pipes, files, signals, ends, floods."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from tests.e2e.editor import AGENT, Pipe, children_of, is_alive
from tests.requirements import requirement

MIB = 1024 * 1024


def wait_for(check, seconds: float = 5.0) -> None:  # type: ignore[no-untyped-def]
    """Poll within a deadline: the operating system does not tell."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def start_command(pipe: Pipe) -> list[int]:
    """A turn in the middle of a running command; the processes of the command."""
    pipe.open_session()
    pipe.write(pipe.prompt("command"))
    question = pipe.read_until(lambda message: message.get("method") == "session/request_permission")
    pipe.write({"id": question["id"], "result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}}})
    wait_for(lambda: len(children_of(pipe.process.pid)) >= 3)
    return children_of(pipe.process.pid)


@pytest.mark.parametrize("end", ["SIGTERM", "SIGINT", "SIGHUP", "stdin", "stdout"])
def test_an_end_in_the_middle_of_a_command_leaves_no_process_and_no_traceback(
    end: str, scenario: str, tmp_path: Path
) -> None:
    with Pipe("--scenario", scenario, cwd=tmp_path) as pipe:
        command = start_command(pipe)
        process = pipe.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        if end == "stdin":
            process.stdin.close()
        elif end == "stdout":
            process.stdout.close()
            pipe.write({"id": 9, "method": "session/list"})
        else:
            process.send_signal(getattr(signal, end))
        assert process.wait(5) == 0
        wait_for(lambda: not any(is_alive(pid) for pid in command))
        assert process.stderr.read() == b""


def test_a_second_signal_ends_it_at_once(scenario: str, tmp_path: Path) -> None:
    with Pipe("--scenario", scenario, "--drain", "60", cwd=tmp_path) as pipe:
        pipe.open_session()
        pipe.write(pipe.prompt("wait"))
        pipe.read_until(lambda message: message.get("method") == "session/update" and "waiting" in str(message))
        pipe.process.send_signal(signal.SIGTERM)
        pipe.process.send_signal(signal.SIGTERM)
        pipe.process.wait(5)


def requests(cwd: Path, text: str) -> bytes:
    messages = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": str(cwd), "mcpServers": []}},
        {"jsonrpc": "2.0", "id": 3, "method": "session/list"},
        {"jsonrpc": "2.0", "id": 4, "method": "session/prompt", "params": {"sessionId": "none", "prompt": []}},
    )
    return b"".join(msgspec.json.encode(message) + b"\n" for message in messages)


def answers(output: bytes) -> dict[object, object]:
    lines = [msgspec.json.decode(line) for line in output.splitlines()]
    return {line["id"]: line for line in lines if "id" in line and "method" not in line}


def test_everything_written_in_one_go_before_the_end_is_answered(scenario: str, tmp_path: Path) -> None:
    command = [*AGENT, "--scenario", scenario, "--state-dir", str(tmp_path / "s")]
    done = subprocess.run(command, input=requests(tmp_path, "quick"), capture_output=True, timeout=20, check=True)
    assert sorted(map(str, answers(done.stdout))) == ["1", "2", "3", "4"]
    assert done.stderr == b""


def test_plain_files_serve_as_well_as_pipes(scenario: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(requests(tmp_path, "quick"))
    command = [*AGENT, "--scenario", scenario, "--state-dir", str(tmp_path / "s"), "--drain", "30"]
    with open(tmp_path / "in", "rb") as source, open(tmp_path / "out", "wb") as target:
        done = subprocess.run(command, stdin=source, stdout=target, stderr=subprocess.PIPE, timeout=40, check=True)
    assert sorted(map(str, answers((tmp_path / "out").read_bytes()))) == ["1", "2", "3", "4"]
    assert done.stderr == b""


def test_an_empty_input_ends_quietly(tmp_path: Path) -> None:
    done = subprocess.run(
        [*AGENT, "--state-dir", str(tmp_path / "s")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"", b"")


def test_a_prompt_that_is_cut_off_by_the_end_of_the_input_is_answered(scenario: str, tmp_path: Path) -> None:
    with Pipe("--scenario", scenario, cwd=tmp_path) as pipe:
        pipe.open_session()
        pipe.write(pipe.prompt("quick"))
        assert pipe.process.stdin is not None
        pipe.process.stdin.close()
        assert pipe.answer(3)["result"] == {"stopReason": "end_turn"}
        assert pipe.process.wait(5) == 0


def test_a_question_that_nobody_can_answer_any_more_ends_the_turn_as_cancelled(scenario: str, tmp_path: Path) -> None:
    with Pipe("--scenario", scenario, cwd=tmp_path) as pipe:
        pipe.open_session()
        pipe.write(pipe.prompt("command"))
        pipe.read_until(lambda message: message.get("method") == "session/request_permission")
        assert pipe.process.stdin is not None
        pipe.process.stdin.close()
        assert pipe.answer(3)["result"] == {"stopReason": "cancelled"}
        assert pipe.process.wait(5) == 0


def resident(pid: int) -> int:
    """Bytes of memory in use by the process now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_client_that_does_not_read_costs_no_memory_and_is_heard_when_it_cancels(
    scenario: str, tmp_path: Path
) -> None:
    """200 MB are on their way; what the pipe does not take is not made."""
    with Pipe("--scenario", scenario, cwd=tmp_path) as pipe:
        pipe.open_session()
        pipe.write(pipe.prompt("flood"))
        quiet_since, last = time.monotonic(), cpu_seconds(pipe.process.pid)
        while time.monotonic() - quiet_since < 0.5:  # until it has stopped working
            time.sleep(0.05)
            now = cpu_seconds(pipe.process.pid)
            if now != last:
                quiet_since, last = time.monotonic(), now
        assert resident(pipe.process.pid) < 150 * MIB
        pipe.write({"method": "session/cancel", "params": {"sessionId": pipe.session_id}})
        assert pipe.answer(3)["result"] == {"stopReason": "cancelled"}
        assert resident(pipe.process.pid) < 150 * MIB


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


NOISY = """
import os, subprocess, sys
from acp_agent import Agent, Turn

print("at import")
agent = Agent("noisy")

@agent.on_prompt
async def handle(turn: Turn) -> None:
    print("from print")
    os.write(1, b"from write\\n")
    subprocess.run(["echo", "from a child"])
    child = subprocess.run([sys.executable, "-c", "import sys; print(repr(sys.stdin.read()), file=sys.stderr)"],
                           stderr=subprocess.PIPE, text=True)
    await turn.send_text("the child read " + child.stderr.strip())
"""


@requirement("stdout-only-messages")
def test_stray_output_never_reaches_the_wire_and_children_read_nothing_of_ours(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    with Pipe("noisy:agent", cwd=tmp_path) as pipe:
        pipe.open_session()
        pipe.write(pipe.prompt("hello"), {"id": 4, "method": "session/list"})
        pipe.answer(3)
        pipe.answer(4) if not any(message.get("id") == 4 for message in pipe.received) else None
    assert all(message["jsonrpc"] == "2.0" for message in pipe.received)
    texts = [str(message) for message in pipe.received]
    assert any("the child read ''" in text for text in texts)
    assert not any("from write" in text or "from print" in text or "at import" in text for text in texts)


def test_the_program_and_the_module_are_the_same(tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "acp-agent"
    versions = {
        subprocess.run([*command, "--version"], capture_output=True, text=True, check=True, timeout=20).stdout
        for command in ([str(program)], AGENT)
    }
    assert len(versions) == 1


def test_initialize_imports_only_what_its_answer_needs(tmp_path: Path) -> None:
    script = (
        "import sys, os\n"
        "sys.argv = ['acp-agent', '--state-dir', sys.argv[1]]\n"
        "real = os._exit\n"
        "os._exit = lambda code: (sys.stderr.write('\\n'.join(sorted(sys.modules))), sys.stderr.flush(), real(code))\n"
        "from acp_agent.__main__ import main\n"
        "main()\n"
    )
    first = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], input=first + b"\n", capture_output=True, timeout=20, check=True
    )
    assert b'"protocolVersion":1' in done.stdout
    loaded = {name.partition(".")[0] for name in done.stderr.decode().split()}
    assert "acp_agent" in loaded
    assert not loaded & {"mcp", "httpx2", "rich", "pydantic", "sqlite3", "trio", "openai", "anthropic", "structlog"}

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from acp_agent.content import ContentItem, TerminalItem, TextContent
from acp_agent.errors import EditorRefused, ToolError
from acp_agent.tools.base import TerminalOutput
from acp_agent.tools.command import RunCommand
from acp_agent.tools.family import Family
from tests.tools.fakes import FakeCall, FakeTerminal, shown, told

pytestmark = pytest.mark.anyio


def is_gone(pid: int) -> bool:
    """Whether no process with this number runs; a zombie runs no more."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return True
    return state in (b"Z", b"X")


def go_soon(pids: list[int]) -> bool:
    end = time.monotonic() + 5
    while time.monotonic() < end and not all(map(is_gone, pids)):
        time.sleep(0.01)
    return all(map(is_gone, pids))


async def run_until_printed(call: FakeCall, command: str, tool: RunCommand | None = None) -> list[int]:
    """Run a command that prints process numbers and goes on, and cancel it when it has; the numbers."""
    printed = anyio.Event()
    call.on_report = printed.set
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: call.call(tool or RunCommand(), command=command))
            await printed.wait()
            tasks.cancel_scope.cancel()
    last = call.reports[-1]
    assert not isinstance(last, str)
    (item,) = last
    assert isinstance(item, ContentItem)
    assert isinstance(item.content, TextContent)
    return [int(word) for word in item.content.text.split() if word.isdecimal()]


async def test_a_command_prints_and_ends_with_its_exit_code(call: FakeCall) -> None:
    output = await call.call(RunCommand(), command="echo out; echo err >&2; exit 3")
    assert told(output) == "out\nerr\n[exit code 3]"
    assert not output.failed
    assert output.raw_output["exitCode"] == 3
    assert shown(output) == "```\nout\nerr\n```\n[exit code 3]"


async def test_the_question_shows_the_exact_command_and_remembers_only_it(call: FakeCall, root: Path) -> None:
    (root / "sub").mkdir()
    proposal = await call.propose(RunCommand(), command="pytest -q")
    assert proposal.title == "Run `pytest -q`"
    assert proposal.kind == "execute"
    assert proposal.permission == "ask"
    assert proposal.key == "pytest -q"
    assert proposal.content == [ContentItem(TextContent("```sh\npytest -q\n```"))]
    elsewhere = await call.propose(RunCommand(), command="pytest -q", cwd="sub")
    assert elsewhere.title == "Run `pytest -q` in sub"
    assert elsewhere.key != proposal.key
    assert not elsewhere.outside
    outside = await call.propose(RunCommand(), command="ls", cwd="/")
    assert outside.outside
    assert shown(outside) == "```sh\nls\n```\n/ is outside the folders of this session."


async def test_a_title_hides_no_character_of_the_command(call: FakeCall) -> None:
    proposal = await call.propose(RunCommand(), command="ls \u202e `x`\nrm y")
    assert proposal.title == "Run `` ls \\u{202e} `x`⏎rm y ``"


async def test_a_command_runs_in_the_folder_it_is_given(call: FakeCall, root: Path) -> None:
    (root / "sub").mkdir()
    assert told(await call.call(RunCommand(), command="pwd", cwd="sub")).startswith(f"{root}/sub\n")
    with pytest.raises(ToolError, match="no folder gone"):
        await call.call(RunCommand(), command="pwd", cwd="gone")


async def test_a_shell_that_is_not_there_is_an_error_that_says_so(call: FakeCall) -> None:
    with pytest.raises(ToolError, match="could not be started"):
        await call.call(RunCommand(shell="/no/such/shell"), command="true")


async def test_a_child_that_reads_its_input_gets_the_end_of_it(call: FakeCall) -> None:
    with anyio.fail_after(5):
        assert told(await call.call(RunCommand(), command="cat; read line; echo done")) == "done\n[exit code 0]"


async def test_nothing_in_the_environment_waits_for_a_person(call: FakeCall) -> None:
    output = await call.call(RunCommand(env={"HOME": None, "EXTRA": "1"}), command="env")
    lines = told(output).splitlines()
    assert {"GIT_TERMINAL_PROMPT=0", "PAGER=cat", "GIT_PAGER=cat", "TERM=dumb", "NO_COLOR=1", "EXTRA=1"} <= set(lines)
    assert not any(line.startswith("HOME=") for line in lines)


async def test_a_timeout_ends_the_command_and_keeps_what_it_printed(call: FakeCall) -> None:
    with anyio.fail_after(5):
        output = await call.call(RunCommand(), command="echo $$; sleep 60", timeout=0.3)
    assert output.failed
    assert "[timed out after 0.3 s and was ended]" in told(output)
    assert is_gone(int(told(output).split()[0]))


async def test_a_command_that_was_killed_has_failed(call: FakeCall) -> None:
    output = await call.call(RunCommand(), command="kill -9 $$")
    assert output.failed
    assert output.raw_output == {"exitCode": None, "signal": "SIGKILL", "timedOut": False, "truncated": False}


async def test_cancelling_ends_the_whole_tree(call: FakeCall) -> None:
    pids = await run_until_printed(call, "sleep 600 & (sleep 600 & wait) & echo $$ $!; wait")
    assert len(pids) == 2
    assert all(map(is_gone, pids))


async def test_cancelling_ends_who_ignores_sigterm_and_who_left_the_group(call: FakeCall) -> None:
    stubborn = "(trap '' TERM; exec sleep 600) & a=$!; setsid sleep 600 & echo $$ $a $!; wait"
    pids = await run_until_printed(call, stubborn)
    assert len(pids) == 3
    assert all(map(is_gone, pids))


async def test_without_proc_and_pidfd_the_group_is_ended_all_the_same(
    call: FakeCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_agent.tools.family._read_processes", lambda: None)
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    assert told(await call.call(RunCommand(), command="echo hi")) == "hi\n[exit code 0]"
    pids = await run_until_printed(call, "(trap '' TERM; exec sleep 600) & echo $$ $!; wait")
    assert len(pids) == 2
    assert await anyio.to_thread.run_sync(go_soon, pids)  # nobody could tell when they are gone, only kill them


async def test_commands_leave_no_descriptor_open(call: FakeCall) -> None:
    await call.call(RunCommand(), command="true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await call.call(RunCommand(), command="sleep 5 &")
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_process_in_the_background_holds_no_call_open_and_is_ended_with_it(call: FakeCall) -> None:
    started = time.monotonic()
    with anyio.fail_after(5):
        output = await call.call(RunCommand(), command="sleep 600 & echo $!")
    assert time.monotonic() - started < 3
    assert output.raw_output["exitCode"] == 0
    assert is_gone(int(told(output).split()[0]))


async def test_much_output_is_bounded_to_its_head_and_tail(call: FakeCall) -> None:
    output = await call.call(RunCommand(), command="i=0; while [ $i -lt 35000 ]; do echo line $i; i=$((i+1)); done")
    for text, limit in ((shown(output), 60_000), (told(output), 34_000)):
        assert len(text.encode()) < limit
        assert "line 0\n" in text
        assert "line 34999\n" in text
        assert "bytes left out …]" in text
    assert output.raw_output["truncated"]
    assert all(len(str(report)) < 9000 for report in call.reports)


async def test_a_flood_of_output_holds_up_neither_the_loop_nor_the_memory(call: FakeCall) -> None:
    ticks = 0
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:

            async def tick() -> None:
                nonlocal ticks
                while True:
                    await anyio.sleep(0.01)
                    ticks += 1

            tasks.start_soon(tick)
            output = await call.call(RunCommand(), command="yes", timeout=0.5)
            tasks.cancel_scope.cancel()
    assert output.failed
    assert ticks > 5
    assert len(call.reports) <= 10
    assert len(shown(output)) < 60_000


async def test_many_small_pieces_are_reported_ten_times_a_second(call: FakeCall) -> None:
    await call.call(RunCommand(), command="i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done; sleep 0.2")
    assert 1 <= len(call.reports) <= 10
    assert "1999" in str(call.reports[-1])


async def test_bytes_that_are_no_text_are_replaced_and_colours_dropped(call: FakeCall) -> None:
    output = await call.call(RunCommand(), command=r"printf '\033[31mred\033[0m \377 \303\251\r\n10%%\r20%%\r\n'")
    assert told(output).startswith("red \ufffd é\n20%\n")


async def test_a_line_without_end_is_cut_between_characters(call: FakeCall) -> None:
    output = await call.call(RunCommand(), command="yes 汉字 | tr -d '\\n' | head -c 600000")
    assert "\ufffd" not in told(output)
    assert len(told(output).encode()) < 34_000


async def test_the_editors_terminal_is_shown_first_and_released_after_the_end(call: FakeCall, root: Path) -> None:
    terminal = call.editor.terminal = FakeTerminal(TerminalOutput(text="hi\r\n", exited=True, exit_code=1))
    output = await call.call(RunCommand(), command="echo 'a b'")
    (created,) = call.editor.created
    assert created["command"] == "/bin/sh"
    assert created["args"] == ["-c", "echo 'a b'"]
    assert created["cwd"] == str(root)
    assert call.reports == [[TerminalItem("term-1")]]
    assert output.content == [TerminalItem("term-1")]
    assert told(output) == "hi\n[exit code 1]"
    assert not output.failed
    assert terminal.calls == ["wait"]
    for finish in call.finishers:
        await finish()
    assert terminal.calls == ["wait", "release"]


async def test_a_timeout_kills_the_editors_terminal_and_keeps_its_output(call: FakeCall) -> None:
    terminal = call.editor.terminal = FakeTerminal(None)
    output = await call.call(RunCommand(), command="sleep 9", timeout=0.05)
    assert output.failed
    assert told(output) == "so far\n[timed out after 0.05 s and was ended]"
    assert shown(output) == "[timed out after 0.05 s and was ended]"
    assert terminal.calls == ["wait", "kill", "output"]


async def test_cancelling_kills_the_editors_terminal_and_leaves_the_release_for_the_end(call: FakeCall) -> None:
    terminal = call.editor.terminal = FakeTerminal(None)
    reported = anyio.Event()
    call.on_report = reported.set
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: call.call(RunCommand(), command="sleep 9"))
            await reported.wait()
            tasks.cancel_scope.cancel()
    assert terminal.calls[-1] == "kill"
    assert len(call.finishers) == 1


async def test_a_refused_terminal_falls_back_to_a_local_process(call: FakeCall) -> None:
    call.editor.refusal = EditorRefused("no")
    assert told(await call.call(RunCommand(), command="echo here")) == "here\n[exit code 0]"
    with pytest.raises(EditorRefused):
        await call.call(RunCommand(terminal="client"), command="echo here")


async def test_a_terminal_that_may_have_started_is_not_run_a_second_time(call: FakeCall) -> None:
    call.editor.refusal = ToolError("no answer")
    with pytest.raises(ToolError, match="no answer"):
        await call.call(RunCommand(), command="echo here")


async def test_local_asks_no_editor(call: FakeCall) -> None:
    call.editor.terminal = FakeTerminal(None)
    assert told(await call.call(RunCommand(terminal="local"), command="echo here")) == "here\n[exit code 0]"
    assert not call.editor.created


def test_a_family_of_a_number_that_is_not_ours_is_empty() -> None:
    assert os.getpid() != 2**22 + 1
    assert not Family(2**22 + 1).find_living()


LEAVER = """
import os, signal
signal.signal(signal.SIGUSR1, lambda *_: (os.setsid(), print("left", flush=True)))
print(os.getpid(), flush=True)
while True:
    signal.pause()
"""


def test_who_leaves_the_group_after_it_was_found_is_ended_too() -> None:
    command = [f"{shlex.quote(sys.executable)} -c {shlex.quote(LEAVER)} & wait"]
    with subprocess.Popen(command, shell=True, start_new_session=True, stdout=subprocess.PIPE) as leader:
        assert leader.stdout is not None
        leaver = int(leader.stdout.readline())
        family = Family(leader.pid)
        assert family.find_living()
        os.kill(leaver, signal.SIGUSR1)
        assert leader.stdout.readline() == b"left\n"
        family.send_signal(signal.SIGKILL)
        assert go_soon([leader.pid, leaver])

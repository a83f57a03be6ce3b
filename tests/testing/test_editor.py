"""The fake editor: files with unsaved changes, terminals that are real, forms, and every way to misbehave."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from acp_agent.errors import RequestError
from acp_agent.runtime.turn import Turn
from acp_agent.testing import FakeEditor, TestClient
from acp_agent.testing.editor import Misbehaviour
from tests.runtime.support import handler_agent

pytestmark = pytest.mark.anyio


class Terminals:
    """A fake editor whose terminals run."""

    def __init__(self, editor: FakeEditor) -> None:
        self.editor = editor

    async def create(self, script: str, **params: Any) -> str:
        answer = await self.editor.serve("terminal/create", {"command": "sh", "args": ["-c", script]} | params)
        return str(answer["terminalId"])

    async def ask(self, verb: str, terminal_id: str) -> Any:
        return await self.editor.serve(f"terminal/{verb}", {"terminalId": terminal_id})


@pytest.fixture
async def terminals() -> AsyncIterator[Terminals]:
    editor = FakeEditor()
    async with anyio.create_task_group() as tasks:
        editor.attach(tasks)
        with anyio.fail_after(10):
            yield Terminals(editor)
            await editor.aclose()


async def refused(request: Any) -> RequestError:
    with pytest.raises(RequestError) as raised:
        await request
    return raised.value


# files ----------------------------------------------------------------------------------------------------------------


async def test_a_file_is_read_from_the_disk_whole_or_in_part(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\ntwo\nthree")
    editor = FakeEditor()
    for params, text in (
        ({}, "one\r\ntwo\nthree"),
        ({"line": 2}, "two\nthree"),
        ({"line": 1, "limit": 1}, "one\r\n"),
        ({"limit": 2}, "one\r\ntwo\n"),
        ({"line": 9}, ""),
    ):
        assert await editor.serve("fs/read_text_file", {"path": str(path)} | params) == {"content": text}


async def test_an_unsaved_text_wins_over_the_disk_and_stays_in_step(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("saved")
    editor = FakeEditor(buffers={str(path): "unsaved"})
    assert await editor.serve("fs/read_text_file", {"path": str(path)}) == {"content": "unsaved"}
    assert await editor.serve("fs/write_text_file", {"path": str(path), "content": "new"}) == {}
    assert (path.read_text(), editor.buffers[str(path)]) == ("new", "new")


async def test_writes_may_stay_unsaved(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    editor = FakeEditor(save_writes=False)
    await editor.serve("fs/write_text_file", {"path": str(path), "content": "new"})
    assert not path.exists()
    assert await editor.serve("fs/read_text_file", {"path": str(path)}) == {"content": "new"}
    await FakeEditor().serve("fs/write_text_file", {"path": str(path), "content": "saved"})
    assert path.read_text() == "saved"


async def test_a_missing_file_is_an_error_or_an_empty_text_as_editors_differ(tmp_path: Path) -> None:
    params = {"path": str(tmp_path / "missing")}
    assert (await refused(FakeEditor().serve("fs/read_text_file", params))).code == -32002
    assert await FakeEditor(forgetful=True).serve("fs/read_text_file", params) == {"content": ""}
    assert (await refused(FakeEditor().serve("fs/read_text_file", {"path": str(tmp_path)}))).code == -32603


async def test_what_it_cannot_it_does_not_say_and_does_not_do(tmp_path: Path) -> None:
    editor = FakeEditor(read=False, write=False, terminal=False)
    assert editor.capabilities() == {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    for method in ("fs/read_text_file", "fs/write_text_file", "terminal/create", "elicitation/create", "no/such"):
        assert (await refused(editor.serve(method, {}))).code == -32601
    assert FakeEditor(form="accept").capabilities()["elicitation"] == {"form": {}}


@pytest.mark.parametrize(("misbehaviour", "answer"), [("empty", {}), ("null", None)])
async def test_a_method_can_answer_nonsense(misbehaviour: Misbehaviour, answer: Any) -> None:
    editor = FakeEditor(misbehave={"fs/read_text_file": misbehaviour})
    assert await editor.serve("fs/read_text_file", {"path": "/a"}) == answer
    assert editor.called("fs/read_text_file") == [{"path": "/a"}]


async def test_a_method_can_fail_or_never_answer() -> None:
    editor = FakeEditor(misbehave={"fs/read_text_file": "error", "fs/write_text_file": "never"})
    assert (await refused(editor.serve("fs/read_text_file", {"path": "/a"}))).code == -32603
    with anyio.move_on_after(0.05) as scope:
        await editor.serve("fs/write_text_file", {"path": "/a"})
    assert scope.cancelled_caught


# terminals ------------------------------------------------------------------------------------------------------------


async def test_a_command_runs_and_its_output_and_exit_are_told(terminals: Terminals, tmp_path: Path) -> None:
    script = 'echo "$GREETING from $PWD"; echo oops >&2; exit 3'
    variables = [{"name": "GREETING", "value": "hello"}]
    terminal_id = await terminals.create(script, cwd=str(tmp_path), env=variables)
    assert await terminals.ask("wait_for_exit", terminal_id) == {"exitCode": 3}
    output = await terminals.ask("output", terminal_id)
    expected = f"hello from {os.path.realpath(tmp_path)}\noops\n"
    assert output == {"output": expected, "truncated": False, "exitStatus": {"exitCode": 3}}
    assert terminals.editor.terminals.unreleased == [terminal_id]
    assert await terminals.ask("release", terminal_id) == {}
    assert terminals.editor.terminals.unreleased == []
    assert (await refused(terminals.ask("output", terminal_id))).code == -32002


async def test_a_running_command_has_no_exit_and_can_be_killed_with_its_children(terminals: Terminals) -> None:
    terminal_id = await terminals.create("sleep 60 & sleep 60; echo never")
    assert "exitStatus" not in await terminals.ask("output", terminal_id)
    assert await terminals.ask("kill", terminal_id) == {}
    assert await terminals.ask("wait_for_exit", terminal_id) == {"signal": "SIGKILL"}
    assert (await terminals.ask("output", terminal_id))["output"] == ""


async def test_of_a_long_output_the_end_is_kept_on_a_character_boundary(terminals: Terminals) -> None:
    terminal_id = await terminals.create("printf 'aä%.0s' 1 2 3", outputByteLimit=4)
    await terminals.ask("wait_for_exit", terminal_id)
    assert await terminals.ask("output", terminal_id) == {
        "output": "aä",
        "truncated": True,
        "exitStatus": {"exitCode": 0},
    }


async def test_a_command_that_cannot_be_started_is_an_error(terminals: Terminals) -> None:
    request = terminals.editor.serve("terminal/create", {"command": "/no/such/command", "args": ["x"]})
    assert (await refused(request)).code == -32603


async def test_a_forgetful_editor_says_that_a_killed_command_ended_only_after_its_release() -> None:
    editor = FakeEditor(forgetful=True)
    terminals = Terminals(editor)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            editor.attach(tasks)
            terminal_id = await terminals.create("sleep 60")
            await terminals.ask("kill", terminal_id)
            with anyio.move_on_after(0.1) as scope:
                await terminals.ask("wait_for_exit", terminal_id)
            assert scope.cancelled_caught
            await editor.aclose()


async def test_terminals_end_with_the_connection() -> None:
    editor = FakeEditor()

    async def work(turn: Turn) -> None:
        await turn.session.port.create_terminal(
            turn.session_id, "sleep", ["60"], cwd=turn.cwd, env={}, output_byte_limit=100
        )

    with anyio.fail_after(10):
        async with TestClient(handler_agent(work), editor=editor).connect() as client:
            assert (await client.prompt("go")).stop_reason == "end_turn"
    (terminal,) = editor.terminals.all.values()
    assert terminal.was_killed


# forms ----------------------------------------------------------------------------------------------------------------


async def test_forms_are_answered_as_told() -> None:
    properties = {"name": {"type": "string", "default": "Ada"}, "age": {"type": "integer"}}
    params = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": properties}}

    async def later(params: dict[str, Any]) -> dict[str, Any]:
        return {"name": params["message"]}

    for form, answer in (
        ("accept", {"action": "accept", "content": {"name": "Ada"}}),
        ("decline", {"action": "decline"}),
        ("cancel", {"action": "cancel"}),
        (lambda params: {"age": 36}, {"action": "accept", "content": {"age": 36}}),
        (lambda params: None, {"action": "decline"}),
        (later, {"action": "accept", "content": {"name": "Who?"}}),
    ):
        editor = FakeEditor(form=form)  # type: ignore[arg-type]
        assert await editor.serve("elicitation/create", params) == answer


async def test_an_agent_reads_and_writes_through_it(tmp_path: Path) -> None:
    path = str(tmp_path / "a.txt")
    editor = FakeEditor(buffers={path: "unsaved"})

    async def work(turn: Turn) -> None:
        port = turn.session.port
        text = await port.read_text_file(turn.session_id, path)
        await port.write_text_file(turn.session_id, path, text.upper())
        await turn.send_text(text)

    async with TestClient(handler_agent(work), editor=editor).connect() as client:
        assert (await client.prompt("go")).text == "unsaved"
    assert editor.buffers[path] == "UNSAVED"
    assert [method for method, _ in editor.calls] == ["fs/read_text_file", "fs/write_text_file"]

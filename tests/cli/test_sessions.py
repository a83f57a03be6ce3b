"""`sessions`: what is kept, for people and for programs, also while an editor has a session open."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from acp_agent.agent import Agent
from acp_agent.cli import sessions as sessions_module
from acp_agent.cli.arguments import parse
from acp_agent.cli.run import run
from acp_agent.models.scenario import Scenario
from acp_agent.models.scripted import ScriptedModel
from acp_agent.store.sqlite import SqliteStore
from acp_agent.testing import TestClient
from acp_agent.tools.coding import coding_tools

SCRIPT = """
[[turns]]
when = "edit"
  [[turns.replies]]
  steps = [
    { type = "thought", text = "First think." },
    { type = "text", text = "I will edit it." },
    { type = "tool_use", name = "write_file", arguments = { path = "notes.txt", content = "new line\\n" } },
  ]
  [[turns.replies]]
  steps = [{ type = "text", text = "Done." }]
[[turns]]
when = "fail"
replies = [{ steps = [{ type = "error", message = "The model is gone." }] }]
[[turns]]
when = "odd"
replies = [{ steps = [{ type = "text", text = "before\\u001b[2Jafter" }] }]
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("ACP_AGENT_STATE_DIR", str(folder))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("old line\n")
    return folder


def talk(state: Path, folder: Path, *prompts: str, meanwhile: Callable[[str], None] | None = None) -> str:
    """A conversation that is kept; its id. `meanwhile` runs in a thread while the session is open."""

    async def speak() -> str:
        model = ScriptedModel(Scenario.parse(SCRIPT))
        agent = Agent("test", model=model, tools=coding_tools(), store=SqliteStore(state))
        async with TestClient(agent, cwd=folder).connect() as client:
            session_id = (await client.new_session()).session_id
            for prompt in prompts:
                await client.prompt(prompt)
            if meanwhile is not None:
                await anyio.to_thread.run_sync(meanwhile, session_id)
        await agent.aclose()
        return session_id

    return anyio.run(speak)


def output(capsys: pytest.CaptureFixture[str], *line: str | Path) -> str:
    run(parse(["sessions", *map(str, line)]))
    return capsys.readouterr().out


def failure(capsys: pytest.CaptureFixture[str], *line: str | Path) -> str:
    with pytest.raises(SystemExit) as caught:
        output(capsys, *line)
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_where_nothing_is_kept_looking_makes_nothing(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"there is no {state / 'sessions.db'}" in failure(capsys, "list")
    assert not state.exists()


def test_the_list_has_title_folder_and_id_the_newest_first(
    state: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = talk(state, folder, "edit the notes")
    second = talk(state, folder.parent)
    heading, *rows = output(capsys, "list").splitlines()
    assert heading.split() == ["updated", "title", "folder", "id"]
    assert [row.split()[-1] for row in rows] == [second, first]
    assert "edit the notes" in rows[1]
    assert "(no title)" in rows[0]
    assert [row.split()[-1] for row in output(capsys, "list", "--cwd", folder).splitlines()[1:]] == [first]


def test_the_list_as_json_is_a_header_a_line(state: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session_id = talk(state, folder, "edit the notes")
    (header,) = map(json.loads, output(capsys, "list", "--json").splitlines())
    assert (header["session_id"], header["title"], header["cwd"]) == (session_id, "edit the notes", str(folder))


def test_a_transcript_shows_who_said_what_and_what_was_done(
    state: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session_id = talk(state, folder, "edit the notes", "fail now")
    shown = output(capsys, "show", session_id)
    told = ["edit the notes", "First think.", "I will edit it.", "notes.txt: completed", "Done.", "fail now"]
    places = [shown.index(text, shown.index("updated")) for text in told]
    assert places == sorted(places)
    assert "- old line" in shown
    assert "+ new line" in shown
    assert "The turn failed: The model is gone." in shown


def test_what_a_model_said_cannot_command_the_terminal(
    state: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session_id = talk(state, folder, "something odd")
    shown = output(capsys, "show", session_id)
    assert "beforeafter" in shown
    assert "\x1b" not in shown


def test_the_beginning_of_an_id_is_enough_while_it_is_one_sessions(
    state: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session_id = talk(state, folder, "edit the notes")
    talk(state, folder)
    assert session_id in output(capsys, "show", session_id.removeprefix("sess_")[:20])
    assert "may be 2 sessions" in failure(capsys, "show", "sess_")
    assert "There is no session 'nothing'" in failure(capsys, "show", "nothing")
    assert "There is no session ''" in failure(capsys, "show", "")


def test_an_export_is_the_header_and_every_event(state: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session_id = talk(state, folder, "edit the notes")
    exported = json.loads(output(capsys, "export", session_id))
    assert exported["session"]["session_id"] == session_id
    kinds = [event["event"] for event in exported["events"]]
    assert kinds[0] == "prompt"
    assert {"chunk", "tool_call", "tool_call_update", "history", "turn_ended"} <= set(kinds)


def test_an_empty_session_exports_to_json_too(state: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(output(capsys, "export", talk(state, folder)))["events"] == []


def test_a_session_that_is_open_can_be_read(state: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []

    def look(session_id: str) -> None:
        shown.extend(output(capsys, *line) for line in (["list"], ["show", session_id], ["export", session_id]))

    session_id = talk(state, folder, "edit the notes", meanwhile=look)
    assert all("edit the notes" in text for text in shown)
    assert session_id in shown[0]


def test_a_deleted_session_is_gone(state: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session_id = talk(state, folder, "edit the notes")
    other = talk(state, folder)
    assert output(capsys, "delete", session_id) == f"Deleted {session_id} (edit the notes, {folder}).\n"
    assert session_id not in (listed := output(capsys, "list"))
    assert other in listed


@pytest.mark.parametrize(
    ("typed", "is_kept"), [("\n", True), ("n\n", True), ("", True), ("y\n", False), ("YES\n", False)]
)
def test_a_person_is_asked_before_a_session_is_deleted(
    state: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    is_kept: bool,
) -> None:
    session_id = talk(state, folder)
    monkeypatch.setattr(sessions_module, "can_ask", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert "for good? [y/N]" in output(capsys, "delete", session_id)
    assert (session_id in output(capsys, "list")) is is_kept


def test_with_yes_nobody_is_asked(
    state: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = talk(state, folder)
    monkeypatch.setattr(sessions_module, "can_ask", lambda: True)
    assert output(capsys, "delete", session_id, "--yes").startswith("Deleted")


@pytest.mark.slow
def test_a_session_that_another_process_has_open_is_not_deleted(
    state: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def hold() -> tuple[str, str]:
        command = [sys.executable, "-m", "acp_agent", "--state-dir", str(state)]
        async with TestClient(command, cwd=folder).connect() as client:
            session_id = (await client.new_session()).session_id
            return session_id, await anyio.to_thread.run_sync(failure, capsys, "delete", session_id)

    session_id, error = anyio.run(hold)
    assert "is open in another process (pid " in error
    assert session_id in output(capsys, "list")
    assert output(capsys, "delete", session_id).startswith("Deleted"), "now nobody has it"

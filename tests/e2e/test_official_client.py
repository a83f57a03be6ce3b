"""The official SDK's client drives the installed program as an editor would."""

from __future__ import annotations

import asyncio
from pathlib import Path

import acp
import pytest
from acp import schema

from tests.e2e.editor import OfficialEditor, children_of, eventually, is_alive, official

pytestmark = pytest.mark.anyio


async def test_a_turn_streams_plans_reads_and_edits_what_was_allowed(scenario: str, tmp_path: Path) -> None:
    editor = OfficialEditor()
    async with official(editor, "--scenario", scenario, state=tmp_path / "s") as (agent, _):
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("everything")])
    assert answer.stop_reason == "end_turn"
    assert editor.text() == "I will change the file. Done."
    assert any(isinstance(update, schema.AgentThoughtChunk) for update in editor.updates)
    assert any(isinstance(update, schema.AgentPlanUpdate) for update in editor.updates)
    assert editor.statuses("read")[-1] == "completed"
    assert editor.statuses("edit") == ["pending", "in_progress", "completed"]
    assert (tmp_path / "notes.txt").read_text() == "an new line\n"


async def test_the_question_about_an_edit_shows_the_diff(scenario: str, tmp_path: Path) -> None:
    editor = OfficialEditor()
    async with official(editor, "--scenario", scenario, state=tmp_path / "s") as (agent, _):
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("everything")])
    (question,) = editor.asked
    diff = question.content[0]
    assert (diff.type, diff.path) == ("diff", str(tmp_path / "notes.txt"))
    assert (diff.old_text, diff.new_text) == ("an old line\n", "an new line\n")
    assert (question.kind, question.status) == ("edit", "pending")
    assert question.locations[0].path == diff.path


async def test_a_rejected_edit_changes_nothing_and_the_model_goes_on(scenario: str, tmp_path: Path) -> None:
    editor = OfficialEditor("reject_once")
    async with official(editor, "--scenario", scenario, state=tmp_path / "s") as (agent, _):
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("everything")])
    assert answer.stop_reason == "end_turn"
    assert editor.text() == "I will change the file. You said no."
    assert editor.statuses("edit") == ["pending", "failed"]
    assert (tmp_path / "notes.txt").read_text() == "an old line\n"


async def test_a_cancel_while_the_question_is_open_ends_the_turn_and_changes_nothing(
    scenario: str, tmp_path: Path
) -> None:
    editor = OfficialEditor()
    editor.never_answer = True
    async with official(editor, "--scenario", scenario, state=tmp_path / "s") as (agent, _):
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])

        async def cancel() -> None:
            await editor.question_open.wait()
            await agent.cancel(session_id=session.session_id)

        canceller = asyncio.create_task(cancel())
        async with asyncio.timeout(10):
            answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("everything")])
        await canceller
    assert answer.stop_reason == "cancelled"
    assert editor.statuses("edit") == ["pending", "failed"]
    assert (tmp_path / "notes.txt").read_text() == "an old line\n"


async def test_a_cancelled_command_leaves_no_process(scenario: str, tmp_path: Path) -> None:
    editor = OfficialEditor()
    async with official(editor, "--scenario", scenario, state=tmp_path / "s") as (agent, process):
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        started: list[int] = []

        async def cancel() -> None:
            await editor.until(lambda update: getattr(update, "status", None) == "in_progress")
            await eventually(lambda: len(children_of(process.pid)) >= 3)
            started.extend(children_of(process.pid))
            await agent.cancel(session_id=session.session_id)

        canceller = asyncio.create_task(cancel())
        async with asyncio.timeout(15):
            answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("command")])
        await canceller
        assert answer.stop_reason == "cancelled"
        await eventually(lambda: not any(is_alive(pid) for pid in started))
    assert editor.statuses("execute")[-1] == "failed"


async def test_always_for_one_command_asks_again_for_another(scenario: str, tmp_path: Path) -> None:
    editor = OfficialEditor("allow_always")
    async with official(editor, "--scenario", scenario, state=tmp_path / "s") as (agent, _):
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("twice")])
    assert [question.raw_input["command"] for question in editor.asked] == ["echo one", "echo two"]
    assert editor.statuses("execute").count("completed") == 3


async def test_twenty_thousand_chunks_arrive_in_order(scenario: str, tmp_path: Path) -> None:
    editor = OfficialEditor()
    async with official(editor, "--scenario", scenario, state=tmp_path / "s") as (agent, _):
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("chunks")])
    assert editor.text() == "0123456789" * 20000


async def test_a_session_made_by_one_process_is_listed_loaded_resumed_closed_and_deleted_by_another(
    scenario: str, tmp_path: Path
) -> None:
    first = OfficialEditor()
    async with official(first, "--scenario", scenario, state=tmp_path / "s") as (agent, _):
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("everything")])
    second = OfficialEditor()
    async with official(second, "--scenario", scenario, state=tmp_path / "s") as (agent, _):
        listed = await agent.list_sessions()
        assert [(row.session_id, row.title) for row in listed.sessions] == [(session.session_id, "everything")]
        await agent.load_session(cwd=str(tmp_path), session_id=session.session_id, mcp_servers=[])
        assert second.text() == first.text()
        assert second.statuses("edit")[-1] == "completed"
        await agent.close_session(session_id=session.session_id)
        with pytest.raises(acp.RequestError):
            await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("quick")])
        await agent.resume_session(cwd=str(tmp_path), session_id=session.session_id, mcp_servers=[])
        answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("quick")])
        assert answer.stop_reason == "end_turn"
    assert second.text().endswith("quick answer")

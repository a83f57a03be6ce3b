"""MCP servers in whole turns: the official ACP client names them, real servers answer."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.editor import OfficialEditor, official
from tests.e2e.mcp_scenes import (
    everything,
    plain,
    play,
    processes_noted,
    prompt,
    rows,
    sdk,
    sdk_at_an_address,
    shown,
    stdio,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

EVERYTHING = everything()


def is_running(update: Any) -> bool:
    return getattr(update, "status", None) == "in_progress"


@pytest.mark.skipif(find_spec("mcp_server_time") is None, reason="mcp-server-time is not installed")
async def test_the_time_server_of_pypi_is_asked_for_and_tells_the_time(tmp_path: Path) -> None:
    uses = [("mcp__time__get_current_time", {"timezone": "Europe/Paris"})]
    editor = OfficialEditor()
    async with official(editor, "--scenario", play(tmp_path, {"go": uses}), state=tmp_path / "s") as (agent, _):
        server = stdio("time", sys.executable, "-m", "mcp_server_time")
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[server])
        assert await prompt(agent, session.session_id, "go") == "end_turn"
    (row,) = rows(editor)
    assert row["status"] == "completed"
    assert "Europe/Paris" in shown(row)


@pytest.mark.skipif(EVERYTHING is None, reason="@modelcontextprotocol/server-everything is not installed")
async def test_the_everything_server_of_npm_echoes_draws_and_shows_how_far_it_is(tmp_path: Path) -> None:
    uses = [
        ("mcp__everything__echo", {"message": "hi"}),
        ("mcp__everything__get-tiny-image", {}),
        ("mcp__everything__trigger-long-running-operation", {"duration": 2, "steps": 4}),
    ]
    editor = OfficialEditor()
    async with official(editor, "--scenario", play(tmp_path, {"go": uses}), state=tmp_path / "s") as (agent, _):
        server = stdio("everything", *(EVERYTHING or []))
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[server])
        assert await prompt(agent, session.session_id, "go") == "end_turn"
    echo, image, operation = rows(editor)
    assert [row["status"] for row in (echo, image, operation)] == ["completed"] * 3
    assert "hi" in shown(echo)
    assert any(item["content"]["type"] == "image" for item in image["content"])
    assert "2 of 4" in "".join(map(repr, editor.updates))


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_server_made_with_the_sdk_adds_draws_and_shows_how_far_it_is(transport: str, tmp_path: Path) -> None:
    uses = [("mcp__sdk__add", {"a": 1, "b": 2}), ("mcp__sdk__picture", {}), ("mcp__sdk__copy", {"count": 3})]
    editor = OfficialEditor()
    scenario = play(tmp_path, {"go": uses})
    async with (
        sdk_at_an_address() as (at_address, _),
        official(editor, "--scenario", scenario, state=tmp_path / "s") as (agent, _),
    ):
        server = sdk() if transport == "stdio" else at_address
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[server])
        assert await prompt(agent, session.session_id, "go") == "end_turn"
    add, picture, copy = rows(editor)
    assert [row["status"] for row in (add, picture, copy)] == ["completed"] * 3
    assert (add["kind"], shown(add), add["rawOutput"]) == ("read", "3", {"result": 3})
    assert picture["content"][0]["content"]["mimeType"] == "image/png"
    assert shown(copy) == "copied"
    assert "Copying (1 of 3)" in "".join(map(repr, editor.updates))
    # what only reads is not asked for
    assert [question.title for question in editor.asked] == ["sdk: picture()", "sdk: copy(count=3)"]


async def test_a_rejected_call_never_reaches_the_server(tmp_path: Path) -> None:
    died = tmp_path / "died"
    editor = OfficialEditor("reject_once")
    scenario = play(tmp_path, {"go": [("mcp__dies_once__work", {})]})
    async with official(editor, "--scenario", scenario, state=tmp_path / "s") as (agent, _):
        server = plain("dies_once", DIED_FILE=str(died))
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[server])
        assert await prompt(agent, session.session_id, "go") == "end_turn"
    (row,) = rows(editor)
    assert (row["status"], len(editor.asked)) == ("failed", 1)
    assert editor.asked[0].status == "pending"
    assert not died.exists()


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_call_is_cancelled_with_its_turn_and_the_server_goes_on(transport: str, tmp_path: Path) -> None:
    turns = {"wait": [("mcp__sdk__wait", {})], "add": [("mcp__sdk__add", {"a": 1, "b": 2})]}
    editor = OfficialEditor()
    async with (
        sdk_at_an_address() as (at_address, _),
        official(editor, "--scenario", play(tmp_path, turns), state=tmp_path / "s") as (agent, _),
    ):
        server = sdk() if transport == "stdio" else at_address
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[server])
        turn = asyncio.create_task(prompt(agent, session.session_id, "wait"))
        await editor.until(lambda update: is_running(update) and "Waiting" in repr(update))
        async with asyncio.timeout(2):
            await agent.cancel(session_id=session.session_id)
            assert await turn == "cancelled"
        assert await prompt(agent, session.session_id, "add") == "end_turn"
    waited, added = rows(editor)
    assert (waited["status"], added["status"], shown(added)) == ("failed", "completed", "3")


async def test_a_server_that_is_killed_in_the_middle_of_a_call_fails_that_call_and_is_started_again(
    tmp_path: Path,
) -> None:
    pids = tmp_path / "pids"
    turns = {"wait": [("mcp__slow__work", {})]}
    editor = OfficialEditor()
    async with official(editor, "--scenario", play(tmp_path, turns), state=tmp_path / "s") as (agent, _):
        server = plain("slow", PID_FILE=str(pids), CANCEL_FILE=str(tmp_path / "cancel"))
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[server])
        turn = asyncio.create_task(prompt(agent, session.session_id, "wait"))
        await editor.until(is_running)
        (pid,) = processes_noted(pids)
        os.kill(pid, signal.SIGKILL)
        assert await turn == "end_turn"
        assert await prompt(agent, session.session_id, "/mcp") == "end_turn"
    (row,) = rows(editor)
    assert row["status"] == "failed"
    assert "The MCP server slow went away in the middle of the call." in shown(row)
    assert len(processes_noted(pids)) == 2
    assert "slow: connected, 1 tool" in editor.text()


async def test_a_server_at_an_address_that_is_killed_in_the_middle_of_a_call_fails_that_call(tmp_path: Path) -> None:
    turns = {"wait": [("mcp__sdk__wait", {})]}
    editor = OfficialEditor()
    async with (
        sdk_at_an_address() as (server, process),
        official(editor, "--scenario", play(tmp_path, turns), state=tmp_path / "s") as (agent, _),
    ):
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[server])
        turn = asyncio.create_task(prompt(agent, session.session_id, "wait"))
        await editor.until(lambda update: is_running(update) and "Waiting" in repr(update))
        process.kill()
        assert await turn == "end_turn"
        assert await prompt(agent, session.session_id, "/mcp") == "end_turn"
    (row,) = rows(editor)
    assert row["status"] == "failed"
    assert "The MCP server sdk went away in the middle of the call." in shown(row)
    assert "sdk: failed" in editor.text()

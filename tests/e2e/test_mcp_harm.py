"""Servers that misbehave harm nobody but themselves."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from tests.e2e.editor import OfficialEditor, official
from tests.e2e.mcp_scenes import plain, play, prompt, rows, shown

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


class TwoSessions(OfficialEditor):
    """Tells when the session that only waits has begun to."""

    def __init__(self) -> None:
        super().__init__("allow_always")
        self.waiting = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        await super().session_update(session_id, update)
        if isinstance(update, schema.AgentMessageChunk) and update.content.text == "waiting":
            self.waiting.set()


async def cancel_again_and_again(
    agent: Any, editor: TwoSessions, session_id: str, until: asyncio.Task[str]
) -> list[float]:
    """How long each cancelled turn took to be answered, in seconds."""
    took = []
    while not until.done():
        turn = asyncio.create_task(prompt(agent, session_id, "wait"))
        await editor.waiting.wait()
        editor.waiting.clear()
        start = time.monotonic()
        await agent.cancel(session_id=session_id)
        assert await turn == "cancelled"
        took.append(time.monotonic() - start)
    return took


WAIT = """
[[turns]]
when = "^wait$"
  [[turns.replies]]
  steps = [{ type = "text", text = "waiting" }, { type = "sleep", seconds = 300 }]
"""


@pytest.mark.parametrize("mode", ["huge", "flood", "endless"])
async def test_another_sessions_cancel_is_answered_while_a_server_sends_megabytes(mode: str, tmp_path: Path) -> None:
    scenario = Path(play(tmp_path, {"go": [(f"mcp__{mode}__work", {})] * 10}))
    scenario.write_text(scenario.read_text() + WAIT)
    editor = TwoSessions()
    async with official(editor, "--scenario", str(scenario), state=tmp_path / "s") as (agent, _):
        big = await agent.new_session(cwd=str(tmp_path), mcp_servers=[plain(mode)])
        other = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        async with asyncio.timeout(20):
            await prompt(agent, big.session_id, "/mcp")
            turn = asyncio.create_task(prompt(agent, big.session_id, "go"))
            took = await cancel_again_and_again(agent, editor, other.session_id, turn)
            assert await turn == "end_turn"
    assert max(took) < 1
    assert len(rows(editor)) == 10
    for row in rows(editor):
        if mode == "endless":
            assert row["status"] == "failed"
        else:
            assert row["status"] == "completed"
            assert len(shown(row)) < 100_000


async def test_banners_and_floods_are_read_past_and_a_silent_server_is_named_while_the_others_work(
    tmp_path: Path,
) -> None:
    scenario = play(tmp_path, {"go": [("mcp__banner__work", {}), ("mcp__flood__work", {}), ("mcp__wordy__work", {})]})
    editor = OfficialEditor()
    servers = [plain(mode) for mode in ("banner", "flood", "silent", "wordy")]
    async with official(editor, "--scenario", scenario, state=tmp_path / "s") as (agent, _):
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=servers)
        start = time.monotonic()
        assert await prompt(agent, session.session_id, "go") == "end_turn"
        assert time.monotonic() - start < 15  # ten seconds were waited for the silent one
        assert "The MCP server silent cannot be used: It " in editor.text()
        assert await prompt(agent, session.session_id, "/mcp") == "end_turn"
    assert [shown(row) for row in rows(editor)] == ["done"] * 3
    assert "- silent: failed (It did not answer within 10 seconds.)" in editor.text()
    assert (tmp_path / "s" / "acp-agent.log").stat().st_size < 1_000_000

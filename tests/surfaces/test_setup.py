"""Setting up sessions in version 1: directories, pages of the list, the order of options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_agent.agent import Agent
from acp_agent.models.base import Model, ToolUse
from acp_agent.testing import TestClient
from acp_agent.tools.coding import coding_tools
from tests.requirements import requirement
from tests.runtime.support import PlayedModel, make_agent

pytestmark = pytest.mark.anyio


@requirement("session-roots", "session-roots-complete")
async def test_directories_are_those_of_the_last_set_up(tmp_path: Path) -> None:
    """Reading in one needs no question; when it is named no more, it does."""
    work, more = tmp_path / "work", tmp_path / "more"
    for folder in (work, more):
        folder.mkdir()
    (more / "a.txt").write_text("there")
    read = [ToolUse("read_file", {"path": str(more / "a.txt")})]
    agent = Agent("coder", model=PlayedModel(*[read, []] * 4), tools=coding_tools())
    async with TestClient(agent, permission="reject_once", cwd=work).connect() as client:
        await client.new_session(additional_directories=[str(more)])
        session_id = str(client.session_id)
        for again in (client.load_session, client.resume_session):
            assert (await client.prompt("read")).tool_call.status == "completed"
            await client.close_session(session_id)
            await again(session_id)
            result = await client.prompt("read")
            assert result.tool_call.status == "failed"
            await client.close_session(session_id)
            await again(session_id, additional_directories=[str(more)])


@requirement("list-bounded")
async def test_a_page_of_the_list_is_bounded_and_leads_to_the_next() -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent, record=False).connect() as client:
        made = {(await client.new_session()).session_id for _ in range(130)}
        listed: list[str] = []
        cursor: str | None = None
        while True:
            page = await client.list_sessions(cursor=cursor)
            assert 0 < len(page.sessions) <= 100
            listed += [row.session_id for row in page.sessions]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len(listed) == len(set(listed))
        assert set(listed) == made


class Thinker(PlayedModel):
    thought_levels = ("low", "high")


@requirement("config-order", "config-default")
async def test_the_option_that_matters_most_comes_first() -> None:
    models: dict[str, Model] = {"one": Thinker(), "two": Thinker()}
    async with TestClient(Agent("several", models=models)).connect() as client:
        options: Any = (await client.new_session()).config_options
        assert [(option.id, option.current_value) for option in options] == [
            ("mode", "ask"),
            ("model", "one"),
            ("thought_level", "low"),
        ]

"""What broke with the MCP servers that a client names.

Proved whole by other tests:

    many servers, some of them broken (anomalyco/opencode#41459)
        mcp/test_toolset.py::test_ten_servers_of_which_three_are_broken_give_seven_toolsets_and_three_reasons
    two tools have one name (aaif-goose/goose#11643)
        mcp/test_names.py::test_names_are_safe_short_and_unique_over_all_servers
    a server floods, prints a banner, dies in a call (github/copilot-cli#4678)
        mcp/test_connection.py::test_a_crash_in_mid_call_is_a_failed_call_and_the_server_is_started_once_more
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from acp_agent.models.base import ToolUse
from acp_agent.testing import TestClient
from tests.requirements import requirement
from tests.runtime.support import make_agent

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "mcp" / "server_plain.py"


def server(mode: str, name: str = "house") -> dict[str, Any]:
    return {"name": name, "command": sys.executable, "args": [str(SERVER), mode], "env": []}


# shindgew/agy-acp#136, github/copilot-cli#1255, aaif-goose/goose#7806, aaif-goose/goose#11643
@requirement("mcp-stdio")
async def test_a_server_is_there_however_the_session_was_opened_and_beside_the_agents_own_tools() -> None:
    agent, model, _ = make_agent()
    async with TestClient(agent, timeout=30).connect() as client:

        async def offered() -> set[str]:
            await client.prompt("hello")
            return {tool.name for tool in model.requests[-1].tools}

        await client.new_session(mcp_servers=[server("good")])
        session_id = str(client.session_id)
        with_server = await offered()
        assert {"run", "look"} < with_server
        assert all(name.startswith("mcp__house__") for name in with_server - {"run", "look"})
        for again in (client.load_session, client.resume_session):
            await client.close_session(session_id)
            await again(session_id)
            assert await offered() == {"run", "look"}
            await client.close_session(session_id)
            await again(session_id, mcp_servers=[server("good")])
            assert await offered() == with_server


# shindgew/agy-acp#136
async def test_a_tool_of_a_server_is_judged_and_run_like_any_other() -> None:
    agent, model, _ = make_agent()
    async with TestClient(agent, timeout=30).connect() as client:
        await client.new_session(mcp_servers=[server("good")])
        await client.prompt("hello")
        name = next(tool.name for tool in model.requests[-1].tools if tool.name.startswith("mcp__"))
        model.replies.append([ToolUse(name, {})])
        result = await client.prompt("use it")
        assert len(client.questions) == 1
        assert result.tool_call.name == name
        assert result.tool_call.is_over


# github/copilot-cli#4678, ora-space/desktop#577
@pytest.mark.parametrize("mode", ["silent", "missing"])
async def test_a_dead_server_holds_up_neither_the_session_nor_its_first_prompt_for_long(mode: str) -> None:
    agent, _, _ = make_agent()
    agent.definition.mcp_wait = 0.3
    dead = server("silent") if mode == "silent" else {"name": "house", "command": "/no/such/program", "args": []}
    async with TestClient(agent, timeout=30).connect() as client:
        with anyio.fail_after(2):
            await client.new_session(mcp_servers=[dead])
        with anyio.fail_after(8):
            result = await client.prompt("hello")
        assert result.stop_reason == "end_turn"
        assert result.text.endswith("Done.")
        if mode == "missing":
            assert "house cannot be used" in result.text
        client.cancel()

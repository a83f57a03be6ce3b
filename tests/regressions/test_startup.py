"""What broke agents before their first word, and what they told of themselves.

Proved whole by other tests:

    something reads stdin before the server does (zed-industries/zed#52455)
        transports/test_stdio.py::test_nothing_else_gets_to_read_what_the_client_says
    `initialize` waits for what it does not need (can1357/oh-my-pi#1123, zed-industries/zed#43663)
        e2e/test_process.py::test_initialize_imports_only_what_its_answer_needs
    nobody asks before something is changed (github/copilot-cli#845)
        regressions/test_permissions.py::test_what_was_not_allowed_leaves_no_trace
"""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import pytest

from acp_agent.agent import Agent
from acp_agent.models.base import TextDelta, UsageDelta
from acp_agent.testing import TestClient
from tests.e2e.editor import Pipe
from tests.runtime.support import PlayedModel, look, make_agent


# zed-industries/zed#52455, google-gemini/gemini-cli#22782, agentclientprotocol/registry#107
def test_initialize_is_answered_while_stdin_stays_open_and_the_network_is_not_there(tmp_path: Path) -> None:
    proxy = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    env = {"HOME": str(tmp_path), "ACP_AGENT_MODEL": "http://192.0.2.1:9/v1#nobody"} | proxy
    began = time.monotonic()
    with Pipe(cwd=tmp_path, env=env) as pipe:
        pipe.write({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
        assert pipe.answer(1)["result"]["protocolVersion"] == 1
    assert time.monotonic() - began < 10  # a tenth of a second, on a machine with nothing else to do


# NousResearch/hermes-agent#70204, agentclientprotocol/codex-acp#107, agentclientprotocol/claude-agent-acp#390
@pytest.mark.anyio
async def test_usage_is_what_the_last_request_filled_and_not_a_sum() -> None:
    model = PlayedModel(
        [UsageDelta(100, 10, 1000, 0.25), look("a")],
        [UsageDelta(130, 20, 1000, 0.5), TextDelta("one")],
        [UsageDelta(170, 5, 1000), look("b")],
        [UsageDelta(180, 15, 1000, 0.25), TextDelta("two")],
        [TextDelta("three")],
    )
    agent = Agent("counting", model=model)

    @agent.tool(name="look", permission="allow")
    async def look_at(name: str) -> str:
        """Look."""
        return name

    async with TestClient(agent).connect() as client:
        told = [(await client.prompt(text)).usage for text in ("one", "two", "three")]
        assert told[0] is not None
        assert told[1] is not None
        assert (told[0]["used"], told[0]["size"], told[0]["cost"]) == (150, 1000, {"amount": 0.75, "currency": "USD"})
        assert (told[1]["used"], told[1]["size"], told[1]["cost"]) == (195, 1000, {"amount": 1.0, "currency": "USD"})
        assert told[2] is None  # nobody knows, so nothing is said


# QwenLM/qwen-code#2015, zed-industries/zed#51341
@pytest.mark.anyio
async def test_a_session_is_listed_as_editors_read_it() -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent).connect() as client:
        await client.prompt("Look at\nthis, please")
        listed = await client.request("session/list", {})
        (row,) = listed["sessions"]
        assert row["sessionId"] == client.session_id
        assert Path(row["cwd"]).is_absolute()
        assert row["title"] == "Look at this, please"
        assert datetime.fromisoformat(row["updatedAt"]).tzinfo is not None

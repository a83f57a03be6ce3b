"""`session/fork`: unstable, and only there when it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_agent.errors import RequestError
from acp_agent.history import ToolUse
from acp_agent.models.base import TextDelta
from acp_agent.store.base import SessionStore
from acp_agent.store.memory import MemoryStore
from acp_agent.store.sqlite import SqliteStore
from acp_agent.testing import ConnectedClient, TestClient, ToolCallView
from tests.runtime.support import Gate, is_whole, make_agent, run
from tests.turns import Rows

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SessionStore:
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "state")


async def fork(client: ConnectedClient, session_id: str | None, **place: Any) -> dict[str, Any]:
    params = {"sessionId": session_id, "cwd": client.cwd, "mcpServers": []} | place
    answer: dict[str, Any] = await client.request("session/fork", params)
    return answer


async def rows_of(client: ConnectedClient, session_id: str) -> list[Any]:
    before = len(client.updates())
    await client.load_session(session_id)
    return Rows(client.updates()[before:]).rows


async def test_without_its_flag_it_is_neither_offered_nor_answered() -> None:
    async with TestClient(make_agent()[0]).connect() as client:
        said = client.transcript.received()[0].message["result"]["agentCapabilities"]["sessionCapabilities"]
        assert "fork" not in said
        with pytest.raises(RequestError) as refused:
            await fork(client, (await client.new_session()).session_id)
        assert refused.value.code == -32601


async def test_a_fork_knows_what_was_said_and_goes_its_own_way(store: SessionStore) -> None:
    agent, model, _ = make_agent([TextDelta("Let me."), run("make")], store=store, unstable=("fork",))
    async with TestClient(agent).connect() as client:
        said = client.transcript.received()[0].message["result"]["agentCapabilities"]["sessionCapabilities"]
        assert said["fork"] == {}
        await client.prompt("build")
        source = client.session_id or ""
        before = len(client.updates())
        made = await fork(client, source)
        assert made["sessionId"] != source
        assert made["modes"]["currentModeId"] == "ask"
        await client.prompt("in the fork", made["sessionId"])
        kinds = [update.kind for update in client.updates(made["sessionId"])]
        assert kinds == ["available_commands_update", "agent_message_chunk"]
        assert len(client.updates(source)) == before
        told = str(model.requests[-1].messages)
        assert "build" in told
        assert "ran make" in told
        await client.prompt("in the source", source)
        assert "in the fork" not in str(model.requests[-1].messages)
        forked, kept = await rows_of(client, made["sessionId"]), await rows_of(client, source)
        assert forked[:4] == kept[:4]
        assert [row[2][0]["text"] for row in forked if row[0] == "user"] == ["build", "in the fork"]
        await client.delete_session(source)
        await client.close_session(made["sessionId"])
        assert await rows_of(client, made["sessionId"]) == forked
        listed = (await client.list_sessions()).sessions
        assert [(row.session_id, row.title) for row in listed] == [(made["sessionId"], "build")]
    await agent.aclose()


async def test_a_turn_that_runs_is_cut_short_in_the_fork_and_goes_on_in_the_source(store: SessionStore) -> None:
    gate = Gate()
    agent, model, _ = make_agent([TextDelta("Let me see."), ToolUse("wait")], store=store, unstable=("fork",))

    @agent.tool(permission="allow")
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    async with TestClient(agent).connect() as client:
        running = await client.start_prompt("build")
        await gate.reached.wait()
        made = await fork(client, running.session_id)
        await client.prompt("what was that?", made["sessionId"])
        told = model.requests[-1].messages
        assert is_whole(told)
        assert "Interrupted" in str(told)
        gate.open()
        assert (await running.wait()).tool_call.status == "completed"
        before = len(client.updates())
        await client.load_session(made["sessionId"])
        assert [row.status for row in ToolCallView(client.updates()[before:])] == ["failed"]
    await agent.aclose()


async def test_a_closed_session_is_forked_too_and_auto_is_not_inherited(store: SessionStore, tmp_path: Path) -> None:
    agent, _, _ = make_agent(store=store, unstable=("fork",))
    async with TestClient(agent).connect() as client:
        await client.prompt("hello")
        await client.set_mode("auto")
        source = client.session_id or ""
        await client.close_session()
        made = await fork(client, source, cwd=str(tmp_path), additionalDirectories=["/tmp"])
        assert made["modes"]["currentModeId"] == "ask"
        rows = (await client.list_sessions(cwd=str(tmp_path))).sessions
        assert [(row.session_id, row.additional_directories) for row in rows] == [(made["sessionId"], ["/tmp"])]
        assert (await client.prompt("and now?", made["sessionId"])).stop_reason == "end_turn"
    await agent.aclose()


async def test_an_unknown_or_deleted_session_cannot_be_forked(store: SessionStore) -> None:
    agent, _, _ = make_agent(store=store, unstable=("fork",))
    async with TestClient(agent).connect() as client:
        await client.prompt("hello")
        source = client.session_id
        with client.in_one_write():
            deleting = client.start_request("session/delete", {"sessionId": source})
            forking = client.start_request("session/fork", {"sessionId": source, "cwd": client.cwd, "mcpServers": []})
        await client.answer_to(deleting)
        for failing in (client.answer_to(forking), fork(client, "nobody"), fork(client, source, cwd="relative")):
            with pytest.raises(RequestError) as refused:
                await failing
            assert refused.value.code in (-32002, -32602)
        assert (await client.list_sessions()).sessions == []
    await agent.aclose()

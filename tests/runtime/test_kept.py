"""What the store has of a session: what cannot be read says so, and a fork copies it all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from acp_agent.content import TextContent
from acp_agent.errors import RequestError, SettingsError, StoreError
from acp_agent.events import Event, MessageChunk
from acp_agent.runtime.definition import SessionSetup
from acp_agent.store.base import SessionHeader
from acp_agent.store.memory import MemoryStore
from acp_agent.testing import ConnectedClient, TestClient
from tests.runtime.support import make_agent

pytestmark = pytest.mark.anyio

DAY = "2026-01-02T03:04:05.000Z"


class Damaged(MemoryStore):
    """Cannot read the header of any session."""

    async def get_header(self, session_id: str) -> SessionHeader | None:
        raise StoreError(f"The session {session_id} cannot be read: its header is damaged.")


class Taken(MemoryStore):
    """Another process has every session of which the id is in `others`; "all" stands for any."""

    def __init__(self) -> None:
        super().__init__()
        self.others: set[str] = set()

    def claim(self, session_id: str) -> None:
        if self.others & {session_id, "all"}:
            raise StoreError(f"The session {session_id} is open in process 4711.")
        super().claim(session_id)


class Counting(MemoryStore):
    """Notes how many events were waiting at each commit."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0
        self.commits: list[int] = []

    def append(self, session_id: str, events: list[Event]) -> None:
        super().append(session_id, events)
        self.waiting += len(events)

    async def commit(self) -> None:
        self.commits.append(self.waiting)
        self.waiting = 0


async def load(client: ConnectedClient) -> None:
    await client.load_session("sess_1")


async def resume(client: ConnectedClient) -> None:
    await client.resume_session("sess_1")


async def delete(client: ConnectedClient) -> None:
    await client.delete_session("sess_1")


async def fork(client: ConnectedClient) -> None:
    await client.request("session/fork", {"sessionId": "sess_1", "cwd": client.cwd, "mcpServers": []})


@pytest.mark.parametrize("open_it", [load, resume, fork])
async def test_a_session_that_cannot_be_read_is_an_error_that_says_so(
    open_it: Callable[[ConnectedClient], Awaitable[None]],
) -> None:
    agent, _, _ = make_agent(store=Damaged(), unstable=("fork",))
    async with TestClient(agent).connect() as client:
        with pytest.raises(RequestError, match="The session cannot be opened") as caught:
            await open_it(client)
        assert caught.value.code == -32603
        assert caught.value.data["sessionId"] == "sess_1"
        assert "its header is damaged" in caught.value.data["details"]
        await client.new_session()
        assert (await client.prompt("hello")).text == "Done."


@pytest.mark.parametrize("open_it", [load, resume, delete])
async def test_a_session_that_another_process_has_is_left_to_it(
    open_it: Callable[[ConnectedClient], Awaitable[None]],
) -> None:
    store = Taken()
    store.put_header(SessionHeader(session_id="sess_1", cwd="/", created_at=DAY, updated_at=DAY))
    store.others.add("sess_1")
    agent, _, _ = make_agent(store=store)
    async with TestClient(agent, cwd="/").connect() as client:
        with pytest.raises(RequestError, match="The session cannot be opened") as caught:
            await open_it(client)
        assert "open in process 4711" in caught.value.data["details"]
        assert [row.session_id for row in (await client.list_sessions()).sessions] == ["sess_1"]
        store.others.clear()
        await open_it(client)


async def test_a_fork_that_cannot_be_kept_is_an_error_and_leaves_nothing() -> None:
    store = Taken()
    agent, _, _ = make_agent(store=store, unstable=("fork",))
    async with TestClient(agent).connect() as client:
        session_id = (await client.new_session()).session_id
        await client.prompt("hello")
        store.others.add("all")
        with pytest.raises(RequestError) as caught:
            await fork_of(client, session_id)
        assert caught.value.code == -32603
        store.others.clear()
        assert [row.session_id for row in (await client.list_sessions()).sessions] == [session_id]
        assert len(agent.definition.sessions) == 1
        assert (await client.prompt("go on")).text == "Done."
        await fork_of(client, session_id)


async def test_a_settings_file_that_is_broken_is_named_and_no_session_begins() -> None:
    def set_up(cwd: str) -> SessionSetup:
        raise SettingsError("is no number", file=f"{cwd}/acp-agent.toml", line=3, key="heartbeat")

    agent, _, _ = make_agent()
    agent.definition.set_up = set_up
    async with TestClient(agent).connect() as client:
        with pytest.raises(RequestError, match="A settings file is broken") as caught:
            await client.new_session()
        assert caught.value.data["details"] == f"{client.cwd}/acp-agent.toml:3: heartbeat: is no number"
        assert (await client.list_sessions()).sessions == []


async def test_a_long_journal_is_copied_whole_and_never_waits_whole_in_memory() -> None:
    store = Counting()
    agent, _, _ = make_agent(store=store, unstable=("fork",))
    async with TestClient(agent).connect() as client:
        session_id = (await client.new_session()).session_id
        await client.prompt("hello")
        store.append(session_id, [MessageChunk("agent", f"msg_{n}", TextContent(str(n))) for n in range(3000)])
        store.waiting = 0
        store.commits.clear()
        await fork_of(client, session_id)
        assert len(store.commits) == 2
        assert max(store.commits) <= 1024 + 8
        fork_id = client.session_id or ""
        before = len(client.updates())
        await client.load_session(fork_id)
        texts = [update.text for update in client.updates()[before:] if update.kind == "agent_message_chunk"]
        assert texts[-3000:] == [str(number) for number in range(3000)]


async def fork_of(client: ConnectedClient, session_id: str) -> None:
    answer = await client.request("session/fork", {"sessionId": session_id, "cwd": client.cwd, "mcpServers": []})
    client.session_id = answer["sessionId"]

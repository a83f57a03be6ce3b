"""What the store has of a session: what cannot be read says so, and a fork copies it all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from acp_agent.content import TextContent
from acp_agent.errors import RequestError, StoreError
from acp_agent.events import Event, MessageChunk
from acp_agent.store.base import SessionHeader
from acp_agent.store.memory import MemoryStore
from acp_agent.testing import ConnectedClient, TestClient
from tests.runtime.support import make_agent

pytestmark = pytest.mark.anyio


class Damaged(MemoryStore):
    """Cannot read the header of any session."""

    async def get_header(self, session_id: str) -> SessionHeader | None:
        raise StoreError(f"The session {session_id} cannot be read: its header is damaged.")


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

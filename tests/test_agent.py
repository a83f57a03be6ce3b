"""`Agent`: what people build, served over what they have."""

from __future__ import annotations

import anyio
import msgspec
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.lowlevel import checkpoint

from acp_agent import Agent, Model, Turn
from acp_agent.models.base import ModelRequest, TextDelta
from acp_agent.store.base import SessionPage
from acp_agent.store.memory import MemoryStore
from acp_agent.transports.memory import memory_pair

pytestmark = pytest.mark.anyio


async def test_an_agent_is_served_over_any_byte_stream() -> None:
    agent = Agent("over-tcp", version="1.2.3")
    assert agent.name == "over-tcp"
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")

    async def handle(stream: SocketStream) -> None:
        async with stream:
            await agent.serve(stream)

    with anyio.fail_after(10):
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, handle)
            port = listener.listeners[0].extra(SocketAttribute.local_port)
            async with await anyio.connect_tcp("127.0.0.1", port) as client:
                await client.send(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n')
                received = b""
                while not received.endswith(b"\n"):
                    received += await client.receive()
            tasks.cancel_scope.cancel()
    assert msgspec.json.decode(received)["result"]["agentInfo"] == {"name": "over-tcp", "version": "1.2.3"}


def test_a_tool_name_can_be_used_once() -> None:
    agent = Agent("twice")

    @agent.tool
    async def work() -> str:
        """Work."""
        return ""

    with pytest.raises(ValueError, match="work"):
        agent.tool(work)


def test_a_store_is_made_when_the_first_session_needs_it() -> None:
    made: list[MemoryStore] = []

    def make() -> MemoryStore:
        made.append(MemoryStore())
        return made[-1]

    agent = Agent("lazy", store=make)
    assert made == []
    assert agent.open_store() is agent.open_store() is made[0]


async def test_letting_go_of_an_agent_closes_its_models() -> None:
    class Closing(Model):
        name = "closing"
        closed = False

        async def stream(self, request: ModelRequest):  # type: ignore[no-untyped-def]
            yield TextDelta("")

        async def aclose(self) -> None:
            self.closed = True

    model = Closing()
    await Agent("closing", model=model).aclose()
    assert model.closed


def test_commands_are_described_by_their_docstring() -> None:
    agent = Agent("commands")

    @agent.command("ship", hint="where")
    async def ship(turn: Turn, arguments: str) -> None:
        """Ship it.

        More is not shown.
        """

    command = agent.definition.commands["ship"].command
    assert (command.name, command.description, command.hint) == ("ship", "Ship it.", "where")


class SlowStore(MemoryStore):
    """Takes many rounds of the loop to list."""

    async def list_headers(self, *, cwd: str | None = None, cursor: str | None = None, limit: int = 100) -> SessionPage:
        for _ in range(500):
            await checkpoint()
        return await super().list_headers(cwd=cwd, cursor=cursor, limit=limit)


async def test_what_was_asked_in_the_last_moment_is_answered_after_the_end_of_the_input() -> None:
    near, far = memory_pair()
    far.write(
        memoryview(
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
            b'{"jsonrpc":"2.0","id":2,"method":"session/list"}\n'
        )
    )
    far.send_eof()
    received: list[bytes] = []
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(far.pump, received.append)
            await Agent("last", store=SlowStore()).serve(near)
    answers = [msgspec.json.decode(line) for line in b"".join(received).splitlines()]
    assert answers[1] == {"jsonrpc": "2.0", "id": 2, "result": {"sessions": []}}

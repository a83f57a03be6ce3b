"""One connection: before the first request, between two versions, and in the end."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from acp_agent.errors import RequestError
from acp_agent.server import AgentServer
from acp_agent.testing import TestClient
from acp_agent.transports.memory import MemoryWire, memory_pair
from tests.mcp.support import plain_server
from tests.runtime.support import Gate, handler_agent, make_agent

pytestmark = pytest.mark.anyio


def line(id: int, method: str, params: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}\n'.encode()


class Listener:
    """The client's end of a wire."""

    def __init__(self, wire: MemoryWire) -> None:
        self.wire = wire
        self.heard = b""
        self._changed = anyio.Event()

    def say(self, data: bytes) -> None:
        assert self.wire.write(memoryview(data)) == len(data)

    async def listen(self) -> None:
        await self.wire.pump(self._hear)

    async def hears(self, piece: bytes) -> None:
        while piece not in self.heard:
            await self._changed.wait()

    def _hear(self, block: bytes) -> None:
        self.heard += block
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


async def test_a_server_that_is_stopped_cancels_what_runs_answers_it_and_ends() -> None:
    gate = Gate()
    server = handler_agent(lambda turn: gate.wait()).make_server(drain=600.0, drain_tools=True)
    ours, theirs = memory_pair()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            client = Listener(ours)
            tasks.start_soon(client.listen)
            tasks.start_soon(server.serve, theirs)
            client.say(line(1, "initialize", '{"protocolVersion":1}'))
            client.say(line(2, "session/new", '{"cwd":"/","mcpServers":[]}'))
            await client.hears(b'"sessionId"')
            session_id = client.heard.split(b'"sessionId":"')[1].split(b'"')[0].decode()
            prompt = f'{{"sessionId":"{session_id}","prompt":[{{"type":"text","text":"go"}}]}}'
            client.say(line(3, "session/prompt", prompt))
            await gate.reached.wait()
            server.stop()
    assert gate.was_cancelled
    assert client.heard.endswith(b'{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}\n')


@pytest.mark.parametrize("begun", [False, True])
async def test_a_server_can_be_stopped_before_anything_was_said(begun: bool) -> None:
    agent, _, _ = make_agent()
    server: AgentServer = agent.make_server(drain=600.0)
    ours, theirs = memory_pair()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            if begun:
                tasks.start_soon(server.serve, theirs)
                await anyio.wait_all_tasks_blocked()
                server.stop()
            else:
                server.stop()
                ours.send_eof()
                tasks.start_soon(server.serve, theirs)


async def test_notifications_before_initialize_are_passed_over() -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent).connect(initialize=False) as client:
        client.notify("session/cancel", {"sessionId": "sess_1"})
        client.notify("no/such_thing", {})
        await client.initialize()
        assert len(client.transcript.received()) == 1


def wire_server(name: str, mode: str = "good") -> dict[str, Any]:
    server = plain_server(mode, name=name)
    return {"name": name, "command": server.command, "args": server.args, "env": []}


async def test_the_servers_of_a_session_that_is_loaded_while_open_are_those_that_the_load_names() -> None:
    agent, model, _ = make_agent()
    async with TestClient(agent, timeout=30).connect() as client:

        async def offered() -> set[str]:
            await client.prompt("hello")
            return {tool.name for tool in model.requests[-1].tools} - {"run", "look"}

        await client.new_session(mcp_servers=[wire_server("first")])
        session_id = str(client.session_id)
        assert await offered() == {"mcp__first__work"}
        for names in (["first"], ["second"], ["second", "third"], [], ["first"]):
            await client.load_session(session_id, mcp_servers=[wire_server(name) for name in names])
            assert await offered() == {f"mcp__{name}__work" for name in names}


async def test_a_server_s_state_is_shown_by_its_command() -> None:
    agent, _, _ = make_agent()
    missing = {"name": "ghost", "command": "no-such-program-here", "args": [], "env": []}
    async with TestClient(agent, timeout=30).connect() as client:
        await client.new_session(mcp_servers=[wire_server("house"), missing])
        await client.prompt("hello")
        said = (await client.prompt("/mcp")).text
        assert said.startswith("MCP servers:\n\n- house: connected, 1 tool\n- ghost: failed (")
        assert "'no-such-program-here' was not found" in said


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ({"name": " ", "command": "/bin/true", "args": [], "env": []}, "no name"),
        ({"name": "a", "command": "./relative", "args": [], "env": []}, "relative path"),
        ({"name": "a", "type": "http", "url": "ftp://host", "headers": []}, "http"),
        ({"name": "a", "type": "sse", "url": "http://host", "headers": [{"name": "a b", "value": "c"}]}, "header"),
        ({"name": "a", "type": "carrier_pigeon", "url": "coop"}, "carrier_pigeon"),
    ],
)
async def test_a_server_that_cannot_be_is_refused_by_its_place(server: dict[str, Any], words: str) -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent).connect() as client:
        good = wire_server("house")
        with pytest.raises(RequestError) as caught:
            await client.new_session(mcp_servers=[good, server])
        assert caught.value.code == -32602
        assert caught.value.data["path"].startswith("$.mcpServers[1]")
        assert words in caught.value.data["details"]


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_server_at_an_address_that_nobody_serves_is_named_in_the_next_turn(kind: str) -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent, timeout=30).connect() as client:
        headers = [{"name": "Authorization", "value": "Bearer secret-token"}]
        there = {"name": "far", "type": kind, "url": "http://127.0.0.1:9/mcp", "headers": headers}
        await client.new_session(mcp_servers=[there])
        result = await client.prompt("hello")
        assert "The MCP server far cannot be used" in result.text
        assert "secret-token" not in result.text
        assert result.text.endswith("Done.")

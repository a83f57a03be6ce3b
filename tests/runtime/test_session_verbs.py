"""The verbs of a session, in any order, several in one write, on a store in memory and on disk: each is answered once,
as if they had come one by one; and what was deleted stays so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_agent import Agent, Turn
from acp_agent.errors import RequestError
from acp_agent.runtime.line import Lines
from acp_agent.store.memory import MemoryStore
from acp_agent.store.sqlite import SqliteStore
from acp_agent.testing import ConnectedClient, TestClient
from acp_agent.testing.link import Asked
from tests.runtime.support import Gate, handler_agent, make_agent

pytestmark = pytest.mark.anyio

UNKNOWN = -32002
VERBS = ("load", "resume", "close", "delete", "prompt", "set_mode", "cancel", "list", "give_up")


class Life:
    """What has to come of the verbs, taken one by one. `expected` are the ends that a request may have."""

    def __init__(self, client: ConnectedClient, session_id: str) -> None:
        self.client = client
        self.session_id = session_id
        self.state = "open"
        self.asked: list[tuple[str, Asked, set[Any]]] = []

    def do(self, verb: str) -> None:
        if verb == "cancel":
            self.client.cancel(self.session_id)
        elif verb == "give_up":
            self._give_up()
        else:
            self.asked.append((verb, self._ask(verb), self._ends(verb)))

    def _ask(self, verb: str) -> Asked:
        params: dict[str, Any] = {"sessionId": self.session_id}
        match verb:
            case "load" | "resume":
                params |= {"cwd": self.client.cwd, "mcpServers": []}
            case "prompt":
                params |= {"prompt": [{"type": "text", "text": "hello"}]}
            case "set_mode":
                params |= {"modeId": "plan"}
            case "list":
                params = {}
        return self.client.start_request(f"session/{verb}", params)

    def _ends(self, verb: str) -> set[Any]:
        match verb, self.state:
            case "list", _:
                return {"result"}
            case "delete", _:
                self.state = "deleted"
                return {"result"}
            case (("load" | "resume"), ("open" | "closed")):
                self.state = "open"
                return {"result"}
            case "close", "open":
                self.state = "closed"
                return {"result"}
            case "set_mode", "open":
                return {"result"}
            case "prompt", "open":
                return {"end_turn", "cancelled"}
            case "prompt", _:  # it may wait for a load that fails, and be dropped by a cancel before that
                return {UNKNOWN, "cancelled"}
        return {UNKNOWN}

    def _give_up(self) -> None:
        """Take the last request back; whoever comes behind a load must not suffer."""
        if self.asked:
            verb, asked, ends = self.asked[-1]
            if verb in ("prompt", "list", "set_mode"):
                self.client.cancel_request(asked.id)
                self.asked[-1] = (verb, asked, ends | {-32800})

    async def check(self) -> None:
        for verb, asked, ends in self.asked:
            try:
                result = await self.client.answer_to(asked)
                end: Any = result["stopReason"] if verb == "prompt" else "result"
            except RequestError as error:
                end = error.code
            assert end in ends, f"{verb} ended with {end}, not one of {ends}; {[each[0] for each in self.asked]}"
        self.asked.clear()


async def echo(turn: Turn) -> None:
    await turn.send_text(turn.text)


@asynccontextmanager
async def connected(agent: Agent) -> AsyncIterator[ConnectedClient]:
    async with TestClient(agent, cwd="/").connect() as client:
        yield client
    await agent.aclose()


async def live_through(agent: Agent, writes: list[list[str]]) -> None:
    async with connected(agent) as client:
        life = Life(client, (await client.new_session()).session_id)
        for verbs in writes:
            with client.in_one_write():
                for verb in verbs:
                    life.do(verb)
            if len(verbs) > 1:
                await life.check()
        await life.check()
        listed = [row.session_id for row in (await client.list_sessions()).sessions]
        assert listed == ([] if life.state == "deleted" else [life.session_id])
        if life.state != "deleted":
            await client.load_session(life.session_id)
            assert (await client.prompt("still there?", life.session_id)).stop_reason == "end_turn"
        await client.delete_session(life.session_id)
        assert (await client.list_sessions()).sessions == []


def writes() -> st.SearchStrategy[list[list[str]]]:
    return st.lists(st.lists(st.sampled_from(VERBS), min_size=1, max_size=4), min_size=1, max_size=6)


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=80, deadline=None, suppress_health_check=QUIET)
@given(writes=writes())
async def test_verbs_in_any_order_do_what_they_would_one_by_one(writes: list[list[str]]) -> None:
    agent, _, _ = make_agent(store=MemoryStore())
    await live_through(agent, writes)


@settings(max_examples=25, deadline=None, suppress_health_check=QUIET)
@given(writes=writes())
async def test_verbs_in_any_order_on_disk_do_what_they_would_one_by_one(writes: list[list[str]]) -> None:
    with TemporaryDirectory() as state:
        agent, _, _ = make_agent(store=SqliteStore(Path(state)))
        await live_through(agent, writes)


@pytest.mark.parametrize("verb", ["load", "resume", "close", "delete", "set_mode"])
@pytest.mark.parametrize("state", ["running", "open", "closed"])
async def test_three_of_a_kind_in_one_write(verb: str, state: str, tmp_path: Path) -> None:
    gate = Gate()

    async def work(turn: Turn) -> None:
        await gate.wait()

    agent, _, _ = make_agent(store=SqliteStore(tmp_path / "state"))
    agent.on_prompt(work if state == "running" else echo)
    async with connected(agent) as client:
        life = Life(client, (await client.new_session()).session_id)
        if state == "running":
            life.do("prompt")
            await gate.reached.wait()
        elif state == "closed":
            life.do("close")
        with client.in_one_write():
            for _ in range(3):
                life.do(verb)
        gate.open()
        await life.check()


async def test_a_turn_that_ends_after_its_session_was_deleted_brings_nothing_back(tmp_path: Path) -> None:
    """It ignores its cancel, so that the delete does not wait for it."""
    gate, over = Gate(), anyio.Event()

    async def stubborn(turn: Turn) -> None:
        call = turn.open_tool_call("deploy", title="Deploy")
        with anyio.CancelScope(shield=True):
            await gate.wait()
            await turn.send_text("I am back")
            call.complete(text="deployed")
            turn.set_title("back")
            turn.send_usage(1, 2)
        over.set()

    agent = handler_agent(stubborn, store=SqliteStore(tmp_path / "state"))
    agent.definition.cancel_grace = 0.05
    async with connected(agent) as client:
        running = await client.start_prompt("go")
        await gate.reached.wait()
        await client.delete_session()
        assert (await running.wait()).stop_reason == "cancelled"
        said = len(client.updates())
        gate.open()
        await over.wait()
        assert (await client.list_sessions()).sessions == []
        assert len(client.updates()) == said
        with pytest.raises(RequestError):
            await client.load_session(running.session_id)


async def test_a_mode_that_is_set_right_behind_a_load_counts_for_the_prompt_behind_it(tmp_path: Path) -> None:
    agent, _, _ = make_agent(store=SqliteStore(tmp_path / "state"))

    @agent.on_prompt
    async def tell(turn: Turn) -> None:
        await turn.send_text(turn.session.mode)

    async with connected(agent) as client:
        await client.prompt("first")
        session_id = client.session_id or ""
        await client.close_session()
        before = len(client.transcript.frames)
        life = Life(client, session_id)
        with client.in_one_write():
            life.do("load")
            life.do("set_mode")
            prompt = await client.start_prompt("which mode?", session_id)
        await life.check()
        assert (await prompt.wait()).updates[-1].text == "plan"
        outline = [line for line in client.transcript.outline()[before:] if line.startswith("<")]
        assert outline == [
            "< user_message_chunk",
            "< agent_message_chunk",
            "< session_info_update",
            "< current_mode_update",
            "< config_option_update",
            "< available_commands_update",
            "< result",
            "< result",
            "< current_mode_update",
            "< config_option_update",
            "< agent_message_chunk",
            "< result",
        ]


async def test_an_unknown_mode_right_behind_a_load_is_refused_as_ever(tmp_path: Path) -> None:
    agent, _, _ = make_agent(store=SqliteStore(tmp_path / "state"))
    async with connected(agent) as client:
        session_id = (await client.new_session()).session_id
        await client.close_session()
        with client.in_one_write():
            loading = client.start_request("session/load", {"sessionId": session_id, "cwd": "/", "mcpServers": []})
            setting = client.start_request("session/set_mode", {"sessionId": session_id, "modeId": "yolo"})
            prompt = await client.start_prompt("hello", session_id)
        await client.answer_to(loading)
        with pytest.raises(RequestError) as refused:
            await client.answer_to(setting)
        assert refused.value.code == -32602
        assert (await prompt.wait()).stop_reason == "end_turn"


async def test_a_load_behind_one_that_was_taken_back_opens_the_session(tmp_path: Path) -> None:
    agent, _, _ = make_agent(store=SqliteStore(tmp_path / "state"))
    async with connected(agent) as client:
        await client.prompt("hello")
        await client.close_session()
        params = {"sessionId": client.session_id, "cwd": client.cwd, "mcpServers": []}
        with client.in_one_write():
            first, second = (client.start_request("session/load", params) for _ in range(2))
            client.cancel_request(first.id)
        with pytest.raises(RequestError) as refused:
            await client.answer_to(first)
        assert refused.value.code == -32800
        await client.answer_to(second)
        assert (await client.prompt("and now?")).stop_reason == "end_turn"


def test_a_line_is_forgotten_when_nobody_stands_in_it() -> None:
    lines = Lines()

    async def stand() -> None:
        first, second = lines.claim("a"), lines.claim("a")
        async with first:
            pass
        assert lines.claim("b") is not None
        async with second:
            pass
        assert list(lines._last) == ["b"]

    anyio.run(stand)


# the list -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "disk"])
async def test_sessions_are_listed_by_folder_in_bounded_pages(kind: str, tmp_path: Path) -> None:
    from datetime import datetime

    agent = handler_agent(echo, store=MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "state"))
    place = tmp_path / "zwölf äpfel"
    place.mkdir()
    async with connected(agent) as client:
        made = [(await client.new_session(f"{place}{end}")).session_id for end in ("", "/", "/.") for _ in range(40)]
        await client.new_session("/")
        await client.prompt("the youngest", made[7])
        found: list[str] = []
        cursor: str | None = None
        pages = 0
        while pages == 0 or cursor is not None:
            page = await client.list_sessions(cwd=f"{place}//", cursor=cursor)
            if pages == 0:
                assert await client.list_sessions(cwd=str(place)) == page
                assert (page.sessions[0].session_id, page.sessions[0].title) == (made[7], "the youngest")
            found += [row.session_id for row in page.sessions]
            assert len(page.sessions) <= 100
            assert all(datetime.fromisoformat(row.updated_at or "").tzinfo is not None for row in page.sessions)
            cursor, pages = page.next_cursor, pages + 1
        assert pages == 2
        assert sorted(found) == sorted(made)

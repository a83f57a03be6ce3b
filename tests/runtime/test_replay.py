"""Whatever happened in a session, its replay shows what was shown: folding either gives the same rows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from structlog.processors import format_exc_info
from structlog.testing import capture_logs

from acp_agent import Agent
from acp_agent.content import ContentBlock, TextContent
from acp_agent.events import (
    Event,
    HistoryAdded,
    MessageChunk,
    PromptInserted,
    ToolCallChanged,
    ToolCallOpened,
)
from acp_agent.history import AssistantMessage, ToolResult, ToolUse, UserMessage
from acp_agent.store.base import SessionHeader, SessionStore
from acp_agent.store.memory import MemoryStore
from acp_agent.store.sqlite import SqliteStore
from acp_agent.testing import ConnectedClient, PromptHandle, TestClient
from acp_agent.testing.link import Asked
from acp_agent.testing.transcript import Frame
from acp_agent.transports.memory import memory_pair
from tests.runtime.support import is_whole, last_request, make_agent
from tests.turns import Rows, answer_of, make_script_agent, random_prompt

pytestmark = pytest.mark.anyio

DAY = "2026-01-02T03:04:05.000Z"
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


class Plan(Struct):
    """A conversation: its prompts, how many wait behind a running one, and what the user does at which update."""

    prompts: list[list[dict[str, Any]]]
    together: int
    at_update: dict[int, str]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    random = draw(st.randoms(use_true_random=False))
    prompts = [random_prompt(random, number) for number in range(draw(st.integers(1, 4)))]
    deeds = st.sampled_from(["cancel", "plan", "auto", "load"])
    return Plan(prompts, draw(st.integers(1, 3)), draw(st.dictionaries(st.integers(1, 40), deeds, max_size=3)))


class User:
    """Does what the plan says, at the update it says it for."""

    def __init__(self, client: ConnectedClient, plan: Plan) -> None:
        self.client = client
        self.load: Asked | None = None
        self._asked: list[Asked] = []
        self._plan = plan
        self._seen = 0
        client.transcript.observers.append(self._see)

    def _see(self, frame: Frame) -> None:
        if frame.method != "session/update" or frame.direction != "from_agent":
            return
        self._seen += 1
        session = {"sessionId": self.client.session_id}
        match self._plan.at_update.get(self._seen):
            case "cancel":
                self.client.cancel()
            case "load" if self.load is None:
                params = session | {"cwd": "/", "mcpServers": []}
                self.load = self.client.start_request("session/load", params)
                self._asked.append(self.load)
            case "plan" | "auto" as mode:
                self._asked.append(self.client.start_request("session/set_mode", session | {"modeId": mode}))

    async def say_all(self) -> list[PromptHandle]:
        said: list[PromptHandle] = []
        for start in range(0, len(self._plan.prompts), self._plan.together):
            group = self._plan.prompts[start : start + self._plan.together]
            handles = [await self.client.start_prompt(prompt) for prompt in group]
            for handle in handles:
                await handle.wait()
            said += handles
        for asked in self._asked:
            await self.client.answer_to(asked)
        await self.client.list_sessions()  # the echoes come before its answer
        self.client.transcript.observers.remove(self._see)
        return said


SETTINGS = ("current_mode_update", "config_option_update", "available_commands_update")


def shown_live(client: ConnectedClient, plan: Plan, handles: list[PromptHandle], certain: list[str]) -> Rows:
    """What the client has on show; prompts that were dropped before they began are not in `certain`."""
    rows = Rows()
    for update in client.updates():
        if update.kind in SETTINGS:  # also between two turns
            rows.apply(update)
    for number, (prompt, handle) in enumerate(zip(plan.prompts, handles, strict=True)):
        if str(number) in certain:
            rows.add_prompt(prompt)
        for update in handle.updates:
            if update.kind not in SETTINGS:
                rows.apply(update)
    return rows


async def replayed(client: ConnectedClient) -> Rows:
    before = len(client.updates())
    await client.load_session(client.session_id or "")
    return Rows(client.updates()[before:]).numbered()


async def journalled(store: SessionStore, session_id: str) -> list[str]:
    """The numbers of the prompts that were inserted."""
    from contextlib import aclosing

    from tests.turns import script_of

    async with aclosing(store.read_journal(session_id)) as events:
        scripts = [script_of(event) async for event in events if isinstance(event, PromptInserted)]
    return [str(script["number"]) for script in scripts if script is not None]


async def check_plan(plan: Plan, make_store: Callable[[], SessionStore]) -> None:
    agent, model = make_script_agent(make_store)
    with capture_logs([format_exc_info]) as logs:
        await play_and_compare(agent, plan)
    assert model.problems == []
    assert [entry for entry in logs if entry["event"] != "a tool crashed"] == []
    await agent.aclose()


async def play_and_compare(agent: Agent, plan: Plan) -> None:
    async with TestClient(agent, permission=answer_of, cwd="/").connect() as client:
        session = await client.new_session()
        assert session.modes is not None
        await client.wait_for_update("available_commands_update")
        user = User(client, plan)
        handles = await user.say_all()
        inserted = await journalled(agent.open_store(), session.session_id)
        if user.load is None:
            check_inserted(handles, inserted)
            live = shown_live(client, plan, handles, inserted)
            mode = session.modes.current_mode_id
            live.state = {"mode": mode, "options": {"mode": mode}} | live.state
        else:
            live = shown_since(client, user.load)
        again = await replayed(client)
        assert seen(again, user) == seen(live, user)
        assert again.state == live.state
        await client.close_session()
        later = await replayed(client)
        assert later.rows == again.rows
        is_auto = live.state["mode"] == "auto"
        assert later.state == live.state | ({"mode": "ask", "options": {"mode": "ask"}} if is_auto else {})
        assert (await client.prompt("known")).stop_reason == "end_turn"


def shown_since(client: ConnectedClient, load: Asked) -> Rows:
    """What a client has on show that forgot everything when it loaded, in the middle of whatever went on."""
    first = next(each for each in client.updates(kind="user_message_chunk") if each.index > load.sent.index)
    return Rows(update for update in client.updates() if update.index >= first.index)


def seen(rows: Rows, user: User) -> list[Any]:
    """The rows, without the user's own if there was a load: then it knows of some by the replay, of others itself."""
    return [row for row in rows.rows if row[0] != "user" or user.load is None]


def check_inserted(handles: list[PromptHandle], inserted: list[str]) -> None:
    """Only a prompt that was cancelled before it began is not part of the conversation."""
    for number, handle in enumerate(handles):
        assert handle.asked.answer is not None
        result = handle.asked.answer.message.get("result")
        if str(number) not in inserted:
            assert result == {"stopReason": "cancelled"}
            assert handle.updates == []


async def test_a_call_that_a_crash_left_open_is_shown_as_failed_and_kept_so() -> None:
    store = MemoryStore()
    store.put_header(SessionHeader(session_id="sess_1", cwd="/", created_at=DAY, updated_at=DAY))
    prompt: list[ContentBlock] = [TextContent("build it")]
    use = ToolUse("make", {"target": "all"}, call_id="call_1")
    store.append(
        "sess_1",
        [
            PromptInserted("msg_1", prompt),
            HistoryAdded(UserMessage("msg_1", prompt)),
            HistoryAdded(AssistantMessage("msg_2", "Building.", tool_uses=[use])),
            ToolCallOpened("call_1", "Make all", "make", raw_input={"target": "all"}),
            ToolCallChanged("call_1", "in_progress"),
        ],
    )
    agent, model, _ = make_agent(store=store)
    async with TestClient(agent, cwd="/").connect() as client:
        await client.load_session("sess_1")
        (row,) = client.tool_calls()
        assert (row.title, row.status) == ("Make all", "failed")
        assert row.text == "Interrupted: the agent stopped before this finished."
        assert is_whole(await last_request(client, model))
        results = [message for message in model.requests[-1].messages if isinstance(message, ToolResult)]
        assert [result.call_id for result in results] == ["call_1"]
        await client.close_session()
        before = len(client.updates())
        await client.load_session("sess_1")
        statuses = [update.fields["status"] for update in client.updates()[before:] if "toolCallId" in update.fields]
        assert statuses == ["pending", "in_progress", "failed"]


async def test_a_long_replay_waits_for_a_client_that_reads_slowly() -> None:
    """No more of it is read from the store than there is room for; and all of it arrives."""
    store = MemoryStore()
    store.put_header(SessionHeader(session_id="sess_1", cwd="/", created_at=DAY, updated_at=DAY))
    texts = [f"{number} " + "x" * 8000 for number in range(2000)]
    store.append("sess_1", [MessageChunk("agent", f"msg_{n}", TextContent(text)) for n, text in enumerate(texts)])
    read: list[Event] = []
    read_journal = store.read_journal

    async def watched(session_id: str) -> AsyncGenerator[Event, None]:
        async for event in read_journal(session_id):
            read.append(event)
            yield event

    agent, _, _ = make_agent(store=store)
    ours, theirs = memory_pair()
    with pytest.MonkeyPatch.context() as patch, anyio.fail_after(20):
        patch.setattr(store, "read_journal", watched)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.serve, theirs)
            ours.write(memoryview(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'))
            params = b'{"sessionId":"sess_1","cwd":"/","mcpServers":[]}'
            ours.write(memoryview(b'{"jsonrpc":"2.0","id":2,"method":"session/load","params":%b}\n' % params))
            for _ in range(2000):
                await checkpoint()
            held = len(read)
            received = bytearray()

            def feed(block: bytes) -> None:
                received.extend(block)
                if b'"id":2,' in block:
                    ours.send_eof()

            await ours.pump(feed)
    assert 0 < held < 200
    assert len(read) == 2000
    assert all(text.encode() in received for text in (texts[0], texts[-1]))
    assert received.count(b"agent_message_chunk") == 2000


@settings(max_examples=20, deadline=None, suppress_health_check=QUIET)
@given(plan=plans())
async def test_the_replay_of_random_turns_shows_what_was_shown(plan: Plan) -> None:
    await check_plan(plan, MemoryStore)


@settings(max_examples=8, deadline=None, suppress_health_check=QUIET)
@given(plan=plans())
async def test_the_replay_of_random_turns_from_disk_shows_what_was_shown(plan: Plan) -> None:
    with TemporaryDirectory() as state:
        await check_plan(plan, lambda: SqliteStore(Path(state)))

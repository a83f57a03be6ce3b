"""Prompts of one session: in line, at most so many, and each answered."""

from __future__ import annotations

import pytest

from acp_agent.agent import Agent
from acp_agent.events import Event
from acp_agent.runtime.turn import Turn
from acp_agent.store.memory import MemoryStore
from acp_agent.testing import TestClient
from tests.runtime.support import Gate, handler_agent

pytestmark = pytest.mark.anyio


async def test_a_second_prompt_waits_for_the_first() -> None:
    gate = Gate()

    async def work(turn: Turn) -> None:
        await turn.send_text(f"{turn.text} begins;")
        await gate.wait()
        await turn.send_text(f"{turn.text} ends;")

    async with TestClient(handler_agent(work)).connect() as client:
        first = await client.start_prompt("one")
        second = await client.start_prompt("two")
        await gate.reached.wait()
        assert [update.text for update in client.updates(kind="agent_message_chunk")] in ([], ["one begins;"])
        gate.open()
        assert (await first.wait()).text == "one begins;one ends;"
        assert (await second.wait()).text == "two begins;two ends;"


async def test_eight_prompts_wait_in_order_and_the_ninth_is_refused() -> None:
    gate = Gate()
    begun: list[str] = []

    async def work(turn: Turn) -> None:
        begun.append(turn.text)
        await gate.wait()

    async with TestClient(handler_agent(work)).connect() as client:
        handles = [await client.start_prompt(str(number)) for number in range(10)]
        refused = await handles[9].wait()
        assert refused.error is not None
        assert refused.error.code == -32600
        assert "8 prompts are waiting" in refused.error.data["details"]
        gate.open()
        assert [(await handle.wait()).stop_reason for handle in handles[:9]] == ["end_turn"] * 9
    assert begun == [str(number) for number in range(9)]


async def test_a_place_that_became_free_can_be_taken() -> None:
    gate = Gate()

    async def work(turn: Turn) -> None:
        await gate.wait()

    async with TestClient(handler_agent(work)).connect() as client:
        handles = [await client.start_prompt(str(number)) for number in range(9)]
        client.cancel_request(handles[8].id)
        assert (await handles[8].wait()).stop_reason == "cancelled"
        tenth = await client.start_prompt("tenth")
        gate.open()
        assert (await tenth.wait()).stop_reason == "end_turn"


async def test_a_cancel_ends_the_running_prompt_and_those_that_wait() -> None:
    gate = Gate()
    begun: list[str] = []

    async def work(turn: Turn) -> None:
        begun.append(turn.text)
        await gate.wait()

    async with TestClient(handler_agent(work)).connect() as client:
        handles = [await client.start_prompt(str(number)) for number in range(4)]
        await gate.reached.wait()
        client.cancel()
        assert [(await handle.wait()).stop_reason for handle in handles] == ["cancelled"] * 4
        gate.open()
        assert (await client.prompt("again")).stop_reason == "end_turn"
    assert begun == ["0", "again"]
    assert gate.was_cancelled


async def test_a_prompt_that_never_began_is_no_part_of_the_conversation() -> None:
    gate = Gate()

    async def work(turn: Turn) -> None:
        await gate.wait()

    async with TestClient(handler_agent(work)).connect() as client:
        first = await client.start_prompt("one")
        second = await client.start_prompt("two")
        await gate.reached.wait()
        client.cancel_request(second.id)
        assert (await second.wait()).stop_reason == "cancelled"
        gate.open()
        await first.wait()
        before = len(client.updates())
        await client.load_session(first.session_id)
        replayed = [update.text for update in client.updates()[before:] if update.kind == "user_message_chunk"]
        assert replayed == ["one"]


async def test_sessions_run_at_the_same_time() -> None:
    gate = Gate()

    async def work(turn: Turn) -> None:
        if turn.text == "wait":
            await gate.wait()

    async with TestClient(handler_agent(work)).connect() as client:
        held = await client.start_prompt("wait")
        await client.new_session()
        assert (await client.prompt("go")).stop_reason == "end_turn"
        assert not held.is_over
        gate.open()
        assert (await held.wait()).stop_reason == "end_turn"


async def test_a_turn_that_failed_lets_the_next_one_run() -> None:
    async def work(turn: Turn) -> None:
        if turn.text == "break":
            raise LookupError("a secret of the house")

    async with TestClient(handler_agent(work)).connect() as client:
        broken = await client.start_prompt("break")
        fine = await client.start_prompt("go")
        result = await broken.wait()
        assert result.error is not None
        assert (result.error.code, result.error.message, result.error.data) == (-32603, "Internal error", None)
        assert (await fine.wait()).stop_reason == "end_turn"


async def test_a_store_that_raises_fails_the_prompt_it_raised_at_and_no_other() -> None:
    class Broken(MemoryStore):
        raises = True

        def append(self, session_id: str, events: list[Event]) -> None:
            if self.raises:
                raise RuntimeError("a store must not raise")
            super().append(session_id, events)

    store = Broken()
    agent = Agent("broken-store", store=store)

    @agent.on_prompt
    async def answer(turn: Turn) -> None:
        await turn.send_text("answered")

    async with TestClient(agent).connect() as client:
        await client.new_session()
        failed = await client.prompt("first")
        assert failed.error is not None
        assert failed.error.code == -32603
        store.raises = False
        assert (await client.prompt("second")).text == "answered"

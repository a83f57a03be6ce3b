"""The settings of a session: what is stored comes back, and what is gone is replaced for all to see."""

from __future__ import annotations

from typing import Any

import pytest

from acp_agent import Agent
from acp_agent.models.base import TextDelta
from acp_agent.store.base import SessionStore
from acp_agent.store.memory import MemoryStore
from acp_agent.testing import ConnectedClient, TestClient
from tests.runtime.support import PlayedModel

pytestmark = pytest.mark.anyio


class Thinking(PlayedModel):
    thought_levels = ("low", "high")


def agent_with(store: SessionStore, **models: PlayedModel) -> Agent:
    for name, model in models.items():
        model.name = name
    return Agent("tested", models=models, store=store)


def values(response: Any) -> dict[str, str]:
    return {option.id: option.current_value for option in response.config_options}


async def open_again(client: ConnectedClient, session_id: str) -> dict[str, str]:
    return values(await client.load_session(session_id))


async def test_a_model_and_its_level_of_thought_come_back_in_another_process() -> None:
    store = MemoryStore()
    async with TestClient(agent_with(store, fast=PlayedModel(), deep=Thinking()), cwd="/").connect() as client:
        session = await client.new_session()
        assert values(session) == {"mode": "ask", "model": "fast"}
        answer = await client.set_config_option("model", "deep")
        assert values(answer) == {"mode": "ask", "model": "deep", "thought_level": "low"}
        answer = await client.set_config_option("thought_level", "high")
        assert values(answer) == {"mode": "ask", "model": "deep", "thought_level": "high"}
    deep = Thinking()
    async with TestClient(agent_with(store, fast=PlayedModel(), deep=deep), cwd="/").connect() as client:
        chosen = {"mode": "ask", "model": "deep", "thought_level": "high"}
        assert await open_again(client, session.session_id) == chosen
        await client.prompt("hello")
        assert [request.thought_level for request in deep.requests] == ["high"]


async def test_a_level_of_thought_stays_with_the_models_that_have_it() -> None:
    fast, deep, other = PlayedModel(), Thinking(), Thinking()
    other.thought_levels = ("none", "low")
    async with TestClient(agent_with(MemoryStore(), deep=deep, fast=fast, other=other)).connect() as client:
        await client.new_session()
        await client.set_config_option("thought_level", "high")
        for model in ("fast", "other", "deep"):
            await client.set_config_option("model", model)
            await client.prompt("hello")
        told = [request.thought_level for model in (fast, other, deep) for request in model.requests]
        assert told == [None, "none", "high"]


@pytest.mark.parametrize("left", [["fast"], ["fast", "other"]])
async def test_a_model_that_is_gone_is_replaced_and_the_next_turn_says_so(left: list[str]) -> None:
    store = MemoryStore()
    async with TestClient(agent_with(store, fast=PlayedModel(), deep=PlayedModel()), cwd="/").connect() as client:
        session = await client.new_session()
        await client.set_config_option("model", "deep")
    models = {name: PlayedModel([TextDelta("Hello.")]) for name in left}
    async with TestClient(agent_with(store, **models), cwd="/").connect() as client:
        shown = await open_again(client, session.session_id)
        assert shown.get("model", "fast") == "fast"
        first, second = await client.prompt("hello"), await client.prompt("and again")
        assert "Model is fast again: deep is gone." in first.text
        assert first.text.endswith("Hello.")
        assert "gone" not in second.text


async def test_a_single_model_that_was_exchanged_is_no_news() -> None:
    store = MemoryStore()
    async with TestClient(agent_with(store, old=PlayedModel()), cwd="/").connect() as client:
        session = await client.new_session()
    async with TestClient(agent_with(store, new=PlayedModel()), cwd="/").connect() as client:
        await client.load_session(session.session_id)
        assert (await client.prompt("hello")).text == "Done."

"""Slash commands: the built-in ones, an agent's and a session's own, listed in full whenever the list changes."""

from __future__ import annotations

from typing import Any

import pytest

from acp_agent import Turn
from acp_agent.events import Command
from acp_agent.history import UserMessage
from acp_agent.models.base import TextDelta, UsageDelta
from acp_agent.runtime.definition import SessionCommand
from acp_agent.testing import ConnectedClient, TestClient
from tests.runtime.support import DONE, handler_agent, last_request, look, make_agent

pytestmark = pytest.mark.anyio

BUILT_IN = ["help", "tools", "mcp", "clear", "compact"]


def lists(client: ConnectedClient) -> list[list[str]]:
    """The names in each list of commands that was told."""
    return [
        [command["name"] for command in update.fields["availableCommands"]]
        for update in client.updates(kind="available_commands_update")
    ]


async def ship(turn: Turn, arguments: str) -> None:
    """Ship it."""
    await turn.send_text(f"shipped to {arguments!r}")


SHIP = SessionCommand(Command("ship", "Ship it."), ship)


async def test_help_lists_what_is_listed_to_the_client() -> None:
    agent, model, _ = make_agent()
    agent.command("ship", hint="where")(ship)
    async with TestClient(agent).connect() as client:
        said = (await client.prompt("/help")).text
        assert lists(client) == [[*BUILT_IN, "ship"]]
        for name in lists(client)[0]:
            assert f"`/{name}" in said
        assert "`/ship <where>` Ship it." in said
    assert model.requests == []


async def test_tools_says_which_tools_ask() -> None:
    async with TestClient(make_agent()[0]).connect() as client:
        said = (await client.prompt("/tools")).text
        assert "`run` (execute, ask): Run a command." in said
        assert "`look` (read, allow): Look at something." in said


async def test_mcp_says_that_there_are_no_servers() -> None:
    async with TestClient(make_agent()[0]).connect() as client:
        assert (await client.prompt("/mcp")).text == "This session has no MCP servers."


@pytest.mark.parametrize("text", ["/ship", "/ship  the shop \n", "/ship\nthe shop", "/ship\tthe shop"])
async def test_what_follows_the_name_is_given_to_the_command(text: str) -> None:
    agent, _, _ = make_agent()
    agent.command("ship")(ship)
    async with TestClient(agent).connect() as client:
        wanted = "the shop" if "shop" in text else ""
        assert (await client.prompt(text)).text == f"shipped to {wanted!r}"


@pytest.mark.parametrize("text", ["/", "/ help", "//help", "/etc/hosts says what?", "/helpme", " /help", "see /help"])
async def test_other_text_with_a_slash_reaches_the_model(text: str) -> None:
    agent, model, _ = make_agent()
    async with TestClient(agent).connect() as client:
        assert (await client.prompt(text)).text == "Done."
    prompt = model.requests[-1].messages[-1]
    assert isinstance(prompt, UserMessage)
    assert getattr(prompt.content[0], "text", "") == text


async def test_after_clear_the_model_knows_nothing_and_all_stays_shown() -> None:
    agent, model, _ = make_agent()
    async with TestClient(agent).connect() as client:
        await client.prompt("my name is Ada")
        await client.prompt("/clear")
        session_id = client.session_id or ""
        await client.close_session()
        await client.load_session(session_id)
        shown = "".join(update.text for update in client.updates(kind="user_message_chunk"))
        assert shown == "my name is Ada/clear"
        told = await last_request(client, model)
    assert "Ada" not in str(told)


@pytest.mark.parametrize("can_show", [False, True])
async def test_compact_puts_a_summary_in_the_place_of_the_conversation(can_show: bool) -> None:
    agent, model, _ = make_agent([look("a")], DONE, [TextDelta("Ada looked at a.")])
    capabilities: dict[str, Any] = {"session": {"compaction": {}}} if can_show else {}
    async with TestClient(agent, capabilities=capabilities).connect() as client:
        await client.prompt("I am Ada, look at a")
        result = await client.prompt("/compact")
        states = [update.fields["status"] for update in client.updates(kind="compaction_update")]
        assert states == (["in_progress", "completed"] if can_show else [])
        assert ("summary" in result.text) is not can_show
        told = str(await last_request(client, model))
        assert "Ada looked at a." in told
        assert "I am Ada" not in told
        session_id = client.session_id or ""
        await client.close_session()
        before = len(client.updates(kind="compaction_update"))
        await client.load_session(session_id)
        again = client.updates(kind="compaction_update")[before:]
        assert [update.fields["status"] for update in again] == states


async def test_a_full_context_is_compacted_before_the_model_is_asked_again() -> None:
    agent, model, _ = make_agent([TextDelta("Hello."), UsageDelta(90, 5, 100)], [TextDelta("They greeted.")])
    async with TestClient(agent).connect() as client:
        await client.prompt("hello")
        assert "They greeted." in str(await last_request(client, model))


async def test_there_is_nothing_to_compact_in_a_new_session() -> None:
    async with TestClient(make_agent()[0]).connect() as client:
        assert (await client.prompt("/compact")).text == "There is nothing to compact yet."


# the list, when it changes --------------------------------------------------------------------------------------------


async def test_a_command_that_comes_or_goes_is_told_to_every_open_session() -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent).connect() as client:
        first = (await client.new_session()).session_id
        second = (await client.new_session()).session_id
        closed = (await client.new_session()).session_id
        await client.close_session(closed)
        agent.command("ship")(ship)
        await client.wait_for_update("available_commands_update", count=5)
        agent.remove_command("mcp")
        await client.wait_for_update("available_commands_update", count=7)
        for session_id in (first, second):
            told = client.updates(session_id, "available_commands_update")[-1].fields["availableCommands"]
            assert [command["name"] for command in told] == ["help", "tools", "clear", "compact", "ship"]
        assert len(client.updates(closed, "available_commands_update")) == 1
        assert (await client.prompt("/ship now", first)).text == "shipped to 'now'"
        with pytest.raises(KeyError):
            agent.remove_command("mcp")


async def test_a_session_may_have_commands_of_its_own() -> None:
    async def work(turn: Turn) -> None:
        turn.session.set_commands([SHIP] if turn.text == "more" else [])
        await turn.send_text(turn.text)

    async with TestClient(handler_agent(work)).connect() as client:
        other = (await client.new_session()).session_id
        await client.new_session()
        assert (await client.prompt("/ship it")).text == "/ship it"
        result = await client.prompt("more")
        assert [update.kind for update in result.updates][:1] == ["available_commands_update"]
        assert (await client.prompt("/ship it")).text == "shipped to 'it'"
        assert (await client.prompt("/ship it", other)).text == "/ship it"
        await client.prompt("less")
        assert (await client.prompt("/ship it")).text == "/ship it"
        mine = client.updates(client.session_id, "available_commands_update")
        assert [len(update.fields["availableCommands"]) for update in mine] == [1, 0]


async def test_a_session_s_own_command_takes_the_place_of_the_agent_s_of_the_same_name() -> None:
    agent, _, _ = make_agent()
    own = SessionCommand(Command("help", "Help here."), ship)

    @agent.on_prompt
    async def work(turn: Turn) -> None:
        turn.session.set_commands([own])

    async with TestClient(agent).connect() as client:
        await client.prompt("go")
        assert (await client.prompt("/help")).text == "shipped to ''"
        assert lists(client) == [BUILT_IN] * 2
        last = client.updates(kind="available_commands_update")[-1].fields["availableCommands"]
        assert last[0] == {"name": "help", "description": "Help here."}


async def test_the_list_is_told_after_a_load_and_after_a_resume() -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent).connect() as client:
        session_id = (await client.new_session()).session_id
        for opening in (client.load_session, client.resume_session):
            await client.close_session(session_id)
            await opening(session_id)
        await client.wait_for_update("available_commands_update", count=3)
        agent.command("ship")(ship)
        await client.wait_for_update("available_commands_update", count=4)
        assert lists(client) == [BUILT_IN] * 3 + [[*BUILT_IN, "ship"]]


async def test_a_session_is_not_named_after_a_command() -> None:
    agent, _, _ = make_agent(DONE)
    async with TestClient(agent).connect() as client:
        assert (await client.prompt("/help")).title is None
        assert (await client.prompt("mend the parser")).title == "mend the parser"

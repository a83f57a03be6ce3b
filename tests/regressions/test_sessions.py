"""What broke sessions: replays with holes, folders that were not theirs, settings that did not hold.

Proved whole by other tests:

    a replay after its answer, or among live updates (NousResearch/hermes-agent#12285)
        runtime/test_sessions.py::test_a_load_in_the_middle_of_a_turn_tells_everything_exactly_once
    a mode that is echoed and not applied (topcheer/ggcode#1145)
        runtime/test_permissions.py::test_plan_mode_denies_with_its_reason_and_asks_nothing
    an unknown mode is stored (anomalyco/opencode#21226)
        runtime/test_sessions.py::test_unknown_modes_and_options_change_nothing
    a dangerous mode comes back with a load (Open-ACP/OpenACP#239)
        runtime/test_sessions.py::test_auto_mode_comes_back_as_ask_and_other_modes_as_they_were
    an impossible folder is taken (langchain-ai/deepagentsjs#654)
        runtime/test_sessions.py::test_a_cwd_that_cannot_be_is_refused_by_name
    a session in the list cannot be shown (zed-industries/zed#51341)
        regressions/test_startup.py::test_a_session_is_listed_as_editors_read_it
"""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_agent.agent import Agent
from acp_agent.errors import ModelError, RequestError, ToolError
from acp_agent.models.base import Model, TextDelta, ThoughtDelta, ToolUse, UsageDelta
from acp_agent.runtime.session import Session
from acp_agent.runtime.turn import Turn
from acp_agent.store.sqlite import SqliteStore
from acp_agent.testing import ConnectedClient, FakeEditor, TestClient, ToolCallView, Update
from acp_agent.tools.coding import coding_tools
from tests.e2e.editor import Pipe
from tests.requirements import requirement
from tests.runtime.support import Gate, PlayedModel, make_agent, run

STATE_KINDS = (
    *("plan", "usage_update", "session_info_update"),
    *("current_mode_update", "config_option_update", "available_commands_update"),
)


def folded(updates: list[Update], *, with_users: bool) -> dict[str, Any]:
    """All that a client has on show after these updates: messages by id, calls, and the last of everything else."""
    messages: dict[tuple[str, str], str] = {}
    last: dict[str, Any] = {}
    for update in updates:
        if update.kind.endswith("_chunk"):
            if with_users or update.kind != "user_message_chunk":
                key = (update.kind, update.fields["messageId"])
                messages[key] = messages.get(key, "") + update.text
        elif update.kind in STATE_KINDS:
            last[update.kind] = {name: value for name, value in update.fields.items() if name != "updatedAt"}
    return {"messages": messages, "calls": ToolCallView(updates).snapshot()} | last


async def live_and_replayed(first: ConnectedClient, second: ConnectedClient) -> tuple[dict[str, Any], dict[str, Any]]:
    session_id = str(first.session_id)
    live = folded(first.updates(session_id), with_users=False)
    before = len(second.updates())
    await second.load_session(session_id)
    return live, folded(second.updates()[before:], with_users=False)


EDIT = ToolUse("edit_file", {"path": "notes.txt", "old_text": "old", "new_text": "new"})
PLAN = ToolUse("update_plan", {"entries": [{"content": "one", "status": "in_progress", "priority": "high"}]})


# stacklok/mecatl#4, anomalyco/opencode#4870, MoonshotAI/kimi-cli#2363
@requirement("load-replays-all")
@pytest.mark.anyio
async def test_a_loaded_session_looks_as_it_did_before_the_restart(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("an old line\n")

    def agent(*replies: Any) -> Agent:
        store = SqliteStore(tmp_path / "state")
        return Agent("coder", model=PlayedModel(*replies), tools=coding_tools(), store=store)

    talk = [ThoughtDelta("Hm."), TextDelta("First."), UsageDelta(10, 5, 1000), PLAN, EDIT]
    before, after = agent(talk, [ToolUse("run_command", {"command": "echo hi"})], [TextDelta("Done.")]), agent()
    async with TestClient(before, cwd=tmp_path).connect() as first:
        await first.prompt("work")
        await first.set_mode("accept_edits")
    await before.aclose()
    async with TestClient(after, cwd=tmp_path).connect() as second:
        live, replayed = await live_and_replayed(first, second)
        assert [update.text for update in second.updates(kind="user_message_chunk")] == ["work"]
    await after.aclose()
    assert replayed == live
    assert len(live["calls"]) == 3
    assert set(STATE_KINDS) <= set(live)


class Wild(Model):
    """Does what a list of words says."""

    name = "wild"
    context_window = 1000

    def __init__(self, words: list[list[str]]) -> None:
        self.words = words

    async def stream(self, request: Any) -> Any:
        for word in self.words.pop(0) if self.words else []:
            match word:
                case "text":
                    yield TextDelta("some text ")
                case "thought":
                    yield ThoughtDelta("some thought ")
                case "usage":
                    yield UsageDelta(10, 1)
                case "fail":
                    raise ModelError("It failed.")
                case "wait":
                    await anyio.sleep_forever()
                case _:
                    yield ToolUse(word, {"command": "x"})


WORDS = st.lists(st.sampled_from(["text", "thought", "usage", "run", "crash", "nobody", "fail", "wait"]), max_size=6)


# anomalyco/opencode#30760, aaif-goose/goose#9875
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    turns=st.lists(st.lists(WORDS, min_size=1, max_size=3), min_size=1, max_size=3),
    permission=st.sampled_from(["allow_once", "reject_once", "cancelled", "error"]),
)
def test_what_is_replayed_is_what_was_shown_whatever_happened(turns: Any, permission: Any) -> None:
    async def main() -> None:
        agent = Agent("wild", model=Wild([reply for turn in turns for reply in turn]))

        @agent.tool
        async def run(command: str) -> str:
            """Run."""
            return "ran"

        @agent.tool(permission="allow")
        async def crash(command: str) -> str:
            """Crash."""
            raise ToolError("It cannot be done.")

        async with TestClient(agent, permission=permission, checks=[]).connect() as client:
            for number in range(len(turns)):
                handle = await client.start_prompt(f"turn {number}")
                for _ in range(40):
                    await client.list_sessions()
                client.cancel()
                await handle.wait()
            live, replayed = await live_and_replayed(client, client)
            for state in ("available_commands_update", "current_mode_update", "config_option_update"):
                live.pop(state, None)
                replayed.pop(state, None)
            assert replayed == live

    anyio.run(main)


# zed-industries/zed#54431, agentclientprotocol/kotlin-sdk#74, getpaseo/paseo#4539
@requirement("load-then-answers")
@pytest.mark.anyio
async def test_a_prompt_in_the_same_write_as_a_load_is_not_mixed_into_its_replay(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state")
    agent, _, _ = make_agent([TextDelta("one")], [TextDelta("two")], store=store)
    async with TestClient(agent, cwd=tmp_path).connect() as client:
        await client.prompt("first")
        session_id = str(client.session_id)
        await client.close_session()
        with client.in_one_write():
            params = {"sessionId": session_id, "cwd": client.cwd, "mcpServers": []}
            load = client.start_request("session/load", params)
            handle = await client.start_prompt("second", session_id)
        await client.answer_to(load)
        assert (await handle.wait()).stop_reason == "end_turn"
        answer = client.transcript.response_to(client.transcript.sent("session/load")[0])
        assert answer is not None
        texts = [(each.text, each.index < answer.index) for each in client.updates() if each.text]
        assert texts == [("one", True), ("first", True), ("one", True), ("two", False)][: len(texts)]
        assert len(texts) == 4
    await agent.aclose()


# langchain-ai/deepagentsjs#654, NousResearch/hermes-agent#11515, zed-industries/codex-acp#130
@requirement("session-cwd")
def test_each_session_works_in_its_own_folder_wherever_the_process_was_started(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        '[[turns]]\nwhen = ""\n[[turns.replies]]\nsteps = [{ type = "tool_use", name = "read_file", '
        'arguments = { path = "where.txt" } }]\n[[turns.replies]]\nsteps = [{ type = "text", text = "read" }]\n'
    )
    folders = [tmp_path / "a folder with späces", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
        (folder / "where.txt").write_text(f"this is {folder.name}")
    with Pipe("--scenario", str(scenario), cwd=tmp_path) as pipe:
        pipe.write({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
        sessions = []
        for number, folder in enumerate(folders, 2):
            params = {"cwd": f"{folder}{os.sep}", "mcpServers": []}
            pipe.write({"id": number, "method": "session/new", "params": params})
            sessions.append(pipe.answer(number)["result"]["sessionId"])
        for number, session_id in enumerate(sessions, 10):
            pipe.session_id = session_id
            pipe.write(pipe.prompt("where?", number))
        done = [
            pipe.read_until(lambda message: message.get("id") in (10, 11) and "result" in message) for _ in sessions
        ]
        assert {message["id"] for message in done} == {10, 11}
    for session_id, folder in zip(sessions, folders, strict=True):
        shown = [str(message) for message in pipe.received if session_id in str(message)]
        assert any(f"this is {folder.name}" in text for text in shown)
        assert any(str(folder / "where.txt") in text for text in shown)


# topcheer/ggcode#1145, NousResearch/hermes-agent#66385, QwenLM/qwen-code#2059
@requirement("config-modes-too")
@pytest.mark.anyio
async def test_a_mode_is_one_thing_under_both_of_its_names_also_in_a_turn() -> None:
    gate = Gate()
    agent, _, ran = make_agent([run("one"), run("two")], [run("three")])

    @agent.tool(permission="allow")
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    agent.definition.models["played"].replies.insert(0, [ToolUse("wait")])  # type: ignore[attr-defined]
    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("go")
        await gate.reached.wait()
        await client.set_config_option("mode", "auto")
        gate.open()
        await handle.wait()
        assert (ran, client.questions) == (["one", "two", "three"], [])
        assert client.updates(kind="current_mode_update")[-1].fields["currentModeId"] == "auto"
        await client.set_mode("ask")
        (option, *_) = client.updates(kind="config_option_update")[-1].fields["configOptions"]
        assert (option["id"], option["currentValue"]) == ("mode", "ask")
        agent.definition.models["played"].replies.append([run("four")])  # type: ignore[attr-defined]
        await client.prompt("go on")
        assert len(client.questions) == 1
        for config_id, value, session_id in (("mode", "x", None), ("x", "ask", None), ("mode", "ask", "nobody")):
            with pytest.raises(RequestError):
                await client.set_config_option(config_id, value, session_id)


# Open-ACP/OpenACP#239
@pytest.mark.anyio
async def test_a_model_that_is_gone_is_replaced_in_sight(tmp_path: Path) -> None:
    def agent(*names: str) -> Agent:
        models: dict[str, Model] = {name: PlayedModel([TextDelta(f"I am {name}.")]) for name in names}
        return Agent("several", models=models, store=SqliteStore(tmp_path / "state"))

    before, after, gone = agent("small", "large"), agent("small", "large"), agent("small", "other")
    async with TestClient(before, cwd=tmp_path).connect() as client:
        await client.new_session()
        await client.set_config_option("model", "large")
        session_id = str(client.session_id)
    await before.aclose()
    async with TestClient(after, cwd=tmp_path).connect() as client:
        loaded = await client.load_session(session_id)
        assert {option.id: option.current_value for option in loaded.config_options or []}["model"] == "large"
        assert (await client.prompt("who?")).text == "I am large."
    await after.aclose()
    async with TestClient(gone, cwd=tmp_path).connect() as client:
        loaded = await client.load_session(session_id)
        assert {option.id: option.current_value for option in loaded.config_options or []}["model"] == "small"
        text = (await client.prompt("who?")).text
        assert "large is gone" in text
        assert text.endswith("I am small.")
    await gone.aclose()


def alive_here() -> int:
    """How many sessions and turns there are in this process, those of other tests included."""
    gc.collect()
    return sum(isinstance(each, Session | Turn) for each in gc.get_objects())


# anomalyco/opencode#4315, gptme/gptme#1368, BrokkAi/brokk-app#3367
@requirement("close-frees")
@pytest.mark.anyio
async def test_a_closed_session_leaves_nothing_in_memory() -> None:
    agent, _, _ = make_agent()
    before = alive_here()
    async with TestClient(agent, record=False, editor=FakeEditor()).connect() as client:
        for _ in range(100):
            await client.new_session()
            await client.prompt("hello")
            await client.close_session()
        assert alive_here() <= before + 4


# agentclientprotocol/claude-agent-acp#657, getpaseo/paseo#4759
@pytest.mark.anyio
async def test_commands_are_told_whole_after_every_way_to_open_a_session(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state")
    agent, _, _ = make_agent(store=store)
    async with TestClient(agent, cwd=tmp_path).connect() as client:
        await client.new_session()
        session_id = str(client.session_id)
        first = (await client.wait_for_update("available_commands_update")).fields
        for count, again in enumerate((client.load_session, client.resume_session), 2):
            await client.close_session(session_id)
            await again(session_id)
            assert (await client.wait_for_update("available_commands_update", count=count)).fields == first
    await agent.aclose()


# davidtaylor6130/Universal-Agent-Manager#321, openonion/connectonion#977
@pytest.mark.anyio
async def test_a_long_replay_holds_up_nobody_else_and_can_be_cancelled() -> None:
    agent, model, _ = make_agent()
    async with TestClient(agent).connect() as client:
        await client.prompt("hello")
        long = str(client.session_id)
        for number in range(300):
            model.replies.append([TextDelta(f"{number} " + "x" * 1000), run("a")])
            await client.prompt("more", long)
        await client.new_session()
        params = {"sessionId": long, "cwd": client.cwd, "mcpServers": []}
        load = client.start_request("session/load", params)
        handle = await client.start_prompt("and I?")
        assert (await handle.wait()).stop_reason == "end_turn"
        assert not load.is_over
        client.cancel_request(load.id)
        with pytest.raises(RequestError):
            await client.answer_to(load)
        assert (await client.prompt("still there?", long)).stop_reason == "end_turn"
        await client.resume_session(long)

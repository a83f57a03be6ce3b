"""Sessions: made, loaded, resumed, listed, closed, deleted; idle or in the middle of a turn."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from acp_agent.content import PlanEntry
from acp_agent.errors import RequestError
from acp_agent.history import UserMessage
from acp_agent.models.base import TextDelta, ThoughtDelta, UsageDelta
from acp_agent.runtime.turn import Turn
from acp_agent.testing import ConnectedClient, TestClient, ToolCallView, Update
from tests.requirements import requirement
from tests.runtime.support import DONE, Gate, handler_agent, look, make_agent, run, told_results

pytestmark = pytest.mark.anyio

UNKNOWN = -32002
INVALID_PARAMS = -32602
INVALID_REQUEST = -32600


async def echo(turn: Turn) -> None:
    await turn.send_text(turn.text)


async def refused(request: Any) -> RequestError:
    with pytest.raises(RequestError) as raised:
        await request
    return raised.value


def conversation(updates: list[Update]) -> list[tuple[str, str]]:
    """What was said, by whom, each message whole."""
    said: list[tuple[str, str, str]] = []
    for update in updates:
        if not update.kind.endswith("_chunk"):
            continue
        message_id = update.fields["messageId"]
        if said and said[-1][:2] == (update.kind, message_id):
            said[-1] = (update.kind, message_id, said[-1][2] + update.text)
        else:
            said.append((update.kind, message_id, update.text))
    return [(kind.removesuffix("_chunk"), text) for kind, _, text in said]


async def replay(client: ConnectedClient, session_id: str) -> list[Update]:
    """The updates that a load brings."""
    before = len(client.updates())
    await client.load_session(session_id)
    return [update for update in client.updates()[before:] if update.session_id == session_id]


def since_replay(client: ConnectedClient) -> list[Update]:
    """The updates from the first one that was replayed on."""
    first = client.updates(kind="user_message_chunk")[0]
    return [update for update in client.updates() if update.index >= first.index]


# the start ------------------------------------------------------------------------------------------------------------


async def test_initialize_says_what_the_agent_can() -> None:
    async with TestClient(handler_agent(echo, version="2.0", title="The tested")).connect() as client:
        said = client.initialize_result
        assert said is not None
        assert said.protocol_version == 1
        assert said.agent_info is not None
        assert (said.agent_info.name, said.agent_info.title, said.agent_info.version) == ("tested", "The tested", "2.0")
        assert said.agent_capabilities.load_session
        sessions = said.agent_capabilities.session_capabilities
        assert None not in (sessions.list, sessions.delete, sessions.resume, sessions.close)
        assert said.auth_methods == []


async def test_initialize_may_come_twice_and_sessions_stay() -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        await client.prompt("one")
        assert (await client.initialize()).protocol_version == 1
        assert (await client.prompt("two")).text == "two"


@pytest.mark.parametrize("version", [0, 2, 99, 65535])
async def test_other_versions_are_answered_with_ours(version: int) -> None:
    async with TestClient(handler_agent(echo)).connect(initialize=False) as client:
        assert (await client.initialize(version)).protocol_version == 1


async def test_requests_before_initialize_are_refused_and_the_connection_lives() -> None:
    async with TestClient(handler_agent(echo)).connect(initialize=False) as client:
        early = await refused(client.request("session/new", {"cwd": client.cwd, "mcpServers": []}))
        assert early.code == INVALID_REQUEST
        assert (await refused(client.request("no/such", {}))).code == -32601
        client.cancel("nobody")
        assert (await client.initialize()).protocol_version == 1
        assert (await client.prompt("hello")).text == "hello"


async def test_requests_behind_initialize_in_one_write_are_served() -> None:
    async with TestClient(handler_agent(echo)).connect(initialize=False) as client:
        with client.in_one_write():
            hello = client.start_request("initialize", {"protocolVersion": 1})
            new = client.start_request("session/new", {"cwd": client.cwd, "mcpServers": []})
        assert (await client.answer_to(hello))["protocolVersion"] == 1
        assert (await client.answer_to(new))["sessionId"]


@pytest.mark.parametrize("params", [{}, {"protocolVersion": "1"}, {"protocolVersion": None}, {"protocolVersion": -1}])
async def test_an_initialize_without_a_version_is_refused_and_may_be_tried_again(params: dict[str, Any]) -> None:
    async with TestClient(handler_agent(echo)).connect(initialize=False) as client:
        error = await refused(client.request("initialize", params))
        assert (error.code, error.data["path"]) == (INVALID_PARAMS, "$.protocolVersion")
        assert (await client.initialize()).protocol_version == 1


# a new one ------------------------------------------------------------------------------------------------------------


async def test_each_session_has_an_id_of_its_own_and_its_answer_comes_before_its_updates() -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent).connect() as client:
        first, second = await client.new_session(), await client.new_session()
        assert first.session_id != second.session_id
        await client.wait_for_update("available_commands_update", count=2)
        outline = client.transcript.outline()[2:]
        assert outline == ["> session/new", "< result", "< available_commands_update"] * 2


async def test_modes_are_told_and_are_one_config_option_too() -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent).connect() as client:
        session = await client.new_session()
        assert session.modes is not None
        assert session.modes.current_mode_id == "ask"
        assert [mode.id for mode in session.modes.available_modes] == ["ask", "accept_edits", "plan", "auto"]
        assert session.config_options is not None
        assert [(option.id, option.category, option.current_value) for option in session.config_options] == [
            ("mode", "mode", "ask")
        ]


async def test_an_agent_with_nothing_to_gate_has_no_modes() -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        session = await client.new_session()
        assert (session.modes, session.config_options) == (None, None)


@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume"])
@pytest.mark.parametrize(
    ("cwd", "said"),
    [
        ("relative/path", "must be an absolute path"),
        ("", "must be an absolute path"),
        ("~", "must be an absolute path"),
        ("/no/such/folder", "does not exist"),
        (__file__, "is not a directory"),
    ],
)
async def test_a_cwd_that_cannot_be_is_refused_by_name(method: str, cwd: str, said: str) -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        error = await refused(client.request(method, {"cwd": cwd, "sessionId": "any", "mcpServers": []}))
        assert (error.code, error.data["path"]) == (INVALID_PARAMS, "$.cwd")
        assert said in error.data["details"]


@pytest.mark.parametrize("cwd", [None, 3, ["/tmp"]])
async def test_a_cwd_that_is_no_text_is_refused(cwd: object) -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        error = await refused(client.request("session/new", {"cwd": cwd, "mcpServers": []}))
        assert (error.code, error.data["path"]) == (INVALID_PARAMS, "$.cwd")


@requirement("session-roots-absolute")
async def test_an_additional_directory_must_be_absolute() -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        error = await refused(client.new_session(additional_directories=["/tmp", "here"]))
        assert (error.code, error.data["path"]) == (INVALID_PARAMS, "$.additionalDirectories[1]")


async def test_what_loose_clients_leave_out_is_taken_as_empty() -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        for params in ({"cwd": client.cwd}, {"cwd": client.cwd, "mcpServers": None, "_meta": {"a": 1}, "model": "x"}):
            assert (await client.request("session/new", params))["sessionId"]


# settings -------------------------------------------------------------------------------------------------------------


async def test_a_mode_is_answered_and_then_told_by_both_of_its_names() -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent).connect() as client:
        await client.new_session()
        await client.wait_for_update("available_commands_update")
        await client.set_mode("plan")
        await client.wait_for_update("config_option_update")
        assert client.transcript.outline()[-4:] == [
            "> session/set_mode",
            "< result",
            "< current_mode_update",
            "< config_option_update",
        ]
        assert client.updates(kind="current_mode_update")[0].fields["currentModeId"] == "plan"
        option = client.updates(kind="config_option_update")[0].fields["configOptions"][0]
        assert (option["id"], option["currentValue"]) == ("mode", "plan")


async def test_an_option_that_is_set_is_answered_with_all_of_them() -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent).connect() as client:
        await client.new_session()
        answer = await client.set_config_option("mode", "auto")
        assert [(option.id, option.current_value) for option in answer.config_options] == [("mode", "auto")]
        await client.wait_for_update("current_mode_update")


async def test_unknown_modes_and_options_change_nothing() -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent).connect() as client:
        await client.new_session()
        for request in (
            client.set_mode("yolo"),
            client.set_config_option("mode", "yolo"),
            client.set_config_option("mode", True),
            client.set_config_option("colour", "red"),
        ):
            assert (await refused(request)).code == INVALID_PARAMS
        assert client.updates(kind="current_mode_update") == []
        session = await client.load_session(client.session_id or "")
        assert session.modes is not None
        assert session.modes.current_mode_id == "ask"


async def test_the_error_of_an_unknown_mode_names_the_field_that_was_wrong() -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent).connect() as client:
        await client.new_session()
        error = await refused(client.set_mode("yolo"))
        assert error.data["path"] == "$.modeId"
        assert "yolo" in error.data["details"]


# unknown ones ---------------------------------------------------------------------------------------------------------


@requirement("error-unknown-session")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/prompt", {"prompt": [{"type": "text", "text": "hello"}]}),
        ("session/load", {"cwd": os.sep, "mcpServers": []}),
        ("session/resume", {"cwd": os.sep}),
        ("session/close", {}),
        ("session/set_mode", {"modeId": "plan"}),
        ("session/set_config_option", {"configId": "mode", "value": "plan"}),
    ],
)
async def test_an_unknown_session_is_not_found_and_named(method: str, params: dict[str, Any]) -> None:
    async with TestClient(make_agent()[0]).connect() as client:
        for session_id in ("nobody", "../../etc/passwd", "", "a\x00b", "x" * 5000):
            error = await refused(client.request(method, params | {"sessionId": session_id}))
            assert (error.code, error.data["sessionId"]) == (UNKNOWN, session_id)


async def test_deleting_an_unknown_session_is_no_error() -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        await client.delete_session("nobody")


# load and resume ------------------------------------------------------------------------------------------------------


async def test_a_load_replays_what_was_shown_before_it_answers() -> None:
    agent, _, _ = make_agent(
        [ThoughtDelta("Hm. "), ThoughtDelta("Yes."), TextDelta("Let me "), TextDelta("see."), run("make"), look("a")],
        [TextDelta("Done."), UsageDelta(70, 30, 1000, 0.5)],
    )
    async with TestClient(agent).connect() as client:
        live = await client.prompt([{"type": "text", "text": "build"}, {"type": "text", "text": "it"}])
        session_id = client.session_id or ""
        for close in (False, True):
            if close:
                await client.close_session()
            replayed = await replay(client, session_id)
            assert client.transcript.frames[-1].is_response
            assert conversation(replayed) == [
                ("user_message", "buildit"),
                ("agent_thought", "Hm. Yes."),
                ("agent_message", "Let me see."),
                ("agent_message", "Done."),
            ]
            assert ToolCallView(replayed).snapshot() == ToolCallView(live.updates).snapshot()
            ids = {update.fields["messageId"] for update in live.updates if "messageId" in update.fields}
            assert ids <= {update.fields.get("messageId") for update in replayed}
            kinds = [
                update.kind
                for update in replayed
                if "messageId" not in update.fields and "toolCallId" not in update.fields
            ]
            assert kinds == [
                "session_info_update",
                "usage_update",
                "current_mode_update",
                "config_option_update",
                "available_commands_update",
            ]


async def test_the_model_knows_what_was_said_before_a_load() -> None:
    agent, model, _ = make_agent([run("make")], [TextDelta("Built.")])
    async with TestClient(agent).connect() as client:
        await client.prompt("build")
        session_id = client.session_id or ""
        before = list(model.requests[-1].messages)
        await client.close_session()
        await client.load_session(session_id)
        await client.prompt("thanks")
        messages = model.requests[-1].messages
    assert messages[: len(before)] == before
    assert [type(message).__name__ for message in messages[len(before) :]] == ["AssistantMessage", "UserMessage"]
    assert told_results(messages) == ["ran make"]


async def test_a_resume_replays_nothing_and_the_model_knows_all_the_same() -> None:
    agent, model, _ = make_agent()
    async with TestClient(agent).connect() as client:
        await client.prompt("build")
        session_id = client.session_id or ""
        await client.close_session()
        before = len(client.updates())
        await client.resume_session(session_id)
        await client.wait_for_update("available_commands_update", count=2)
        assert [update.kind for update in client.updates()[before:]] == ["available_commands_update"]
        assert client.transcript.outline()[-3:] == ["> session/resume", "< result", "< available_commands_update"]
        await client.prompt("go on")
    assert len([message for message in model.requests[-1].messages if isinstance(message, UserMessage)]) == 2


async def test_auto_mode_comes_back_as_ask_and_other_modes_as_they_were() -> None:
    agent, _, _ = make_agent()
    async with TestClient(agent).connect() as client:
        for mode, restored in (("auto", "ask"), ("plan", "plan")):
            session_id = (await client.new_session()).session_id
            await client.set_mode(mode)
            await client.close_session()
            session = await client.load_session(session_id)
            assert session.modes is not None
            assert session.modes.current_mode_id == restored


async def test_remembered_answers_go_with_the_session() -> None:
    agent, _, _ = make_agent([run("make")], DONE, [run("make")])
    async with TestClient(agent, permission="allow_always").connect() as client:
        await client.prompt("build")
        session_id = client.session_id or ""
        await client.close_session()
        await client.load_session(session_id)
        await client.prompt("build")
        assert len(client.questions) == 2


async def test_a_live_session_cannot_be_moved(tmp_path: Path) -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        session_id = (await client.new_session()).session_id
        error = await refused(client.load_session(session_id, cwd=str(tmp_path)))
        assert (error.code, error.data["path"]) == (INVALID_PARAMS, "$.cwd")
        assert (await client.prompt("still here")).text == "still here"


async def test_a_load_in_the_middle_of_a_turn_tells_everything_exactly_once() -> None:
    gate = Gate()

    async def work(turn: Turn) -> None:
        for number in range(40):
            await turn.send_text(f"{number},")
        await gate.wait()
        call = turn.open_tool_call("deploy", title="Deploy")
        for number in range(40, 80):
            await turn.send_text(f"{number},")
        call.complete(text="deployed")

    async with TestClient(handler_agent(work)).connect() as client:
        handle = await client.start_prompt("count")
        await gate.reached.wait()
        await client.wait_for(lambda update: update.text == "39,")
        loading = client.start_request(
            "session/load", {"sessionId": handle.session_id, "cwd": client.cwd, "mcpServers": []}
        )
        gate.open()
        result = await handle.wait()
        await client.answer_to(loading)
        assert result.stop_reason == "end_turn"
        updates = since_replay(client)
        said = "".join(update.text for update in updates if update.kind == "agent_message_chunk")
        assert said == "".join(f"{number}," for number in range(80))
        assert [row.status for row in ToolCallView(updates)] == ["completed"]
        answers = [frame for frame in client.transcript.received() if frame.is_response]
        assert [frame.id for frame in answers[-2:]] == [loading.id, handle.id]


@pytest.mark.parametrize("moment", range(0, 12))
async def test_a_load_that_meets_a_busy_turn_tells_everything_exactly_once(moment: int) -> None:
    agent, _, _ = make_agent(*([TextDelta("a"), TextDelta("b"), look(str(number))] for number in range(10)))
    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("look around")
        await client.wait_for_status("in_progress", count=moment % 10 + 1)
        asked = client.start_request(
            "session/load", {"sessionId": handle.session_id, "cwd": client.cwd, "mcpServers": []}
        )
        await client.answer_to(asked)
        await handle.wait()
        told = since_replay(client)
        assert conversation(told) == [
            ("user_message", "look around"),
            *[("agent_message", "ab")] * 10,
            ("agent_message", "Done."),
        ]
        assert [row.text for row in ToolCallView(told)] == [f"saw {number}" for number in range(10)]


async def test_a_question_is_asked_after_the_load_that_shows_its_call() -> None:
    gate = Gate()
    agent, _, ran = make_agent([TextDelta("Hm. "), gate.wait, run("make")])
    async with TestClient(agent).connect() as client:
        handle = await client.start_prompt("build")
        await gate.reached.wait()
        asked = client.start_request(
            "session/load", {"sessionId": handle.session_id, "cwd": client.cwd, "mcpServers": []}
        )
        gate.open()
        await client.answer_to(asked)
        await handle.wait()
        question = client.questions[0].frame.index
        opened = client.updates(kind="tool_call")[0].index
        assert opened < question
    assert ran == ["make"]


async def test_loads_of_one_session_wait_for_each_other() -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        await client.prompt("hello")
        session_id = client.session_id or ""
        await client.close_session()
        before = len(client.updates())
        params = {"sessionId": session_id, "cwd": client.cwd, "mcpServers": []}
        with client.in_one_write():
            loads = [client.start_request("session/load", params) for _ in range(3)]
            prompt = await client.start_prompt("and now", session_id)
        for load in loads:
            await client.answer_to(load)
        assert (await prompt.wait()).stop_reason == "end_turn"
        told = conversation(client.updates()[before:])
        assert told == [("user_message", "hello"), ("agent_message", "hello")] * 3 + [("agent_message", "and now")]


# list, close, delete --------------------------------------------------------------------------------------------------


async def test_sessions_are_listed_the_last_used_first_also_without_a_prompt(tmp_path: Path) -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        assert (await client.list_sessions()).sessions == []
        first = (await client.new_session()).session_id
        second = (await client.new_session(str(tmp_path), additional_directories=["/tmp"])).session_id
        await client.prompt("name me", session_id=first)
        rows = (await client.list_sessions()).sessions
        assert {row.session_id for row in rows} == {first, second}
        by_id = {row.session_id: row for row in rows}
        assert (by_id[first].title, by_id[second].title) == ("name me", None)
        assert by_id[second].additional_directories == ["/tmp"]
        assert [row.session_id for row in (await client.list_sessions(cwd=str(tmp_path))).sessions] == [second]
        assert (await client.list_sessions(cwd="/nowhere")).sessions == []


@requirement("list-bad-cursor")
async def test_a_cursor_that_is_not_ours_is_refused() -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        error = await refused(client.list_sessions(cursor="nonsense"))
        assert (error.code, error.data["path"]) == (INVALID_PARAMS, "$.cursor")


async def test_a_closed_session_is_unknown_until_it_is_opened_again() -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        await client.prompt("hello")
        session_id = client.session_id or ""
        await client.close_session()
        result = await client.prompt("still there?", session_id)
        assert result.error is not None
        assert result.error.code == UNKNOWN
        assert (await refused(client.close_session(session_id))).code == UNKNOWN
        assert [row.session_id for row in (await client.list_sessions()).sessions] == [session_id]
        await client.resume_session(session_id)
        assert (await client.prompt("and now?")).text == "and now?"


@pytest.mark.parametrize("verb", ["session/close", "session/delete"])
async def test_a_session_that_ends_in_the_middle_of_a_turn_cancels_it_first(verb: str) -> None:
    gate = Gate()

    async def work(turn: Turn) -> None:
        turn.open_tool_call("deploy", title="Deploy")
        await gate.wait()

    async with TestClient(handler_agent(work)).connect() as client:
        running = await client.start_prompt("go")
        waiting = await client.start_prompt("go on")
        await gate.reached.wait()
        ending = client.start_request(verb, {"sessionId": running.session_id})
        await client.answer_to(ending)
        assert running.is_over
        assert [(await handle.wait()).stop_reason for handle in (running, waiting)] == ["cancelled", "cancelled"]
        answers = [frame.id for frame in client.transcript.received() if frame.is_response]
        assert answers[-1] == ending.id
        assert gate.was_cancelled


async def test_a_prompt_behind_a_close_finds_no_session() -> None:
    gate = Gate()

    async def work(turn: Turn) -> None:
        await gate.wait()

    async with TestClient(handler_agent(work)).connect() as client:
        running = await client.start_prompt("go")
        await gate.reached.wait()
        with client.in_one_write():
            closing = client.start_request("session/close", {"sessionId": running.session_id})
            late = await client.start_prompt("too late", running.session_id)
        await client.answer_to(closing)
        result = await late.wait()
        assert result.error is not None
        assert result.error.code == UNKNOWN


async def test_a_deleted_session_is_gone_for_good() -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        await client.prompt("hello")
        session_id = client.session_id or ""
        await client.delete_session()
        assert (await client.list_sessions()).sessions == []
        assert (await refused(client.load_session(session_id))).code == UNKNOWN
        await client.delete_session(session_id)


async def test_a_closed_session_can_be_deleted() -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        await client.prompt("hello")
        session_id = client.session_id or ""
        await client.close_session()
        await client.delete_session(session_id)
        assert (await client.list_sessions()).sessions == []


async def test_sessions_outlive_a_connection_of_the_same_agent() -> None:
    async def plan(turn: Turn) -> None:
        turn.send_plan([PlanEntry("first", status="in_progress"), PlanEntry("then")])
        await turn.send_text("planned")

    agent = handler_agent(plan)
    async with TestClient(agent, cwd="/").connect() as client:
        await client.prompt("plan it")
        session_id = client.session_id or ""
    async with TestClient(agent, cwd="/").connect() as client:
        replayed = await replay(client, session_id)
        assert conversation(replayed) == [("user_message", "plan it"), ("agent_message", "planned")]
        plans = [update.fields["entries"] for update in replayed if update.kind == "plan"]
        assert [[entry["content"] for entry in entries] for entries in plans] == [["first", "then"]]


async def test_a_session_may_be_closed_opened_and_used_in_one_write() -> None:
    gate = Gate()

    async def work(turn: Turn) -> None:
        if turn.text == "wait":
            await gate.wait()
        await turn.send_text(turn.text)

    async with TestClient(handler_agent(work)).connect() as client:
        running = await client.start_prompt("wait")
        await gate.reached.wait()
        session_id = running.session_id
        with client.in_one_write():
            closing = client.start_request("session/close", {"sessionId": session_id})
            loading = client.start_request(
                "session/load", {"sessionId": session_id, "cwd": client.cwd, "mcpServers": []}
            )
            again = await client.start_prompt("hello", session_id)
        for asked in (closing, loading):
            await client.answer_to(asked)
        assert (await again.wait()).text == "hello"
        answers = [frame.id for frame in client.transcript.received() if frame.is_response]
        assert answers[-4:] == [running.id, closing.id, loading.id, again.id]


async def test_an_unknown_session_that_is_asked_for_twice_at_once_is_refused_twice() -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        params = {"sessionId": "nobody", "cwd": client.cwd, "mcpServers": []}
        with client.in_one_write():
            loads = [client.start_request(method, params) for method in ("session/load", "session/resume")]
            prompt = await client.start_prompt("hello", "nobody")
            closing = client.start_request("session/close", {"sessionId": "nobody"})
        for asked in (*loads, closing):
            assert (await refused(client.answer_to(asked))).code == UNKNOWN
        result = await prompt.wait()
        assert result.stop_reason == "cancelled"


async def test_a_load_that_is_cancelled_is_answered_and_the_session_goes_on() -> None:
    async with TestClient(handler_agent(echo)).connect() as client:
        await client.prompt("hello")
        params = {"sessionId": client.session_id, "cwd": client.cwd, "mcpServers": []}
        with client.in_one_write():
            loads = [client.start_request("session/load", params) for _ in range(3)]
            client.cancel_request(loads[1].id)
        await client.answer_to(loads[0])
        assert (await refused(client.answer_to(loads[1]))).code == -32800
        await client.answer_to(loads[2])
        assert (await client.prompt("still there?")).text == "still there?"

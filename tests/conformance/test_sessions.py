"""Rows about opening, loading, resuming, listing, closing and deleting sessions, and their modes and options."""

from __future__ import annotations

from typing import Any

from tests.conformance.kit import QUIET, MinimalClient, row
from tests.requirements import requirement

LOAD = "agentCapabilities.loadSession"
CAN = "agentCapabilities.sessionCapabilities"
HISTORY = {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"}


def place(client: MinimalClient, session_id: str) -> dict[str, Any]:
    return {"sessionId": session_id, "cwd": str(client.cwd), "mcpServers": []}


def about(messages: list[dict[str, Any]], session_id: str) -> list[str]:
    """The kinds of the updates of one session among these messages."""
    updates = [message["params"] for message in messages if message.get("method") == "session/update"]
    return [each["update"]["sessionUpdate"] for each in updates if each["sessionId"] == session_id]


@requirement("baseline-methods")
@row("ACP-SESSION-001", "MANDATORY")
def test_a_session_is_opened_with_an_id(shared: MinimalClient) -> None:
    session_id = shared.new_session()["sessionId"]
    assert isinstance(session_id, str)
    assert session_id


@requirement("session-unique-id")
@row("ACP-SESSION-002", "MANDATORY")
def test_two_sessions_have_two_ids(shared: MinimalClient) -> None:
    assert shared.new_session()["sessionId"] != shared.new_session()["sessionId"]


@row("ACP-ADDDIRS-001", "CAPABILITY", f"{CAN}.additionalDirectories")
def test_a_session_takes_more_directories(shared: MinimalClient) -> None:
    more = shared.cwd / "more"
    more.mkdir()
    assert shared.new_session(additionalDirectories=[str(more)])["sessionId"]


@row("ACP-CLOSE-001", "CAPABILITY", f"{CAN}.close")
def test_an_idle_session_is_closed_with_an_empty_object(shared: MinimalClient) -> None:
    assert shared.result("session/close", {"sessionId": shared.new_session()["sessionId"]}) == {}


@row("ACP-DELETE-001", "CAPABILITY", f"{CAN}.delete")
def test_a_session_is_deleted_with_an_empty_object(shared: MinimalClient) -> None:
    assert shared.result("session/delete", {"sessionId": shared.new_session()["sessionId"]}) == {}


@requirement("delete-missing")
@row("ACP-DELETE-002", "ADVISORY", f"{CAN}.delete")
def test_deleting_what_never_was_succeeds(shared: MinimalClient) -> None:
    assert shared.result("session/delete", {"sessionId": "tck-never-created-session"}) == {}


@row("ACP-LIST-001", "CAPABILITY", f"{CAN}.list")
def test_sessions_are_listed(shared: MinimalClient) -> None:
    session_id = shared.new_session()["sessionId"]
    assert session_id in [each["sessionId"] for each in shared.result("session/list", {})["sessions"]]


@requirement("list-empty")
@row("ACP-LIST-002", "CAPABILITY", f"{CAN}.list")
def test_a_folder_without_sessions_has_an_empty_list(shared: MinimalClient) -> None:
    empty = shared.cwd / "empty"
    empty.mkdir()
    assert shared.result("session/list", {"cwd": str(empty)})["sessions"] == []


@row("ACP-LOAD-001", "CAPABILITY", LOAD)
def test_a_session_that_lives_is_loaded(shared: MinimalClient) -> None:
    session_id = shared.new_session()["sessionId"]
    shared.prompt(session_id)
    assert isinstance(shared.result("session/load", place(shared, session_id)), dict)


@requirement("load-replays-all", "load-then-answers")
@row("ACP-LOAD-002", "CAPABILITY", LOAD)
def test_a_load_replays_everything_before_its_answer_and_nothing_after(shared: MinimalClient) -> None:
    session_id = shared.new_session()["sessionId"]
    shared.prompt(session_id)
    before = len(shared.frames)
    shared.result("session/load", place(shared, session_id))
    replayed = about([frame.message for frame in shared.frames[before:]], session_id)
    assert {"user_message_chunk", "agent_message_chunk"} <= set(replayed)
    assert about(shared.listen(QUIET), session_id) == []


@row("ACP-LOAD-003", "ADVISORY", LOAD)
def test_the_answer_to_an_empty_load_is_an_object(shared: MinimalClient) -> None:
    session_id = shared.new_session()["sessionId"]
    assert isinstance(shared.result("session/load", place(shared, session_id)), dict)


@row("ACP-RESUME-001", "CAPABILITY", f"{CAN}.resume")
def test_a_session_is_resumed_by_id_and_folder_alone(shared: MinimalClient) -> None:
    session_id = shared.new_session()["sessionId"]
    assert isinstance(shared.result("session/resume", {"sessionId": session_id, "cwd": str(shared.cwd)}), dict)


@requirement("resume-no-replay")
@row("ACP-RESUME-002", "CAPABILITY", f"{CAN}.resume")
def test_a_resume_replays_nothing(shared: MinimalClient) -> None:
    session_id = shared.new_session()["sessionId"]
    shared.prompt(session_id)
    before = len(shared.frames)
    shared.result("session/resume", {"sessionId": session_id, "cwd": str(shared.cwd)})
    assert not HISTORY & set(about([frame.message for frame in shared.frames[before:]], session_id))


@row("ACP-MODES-001", "CAPABILITY", "modes")
def test_the_current_mode_is_one_of_those_there_are(advertised: dict[str, Any]) -> None:
    modes = advertised["modes"]
    assert modes["currentModeId"] in [mode["id"] for mode in modes["availableModes"]]


@row("ACP-MODES-002", "CAPABILITY", "modes")
def test_another_mode_is_set_and_told_by_its_right_name(client: MinimalClient) -> None:
    client.initialize()
    session = client.new_session()
    modes = session["modes"]
    other = next(mode["id"] for mode in modes["availableModes"] if mode["id"] != modes["currentModeId"])
    client.result("session/set_mode", {"sessionId": session["sessionId"], "modeId": other})
    client.listen(QUIET)
    updates = [message["params"]["update"] for message in client.heard("session/update")]
    told = [update for update in updates if update["sessionUpdate"] == "current_mode_update"]
    assert [update["currentModeId"] for update in told] == [other]


@requirement("config-default")
@row("ACP-CONFIG-001", "CAPABILITY", "configOptions")
def test_each_option_has_a_value_that_it_can_have(advertised: dict[str, Any]) -> None:
    for option in advertised["configOptions"]:
        assert option["id"]
        assert option["name"]
        assert option["currentValue"] in values_of(option)


@requirement("config-complete")
@row("ACP-CONFIG-002", "CAPABILITY", "configOptions")
def test_setting_an_option_answers_with_all_of_them(shared: MinimalClient) -> None:
    session = shared.new_session()
    options = session["configOptions"]
    first = options[0]
    other = next(value for value in values_of(first) if value != first["currentValue"])
    params = {"sessionId": session["sessionId"], "configId": first["id"], "value": other}
    now = {each["id"]: each for each in shared.result("session/set_config_option", params)["configOptions"]}
    assert list(now) == [each["id"] for each in options]
    assert now[first["id"]]["currentValue"] == other


@requirement("config-no-boolean")
@row("ACP-CONFIG-003", "MANDATORY")
def test_no_option_is_a_boolean_for_a_client_that_has_none(advertised: dict[str, Any]) -> None:
    assert "boolean" not in [option["type"] for option in advertised.get("configOptions", [])]


def values_of(option: dict[str, Any]) -> list[Any]:
    """The values that an option can have: of a boolean, of a list, of a list in groups."""
    if option["type"] == "boolean":
        return [True, False]
    entries = option["options"]
    grouped = [each for entry in entries for each in entry.get("options", [entry])]
    return [each["value"] for each in grouped]

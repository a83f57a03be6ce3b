"""The rules of a transcript: a good one passes, and each that is broken is named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from acp_agent.testing import Transcript, check_transcript
from acp_agent.testing.rules import find_faults

pytestmark = pytest.mark.anyio

INITIALIZE = {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": False}}}


class Play:
    """Writes a transcript. Requests of the client's count their ids from 1."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.asked = 0

    def says(self, **message: Any) -> None:
        self._add("to_agent", {"jsonrpc": "2.0"} | message)

    def asks(self, method: str, **params: Any) -> int:
        self.asked += 1
        self.says(id=self.asked, method=method, params=params)
        return self.asked

    def hears(self, **message: Any) -> None:
        self._add("from_agent", {"jsonrpc": "2.0"} | message)

    def updates(self, kind: str, session_id: str = "s", **fields: Any) -> None:
        params = {"sessionId": session_id, "update": {"sessionUpdate": kind} | fields}
        self.hears(method="session/update", params=params)

    def call(self, call_id: str = "c", kind: str = "tool_call_update", **fields: Any) -> None:
        self.updates(kind, toolCallId=call_id, **fields)

    def _add(self, direction: Any, message: dict[str, Any]) -> None:
        self.transcript.add(direction, message, msgspec.json.encode(message))

    @property
    def fault(self) -> str:
        """The one fault there is."""
        (fault,) = find_faults(self.transcript)
        return fault


@pytest.fixture
async def play() -> Play:
    """A connection on which session `s` is open."""
    play = Play()
    play.hears(id=play.asks("initialize", **INITIALIZE), result={"protocolVersion": 1})
    play.hears(id=play.asks("session/new", cwd="/"), result={"sessionId": "s"})
    return play


@pytest.fixture
async def turn(play: Play) -> Play:
    """A connection on which a prompt with id 3 runs."""
    play.asks("session/prompt", sessionId="s", prompt=[])
    return play


async def test_a_good_turn_has_no_fault(turn: Play) -> None:
    turn.updates("agent_message_chunk", content={"type": "text", "text": "hi"})
    turn.call(kind="tool_call", title="t", status="pending")
    turn.hears(id=1, method="session/request_permission", params={"sessionId": "s"})
    turn.says(id=1, result={})
    turn.call(status="in_progress")
    turn.call(status="completed")
    turn.hears(id=3, result={"stopReason": "end_turn"})
    turn.updates("session_info_update", title="t")
    check_transcript(turn.transcript)


async def test_the_error_names_each_fault(turn: Play) -> None:
    turn.updates("plan", session_id="other")
    turn.hears(id=9, result={})
    with pytest.raises(AssertionError, match=r"not open(?s:.*)outside of a turn(?s:.*)answers what was not asked"):
        check_transcript(turn.transcript)


async def test_an_answer_is_given_once(turn: Play) -> None:
    turn.hears(id=3, result={"stopReason": "end_turn"})
    turn.hears(id=3, result={"stopReason": "end_turn"})
    assert "answers what was not asked, or was answered already" in turn.fault


async def test_an_answer_has_a_result_or_an_error(turn: Play) -> None:
    turn.hears(id=3)
    assert "exactly one of result and error" in find_faults(turn.transcript)[0]


async def test_an_error_has_a_code(turn: Play) -> None:
    turn.hears(id=3, error={"message": "no"})
    assert "an error without a code" in turn.fault


async def test_an_error_for_a_line_without_an_id_is_fine(turn: Play) -> None:
    turn.hears(id=None, error={"code": -32700, "message": "Parse error"})
    assert find_faults(turn.transcript) == []


async def test_a_stop_reason_is_a_known_one(turn: Play) -> None:
    turn.hears(id=3, result={"stopReason": "bored"})
    assert "no known reason" in turn.fault


async def test_a_frame_says_that_it_is_jsonrpc(turn: Play) -> None:
    turn.hears(jsonrpc="1.0", id=3, result={"stopReason": "end_turn"})
    assert "no jsonrpc 2.0" in turn.fault


async def test_a_line_that_is_no_frame_is_a_fault(play: Play) -> None:
    play.transcript.add_noise(b"Hello from print")
    assert "no JSON object: b'Hello from print'" in play.fault


async def test_a_line_may_be_too_long(play: Play) -> None:
    play.transcript.add("from_agent", {"jsonrpc": "2.0", "method": "session/update"}, b" " * (8 * 1024 * 1024 + 1))
    assert "is longer than" in find_faults(play.transcript)[0]


async def test_an_update_before_the_session_is_answered_is_a_fault(play: Play) -> None:
    play.updates("session_info_update", session_id="new")
    assert "a session that is not open" in play.fault


async def test_an_update_of_a_closed_session_is_a_fault(play: Play) -> None:
    play.hears(id=play.asks("session/close", sessionId="s"), result={})
    play.updates("session_info_update")
    assert "a session that is not open" in play.fault


@pytest.mark.parametrize("kind", ["agent_message_chunk", "agent_thought_chunk", "plan", "tool_call"])
async def test_what_belongs_to_a_turn_comes_in_one(play: Play, kind: str) -> None:
    play.updates(kind, toolCallId="c")
    assert "outside of a turn" in play.fault


async def test_the_users_words_are_told_only_in_a_load(turn: Play) -> None:
    turn.updates("user_message_chunk")
    assert "the user's own words" in turn.fault


async def test_a_load_tells_everything_again(turn: Play) -> None:
    turn.call(kind="tool_call", status="pending")
    turn.call(status="completed")
    turn.hears(id=3, result={"stopReason": "end_turn"})
    load = turn.asks("session/load", sessionId="s", cwd="/")
    turn.updates("user_message_chunk")
    turn.call(kind="tool_call", status="pending")
    turn.call(status="completed")
    turn.hears(id=load, result={})
    assert find_faults(turn.transcript) == []


@pytest.mark.parametrize(
    ("statuses", "fault"),
    [
        (["pending", "in_progress", "pending"], "goes back from in_progress to pending"),
        (["completed", "completed"], "is about a call that is completed"),
        (["failed", "completed"], "is about a call that is failed"),
    ],
)
async def test_statuses_only_move_up(turn: Play, statuses: list[str], fault: str) -> None:
    turn.call(kind="tool_call", status=statuses[0])
    for status in statuses[1:]:
        turn.call(status=status)
    assert fault in turn.fault


async def test_a_call_is_announced_once_and_first(turn: Play) -> None:
    turn.call("late", status="completed")
    assert "was not announced" in turn.fault
    turn.call("late", kind="tool_call", status="pending")
    assert "for the second time" in find_faults(turn.transcript)[1]


async def test_a_turn_closes_its_calls(turn: Play) -> None:
    turn.call(kind="tool_call", status="pending")
    turn.hears(id=3, result={"stopReason": "cancelled"})
    assert "in which c stays open" in turn.fault


async def test_only_what_was_offered_is_asked(turn: Play) -> None:
    turn.hears(id=1, method="fs/read_text_file", params={"path": "/a"})
    assert find_faults(turn.transcript) == []
    turn.hears(id=2, method="fs/write_text_file", params={"path": "/a"})
    assert "asks what this client cannot do" in turn.fault


@pytest.mark.parametrize("method", ["terminal/create", "elicitation/create"])
async def test_what_was_not_mentioned_is_not_offered(turn: Play, method: str) -> None:
    turn.hears(id=1, method=method, params={})
    assert "asks what this client cannot do" in turn.fault


async def test_what_no_client_answers_is_not_asked(turn: Play) -> None:
    turn.hears(id=1, method="window/show", params={})
    assert "asks what no client answers" in turn.fault


async def test_an_id_of_the_agents_is_used_once(turn: Play) -> None:
    for _ in range(2):
        turn.hears(id=1, method="session/request_permission", params={})
    assert "has an id that is used already" in turn.fault


async def test_only_a_request_of_the_agents_own_is_taken_back(turn: Play) -> None:
    turn.hears(id=1, method="session/request_permission", params={})
    turn.hears(method="$/cancel_request", params={"requestId": 1})
    assert find_faults(turn.transcript) == []
    turn.hears(method="$/cancel_request", params={"requestId": 2})
    assert "cancels a request that the agent never made" in turn.fault


async def test_a_transcript_can_be_asked(turn: Play) -> None:
    turn.updates("agent_message_chunk", content={"type": "text", "text": "hi"})
    turn.call(kind="tool_call", status="pending")
    transcript = turn.transcript
    request = transcript.sent("session/new")[0]
    response = transcript.response_to(request)
    assert response is not None
    assert response.message["result"] == {"sessionId": "s"}
    assert transcript.response_to(transcript.sent("session/prompt")[0]) is None
    assert [update.kind for update in transcript.updates("s")] == ["agent_message_chunk", "tool_call"]
    assert transcript.updates("other") == []
    assert transcript.updates(kind="agent_message_chunk")[0].text == "hi"
    assert transcript.outline()[-3:] == ["> session/prompt", "< agent_message_chunk", "< tool_call pending"]
    assert len(transcript.received()) == 4
    assert "tool_call" in transcript.tail(1)

"""Who owes whom an answer: each conversation is held in whole lines and byte by byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from acp_agent.errors import ConnectionClosed, RequestError
from acp_agent.jsonrpc.framing import LineDecoder, Oversized
from acp_agent.jsonrpc.peer import Arrival, Cancellation, IncomingRequest, Notification, Peer
from tests.jsonrpc.support import logged


class Said:
    """Keeps the frames that a peer puts."""

    def __init__(self) -> None:
        self.text = b""
        self.sent_now = 0

    def put(self, prefix: bytes, value: Any, suffix: bytes) -> None:
        self.text += prefix + msgspec.json.encode(value) + suffix

    def send(self, prefix: bytes, value: Any, suffix: bytes) -> None:
        self.put(prefix, value, suffix)
        self.sent_now += 1


class Conversation:
    """A peer, fed in blocks of `step` bytes."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.said = Said()
        self.peer = Peer(self.said)
        self.lines = LineDecoder()

    def hear(self, *messages: Any) -> list[Arrival | None]:
        """Messages are JSON values, or bytes as they are."""
        data = b"".join(m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages)
        arrivals: list[Arrival | None] = []
        for start in range(0, len(data), self.step):
            for line in self.lines.feed(data[start : start + self.step]):
                assert not isinstance(line, Oversized)
                arrivals.append(self.peer.receive(line))
        return arrivals

    def hear_request(self, message: Any) -> IncomingRequest:
        [request] = self.hear(message)
        assert isinstance(request, IncomingRequest)
        return request

    def spoken(self) -> list[Any]:
        """What was said since last asked."""
        text, self.said.text = self.said.text, b""
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(params=[1, 1_000_000], ids=["byte by byte", "whole"])
def talk(request: pytest.FixtureRequest) -> Conversation:
    return Conversation(request.param)


def refusal(code: int, id: Any = None) -> Callable[[Any], bool]:
    return lambda said: said["id"] == id and said["error"]["code"] == code and "result" not in said


def test_a_request_is_owed_until_it_is_answered(talk: Conversation) -> None:
    request = talk.hear_request({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": 1}})
    assert (request.method, request.params, request.answered) == ("m", Raw(b'{"a": 1}'), False)
    assert list(talk.peer.owed.values()) == [request]
    request.respond({"ok": True})
    assert talk.peer.owed == {}
    assert request.answered
    assert talk.spoken() == [{"jsonrpc": "2.0", "id": 1, "result": {"ok": True}}]
    assert talk.said.sent_now == 1


@pytest.mark.parametrize("params", ['"params": null, ', "", '"params":null,'])
def test_params_that_are_null_or_missing_are_none(talk: Conversation, params: str) -> None:
    [request] = talk.hear(f'{{{params}"id": 1, "method": "m"}}\n'.encode())
    assert isinstance(request, IncomingRequest)
    assert request.params is None


def test_params_that_merely_begin_like_null_are_not_none(talk: Conversation) -> None:
    assert talk.hear_request({"id": 1, "method": "m", "params": ["null"]}).params == Raw(b'["null"]')
    assert talk.hear_request({"id": 2, "method": "m", "params": 7}).params == Raw(b"7")


@pytest.mark.parametrize(
    "id",
    [
        '"a-1"', "0", "-7", "9007199254740993", "123456789012345678901234567890", "null", "1.5", "1.50", "1e3",
        '""', '"\\u0061"', '"é"', '"\\ud83d\\ude00"',
    ],
)  # fmt: skip
def test_an_id_comes_back_as_it_was_spelled(talk: Conversation, id: str) -> None:
    [request] = talk.hear(f'{{"method":"m","id":{id}}}\n'.encode())
    assert isinstance(request, IncomingRequest)
    request.respond(None)
    assert talk.said.text == f'{{"jsonrpc":"2.0","id":{id},"result":null}}\n'.encode()


def test_an_error_is_an_answer_and_leaves_out_data_that_is_not_there(talk: Conversation) -> None:
    talk.hear_request({"id": 1, "method": "m"}).fail(RequestError(-32000, "No", {"why": 1}))
    talk.hear_request({"id": 1, "method": "m"}).fail(RequestError.internal())
    assert [said["error"] for said in talk.spoken()] == [
        {"code": -32000, "message": "No", "data": {"why": 1}},
        {"code": -32603, "message": "Internal error"},
    ]


def test_a_second_answer_is_dropped_and_logged(talk: Conversation) -> None:
    request = talk.hear_request({"id": 1, "method": "m"})
    request.respond(1)
    with logged() as events:
        request.respond(2)
        request.fail(RequestError.internal())
    assert [said["result"] for said in talk.spoken()] == [1]
    assert [event["event"] for event in events] == ["a second answer is dropped"] * 2


def test_a_request_whose_id_is_in_flight_is_refused_and_the_first_lives_on(talk: Conversation) -> None:
    first = talk.hear_request({"id": "a", "method": "m"})
    assert talk.hear(b'{"id":"\\u0061","method":"m"}\n') == [None]
    [said] = talk.spoken()
    assert refusal(-32600, "a")(said)
    first.respond("first")
    assert [said["result"] for said in talk.spoken()] == ["first"]


def test_an_id_may_be_used_again_after_its_answer(talk: Conversation) -> None:
    for _ in range(2):
        talk.hear_request({"id": 1, "method": "m"}).respond({})
    assert len(talk.spoken()) == 2


def test_a_number_and_its_digits_are_two_requests(talk: Conversation) -> None:
    number, text = (talk.hear_request({"id": id, "method": "m"}) for id in (3, "3"))
    text.respond("text")
    number.respond("number")
    assert [(said["id"], said["result"]) for said in talk.spoken()] == [("3", "text"), (3, "number")]


def test_a_result_with_no_json_is_an_internal_error_and_not_said_twice(talk: Conversation) -> None:
    request = talk.hear_request({"id": 1, "method": "m"})
    with logged() as events:
        request.respond({"text": "\ud800"})
    assert [said["error"] for said in talk.spoken()] == [{"code": -32603, "message": "Internal error"}]
    assert events[0]["log_level"] == "error"
    assert talk.peer.owed == {}


def test_an_error_with_no_json_is_still_an_answer(talk: Conversation) -> None:
    with logged():
        talk.hear_request({"id": 1, "method": "m"}).fail(RequestError(-32000, "x", object()))
        talk.hear_request({"id": 2, "method": "m"}).fail(RequestError(-32000, "\udcff"))
    assert [(said["id"], said["error"]["code"]) for said in talk.spoken()] == [(1, -32603), (2, -32603)]


def test_the_one_who_waits_for_all_answers_hears_of_the_last(talk: Conversation) -> None:
    heard: list[str] = []
    first, second = (talk.hear_request({"id": id, "method": "m"}) for id in (1, 2))
    talk.peer.on_all_answered = lambda: heard.append("all")
    second.respond({})
    assert heard == []
    first.fail(RequestError.cancelled())
    talk.hear_request({"id": 3, "method": "m"}).respond({})
    assert heard == ["all"]


def test_a_notification_is_handed_on(talk: Conversation) -> None:
    assert talk.hear({"method": "session/cancel", "params": {"sessionId": "s"}}, {"method": "$/x"}) == [
        Notification("session/cancel", Raw(b'{"sessionId": "s"}')),
        Notification("$/x", None),
    ]
    assert talk.spoken() == []


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b"{not json\n", -32700, None),
        (b'{"method":"m","params":["\xff"]}\n', -32700, None),
        (b"42\n", -32600, None),
        (b'"x"\n', -32600, None),
        (b"[]\n", -32600, None),
        (b'[{"id":1,"method":"m"},{"method":"n"}]\n', -32600, None),
        (b"{}\n", -32600, None),
        (b'{"jsonrpc":"2.0","params":{}}\n', -32600, None),
        (b'{"jsonrpc":"2.0","id":77}\n', -32600, 77),
        (b'{"id":"q","params":{}}\n', -32600, "q"),
        (b'{"method":5,"id":4}\n', -32600, 4),
        (b'{"method":5}\n', -32600, None),
    ],
)
def test_a_bad_line_gets_one_error_and_the_next_line_is_heard(
    talk: Conversation, line: bytes, code: int, id: Any
) -> None:
    arrivals = talk.hear(line, {"id": 1, "method": "good"})
    assert arrivals[0] is None
    assert isinstance(arrivals[1], IncomingRequest)
    [said] = talk.spoken()
    assert refusal(code, id)(said)


def test_a_stream_of_bad_lines_does_not_fill_the_log(talk: Conversation) -> None:
    with logged() as events:
        talk.hear(*[b"{bad\n"] * 1234)
    assert [event["times"] for event in events] == [1, 10, 100, 1000]
    assert len(talk.spoken()) == 1234


@pytest.mark.parametrize(
    "message",
    [
        {"id": 5, "result": {}},
        {"id": "zz", "result": None},
        {"id": None, "error": {"code": -32601, "message": "x"}},
        {"id": 5, "error": {"code": -32601, "message": "x"}},
        {"error": "bare"},
        {"result": 1},
        {"id": None, "result": None, "error": None},
    ],
)
def test_an_answer_that_nobody_waits_for_is_dropped_and_never_answered(talk: Conversation, message: Any) -> None:
    assert talk.hear(message) == [None]
    assert talk.spoken() == []


def test_a_stray_error_is_logged(talk: Conversation) -> None:
    with logged() as events:
        talk.hear({"id": None, "error": {"code": -32602, "message": "what?"}})
    assert [(event["event"], event["code"], event["message"]) for event in events] == [("stray error", -32602, "what?")]


def ask(talk: Conversation, woken: list[int] | None = None) -> Any:
    return talk.peer.ask("fs/read", {"path": "/x"}, lambda: (woken or []).append(1))


def test_a_request_of_ours_is_settled_by_its_answer(talk: Conversation) -> None:
    woken: list[int] = []
    request = talk.peer.ask("fs/read", {"path": "/x"}, lambda: woken.append(1))
    assert talk.spoken() == [{"jsonrpc": "2.0", "id": 1, "method": "fs/read", "params": {"path": "/x"}}]
    assert talk.said.sent_now == 1
    assert talk.hear({"jsonrpc": "2.0", "id": 1, "result": {"content": "c"}}) == [None]
    assert woken == [1]
    assert request.outcome() == Raw(b'{"content": "c"}')
    assert talk.peer.asked == {}


@pytest.mark.parametrize("answer", ['"result":null', '"result":null,"error":null', '"jsonrpc":"2.0"'])
def test_a_null_result_may_be_left_out(talk: Conversation, answer: str) -> None:
    request = ask(talk)
    talk.hear(f'{{"id":1,{answer}}}\n'.encode())
    assert request.outcome() == Raw(b"null")
    assert len(talk.spoken()) == 1


def test_an_error_of_the_peer_is_raised_even_beside_a_result(talk: Conversation) -> None:
    request = ask(talk)
    talk.hear({"id": 1, "result": None, "error": {"code": -32002, "message": "No such file", "data": [1]}})
    with pytest.raises(RequestError, match="No such file") as raised:
        request.outcome()
    assert (raised.value.code, raised.value.data) == (-32002, [1])


def test_answers_may_come_in_any_order_and_in_another_spelling(talk: Conversation) -> None:
    first, second = ask(talk), ask(talk)
    talk.hear(b'{"id":2.0,"result":"second"}\n{"id":1,"result":"first"}\n')
    assert (first.outcome(), second.outcome()) == (Raw(b'"first"'), Raw(b'"second"'))


def test_the_digits_of_an_id_are_not_the_id(talk: Conversation) -> None:
    woken: list[int] = []
    talk.peer.ask("m", {}, lambda: woken.append(1))
    talk.hear({"id": "1", "result": 1})
    assert woken == []
    assert len(talk.peer.asked) == 1


def test_the_ids_of_the_two_directions_do_not_meet(talk: Conversation) -> None:
    ours = ask(talk)
    theirs = talk.hear_request({"id": 1, "method": "m"})
    talk.hear({"id": 1, "result": "ours"})
    assert not theirs.answered
    assert ours.outcome() == Raw(b'"ours"')


def test_a_request_that_is_given_up_is_cancelled_and_its_late_answer_dropped(talk: Conversation) -> None:
    request = ask(talk)
    talk.peer.give_up(request)
    assert talk.spoken()[1:] == [{"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}]
    with logged() as events:
        talk.hear({"id": 1, "result": "late"}, {"id": 1})
    assert {event["log_level"] for event in events} == {"debug"}
    talk.peer.give_up(request)
    assert talk.spoken() == []


def test_a_request_that_is_answered_cannot_be_given_up(talk: Conversation) -> None:
    request = ask(talk)
    talk.hear({"id": 1, "result": 1})
    talk.peer.give_up(request)
    assert len(talk.spoken()) == 1


def test_params_with_no_json_leave_no_request_behind(talk: Conversation) -> None:
    with pytest.raises(TypeError):
        talk.peer.ask("m", object(), lambda: None)
    assert talk.peer.asked == {}
    assert talk.said.text == b""


def test_closing_fails_what_was_asked_and_what_will_be(talk: Conversation) -> None:
    woken: list[int] = []
    requests = [talk.peer.ask("m", {}, lambda: woken.append(1)) for _ in range(2)]
    talk.peer.close()
    assert woken == [1, 1]
    for request in requests:
        with pytest.raises(ConnectionClosed):
            request.outcome()
    talk.spoken()
    with pytest.raises(ConnectionClosed):
        ask(talk)
    assert talk.spoken() == []


def test_what_is_owed_can_still_be_answered_after_closing(talk: Conversation) -> None:
    request = talk.hear_request({"id": 1, "method": "m"})
    talk.peer.close()
    request.respond({})
    assert [said["id"] for said in talk.spoken()] == [1]


def test_a_cancellation_names_the_request_that_it_means(talk: Conversation) -> None:
    request = talk.hear_request({"id": 3, "method": "m"})
    assert talk.hear({"method": "$/cancel_request", "params": {"requestId": 3}}) == [Cancellation(request)]
    assert talk.spoken() == []


@pytest.mark.parametrize(
    "params", [None, {}, {"requestId": "3"}, {"requestId": 4}, {"id": 3}, 7, [], {"requestId": None}, {"requestId": []}]
)
def test_a_cancellation_that_means_nothing_is_ignored(talk: Conversation, params: Any) -> None:
    talk.hear({"id": 3, "method": "m"})
    assert talk.hear({"method": "$/cancel_request", "params": params}) == [None]
    assert talk.spoken() == []


def test_a_cancellation_after_the_answer_is_ignored(talk: Conversation) -> None:
    talk.hear_request({"id": 3, "method": "m"}).respond({})
    talk.spoken()
    assert talk.hear({"method": "$/cancel_request", "params": {"requestId": 3}}) == [None]
    assert talk.spoken() == []


def test_a_notification_of_ours_waits_for_company_and_may_have_no_params(talk: Conversation) -> None:
    talk.peer.notify("session/update", {"a": 1})
    talk.peer.notify("bye", None)
    assert talk.spoken() == [
        {"jsonrpc": "2.0", "method": "session/update", "params": {"a": 1}},
        {"jsonrpc": "2.0", "method": "bye"},
    ]
    assert talk.said.sent_now == 0

"""The envelope: what is a message, and what is wrong with what is none."""

from __future__ import annotations

import pytest
from msgspec import UNSET, Raw

from acp_agent.errors import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from acp_agent.jsonrpc.messages import Defect, Message, id_key, read_error, read_message


def message(line: str | bytes) -> Message:
    found = read_message(line.encode() if isinstance(line, str) else line)
    assert isinstance(found, Message)
    return found


def defect(line: str | bytes) -> tuple[int, bytes]:
    found = read_message(line.encode() if isinstance(line, str) else line)
    assert isinstance(found, Defect)
    assert found.error.data["details"].endswith(".")
    return found.error.code, found.id


def test_members_that_are_missing_are_unset_and_null_is_not_missing() -> None:
    found = message('{"id":null,"method":"x"}')
    assert isinstance(found.id, Raw)
    assert bytes(found.id) == b"null"
    assert found.params is found.result is found.error is UNSET


def test_members_come_in_any_order_and_unknown_ones_are_ignored() -> None:
    found = message('{"params":{"a":[1]},"reason":"x","method":"m","_meta":{},"id":7,"jsonrpc":"2.0"}')
    assert (found.method, bytes(found.id), bytes(found.params)) == ("m", b"7", b'{"a":[1]}')  # type: ignore[arg-type]


@pytest.mark.parametrize("line", ['{"method":"m"}', '{"jsonrpc":"1.0","method":"m"}', '{"jsonrpc":2,"method":"m"}'])
def test_the_version_member_is_not_judged(line: str) -> None:
    assert message(line).method == "m"


@pytest.mark.parametrize(
    "line", ["{not json", "{", '{"id":1,}', "nul", '{"id":01,"method":"m"}', "42 43", "[1", "[1]]"]
)
def test_what_is_not_json_is_a_parse_error(line: str) -> None:
    assert defect(line) == (PARSE_ERROR, b"null")


@pytest.mark.parametrize("line", [b'{"method":"m","params":["\xff"]}', b'{"x":"\xc3"}', b"\xff", b'["\xed\xa0\x80"]'])
def test_what_is_not_utf8_is_a_parse_error(line: bytes) -> None:
    assert defect(line) == (PARSE_ERROR, b"null")


def test_a_long_line_is_checked_as_utf8_across_every_step() -> None:
    text = "é" * 100_000 + "😀"
    assert message(f'{{"method":"m","params":["x{text}"]}}').method == "m"
    assert defect(f'{{"method":"m","params":["{text}'.encode()[:-1] + b'"]}')[0] == PARSE_ERROR


@pytest.mark.parametrize("line", ["42", '"x"', "null", "true", "[]", "[17, true]", '[{"id":1,"method":"m"}]', " [ ]"])
def test_json_that_is_no_object_is_an_invalid_request(line: str) -> None:
    assert defect(line) == (INVALID_REQUEST, b"null")


def test_a_batch_is_told_what_it_is() -> None:
    found = read_message(b'[{"id":1,"method":"m"}]')
    assert isinstance(found, Defect)
    assert "Batches are not supported" in found.error.data["details"]


@pytest.mark.parametrize(
    ("line", "id"),
    [
        ('{"id":3,"method":5}', b"3"),
        ('{"method":null,"id":"a"}', b'"a"'),
        ('{"method":{}}', b"null"),
        ('{"method":[],"id":{}}', b"null"),
    ],
)
def test_a_method_that_is_no_string_is_refused_under_its_id(line: str, id: bytes) -> None:
    assert defect(line) == (INVALID_REQUEST, id)


@pytest.mark.parametrize("id", ["true", "false", "{}", "[1]"])
def test_an_id_is_a_string_a_number_or_null(id: str) -> None:
    assert defect(f'{{"id":{id},"method":"m"}}') == (INVALID_REQUEST, b"null")


@pytest.mark.parametrize("line", ["[" * 100_000, '{"id":' + "[" * 100_000, '{"params":' + '{"a":' * 100_000])
def test_bottomless_nesting_is_a_parse_error(line: str) -> None:
    assert defect(line) == (PARSE_ERROR, b"null")


@pytest.mark.parametrize("escape", [r"\ud83d", r"\udc00", r"\uD83D\n", r"\ud83d\ud83d", r"\\\ud800"])
def test_half_of_a_surrogate_pair_is_replaced(escape: str) -> None:
    found = message(f'{{"method":"m","params":["{escape} and \\ud83d\\ude00, \\\\ud800 \\u0041"]}}')
    assert isinstance(found.params, Raw)
    assert b"\\ufffd" in bytes(found.params)
    assert b"\\ud83d\\ude00, \\\\ud800 \\u0041" in bytes(found.params)


def test_all_spellings_of_an_id_are_one_id() -> None:
    assert id_key(b'"a"') == id_key(rb'"\u0061"')
    assert id_key(b"3") == id_key(b"3.0") == id_key(b"3e0")
    assert id_key(b'"\\n"') == id_key(b'"\\u000a"')


def test_different_ids_stay_apart() -> None:
    spelled = [
        b"3",
        b'"3"',
        b"-3",
        b"3.5",
        b"null",
        b'"null"',
        b"1e999",
        b"0",
        b"9007199254740993",
        b"9007199254740992",
    ]
    huge = b"123456789012345678901234567890"
    assert len({id_key(id) for id in [*spelled, huge]}) == len(spelled) + 1


def test_an_error_of_the_peer_is_read_as_far_as_it_goes() -> None:
    error = read_error(Raw(b'{"code":-32000,"message":"Sign in","data":{"a":1},"extra":2}'))
    assert (error.code, error.message, error.data) == (-32000, "Sign in", {"a": 1})
    for raw in (b'"no"', b"[]", b'{"code":"x","message":7}', b"{}", b'{"data":' + b"[" * 100_000):
        error = read_error(Raw(raw))
        assert error.code == INTERNAL_ERROR
        assert error.message

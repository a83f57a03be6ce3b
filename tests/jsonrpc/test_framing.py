"""Bytes to lines."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_agent.jsonrpc.framing import LineDecoder, Oversized


def lines_of(*blocks: bytes, max_line: int = 100) -> list[bytes | Oversized]:
    decoder = LineDecoder(max_line)
    lines = [line for block in blocks for line in decoder.feed(block)] + decoder.finish()
    return [line if isinstance(line, Oversized) else bytes(line) for line in lines]


def test_lines_in_one_block_come_apart() -> None:
    assert lines_of(b"one\ntwo\nthree\n") == [b"one", b"two", b"three"]


def test_a_line_in_many_blocks_comes_together() -> None:
    assert lines_of(b"o", b"n", b"e", b"\ntw", b"o\n") == [b"one", b"two"]


def test_the_last_line_needs_no_newline() -> None:
    assert lines_of(b"one\ntwo") == [b"one", b"two"]


def test_an_empty_input_has_no_lines() -> None:
    assert lines_of() == lines_of(b"") == []


@pytest.mark.parametrize("blank", [b"\n", b"   \n", b"\r\n", b"\t \r\n", b"\xef\xbb\xbf\n", b" "])
def test_blank_lines_are_left_out(blank: bytes) -> None:
    assert lines_of(b"one\n" + blank) == [b"one"]


def test_one_carriage_return_is_taken_off_the_end() -> None:
    assert lines_of(b"one\r\ntwo\r\r\nth\rree\n") == [b"one", b"two\r", b"th\rree"]


def test_a_byte_order_mark_is_taken_off_every_line() -> None:
    assert lines_of(b"\xef\xbb\xbf{}\n\xef\xbb", b"\xbf[]\r\n") == [b"{}", b"[]"]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"])
def test_nothing_but_a_newline_ends_a_line(separator: str) -> None:
    line = f"one{separator}two".encode()
    assert lines_of(line + b"\n") == [line]


def test_a_line_of_just_the_cap_is_read() -> None:
    assert lines_of(b"x" * 100 + b"\n") == [b"x" * 100]


@pytest.mark.parametrize("step", [1, 7, 60, 1000])
def test_a_line_over_the_cap_is_one_marker_and_the_next_line_is_read(step: int) -> None:
    data = b"one\n" + b"x" * 101 + b"\ntwo\n"
    blocks = [data[start : start + step] for start in range(0, len(data), step)]
    assert lines_of(*blocks) == [b"one", Oversized(101), b"two"]


def test_a_line_over_the_cap_that_never_ends_is_a_marker_too() -> None:
    assert lines_of(b"x" * 99, b"x" * 99) == [Oversized(198)]


def test_an_oversized_line_is_not_kept_in_memory() -> None:
    decoder = LineDecoder(10)
    for _ in range(1000):
        assert decoder.feed(b"x" * 1000) == []
    assert len(decoder._tail) == 0
    assert decoder.feed(b"\n") == [Oversized(1_000_000)]


def test_a_long_line_is_handed_over_as_the_buffer_it_grew_in() -> None:
    decoder = LineDecoder()
    decoder.feed(b"x" * 50)
    buffer = decoder._tail
    assert decoder.feed(b"y\n")[0] is buffer


pieces = st.lists(
    st.sampled_from([b"\n", b"\r", b" ", b"{}", b"\xef\xbb\xbf", b"abc", b"\xc3\xa9", b"x" * 9]), max_size=40
)


@given(pieces, st.lists(st.integers(0, 120), max_size=10))
def test_any_split_of_the_input_gives_the_same_lines(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    blocks = [data[start:stop] for start, stop in pairwise(edges)]
    assert lines_of(*blocks, max_line=12) == lines_of(data, max_line=12)


@given(pieces)
def test_byte_by_byte_gives_the_same_lines(parts: list[bytes]) -> None:
    data = b"".join(parts)
    assert lines_of(*(bytes([byte]) for byte in data), max_line=12) == lines_of(data, max_line=12)

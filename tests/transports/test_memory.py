"""A pipe in memory is as small as it is told, and as torn."""

from __future__ import annotations

import anyio
import pytest

from acp_agent.transports.memory import memory_pair

pytestmark = pytest.mark.anyio


async def test_it_holds_so_many_bytes_and_no_more() -> None:
    near, _ = memory_pair(capacity=10)
    assert near.write(memoryview(b"x" * 7)) == 7
    assert near.write(memoryview(b"x" * 7)) == 3
    assert near.write(memoryview(b"x" * 7)) == 0


async def test_a_torn_one_takes_and_hands_out_a_piece_at_a_time() -> None:
    near, far = memory_pair(piece=2)
    assert near.write(memoryview(b"abcde")) == 2
    assert near.write(memoryview(b"cde")) == 2
    near.send_eof()
    blocks: list[bytes] = []
    with anyio.fail_after(5):
        await far.pump(blocks.append)
    assert blocks == [b"ab", b"cd"]


async def test_pumping_goes_round_by_round_so_that_others_run() -> None:
    near, far = memory_pair(piece=1)
    near.write(memoryview(b"a"))
    near.write(memoryview(b"b"))
    near.write(memoryview(b"c"))
    blocks: list[bytes] = []
    with anyio.move_on_after(5) as scope:

        def feed(block: bytes) -> None:
            blocks.append(block)
            scope.cancel()

        await far.pump(feed)
    assert blocks == [b"a"]

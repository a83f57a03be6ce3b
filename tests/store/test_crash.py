"""What `kill -9` leaves behind: all that was confirmed, and of the rest all but the last moment."""

from __future__ import annotations

import random
import time
from pathlib import Path

import anyio
import pytest

from tests.store.tools import child, chunk, header, opened, texts

ROUNDS = 10  # on each backend
ROOT = str(Path(__file__).parents[2])

# Says numbers, three between two commits, and prints each with its time: what was said, and what was confirmed.
CHATTER = """
import sys, time
import anyio
sys.path.insert(0, sys.argv[4])
from tests.store.tools import chunk, header
from acp_agent.store.sqlite import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    store.put_header(header(sys.argv[2]))
    number = 0
    while True:
        for _ in range(3):
            store.append(sys.argv[2], [chunk(str(number))])
            print("said", number, time.monotonic(), flush=True)
            number += 1
            await anyio.sleep(0.001)
        if number % 2:
            await store.commit()
            print("kept", number - 1, time.monotonic(), flush=True)

anyio.run(main, backend=sys.argv[3])
"""
MOMENT = 0.25  # seconds; a machine with nothing else to do needs 0.05


@pytest.mark.anyio
async def test_a_killed_process_loses_nothing_confirmed_and_only_the_last_moment_of_the_rest(
    state: Path, anyio_backend: str
) -> None:
    for number in range(ROUNDS):
        said, kept, killed_at = _run_and_kill(state, f"session-{number}", anyio_backend)
        async with opened(state) as store:
            found = await texts(store, f"session-{number}")
            assert store.trouble is None
        assert found == [str(index) for index in range(len(found))], "what is there is a beginning without gaps"
        assert len(found) > kept
        assert len(found) > max(index for index, when in said if when < killed_at - MOMENT or index <= kept)


def _run_and_kill(state: Path, session_id: str, backend: str) -> tuple[list[tuple[int, float]], int, float]:
    """What the child said and when, the last number it was told is kept, and when it was killed."""
    with child(CHATTER, str(state), session_id, backend, ROOT) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        while not lines[-1].startswith("kept"):
            lines.append(process.stdout.readline())
        time.sleep(random.uniform(0, 0.05))  # at any point of its work
        killed_at = time.monotonic()
        process.kill()
        lines += process.stdout.readlines()
    words = [line.split() for line in lines if line.endswith("\n")]
    said = [(int(number), float(when)) for what, number, when in words if what == "said"]
    kept = [int(number) for what, number, _ in words if what == "kept"]
    return said, kept[-1], killed_at


@pytest.mark.anyio
async def test_closing_keeps_what_nobody_waited_for(state: Path) -> None:
    with anyio.fail_after(5):
        async with opened(state) as store:
            store.put_header(header("a"))
            store.append("a", [chunk("the last word")])
        async with opened(state) as store:
            assert await texts(store, "a") == ["the last word"]

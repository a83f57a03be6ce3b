"""What the store on disk adds to the contract: laziness, durability, modes, groups, many sessions, long journals."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from structlog.testing import capture_logs

from acp_agent.errors import StoreError
from acp_agent.events import ToolCallOpened
from acp_agent.store.memory import DELETED_REMEMBERED, MemoryStore
from tests.store.tools import child, chunk, fill, header, ids, line, opened, texts

TALK = """
import sys
from pathlib import Path
import anyio
sys.path.insert(0, sys.argv[3])
from acp_agent.store.sqlite import SqliteStore
from tests.store.tools import chunk, header

async def main():
    store = SqliteStore(sys.argv[1])
    store.put_header(header(sys.argv[2]))
    for number in range(50):
        store.append(sys.argv[2], [chunk(str(number))])
        await store.commit()
    print(store.trouble, flush=True)
    await store.aclose()

anyio.run(main)
"""
ROOT = str(Path(__file__).parents[2])


def test_the_way_to_initialize_imports_no_sqlite() -> None:
    code = "import sys, acp_agent.store.memory; assert 'sqlite3' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.anyio
async def test_a_store_that_is_not_used_touches_nothing(state: Path) -> None:
    async with opened(state) as store:
        await store.commit()
        assert store.durable
    assert not state.exists()


@pytest.mark.anyio
async def test_the_directory_and_the_files_are_their_owners_alone(tmp_path: Path) -> None:
    state = tmp_path / "deep" / "state"
    previous = os.umask(0)
    try:
        async with opened(state) as store:
            store.put_header(header("a"))
            store.claim("a")
            await store.commit()
            modes = {path.name: path.stat().st_mode & 0o777 for path in (state, *state.iterdir())}
    finally:
        os.umask(previous)
    names = ["sessions.db", "sessions.db-shm", "sessions.db-wal", "sessions.lock"]
    assert modes == {"state": 0o700} | dict.fromkeys(names, 0o600)


@pytest.mark.anyio
async def test_a_database_that_others_could_read_is_made_private_and_its_directory_left_alone(state: Path) -> None:
    await fill(state, {"a": []})
    state.chmod(0o755)
    (state / "sessions.db").chmod(0o644)
    await fill(state, {"b": []})
    assert (state / "sessions.db").stat().st_mode & 0o777 == 0o600
    assert state.stat().st_mode & 0o777 == 0o755


@pytest.mark.anyio
async def test_what_was_committed_is_there_for_another_store_at_once(state: Path) -> None:
    async with opened(state) as store, opened(state) as reader:
        store.put_header(header("a"))
        store.append("a", [chunk("one")])
        await store.commit()
        assert await texts(reader, "a") == ["one"]
        assert await ids(reader) == ["a"]


@pytest.mark.anyio
async def test_a_deletion_by_another_store_is_for_good_here_too(state: Path) -> None:
    async with opened(state) as store, opened(state) as other:
        store.put_header(header("a"))
        await store.commit()
        await other.delete("a")
        store.append("a", [chunk("the end of a turn")])
        store.put_header(header("a"))
        await store.commit()
        assert await ids(store) == []
        assert await texts(store, "a") == []


@pytest.mark.anyio
async def test_processes_write_side_by_side(state: Path) -> None:
    with (
        child(TALK, str(state), "a", ROOT) as one,
        child(TALK, str(state), "b", ROOT) as two,
        child(TALK, str(state), "c", ROOT) as three,
    ):
        assert [line(one), line(two), line(three)] == ["None"] * 3
        for process in (one, two, three):
            assert process.wait(5) == 0
    async with opened(state) as store:
        for session_id in "abc":
            assert await texts(store, session_id) == [str(number) for number in range(50)]


@pytest.mark.anyio
async def test_a_second_store_is_told_which_process_has_the_session(state: Path) -> None:
    code = (
        "import sys; from acp_agent.store.sqlite import SqliteStore\n"
        "store = SqliteStore(sys.argv[1]); store.claim('a'); print('claimed', flush=True); sys.stdin.read()"
    )
    with child(code, str(state)) as other:
        assert line(other) == "claimed"
        async with opened(state) as store:
            with pytest.raises(StoreError, match=f"pid {other.pid}"):
                store.claim("a")
            store.claim("b")
            other.kill()
            other.wait()
            store.claim("a")
            store.claim("a")


@pytest.mark.anyio
async def test_the_loop_runs_on_while_another_process_has_the_database(state: Path) -> None:
    await fill(state, {"a": []})
    with closing(sqlite3.connect(state / "sessions.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        async with opened(state) as store:
            with anyio.fail_after(10):
                async with anyio.create_task_group() as tasks:
                    store.append("a", [chunk("one")])
                    tasks.start_soon(store.commit)
                    for _ in range(100):
                        await anyio.lowlevel.checkpoint()
                    other.execute("COMMIT")  # only now can the commit end
            assert store.trouble is None
            assert await texts(store, "a") == ["one"]


@pytest.mark.anyio
async def test_what_cannot_be_encoded_is_left_out_and_logged(state: Path) -> None:
    odd = ToolCallOpened("1", "odd", "odd", raw_input={"object": object()})
    lone = ToolCallOpened("2", "\ud800", "lone")
    async with opened(state) as store:
        with capture_logs() as logs:
            store.put_header(header("a"))
            store.append("a", [chunk("before"), odd, lone, chunk("after")])
            store.append("a", [odd])
            store.put_header(header("b", cwd="\ud800"))
            assert await texts(store, "a") == ["before", "after"]
            assert await store.get_header("\ud800") is None
    assert [entry["event"] for entry in logs] == ["event_not_kept"] * 3 + ["session_header_not_kept"]


@pytest.mark.anyio
async def test_an_event_of_a_later_version_is_skipped_and_the_user_told(state: Path) -> None:
    await fill(state, {"a": ["one", "two", "three"]})
    with closing(sqlite3.connect(state / "sessions.db")) as other, other:
        other.execute("""UPDATE events SET payload = '{"event":"telepathy"}' WHERE seq = 2""")
    async with opened(state) as store:
        with capture_logs() as logs:
            assert await texts(store, "a") == ["one", "three"]
            assert await texts(store, "a") == ["one", "three"]
        assert store.trouble is not None
        assert str(state) in store.trouble
        assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["session_store_trouble"]


@pytest.mark.anyio
async def test_a_damaged_header_is_an_error_to_get_and_left_out_of_lists(state: Path) -> None:
    await fill(state, {"a": [], "b": []})
    with closing(sqlite3.connect(state / "sessions.db")) as other, other:
        other.execute("UPDATE sessions SET header = X'80' WHERE session_id = 'a'")
    async with opened(state) as store:
        with pytest.raises(StoreError, match=r"'a' in .*sessions\.db is damaged"):
            await store.get_header("a")
        assert await ids(store) == ["b"]


@pytest.mark.anyio
async def test_ten_thousand_sessions_come_and_go_without_a_trace_in_memory() -> None:
    store = MemoryStore()

    async def come_and_go(first: int, count: int) -> None:
        for number in range(first, first + count):
            store.put_header(header(f"session-{number:032}"))
            store.append(f"session-{number:032}", [chunk("text")])
            await store.delete(f"session-{number:032}")

    assert await _grown_by(come_and_go, DELETED_REMEMBERED + 1000, 10_000) < 20_000


@pytest.mark.anyio
async def test_sessions_on_disk_leave_no_trace_in_memory(state: Path) -> None:
    async with opened(state) as store:

        async def come_and_go(first: int, count: int) -> None:
            for number in range(first, first + count):
                store.claim(str(number))
                store.put_header(header(str(number)))
                store.append(str(number), [chunk("text")])
                await store.delete(str(number))
                store.release(str(number))

        assert await _grown_by(come_and_go, 200, 1000) < 20_000
        assert await ids(store) == []


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_journal_of_fifty_megabytes_is_read_in_flat_memory(state: Path) -> None:
    async with opened(state) as store:
        store.put_header(header("a"))
        for number in range(50):
            store.append("a", [chunk(f"{number} ".ljust(10_000, "x")) for _ in range(105)])
            await store.commit()
        size = count = 0
        tracemalloc.start()
        try:
            async for event in store.read_journal("a"):
                size += len(str(event))
                count += 1
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (count, size > 50_000_000) == (50 * 105, True)
    assert peak < 4_000_000


@pytest.mark.anyio
async def test_other_tasks_run_while_a_long_journal_is_read(state: Path) -> None:
    async with opened(state) as store:
        store.put_header(header("a"))
        store.put_header(header("b"))
        store.append("a", [chunk("x" * 10_000) for _ in range(500)])
        reading = store.read_journal("a")
        seen = 0
        async for _ in reading:
            seen += 1
            if seen == 1:
                store.append("b", [chunk("meanwhile")])
                await store.commit()
                assert await texts(store, "b") == ["meanwhile"]
        assert seen == 500


async def _grown_by(come_and_go: Callable[[int, int], Awaitable[None]], before: int, count: int) -> int:
    """How many bytes more Python holds after `count` sessions than after the first ones, `before`."""
    tracemalloc.start()
    try:
        await come_and_go(0, before)
        at_first, _ = tracemalloc.get_traced_memory()
        await come_and_go(before, count)
        at_last, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return at_last - at_first

"""A disk that fails costs durability, is reported once with its path, and never costs the session."""

from __future__ import annotations

import os
import re
import resource
import sqlite3
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from acp_agent.store.sqlite import SqliteStore
from tests.store.tools import child, chunk, fill, header, ids, opened, texts

OLD = {"old": ["o1", "o2"], "older": ["p1"]}


def truncate_to_a_page(database: Path) -> None:
    os.truncate(database, 4096)


def truncate_inside_a_page(database: Path) -> None:
    os.truncate(database, 1000)


def fill_with_noise(database: Path) -> None:
    database.write_bytes(os.urandom(20_000))


def replace_by_a_directory(database: Path) -> None:
    database.unlink()
    database.mkdir()


def replace_the_directory_by_a_file(database: Path) -> None:
    for path in database.parent.iterdir():
        path.unlink()
    database.parent.rmdir()
    database.parent.write_text("not a directory")


def use_the_name_of_another_application(database: Path) -> None:
    database.unlink()
    with closing(sqlite3.connect(database)) as other:
        other.execute("CREATE TABLE sessions (something TEXT)")


async def use(store: SqliteStore) -> None:
    """A whole life of a session, which must work on any disk."""
    store.claim("new")
    store.put_header(header("new", updated_at="2026-02-01T00:00:00Z"))
    store.append("new", [chunk("n1")])
    await store.commit()
    store.append("new", [chunk("n2")])
    await store.commit()
    assert await texts(store, "new") == ["n1", "n2"]
    assert await store.get_header("new") == header("new", updated_at="2026-02-01T00:00:00Z")
    assert (await ids(store))[0] == "new"
    store.put_header(header("gone"))
    await store.delete("gone")
    assert await store.get_header("gone") is None
    store.release("new")


def reports(logs: Sequence[Mapping[str, object]]) -> list[object]:
    return [entry["problem"] for entry in logs if entry["event"] == "session_store_trouble"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (truncate_to_a_page, "malformed"),
        (truncate_inside_a_page, "malformed|not a database"),
        (fill_with_noise, "not a database"),
        (replace_by_a_directory, "unable to open"),
        (replace_the_directory_by_a_file, "Not a directory"),
        (use_the_name_of_another_application, "already exists"),
    ],
)
async def test_a_damaged_store_is_reported_once_and_works_in_memory(
    state: Path, damage: Callable[[Path], None], reason: str
) -> None:
    await fill(state, OLD)
    damage(state / "sessions.db")
    with capture_logs() as logs:
        async with opened(state) as store:
            assert store.trouble is None
            await use(store)
            pattern = rf"Sessions cannot be saved in {state}/sessions\.db: .*({reason}).*kept in memory only"
            assert re.match(pattern, store.trouble or "")
    assert reports(logs) == [store.trouble]


@pytest.mark.anyio
async def test_damage_in_the_middle_costs_what_it_hit_and_nothing_else(state: Path) -> None:
    await fill(state, {"a": ["x" * 3000 + str(number) for number in range(60)], "b": ["whole"]})
    database = state / "sessions.db"
    with closing(sqlite3.connect(database)) as other:
        (page_size,) = other.execute("PRAGMA page_size").fetchone()
    with database.open("r+b") as file:
        for page in (30, 40, 50):
            file.seek(page * page_size)
            file.write(os.urandom(page_size))
    async with opened(state) as store:
        with capture_logs() as logs:
            found = await texts(store, "a")
            assert await texts(store, "b") == ["whole"]
            assert sorted(await ids(store)) == ["a", "b"]
        assert 50 <= len(found) < 60
        assert found == sorted(found, key=lambda text: int(text.lstrip("x")))
        assert store.trouble is not None
        assert str(database) in store.trouble
        assert len(reports(logs)) == 1
        await use(store)


@pytest.mark.anyio
async def test_a_database_of_a_newer_version_is_refused_and_left_as_it_was(state: Path) -> None:
    await fill(state, OLD)
    database = state / "sessions.db"
    with closing(sqlite3.connect(database)) as other, other:
        other.execute("INSERT INTO migrations VALUES (99, 'telepathy')")
    before = database.read_bytes()
    with capture_logs() as logs:
        async with opened(state) as store:
            await use(store)
            assert store.trouble is not None
            assert "newer version of acp-agent (step 99, 'telepathy')" in store.trouble
            assert str(database) in store.trouble
            assert await ids(store) == ["new"]
    assert reports(logs) == [store.trouble]
    assert database.read_bytes() == before
    assert {path.name for path in state.iterdir()} == {"sessions.db", "sessions.lock"}


@pytest.mark.anyio
async def test_a_database_that_another_process_keeps_is_given_up_after_a_while(state: Path) -> None:
    await fill(state, OLD)
    with closing(sqlite3.connect(state / "sessions.db", isolation_level=None)) as other:
        async with opened(state, busy_timeout=0.05) as store:
            assert await texts(store, "old") == ["o1", "o2"]
            other.execute("BEGIN IMMEDIATE")
            store.append("old", [chunk("o3")])
            await use(store)
            assert store.trouble is not None
            assert "database is locked" in store.trouble
            assert await texts(store, "old") == ["o1", "o2", "o3"]
            assert await ids(store) == ["new", "old", "older"]


@pytest.mark.anyio
async def test_a_database_that_is_locked_from_the_start_is_given_up_too(state: Path) -> None:
    await fill(state, OLD)
    with closing(sqlite3.connect(state / "sessions.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("DELETE FROM deleted")
        async with opened(state, busy_timeout=0.05) as store:
            await use(store)
            assert store.trouble is not None
            assert "database is locked" in store.trouble


@contextmanager
def files_no_larger_than(size: int) -> Generator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.anyio
async def test_a_full_disk_moves_what_follows_to_memory_and_shows_both_as_one(state: Path) -> None:
    await fill(state, OLD)
    async with opened(state) as store:
        with capture_logs() as logs, files_no_larger_than(200_000):
            store.append("old", [chunk("o3")])
            await store.commit()
            assert store.trouble is None
            large = "x" * 300_000
            store.append("old", [chunk(large)])
            store.append("old", [chunk("o5")])
            await store.commit()
            assert await texts(store, "old") == ["o1", "o2", "o3", large, "o5"]
            await use(store)
            assert await ids(store) == ["new", "old", "older"]
            assert await texts(store, "older") == ["p1"]
            store.put_header(header("older", updated_at="2026-03-01T00:00:00Z"))
            await store.delete("old")
            assert await ids(store) == ["older", "new"]
            assert await texts(store, "old") == []
            assert await store.get_header("old") is None
            first = await store.list_headers(limit=1)
            second = await store.list_headers(limit=1, cursor=first.next_cursor)
            assert [page.headers[0].session_id for page in (first, second)] == ["older", "new"]
            assert second.next_cursor is None
        assert reports(logs) == [store.trouble]
    async with opened(state) as store:
        assert await texts(store, "older") == ["p1"]


@pytest.mark.anyio
async def test_a_store_beside_a_lost_disk_has_nothing_of_it_when_it_is_opened_again(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with opened(tmp_path / "file" / "state") as store:
        await use(store)
    async with opened(tmp_path / "file" / "state") as store:
        assert await ids(store) == []


# Everything is imported before the privileges go: what Python needs may be root's alone.
READ_ONLY = """
import os, sys
import anyio, array, structlog
sys.path.insert(0, sys.argv[3])
from tests.store.tools import chunk, fill, header, ids, opened, texts
from tests.store.test_damage import OLD, use
from pathlib import Path

async def prepare(state):
    await fill(state, OLD)

async def main(state):
    async with opened(state) as store:
        await use(store)
        store.append("old", [chunk("o3")])
        assert await texts(store, "old") == ["o1", "o2", "o3"]
        assert await ids(store) == ["new", "old", "older"]
        assert "readonly" in store.trouble and str(state) in store.trouble, store.trouble

async def unwritable(state):
    async with opened(state / "below") as store:
        await use(store)
        assert "Permission denied" in store.trouble and str(state) in store.trouble, store.trouble

state = Path(sys.argv[1])
backend = sys.argv[2]
anyio.run(prepare, state.with_name("warm"), backend=backend)
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
anyio.run(prepare, state, backend=backend)
(state / "sessions.db").chmod(0o400)
anyio.run(main, state, backend=backend)
state.chmod(0o500)
anyio.run(main, state, backend=backend)
anyio.run(unwritable, state, backend=backend)
state.chmod(0o700)
print("done")
"""


def test_what_may_only_be_read_is_read_and_the_rest_kept_in_memory(anyio_backend: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        with child(READ_ONLY, f"{place}/state", anyio_backend, str(Path(__file__).parents[2])) as process:
            assert process.stdout is not None
            assert process.stdout.read().splitlines()[-1] == "done"

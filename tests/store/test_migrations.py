"""A database has had numbered steps, and each step happens once and whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from acp_agent.errors import StoreError
from acp_agent.store import migrations
from acp_agent.store.migrations import MIGRATIONS, Migration, migrate, recorded
from tests.store.tools import fill, opened, texts


@pytest.fixture
def connection() -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        yield made


def tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_each_step_is_recorded_with_its_number_and_name(connection: sqlite3.Connection) -> None:
    assert recorded(connection) == {}
    migrate(connection)
    migrate(connection)
    assert recorded(connection) == {number: step.name for number, step in enumerate(MIGRATIONS, 1)}
    assert tables(connection) == {"sessions", "events", "deleted", "migrations"}


def test_the_steps_that_were_released_are_as_they_were() -> None:
    assert [step.name for step in MIGRATIONS] == ["sessions and their events"]


def test_a_step_that_fails_leaves_the_database_as_it_was(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(connection)
    broken = Migration("broken", ("CREATE TABLE half (a)", "CREATE TABLE half (a)"))
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, broken))
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        migrate(connection)
    assert "half" not in tables(connection)
    assert len(recorded(connection)) == len(MIGRATIONS)


def test_a_step_of_another_name_is_not_one_of_ours(connection: sqlite3.Connection) -> None:
    migrate(connection)
    connection.execute("UPDATE migrations SET name = 'something else' WHERE number = 1")
    with pytest.raises(StoreError, match="newer version"):
        migrate(connection)


@pytest.mark.anyio
async def test_an_older_database_is_brought_up_to_date_with_what_it_holds(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(state, {"a": ["one"]})
    later = Migration("notes", ("CREATE TABLE notes (text TEXT)",))
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, later))
    async with opened(state) as store:
        assert await texts(store, "a") == ["one"]
        assert store.trouble is None
    with closing(sqlite3.connect(state / "sessions.db")) as database:
        assert recorded(database)[2] == "notes"
        assert "notes" in tables(database)

"""The shape of the database, as numbered steps.

The rule: a step that was released never changes; the next one is added below it. The database records the number
and the name of each step that it has had, so a database of a newer version is known as such and left alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from msgspec import Struct

from acp_agent.errors import StoreError

__all__ = ["MIGRATIONS", "Migration", "migrate", "recorded", "refuse_newer", "transaction"]


class Migration(Struct, frozen=True):
    """One step; its number is its place in `MIGRATIONS`, counted from 1."""

    name: str
    statements: tuple[str, ...]


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "sessions and their events",
        (
            """CREATE TABLE sessions (
                session_id TEXT PRIMARY KEY,
                cwd TEXT NOT NULL,
                updated_at TEXT NOT NULL,
                header BLOB NOT NULL
            ) WITHOUT ROWID""",
            "CREATE INDEX sessions_by_time ON sessions (updated_at DESC, session_id)",
            "CREATE INDEX sessions_by_cwd ON sessions (cwd, updated_at DESC, session_id)",
            # `seq` counts over all sessions: what is appended later is larger, and that is all the order there is
            """CREATE TABLE events (
                seq INTEGER PRIMARY KEY,
                session_id TEXT NOT NULL,
                kind TEXT NOT NULL,
                payload BLOB NOT NULL
            )""",
            "CREATE INDEX events_by_session ON events (session_id, seq)",
            # so that a turn of another process, which ends after the deletion, brings nothing back
            "CREATE TABLE deleted (number INTEGER PRIMARY KEY, session_id TEXT NOT NULL UNIQUE)",
        ),
    ),
)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """All of it or nothing; the lock for writing is taken first, so it never fails half-way for want of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors (a full disk) have rolled back already
            connection.execute("ROLLBACK")
        raise


def recorded(connection: sqlite3.Connection) -> dict[int, str]:
    """The steps that this database has had, name by number; empty for a new one."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone():
        return {}
    return dict(connection.execute("SELECT number, name FROM migrations ORDER BY number"))


def refuse_newer(steps: dict[int, str]) -> None:
    """Raise `StoreError` when `steps` has one that this version does not know. Nothing was touched by then."""
    known = {number: migration.name for number, migration in enumerate(MIGRATIONS, 1)}
    for number, name in steps.items():
        if known.get(number) != name:
            raise StoreError(
                f"it was written by a newer version of acp-agent (step {number}, {name!r}); update this one"
            )


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the database up to date, each step in a transaction with its record. Raises `StoreError` if it is newer."""
    steps = recorded(connection)
    refuse_newer(steps)
    if len(steps) == len(MIGRATIONS):
        return
    with transaction(connection):
        connection.execute("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL)")
        steps = recorded(connection)  # another process may have been first
        refuse_newer(steps)
        for number, migration in enumerate(MIGRATIONS, 1):
            if number not in steps:
                for statement in migration.statements:
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES (?, ?)", (number, migration.name))

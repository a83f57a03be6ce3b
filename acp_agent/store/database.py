"""The tables, as plain calls. Everything here runs in one thread, the writer's; nothing here knows of event loops.

Why `synchronous=NORMAL`: in WAL mode a commit is then one write into the page cache, which belongs to the kernel. A
process that is killed loses nothing that was committed, and the database is never damaged; only a power cut may take
the last commits with it. FULL would keep those too, for an fsync before the answer of each turn: not worth it.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from acp_agent.store.memory import DELETED_REMEMBERED
from acp_agent.store.migrations import migrate, recorded, refuse_newer, transaction
from acp_agent.store.paging import PageKey

__all__ = [
    "Append",
    "Database",
    "Delete",
    "HeaderRow",
    "PutHeader",
    "Row",
    "Write",
    "is_busy",
    "make_private_directory",
    "open_database",
    "open_in_memory",
    "open_read_only",
]

BUSY_PAUSE = 0.01  # seconds between two tries for WAL mode


class PutHeader(Struct, frozen=True):
    """The header of a session, encoded, and the two columns it is listed by."""

    session_id: str
    cwd: str
    updated_at: str
    header: bytes


class Append(Struct, frozen=True):
    """Events for the journal of a session, each its kind and itself, encoded."""

    session_id: str
    events: list[tuple[str, bytes]]


class Delete(Struct, frozen=True):
    """The end of a session, for good."""

    session_id: str


Write: TypeAlias = PutHeader | Append | Delete


class Row(Struct, frozen=True):
    """An event as it was kept. `payload` is None when the disk could not give it back."""

    seq: int
    payload: bytes | None


class HeaderRow(Struct, frozen=True):
    """A header as it was kept, with its place in the list."""

    key: PageKey
    cwd: str
    header: bytes


class Database:
    """One open database. Raises `sqlite3.Error` from every method."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.text_factory = _text

    def write(self, writes: list[Write]) -> None:
        """All of `writes`, in order, in one transaction."""
        with transaction(self._connection):
            for write in writes:
                self._apply(write)

    def _apply(self, write: Write) -> None:
        match write:
            case PutHeader(session_id, cwd, updated_at, header):
                if not self.is_deleted(session_id):
                    self._connection.execute(
                        "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?)", (session_id, cwd, updated_at, header)
                    )
            case Append(session_id, events):
                if self.has(session_id):
                    self._connection.executemany(
                        "INSERT INTO events (session_id, kind, payload) VALUES (?, ?, ?)",
                        [(session_id, kind, payload) for kind, payload in events],
                    )
            case Delete(session_id):
                self._delete(session_id)

    def _delete(self, session_id: str) -> None:
        execute = self._connection.execute
        execute("DELETE FROM sessions WHERE session_id = ?", (session_id,))
        execute("DELETE FROM events WHERE session_id = ?", (session_id,))
        execute("INSERT OR IGNORE INTO deleted (session_id) VALUES (?)", (session_id,))
        execute("DELETE FROM deleted WHERE number <= (SELECT max(number) FROM deleted) - ?", (DELETED_REMEMBERED,))

    def has(self, session_id: str) -> bool:
        return self._one("SELECT 1 FROM sessions WHERE session_id = ?", session_id) is not None

    def is_deleted(self, session_id: str) -> bool:
        return self._one("SELECT 1 FROM deleted WHERE session_id = ?", session_id) is not None

    def header(self, session_id: str) -> HeaderRow | None:
        row = self._one("SELECT updated_at, cwd, header FROM sessions WHERE session_id = ?", session_id)
        return None if row is None else HeaderRow(PageKey(row[0], session_id), row[1], row[2])

    def headers(self, cwd: str | None, after: PageKey | None) -> Iterator[HeaderRow]:
        """Headers in the order of the list, from behind `after`; as many as are asked for, without the damaged ones."""
        query = "SELECT session_id FROM sessions WHERE true"  # answered from an index alone
        values: list[str] = []
        if cwd is not None:
            query += " AND cwd = ?"
            values.append(cwd)
        if after is not None:
            query += " AND updated_at <= ? AND (updated_at < ? OR session_id > ?)"
            values += [after.updated_at, after.updated_at, after.session_id]
        query += " ORDER BY updated_at DESC, session_id"
        for (session_id,) in self._connection.execute(query, values):
            with suppress(sqlite3.DatabaseError):
                row = self.header(session_id)
                if row is not None:
                    yield row

    def last_seq(self) -> int:
        """The number of the youngest event of all."""
        (last,) = self._connection.execute("SELECT ifnull(max(seq), 0) FROM events").fetchone()
        return int(last)

    def events(self, session_id: str, after: int, last: int) -> Iterator[Row]:
        """Events behind `after`, up to `last`, in order. Where a page of the file is damaged, what is around it."""
        try:
            query = "SELECT seq, payload FROM events WHERE session_id = ? AND seq > ? AND seq <= ? ORDER BY seq"
            for seq, payload in self._connection.execute(query, (session_id, after, last)):
                after = seq
                yield Row(seq, payload)
        except sqlite3.DatabaseError as error:
            if is_busy(error):
                raise
            yield from self._events_one_by_one(session_id, after, last)

    def _events_one_by_one(self, session_id: str, after: int, last: int) -> Iterator[Row]:
        query = "SELECT seq FROM events WHERE session_id = ? AND seq > ? AND seq <= ? ORDER BY seq"
        for (seq,) in self._connection.execute(query, (session_id, after, last)):
            try:
                row = self._connection.execute("SELECT payload FROM events WHERE seq = ?", (seq,)).fetchone()
            except sqlite3.DatabaseError:
                row = None
            yield Row(seq, None if row is None else row[0])

    def _one(self, query: str, session_id: str) -> tuple[str, str, bytes] | None:
        row: tuple[str, str, bytes] | None = self._connection.execute(query, (session_id,)).fetchone()
        return row

    def close(self) -> None:
        self._connection.close()


def open_database(path: Path, busy_timeout: float) -> Database:
    """The database at `path`, made if need be, and up to date.

    Raises `StoreError` if a newer version wrote it (and leaves it as it was), `OSError` and `sqlite3.Error`.
    """
    make_private_directory(path.parent)
    _make_private_file(path)
    connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None)
    try:
        refuse_newer(recorded(connection))
        connection.execute("PRAGMA synchronous=NORMAL")
        _use_wal(connection, time.monotonic() + busy_timeout)
        migrate(connection)
        connection.execute("SELECT 1 FROM sessions LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return Database(connection)


def open_read_only(path: Path, busy_timeout: float) -> Database:
    """The database at `path`, for reading where nothing may be written. Raises as `open_database`."""
    wal = path.with_name(path.name + "-wal")
    # without a journal beside it nobody writes it now, and `immutable` does not ask for files that cannot be made
    option = "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?{option}"
    connection = sqlite3.connect(uri, timeout=busy_timeout, isolation_level=None, uri=True)
    try:
        connection.execute("PRAGMA writable_schema=ON")  # reads a file that was cut short as far as it goes
        refuse_newer(recorded(connection))
        connection.execute("SELECT 1 FROM sessions LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return Database(connection)


def open_in_memory() -> Database:
    """The same tables with no disk under them."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    return Database(connection)


def is_busy(error: sqlite3.Error | OSError) -> bool:
    """Another process has the database, and kept it for longer than we wait."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def make_private_directory(path: Path) -> None:
    """Make it for its owner alone. One that is there already is somebody's choice, and stays as it is."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None


def _make_private_file(path: Path) -> None:
    """SQLite gives the files beside the database the database's own mode."""
    try:
        # only ever a new file: closing a descriptor of one in use would drop SQLite's locks on it
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            with suppress(OSError):
                path.chmod(mode & 0o700)


def _text(value: bytes) -> str:
    """A damaged text is still one."""
    return value.decode(errors="replace")


def _use_wal(connection: sqlite3.Connection, deadline: float) -> None:
    """SQLite does not wait for its turn in this one statement when two processes make the database at once."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(BUSY_PAUSE)

"""Where things are kept: on disk as long as the disk takes them, in memory from then on.

The rule: a disk that fails is reported once, and costs durability, never the session. From the first write that it
refuses, all writes go to a second database with the same tables, in memory; what is on disk is still read if it can be,
and the two are shown as one. There is no way back in the life of a store: half a journal on each side is enough.
Everything here runs in the writer's thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from msgspec import Struct

from acp_agent.errors import StoreError
from acp_agent.store.database import (
    Append,
    Database,
    Delete,
    HeaderRow,
    PutHeader,
    Row,
    Write,
    is_busy,
    open_database,
    open_in_memory,
    open_read_only,
)
from acp_agent.store.paging import PageKey

__all__ = ["Keeper", "Stretch"]

STRETCH_BYTES = 512 * 1024  # of a journal, read in one go
STRETCH_EVENTS = 1024

IN_MEMORY = "New sessions and changes are kept in memory only, until the agent ends."


class Stretch(Struct):
    """Where the reading of one part of a journal has come to: up to `last`, from behind `after`."""

    database: Database
    session_id: str
    last: int
    after: int = 0


class Keeper:
    """One place for sessions, whatever becomes of its disk. `report` is told of trouble: a sentence with the path."""

    def __init__(self, path: Path, busy_timeout: float, report: Callable[[str], None]) -> None:
        self._path = path
        self._busy_timeout = busy_timeout
        self._report = report
        self._opened = False
        self._reported = False
        self._disk: Database | None = None
        self._memory: Database | None = None

    def write(self, writes: list[Write]) -> None:
        """Keep them, on disk all together or else in memory. Never fails for the disk's sake."""
        self._open()
        memory = self._memory
        if memory is None and self._disk is not None:
            try:
                self._disk.write(writes)
            except sqlite3.Error as error:
                memory = self._give_up_disk(error)
        if memory is not None:
            for write in writes:
                self._write_to_memory(memory, write)

    def header(self, session_id: str) -> HeaderRow | None:
        """The session's header. Raises `StoreError` when the disk has one and cannot give it."""
        self._open()
        if self._memory is not None:
            found = self._memory.header(session_id)
            if found is not None or self._memory.is_deleted(session_id):
                return found
        try:
            return None if self._disk is None else self._disk.header(session_id)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def headers(self, cwd: str | None, after: PageKey | None, limit: int) -> list[HeaderRow]:
        """The first `limit` headers behind `after`, in the order of the list."""
        self._open()
        rows: list[HeaderRow] = []
        try:
            if self._disk is not None:
                rows.extend(islice(self._not_in_memory(self._disk.headers(cwd, after)), limit))
        except sqlite3.Error as error:
            self._unreadable(error)
        if self._memory is not None:
            rows += islice(self._memory.headers(cwd, after), limit)
            rows.sort(key=lambda row: row.key.session_id)
            rows.sort(key=lambda row: row.key.updated_at, reverse=True)
        return rows[:limit]

    def journal(self, session_id: str) -> list[Stretch]:
        """The parts that the session's journal has now; what is appended later does not belong to them."""
        self._open()
        parts: list[Stretch] = []
        forgotten = self._memory is not None and self._memory.is_deleted(session_id)
        try:
            if self._disk is not None and not forgotten:
                parts.append(Stretch(self._disk, session_id, self._disk.last_seq()))
        except sqlite3.Error as error:
            self._unreadable(error)
        if self._memory is not None:
            parts.append(Stretch(self._memory, session_id, self._memory.last_seq()))
        return parts

    def read(self, stretch: Stretch) -> list[Row]:
        """The next events of a part, so many that they fit well into memory; none: that was all."""
        rows: list[Row] = []
        size = 0
        try:
            for row in stretch.database.events(stretch.session_id, stretch.after, stretch.last):
                rows.append(row)
                size += len(row.payload or b"")
                if size >= STRETCH_BYTES or len(rows) >= STRETCH_EVENTS:
                    break
        except sqlite3.Error as error:
            self._unreadable(error)
        stretch.after = rows[-1].seq if rows else stretch.last
        return rows

    def close(self) -> None:
        for database in (self._disk, self._memory):
            if database is not None:
                database.close()

    def _open(self) -> None:
        """The first use opens the disk, so that nothing waits for it before."""
        if self._opened:
            return
        self._opened = True
        try:
            self._disk = open_database(self._path, self._busy_timeout)
        except StoreError as error:
            self._give_up_disk(error)
        except (OSError, sqlite3.Error) as error:
            if not is_busy(error):
                with suppress(OSError, sqlite3.Error, StoreError):
                    self._disk = open_read_only(self._path, self._busy_timeout)
            self._give_up_disk(error)

    def _give_up_disk(self, error: OSError | sqlite3.Error | StoreError) -> Database:
        self._memory = open_in_memory()
        self._reported = True
        self._report(f"Sessions cannot be saved in {self._path}: {_reason(error)}. {IN_MEMORY}")
        return self._memory

    def _unreadable(self, error: sqlite3.Error) -> StoreError:
        text = f"Some of the sessions in {self._path} cannot be read: {_reason(error)}."
        if not self._reported:
            self._reported = True
            self._report(text)
        return StoreError(text)

    def _write_to_memory(self, memory: Database, write: Write) -> None:
        if isinstance(write, Append):
            self._adopt(write.session_id, memory)
        memory.write([write])
        if isinstance(write, Delete) and self._disk is not None:
            with suppress(sqlite3.Error):  # a full disk may still let go; until then memory hides it
                self._disk.write([write])

    def _adopt(self, session_id: str, memory: Database) -> None:
        """A session that is on disk goes on in memory, under its header."""
        if self._disk is None or memory.has(session_id) or memory.is_deleted(session_id):
            return
        with suppress(sqlite3.Error):
            row = self._disk.header(session_id)
            if row is not None:
                memory.write([PutHeader(session_id, row.cwd, row.key.updated_at, row.header)])

    def _not_in_memory(self, rows: Iterator[HeaderRow]) -> Iterator[HeaderRow]:
        memory = self._memory
        if memory is None:
            return rows
        return (row for row in rows if not memory.has(row.key.session_id) and not memory.is_deleted(row.key.session_id))


def _reason(error: OSError | sqlite3.Error | StoreError) -> str:
    """The error without its number and paths: `No space left on device`, `file is not a database`."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)

"""Sessions that outlive the process, in one SQLite database: the event loop's side of it.

    SqliteStore   the seam, in the loop: encodes, decodes, waits       sqlite.py
    WriterThread  the order of things, and groups                      writer.py
    Keeper        disk, or memory when the disk fails                  keeper.py
    Database      tables and pragmas                                   database.py, migrations.py
    SessionLocks  one process for one session                          locks.py

What `commit` confirmed survives `kill -9`; what was said and not confirmed is on disk within about 10 ms.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from acp_agent.content import clean_text
from acp_agent.errors import StoreError
from acp_agent.events import Event
from acp_agent.log import get_logger
from acp_agent.store.base import SessionHeader, SessionPage, SessionStore
from acp_agent.store.database import Append, Delete, HeaderRow, PutHeader, Row, Write
from acp_agent.store.keeper import Keeper, Stretch
from acp_agent.store.locks import SessionLocks
from acp_agent.store.paging import bounded, decode_cursor, encode_cursor, place_of
from acp_agent.store.writer import Question, WriterThread

__all__ = ["SqliteStore"]

logger = get_logger("acp_agent.store")

encode = msgspec.json.Encoder().encode
decode_event = msgspec.json.Decoder(Event).decode
decode_header = msgspec.json.Decoder(SessionHeader).decode


class _Damage(msgspec.Struct):
    """What a reading of a journal had to leave out."""

    entries: int = 0
    problem: str = ""


class SqliteStore(SessionStore):
    """Sessions in `directory`, which is made at first use: `sessions.db`, and `sessions.lock` for claims.

    One store for one directory in a process; any number of processes. `busy_timeout`, in seconds, is how long
    another process may keep the database to itself before this one goes on in memory. Making a store touches nothing.
    """

    durable = True

    def __init__(self, directory: Path | str, *, busy_timeout: float = 5.0) -> None:
        self.path = Path(directory) / "sessions.db"
        self._keeper = Keeper(self.path, busy_timeout, self._report)
        self._writer: WriterThread[Write] = WriterThread(self._keeper.write)
        self._locks = SessionLocks(Path(directory) / "sessions.lock")

    def put_header(self, header: SessionHeader) -> None:
        session_id = clean_text(header.session_id)
        try:
            cwd = place_of(clean_text(header.cwd))
            write = PutHeader(session_id, cwd, clean_text(header.updated_at), encode(header))
        except (TypeError, ValueError, RecursionError) as error:
            logger.error("session_header_not_kept", session_id=session_id, problem=str(error))
        else:
            self._writer.post(write)

    def append(self, session_id: str, events: list[Event]) -> None:
        session_id = clean_text(session_id)
        rows: list[tuple[str, bytes]] = []
        for event in events:
            kind = str(event.__struct_config__.tag)
            try:
                rows.append((kind, encode(event)))
            except (TypeError, ValueError, RecursionError) as error:
                logger.error("event_not_kept", session_id=session_id, kind=kind, problem=str(error))
        if rows:
            self._writer.post(Append(session_id, rows))

    async def commit(self) -> None:
        if not self._writer.settled:
            await self._ask_nothing()

    async def get_header(self, session_id: str) -> SessionHeader | None:
        row = await self._writer.ask(partial(self._keeper.header, clean_text(session_id))).answer()
        if row is None:
            return None
        header = _decoded_header(row)
        if header is None:
            raise StoreError(f"The header of session {session_id!r} in {self.path} is damaged.")
        return header

    def read_journal(self, session_id: str) -> AsyncGenerator[Event, None]:
        parts = self._writer.ask(partial(self._keeper.journal, clean_text(session_id)))  # as of this call
        return self._read(parts)

    async def _read(self, parts: Question[list[Stretch]]) -> AsyncGenerator[Event, None]:
        damage = _Damage()
        for stretch in await parts.answer():
            while rows := await self._writer.ask(partial(self._keeper.read, stretch)).answer():
                for row in rows:
                    event = _decoded_event(row, damage)
                    if event is not None:
                        yield event
            if damage.entries:
                self._report_damage(stretch.session_id, damage)

    def _report_damage(self, session_id: str, damage: _Damage) -> None:
        logger.warning("session_journal_damaged", session_id=session_id, entries=damage.entries, problem=damage.problem)
        if self.trouble is None:
            self._report(f"A part of session {session_id} in {self.path} is damaged and was left out.")

    async def list_headers(self, *, cwd: str | None = None, cursor: str | None = None, limit: int = 100) -> SessionPage:
        after = None if cursor is None else decode_cursor(cursor)
        limit = bounded(limit)
        cwd = None if cwd is None else place_of(clean_text(cwd))
        rows = await self._writer.ask(partial(self._keeper.headers, cwd, after, limit + 1)).answer()
        page = rows[:limit]
        headers = [header for header in map(_decoded_header, page) if header is not None]
        return SessionPage(headers, encode_cursor(page[-1].key) if len(rows) > limit else None)

    async def delete(self, session_id: str) -> None:
        self._writer.post(Delete(clean_text(session_id)))
        await self._ask_nothing()

    def claim(self, session_id: str) -> None:
        self._locks.claim(session_id)

    def release(self, session_id: str) -> None:
        self._locks.release(session_id)

    async def aclose(self) -> None:
        try:
            if self._writer.started:
                with suppress(StoreError):  # closed already
                    await self._writer.close(self._keeper.close).answer()
        finally:
            self._locks.close()

    async def _ask_nothing(self) -> None:
        """Wait until all that was said before is written. A closed store has nothing more to wait for."""
        with suppress(StoreError):
            await self._writer.ask(_nothing).answer()

    def _report(self, trouble: str) -> None:
        """Called in the thread, once for each kind of trouble; the worst is told last."""
        self.trouble = trouble
        logger.error("session_store_trouble", problem=trouble)


def _nothing() -> None:
    return


def _decoded_event(row: Row, damage: _Damage) -> Event | None:
    """The event, or None for one that is damaged, or of a kind that only a later version knows."""
    try:
        if row.payload is not None:
            return decode_event(row.payload)
        damage.problem = "the disk does not give it back"
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError, RecursionError) as error:
        damage.problem = str(error)
    damage.entries += 1
    return None


def _decoded_header(row: HeaderRow) -> SessionHeader | None:
    try:
        return decode_header(row.header)
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError) as error:
        logger.warning("session_header_damaged", session_id=row.key.session_id, problem=str(error))
        return None

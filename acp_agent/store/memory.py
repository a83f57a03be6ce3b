"""Sessions that live as long as the process: what an `Agent` uses unless it is given another store."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator

from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from acp_agent.events import Event
from acp_agent.store.base import SessionHeader, SessionPage, SessionStore
from acp_agent.store.paging import PageKey, bounded, decode_cursor, encode_cursor, place_of

__all__ = ["MemoryStore"]

DELETED_REMEMBERED = 4096  # ids; only turns that are just ending can ask for one of them
EVENTS_A_STRETCH = 256  # between two chances for other tasks to run


class MemoryStore(SessionStore):
    """Keeps headers and journals in dictionaries. Nothing is encoded, nothing waits.

    Of the sessions that were given back, the last `closed` are kept: a process that opens and closes them all day
    does not grow.
    """

    def __init__(self, *, closed: int = 1000) -> None:
        self._limit = closed
        self._closed: dict[str, None] = {}  # ids, the one that was given back first in front
        self._headers: dict[str, SessionHeader] = {}
        self._journals: dict[str, list[Event]] = {}
        self._deleted: set[str] = set()
        self._deletions: deque[str] = deque()

    def put_header(self, header: SessionHeader) -> None:
        if header.session_id not in self._deleted:
            self._headers[header.session_id] = _copy(header)
            self._journals.setdefault(header.session_id, [])

    def append(self, session_id: str, events: list[Event]) -> None:
        journal = self._journals.get(session_id)
        if journal is not None:
            journal.extend(events)

    async def get_header(self, session_id: str) -> SessionHeader | None:
        header = self._headers.get(session_id)
        return None if header is None else _copy(header)

    def read_journal(self, session_id: str) -> AsyncGenerator[Event, None]:
        journal = self._journals.get(session_id, [])
        return _read(journal, len(journal))  # the length is taken at the call, not at the first event

    async def list_headers(self, *, cwd: str | None = None, cursor: str | None = None, limit: int = 100) -> SessionPage:
        after = None if cursor is None else decode_cursor(cursor)
        found = [header for header in self._headers.values() if _belongs(header, cwd, after)]
        found.sort(key=lambda header: header.session_id)
        found.sort(key=lambda header: header.updated_at, reverse=True)  # stable: ties stay in order of id
        page = found[: bounded(limit)]
        if len(page) == len(found):
            return SessionPage([_copy(header) for header in page])
        last = page[-1]
        return SessionPage([_copy(header) for header in page], encode_cursor(PageKey(last.updated_at, last.session_id)))

    async def delete(self, session_id: str) -> None:
        if session_id not in self._deleted:
            self._deleted.add(session_id)
            self._deletions.append(session_id)
        if len(self._deletions) > DELETED_REMEMBERED:
            self._deleted.discard(self._deletions.popleft())
        self._drop(session_id)

    def claim(self, session_id: str) -> None:
        self._closed.pop(session_id, None)

    def release(self, session_id: str) -> None:
        if session_id not in self._headers:
            return
        self._closed.pop(session_id, None)
        self._closed[session_id] = None
        if len(self._closed) > self._limit:
            self._drop(next(iter(self._closed)))

    def _drop(self, session_id: str) -> None:
        self._headers.pop(session_id, None)
        self._journals.pop(session_id, None)
        self._closed.pop(session_id, None)


def _belongs(header: SessionHeader, cwd: str | None, after: PageKey | None) -> bool:
    if cwd is not None and place_of(header.cwd) != place_of(cwd):
        return False
    if after is None or header.updated_at < after.updated_at:
        return True
    return header.updated_at == after.updated_at and header.session_id > after.session_id


def _copy(header: SessionHeader) -> SessionHeader:
    """A header that its owner may go on changing."""
    return replace(header, roots=list(header.roots), options=dict(header.options))


async def _read(journal: list[Event], end: int) -> AsyncGenerator[Event, None]:
    for index in range(end):
        if index % EVENTS_A_STRETCH == EVENTS_A_STRETCH - 1:
            await checkpoint()
        yield journal[index]

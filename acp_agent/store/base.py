"""The seam of a session store: headers, and a journal of events a session.

Writing is a plain call that never waits and never raises; `commit` waits until all that was said so far is
kept. A store that loses its disk says so once (`trouble`) and goes on in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator

from msgspec import Struct, field

from acp_agent.events import Event

__all__ = ["SessionHeader", "SessionPage", "SessionStore"]


class SessionHeader(Struct, kw_only=True, omit_defaults=True):
    """What is known of a session without reading its journal. Times are ISO 8601 in UTC, with `Z`."""

    session_id: str
    cwd: str
    created_at: str
    updated_at: str
    roots: list[str] = field(default_factory=list)
    title: str | None = None
    mode: str = "ask"
    options: dict[str, str | bool] = field(default_factory=dict)
    used: int | None = None
    size: int | None = None
    cost: float | None = None


class SessionPage(Struct, frozen=True):
    """Headers, the newest first, and where the next page begins (None: this was the last)."""

    headers: list[SessionHeader]
    next_cursor: str | None = None


class SessionStore(ABC):
    """Where sessions are kept. All methods are called in one event loop.

    `durable` says that an answer should wait for `commit`. `trouble` is a sentence for the user, or None.
    """

    durable: bool = False
    trouble: str | None = None
    _told: str | None = None

    @abstractmethod
    def put_header(self, header: SessionHeader) -> None:
        """Keep the header, in place of the one before. A deleted session is not brought back."""

    @abstractmethod
    def append(self, session_id: str, events: list[Event]) -> None:
        """Add to the session's journal, in order. Ignored for a session that is not there."""

    def take_trouble(self) -> str | None:
        """`trouble`, once: the user is told, and told again only of another one."""
        trouble = self.trouble
        if trouble == self._told:
            return None
        self._told = trouble
        return trouble

    async def commit(self) -> None:
        """Return when all that was said so far is kept, or can no longer be."""
        return

    @abstractmethod
    async def get_header(self, session_id: str) -> SessionHeader | None:
        """The header, or None. Raises `StoreError` when it is there and cannot be read."""

    @abstractmethod
    def read_journal(self, session_id: str) -> AsyncGenerator[Event, None]:
        """What was appended before the call, in order, not all held at once. A damaged entry is skipped and logged."""

    @abstractmethod
    async def list_headers(self, *, cwd: str | None = None, cursor: str | None = None, limit: int = 100) -> SessionPage:
        """Sessions by `updated_at`, newest first, ties by id. Raises `ValueError` for a cursor it did not give.

        `cwd` asks for those of one folder, however its path is written: `/a/b/` is `/a/b`.
        """

    @abstractmethod
    async def delete(self, session_id: str) -> None:
        """Forget the session, for good. One that is not there is no error."""

    def claim(self, session_id: str) -> None:
        """Take the session for this process. Raises `StoreError` naming the process that has it."""
        return

    def release(self, session_id: str) -> None:
        """Give the session back. What was said of it is still kept."""
        return

    async def aclose(self) -> None:
        """Keep what is not kept yet, and let go."""
        return

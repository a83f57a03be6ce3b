"""Every store keeps the same contract; and the checks of it find a store that does not."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from acp_agent.events import Event
from acp_agent.store.base import SessionHeader, SessionPage
from acp_agent.store.memory import MemoryStore
from acp_agent.store.sqlite import SqliteStore
from acp_agent.testing.checks_store import check_session_store, sample_events

pytestmark = pytest.mark.anyio


async def test_the_store_in_memory_keeps_the_contract() -> None:
    await check_session_store(MemoryStore)


async def test_the_store_on_disk_keeps_the_contract(tmp_path: Path) -> None:
    await check_session_store(lambda: SqliteStore(tmp_path / "state"))


async def test_the_store_on_disk_keeps_the_contract_when_its_disk_is_lost(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the directory should be")

    class Lost(SqliteStore):
        durable = False

    await check_session_store(lambda: Lost(tmp_path / "state"))


def test_the_samples_have_every_kind_of_event_that_is_kept() -> None:
    volatile = {"ToolCallProgress"}
    kinds = {kind.__name__ for kind in Event.__args__} - volatile
    assert {type(event).__name__ for event in sample_events()} == kinds


class Sharing(MemoryStore):
    """Gives out its own headers."""

    async def get_header(self, session_id: str) -> SessionHeader | None:
        return self._headers.get(session_id)


class Mixing(MemoryStore):
    """Has one journal for all sessions."""

    def append(self, session_id: str, events: list[Event]) -> None:
        for journal in self._journals.values():
            journal.extend(events)


class Following(MemoryStore):
    """Reads on while others write."""

    async def read_journal(self, session_id: str) -> AsyncGenerator[Event, None]:
        for event in self._journals.get(session_id, []):
            yield event


class Shuffled(MemoryStore):
    """Lists the oldest first."""

    async def list_headers(self, *, cwd: str | None = None, cursor: str | None = None, limit: int = 100) -> SessionPage:
        page = await super().list_headers(cwd=cwd, cursor=cursor, limit=limit)
        return SessionPage(page.headers[::-1], page.next_cursor)


class Forgiving(MemoryStore):
    """Takes any cursor."""

    async def list_headers(self, *, cwd: str | None = None, cursor: str | None = None, limit: int = 100) -> SessionPage:
        try:
            return await super().list_headers(cwd=cwd, cursor=cursor, limit=limit)
        except ValueError:
            return await super().list_headers(cwd=cwd, limit=limit)


class Undead(MemoryStore):
    """Lets deleted sessions come back."""

    async def delete(self, session_id: str) -> None:
        await super().delete(session_id)
        self._deleted.clear()


class Eager(MemoryStore):
    """Takes events of a session that is not there."""

    def append(self, session_id: str, events: list[Event]) -> None:
        self._journals.setdefault(session_id, []).extend(events)


class Boasting(MemoryStore):
    """Says that it is durable."""

    durable = True


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (Sharing, "nobody else's business"),
        (Mixing, "its own session's events only|all that was appended"),
        (Following, "nothing that came after"),
        (Shuffled, "newest first"),
        (Forgiving, "must be a ValueError"),
        (Undead, "no header"),
        (Eager, "no journal|no events"),
        (Boasting, "keeps headers"),
    ],
)
async def test_the_checks_find_what_a_store_does_wrong(broken: type[MemoryStore], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        await check_session_store(broken)

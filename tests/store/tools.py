"""What the tests of stores share: headers and events, and child processes with a store of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from acp_agent.content import TextContent
from acp_agent.events import Event, MessageChunk
from acp_agent.store.base import SessionHeader, SessionStore
from acp_agent.store.sqlite import SqliteStore

MOMENT = "2026-01-01T00:00:00Z"


def header(session_id: str, *, cwd: str = "/w", updated_at: str = MOMENT) -> SessionHeader:
    return SessionHeader(session_id=session_id, cwd=cwd, created_at=MOMENT, updated_at=updated_at)


def chunk(text: str) -> Event:
    return MessageChunk("agent", "m", TextContent(text))


async def texts(store: SessionStore, session_id: str) -> list[str]:
    found: list[str] = []
    async for event in store.read_journal(session_id):
        assert isinstance(event, MessageChunk)
        assert isinstance(event.content, TextContent)
        found.append(event.content.text)
    return found


async def ids(store: SessionStore, cwd: str | None = None) -> list[str]:
    page = await store.list_headers(cwd=cwd)
    return [header.session_id for header in page.headers]


@asynccontextmanager
async def opened(directory: Path, *, busy_timeout: float = 5.0) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(directory, busy_timeout=busy_timeout)
    try:
        yield store
    finally:
        await store.aclose()


async def fill(directory: Path, sessions: dict[str, list[str]]) -> None:
    """A store that was used and closed: the texts by session."""
    async with opened(directory) as store:
        for session_id, said in sessions.items():
            store.put_header(header(session_id))
            store.append(session_id, [chunk(text) for text in said])


@contextmanager
def child(script: str, *arguments: str) -> Generator[subprocess.Popen[str]]:
    """Another Python with a store; killed at the end, if it is still there."""
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()

"""`acp-agent sessions`: list, read, export and delete what is kept. Reading works beside an editor that has it open."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TextIO

import anyio
import msgspec

from acp_agent.cli.terminal import can_ask, standard_output
from acp_agent.errors import AcpAgentError
from acp_agent.events import Event, TurnEnded
from acp_agent.paths import state_directory
from acp_agent.store.base import SessionHeader, SessionStore

if TYPE_CHECKING:
    from acp_agent.cli.stage import Director

__all__ = ["sessions"]

ID_PREFIX = "sess_"


def sessions(arguments: Namespace) -> None:
    """Do what `arguments.action` says. Raises `AcpAgentError`."""
    action: Callable[[SessionStore, Namespace, TextIO], Awaitable[None]]
    if arguments.action == "list" and arguments.cwd is not None:
        arguments.cwd = os.path.abspath(arguments.cwd)
    match arguments.action:
        case "list":
            action = list_sessions
        case "show":
            action = show_session
        case "export":
            action = export_session
        case _:
            action = delete_session
    anyio.run(partial(run, action, arguments))


async def run(action: Callable[[SessionStore, Namespace, TextIO], Awaitable[None]], arguments: Namespace) -> None:
    async with opened_store(arguments) as store:
        with standard_output() as out:
            await action(store, arguments, out)


@asynccontextmanager
async def opened_store(arguments: Namespace) -> AsyncIterator[SessionStore]:
    """The store, if there is one: looking does not make one. What is wrong with it is told on stderr."""
    from acp_agent.store.sqlite import SqliteStore

    store = SqliteStore(arguments.state_dir or state_directory())
    if not store.path.exists():
        raise AcpAgentError(f"No sessions are kept: there is no {store.path}.")
    try:
        yield store
    finally:
        if store.trouble:
            sys.stderr.write(f"acp-agent: {store.trouble}\n")
        with anyio.CancelScope(shield=True):
            await store.aclose()


async def headers_of(store: SessionStore, cwd: str | None = None) -> AsyncGenerator[SessionHeader, None]:
    """All of them, the newest first."""
    cursor: str | None = None
    while True:
        page = await store.list_headers(cwd=cwd, cursor=cursor)
        for header in page.headers:
            yield header
        cursor = page.next_cursor
        if cursor is None:
            return


async def find_session(store: SessionStore, text: str) -> SessionHeader:
    """The session of that id, or the only one whose id begins so, with or without `sess_`. Raises `AcpAgentError`."""
    header = await store.get_header(text)
    if header is not None:
        return header
    async with aclosing(headers_of(store)) as headers:
        found = [header async for header in headers if header.session_id.startswith((text, ID_PREFIX + text))]
    if not found or not text:
        raise AcpAgentError(f"There is no session {text!r}; `acp-agent sessions list` shows them.")
    if len(found) > 1:
        ids = ", ".join(header.session_id for header in found[:5])
        raise AcpAgentError(f"{text!r} may be {len(found)} sessions: {ids}{', ...' if len(found) > 5 else ''}.")
    return found[0]


async def list_sessions(store: SessionStore, arguments: Namespace, out: TextIO) -> None:
    async with aclosing(headers_of(store, arguments.cwd)) as headers:
        found = [header async for header in headers]
    if arguments.json:
        out.writelines(msgspec.json.encode(header).decode() + "\n" for header in found)
        return
    from acp_agent.cli.tables import write_table

    rows = [
        (local_time(header.updated_at), header.title or "(no title)", short_folder(header.cwd), header.session_id)
        for header in found
    ]
    write_table(out, ("updated", "title", "folder", "id"), rows)


async def show_session(store: SessionStore, arguments: Namespace, out: TextIO) -> None:
    """The conversation, as an editor would be shown it."""
    from acp_agent.cli.plain import Lines, PlainStage
    from acp_agent.cli.stage import Director, clean

    header = await find_session(store, arguments.session_id)
    lines = Lines(out)
    lines.block("session", header.session_id)
    lines.block("title", clean(header.title or "(no title)"))
    lines.block("folder", clean(header.cwd))
    lines.block("updated", local_time(header.updated_at))
    with PlainStage(lines) as stage:
        director = Director(stage, header.cwd)
        async with aclosing(store.read_journal(header.session_id)) as events:
            async for event in events:
                show_event(event, director)
                if isinstance(event, TurnEnded) and (reason := ending(event)):
                    stage.note(clean(reason))


def show_event(event: Event, director: Director) -> None:
    """In the words of the protocol, which is what is drawn."""
    from acp_agent.surfaces.v1_words import updates
    from acp_agent.testing.transcript import Update

    for update in updates(event):
        fields = msgspec.to_builtins(update)
        director.take(Update(0, 0.0, "", fields["sessionUpdate"], fields))


def ending(event: TurnEnded) -> str:
    """How a turn ended, if that is not the usual way."""
    if event.error is not None:
        return f"The turn failed: {event.error}"
    return "" if event.stop_reason in (None, "end_turn") else f"The turn ended: {event.stop_reason}"


async def export_session(store: SessionStore, arguments: Namespace, out: TextIO) -> None:
    """One JSON object, `{"session": header, "events": [...]}`: all that is kept, also what the model was told."""
    header = await find_session(store, arguments.session_id)
    encode = msgspec.json.encode
    out.write(f'{{"session": {encode(header).decode()}, "events": [')
    separator = "\n"
    async with aclosing(store.read_journal(header.session_id)) as events:
        async for event in events:
            out.write(separator + encode(event).decode())
            separator = ",\n"
    out.write("\n]}\n")


async def delete_session(store: SessionStore, arguments: Namespace, out: TextIO) -> None:
    """For good; at a terminal only when the user says so. Raises `StoreError` for one that another process has open."""
    from acp_agent.cli.stage import clean

    header = await find_session(store, arguments.session_id)
    shown = clean(f"{header.session_id} ({header.title or 'no title'}, {short_folder(header.cwd)})")
    store.claim(header.session_id)
    if can_ask() and not arguments.yes:
        out.write(f"Delete {shown} for good? [y/N] ")
        out.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            out.write("It is kept.\n")
            return
    await store.delete(header.session_id)
    if store.trouble:
        raise AcpAgentError(f"{header.session_id} could not be deleted.")
    out.write(f"Deleted {shown}.\n")


def local_time(stamp: str) -> str:
    """`2026-11-30 17:04`, where the user is; a stamp that cannot be read as it is."""
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return stamp


def short_folder(path: str) -> str:
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home.rstrip(os.sep) + os.sep) else path

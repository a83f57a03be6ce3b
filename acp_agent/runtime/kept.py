"""What the store has of a session, for the one that goes on from it: the same, or a fork.

A fork has a journal of its own, so that either may go on, or be deleted, without the other. What a running turn of the
other has not finished is closed in it, as after a crash.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from acp_agent.errors import INTERNAL_ERROR, RequestError, StoreError
from acp_agent.events import Event
from acp_agent.runtime.places import SessionPlace
from acp_agent.runtime.session import Session, new_id, now
from acp_agent.store.base import SessionHeader, SessionStore

__all__ = ["copied", "forked", "read_header", "unopenable"]

COMMIT_EVENTS = 1024  # so that a long journal does not wait in memory


async def read_header(store: SessionStore, session_id: str) -> SessionHeader:
    """The header. Raises `RequestError` when there is none, or none that can be read."""
    try:
        header = await store.get_header(session_id)
    except StoreError as error:
        raise unopenable(session_id, error) from None
    if header is None:
        raise RequestError.unknown_session(session_id)
    return header


def unopenable(session_id: str, error: StoreError) -> RequestError:
    """It is there, but another process has it, or it cannot be read: the text says which."""
    return RequestError(
        INTERNAL_ERROR, "The session cannot be opened", {"sessionId": session_id, "details": str(error)}
    )


def forked(source: SessionHeader, place: SessionPlace) -> SessionHeader:
    """The header of a new session that goes on from `source`. Its cost begins anew; `auto` is not inherited."""
    time = now()
    return SessionHeader(
        session_id=new_id("sess"),
        cwd=place.cwd,
        roots=place.roots,
        created_at=time,
        updated_at=time,
        title=source.title,
        mode="ask" if source.mode == "auto" else source.mode,
        options=dict(source.options),
        used=source.used,
        size=source.size,
    )


async def copied(
    journal: AsyncGenerator[Event, None], store: SessionStore, session: Session
) -> AsyncGenerator[Event, None]:
    """The events of `journal`, each kept for `session` too."""
    store.claim(session.id)
    session.keep_header()
    count = 0
    async with aclosing(journal) as events:
        async for event in events:
            store.append(session.id, [event])
            count += 1
            if count % COMMIT_EVENTS == 0:
                await store.commit()
            yield event

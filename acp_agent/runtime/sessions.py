"""All sessions of a connection: made, opened, listed, closed, deleted; each on its own.

Every verb has a synchronous half that claims, so that a prompt, a cancel or a second load written right behind it meets
the session. A verb that must wait (for the disk, for a turn to end) returns the rest as work; else it has answered.
An unknown or closed session is `-32002` until it is loaded or resumed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol, TypeAlias

import anyio
from msgspec import Struct

from acp_agent.errors import DecodeError, RequestError, SettingsError, StoreError
from acp_agent.events import Event
from acp_agent.runtime.client import ClientPort
from acp_agent.runtime.definition import AgentDefinition, SessionSetup
from acp_agent.runtime.kept import copied, forked, read_header, unopenable
from acp_agent.runtime.line import Lines, Place
from acp_agent.runtime.places import SessionPlace, check_place, same_path
from acp_agent.runtime.prompts import PromptQueue, Spawn
from acp_agent.runtime.replay import Replay
from acp_agent.runtime.session import Service, Session, new_id, now
from acp_agent.runtime.tickets import Ticket
from acp_agent.runtime.timers import Timers
from acp_agent.runtime.work import work_on
from acp_agent.runtime.workspace import EditorWorkspace
from acp_agent.store.base import SessionHeader, SessionPage, SessionStore
from acp_agent.tools.base import Toolset

__all__ = ["Attach", "LiveSession", "SessionManager"]

COMMIT_SECONDS = 2.0

Answer: TypeAlias = Callable[[Session], None]
Work: TypeAlias = Callable[[], Awaitable[None]]


class SessionService(Service, Toolset, Protocol):
    """A service that brings tools: the client's MCP servers."""


Attach: TypeAlias = Callable[[Session, SessionPlace], SessionService | None]


class LiveSession(Struct):
    """A session that is open here, and its prompts.

    `openings` are those claimed and not answered; `is_ending` says that its end is claimed, `is_gone` that it was.
    """

    session: Session
    prompts: PromptQueue
    openings: int = 0
    is_ending: bool = False
    is_gone: bool = False


class SessionManager:
    """The sessions of one connection, by id."""

    def __init__(
        self,
        definition: AgentDefinition,
        open_store: Callable[[], SessionStore],
        port: ClientPort,
        timers: Timers,
        *,
        spawn: Spawn,
        attach: Attach,
    ) -> None:
        self.definition = definition
        self._open_store = open_store
        self._store: SessionStore | None = None
        self._port = port
        self._timers = timers
        self._spawn = spawn
        self._attach = attach
        self._live: dict[str, LiveSession] = {}
        self._lines = Lines()  # loads and ends of a session are done in the order in which they were asked for

    @property
    def store(self) -> SessionStore:
        """Opened by the first session: `initialize` needs no database."""
        if self._store is None:
            self._store = self._open_store()
        return self._store

    def get(self, session_id: str) -> LiveSession:
        live = self._live.get(session_id)
        if live is None or live.is_ending:
            raise RequestError.unknown_session(session_id)
        return live

    # set-up ---------------------------------------------------------------------------------------------------------

    def new(self, place: SessionPlace, answer: Answer) -> Work | None:
        """Make a session; `answer` is called with it, then its commands are announced."""
        check_place(place)
        setup = self._set_up(place)
        time = now()
        header = SessionHeader(
            session_id=new_id("sess"),
            cwd=place.cwd,
            roots=place.roots,
            created_at=time,
            updated_at=time,
            mode=self.definition.mode,
        )
        live = self._make(header, setup, place)
        self.store.put_header(header)
        return self._when_kept(lambda: self._answer_new(live, answer))

    def _answer_new(self, live: LiveSession, answer: Answer) -> None:
        answer(live.session)
        live.session.announce_commands()

    def open(self, session_id: str, place: SessionPlace, answer: Answer, *, replay: bool) -> Work:
        """Load (with `replay`) or resume a session, live or stored. It is held until it is answered."""
        check_place(place)
        live = self._live.get(session_id)
        if live is None or live.is_ending:
            return self._claim_stored(session_id, place, answer, replay)
        if not same_path(live.session.cwd, place.cwd):
            details = f"The session works in {live.session.cwd} and is open; it cannot move to {place.cwd}."
            raise RequestError.invalid_params(details, "$.cwd")
        return self._claim_live(live, place, answer, replay)

    def _claim_live(self, live: LiveSession, place: SessionPlace, answer: Answer, replay: bool) -> Work:
        """What is told of it ends here; what happens from here on is kept back until the answer."""
        turn = self._lines.claim(live.session.id)
        live.openings += 1
        live.session.hold()
        is_open = not live.prompts.is_paused  # else nothing happens in it yet, and its journal may still be mended
        if is_open:
            self._serve(live.session, place)
        journal = self.store.read_journal(live.session.id) if replay and is_open else None

        async def work() -> None:
            if not await self._open_live(live, turn, answer, replay, journal):
                await self.open(live.session.id, place, answer, replay=replay)()

        return work

    async def _open_live(
        self, live: LiveSession, turn: Place, answer: Answer, replay: bool, journal: AsyncGenerator[Event, None] | None
    ) -> bool:
        """False if it was never opened: whoever wanted it first was refused, or gave up."""
        session = live.session
        try:
            async with turn:
                if live.is_gone:
                    return False
                if replay:
                    await Replay(session, is_live=True, is_shown=True, journal=journal).run()
                answer(session)
                if not replay:
                    session.announce_commands()
                return True
        finally:
            session.release()
            self._opened(live)

    def _claim_stored(self, session_id: str, place: SessionPlace, answer: Answer, replay: bool) -> Work:
        """The session is here from now on, and does nothing until it is restored; after the end of its last life."""
        setup = self._set_up(place)
        time = now()
        header = SessionHeader(
            session_id=session_id, cwd=place.cwd, roots=place.roots, created_at=time, updated_at=time
        )
        live = self._make(header, setup, None)
        live.prompts.is_paused = True
        live.session.hold()
        live.openings += 1
        turn = self._lines.claim(session_id)
        return lambda: self._open_stored(live, turn, place, answer, replay)

    async def _open_stored(
        self, live: LiveSession, turn: Place, place: SessionPlace, answer: Answer, replay: bool
    ) -> None:
        session = live.session
        try:
            async with turn:
                await self._restore(session, place)
                await Replay(session, is_live=False, is_shown=replay).run()
                await self._begin_life(session, place)
                answer(session)
                if not replay:
                    session.announce_commands()
        except BaseException as error:
            await self._give_up(live, error)
            raise
        finally:
            session.release()
            self._opened(live)

    async def _begin_life(self, session: Session, place: SessionPlace) -> None:
        """It is restored, and open once this is kept."""
        self._serve(session, place)
        session.notices.extend(session.options.replaced)
        session.keep_header()
        if self.store.durable:
            await self.store.commit()

    async def _give_up(self, live: LiveSession, error: BaseException) -> None:
        self._forget(live)
        live.prompts.refuse(error if isinstance(error, RequestError) else RequestError.unknown_session(live.session.id))
        with anyio.CancelScope(shield=True):
            await self._free(live)

    def _opened(self, live: LiveSession) -> None:
        """Prompts begin when all that was asked about the past is told."""
        live.openings -= 1
        if live.openings == 0 and not live.is_gone:
            live.prompts.resume()

    async def _restore(self, session: Session, place: SessionPlace) -> None:
        header = await read_header(self.store, session.id)
        try:
            self.store.claim(session.id)
        except StoreError as error:
            raise unopenable(session.id, error) from None
        header.cwd, header.roots = place.cwd, place.roots
        if header.mode == "auto":
            header.mode = "ask"
        session.restore(header)

    def _set_up(self, place: SessionPlace) -> SessionSetup:
        try:
            return self.definition.setup_for(place.cwd)
        except SettingsError as error:
            raise RequestError(-32603, "A settings file is broken", {"details": str(error)}) from None

    def _make(self, header: SessionHeader, setup: SessionSetup, place: SessionPlace | None) -> LiveSession:
        session = Session(
            header,
            definition=self.definition,
            setup=setup,
            port=self._port,
            store=self.store,
            timers=self._timers,
            workspace=EditorWorkspace(
                self._port,
                header.session_id,
                cwd=header.cwd,
                roots=header.roots,
                secret_patterns=setup.secret_patterns,
                seconds=self.definition.editor_seconds,
            ),
        )
        live = LiveSession(session, PromptQueue(session, work_on, self._spawn))
        self._live[session.id] = live
        if place is not None:
            self.store.claim(session.id)
            self._serve(session, place)
        return live

    def _serve(self, session: Session, place: SessionPlace) -> None:
        """Attach what lives with the session."""
        service = self._attach(session, place)
        if service is not None:
            session.services.append(service)
            session.toolsets.append(service)

    def fork(self, session_id: str, place: SessionPlace, answer: Answer) -> Work:
        """Make a session that begins with the conversation of another, as it is now, and goes its own way."""
        check_place(place)
        setup = self._set_up(place)
        turn = self._lines.claim(session_id)
        live = self._live.get(session_id)
        journal: AsyncGenerator[Event, None] | None = None
        if live is not None and not live.prompts.is_paused:
            live.session.keep_text()
            journal = self.store.read_journal(session_id)

        async def work() -> None:
            async with turn:
                source = await read_header(self.store, session_id)
                made = self._make(forked(source, place), setup, None)
                try:
                    events = copied(journal or self.store.read_journal(session_id), self.store, made.session)
                    await Replay(made.session, is_live=False, is_shown=False, journal=events).run()
                    await self._begin_life(made.session, place)
                except BaseException as error:
                    await self._give_up(made, error)
                    raise
            self._answer_new(made, answer)

        return work

    # while it lives -------------------------------------------------------------------------------------------------

    def prompt(self, session_id: str, ticket: Ticket) -> PromptQueue:
        """Take a prompt; its ticket will be answered."""
        prompts = self.get(session_id).prompts
        prompts.submit(ticket)
        return prompts

    def cancel(self, session_id: str) -> None:
        """Cancel what runs and what waits; an unknown session, or nothing to cancel, is no matter."""
        live = self._live.get(session_id)
        if live is not None:
            live.prompts.cancel()

    def set_option(self, session_id: str, option_id: str, value: str | bool, answer: Answer) -> Work | None:
        """Change a setting, answer, echo; in that order. It counts from the next decision on.

        Raises `DecodeError` for an unknown option or value.
        """
        live = self.get(session_id)
        if not live.prompts.is_paused:
            return self._change_option(live.session, option_id, value, answer)
        turn = self._lines.claim(session_id)
        live.openings += 1  # a prompt behind it waits for it too
        return lambda: self._set_when_open(live, turn, option_id, value, answer)

    def _change_option(self, session: Session, option_id: str, value: str | bool, answer: Answer) -> Work | None:
        mode = session.mode
        session.set_option(option_id, value)

        def tell() -> None:
            answer(session)
            session.echo_options(mode_changed=session.mode != mode)

        return self._when_kept(tell)

    async def _set_when_open(
        self, live: LiveSession, turn: Place, option_id: str, value: str | bool, answer: Answer
    ) -> None:
        try:
            async with turn:
                if live.is_gone:
                    raise RequestError.unknown_session(live.session.id)
                work = self._change_option(live.session, option_id, value, answer)
            if work is not None:
                await work()
        except DecodeError as error:
            raise RequestError.invalid_params(error.problem, error.path) from None
        finally:
            self._opened(live)

    # the end --------------------------------------------------------------------------------------------------------

    def close(self, session_id: str, answer: Answer) -> Work:
        """Cancel what runs, wait until it has answered, free everything, answer."""
        live = self.get(session_id)
        turn = self._claim_end(live)

        async def work() -> None:
            async with turn:
                if live.is_gone:
                    raise RequestError.unknown_session(session_id)
                await self._end(live)
            answer(live.session)

        return work

    def delete(self, session_id: str, answer: Callable[[], None]) -> Work:
        """Forget a session for good, whether it lives, is stored, or never was."""
        live = self._live.get(session_id)
        turn = self._claim_end(live) if live is not None else self._lines.claim(session_id)

        async def work() -> None:
            async with turn:
                if live is not None and not live.is_gone:
                    await self._end(live)
                try:
                    self.store.claim(session_id)
                except StoreError as error:
                    raise unopenable(session_id, error) from None
                await self.store.delete(session_id)
                self.store.release(session_id)
            answer()

        return work

    def _claim_end(self, live: LiveSession) -> Place:
        """From here on the session is unknown, though it may take a while to end."""
        live.is_ending = True
        live.prompts.cancel()
        return self._lines.claim(live.session.id)

    async def _end(self, live: LiveSession) -> None:
        await live.prompts.wait_idle()
        if self.store.durable:
            await self.store.commit()
        await self._free(live)

    async def _free(self, live: LiveSession) -> None:
        self._forget(live)
        async with anyio.create_task_group() as tasks:
            for service in live.session.services:
                tasks.start_soon(service.aclose)

    def _forget(self, live: LiveSession) -> None:
        if live.is_gone:
            return
        live.is_gone = True
        live.session.leave()
        if self._live.get(live.session.id) is live:
            del self._live[live.session.id]
        self.store.release(live.session.id)
        for model in self.definition.models.values():
            model.forget(live.session.id)

    async def list(self, cwd: str | None, cursor: str | None) -> SessionPage:
        """A page of all sessions that are kept, the newest first."""
        try:
            return await self.store.list_headers(cwd=cwd, cursor=cursor)
        except ValueError:
            raise RequestError.invalid_params("This cursor is not one of ours.", "$.cursor") from None

    async def shutdown(self, *, drain: float, wait_for_tools: bool) -> None:
        """The client is gone: let owed answers be finished for `drain` seconds, then end everything."""
        for live in self._live.values():
            turn = live.prompts.turn
            if drain <= 0 or (turn is not None and turn.waits_for_client and not wait_for_tools):
                live.prompts.cancel()
        with anyio.move_on_after(drain):
            await self._wait_all_idle()
        for live in self._live.values():
            live.prompts.cancel()
        with anyio.move_on_after(self.definition.cancel_grace + 0.5):
            await self._wait_all_idle()
        async with anyio.create_task_group() as tasks:
            for live in list(self._live.values()):
                tasks.start_soon(self._free, live)
        if self._store is not None:
            with anyio.move_on_after(COMMIT_SECONDS):
                await self._store.commit()

    async def _wait_all_idle(self) -> None:
        for live in list(self._live.values()):
            await live.prompts.wait_idle()

    def _when_kept(self, answer: Callable[[], None]) -> Work | None:
        """Answer at once, or when the store has on disk what the answer promises."""
        if not self.store.durable:
            answer()
            return None

        async def work() -> None:
            await self.store.commit()
            answer()

        return work

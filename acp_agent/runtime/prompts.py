"""The prompts of one session: one turn at a time, the rest in line.

A cancel ends the running turn and drops those that wait. A turn that ignores its cancel is abandoned after a grace
period: its books are closed, its prompt is answered, and the next one runs; what it says later is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import anyio

from acp_agent.content import StopReason
from acp_agent.errors import RequestError
from acp_agent.log import get_logger
from acp_agent.runtime.session import Session
from acp_agent.runtime.tickets import Outcome, Ticket
from acp_agent.runtime.timers import Timer
from acp_agent.runtime.turn import Turn

__all__ = ["PromptQueue", "Spawn"]

logger = get_logger("acp_agent.prompts")

Spawn: TypeAlias = Callable[[Callable[[], Awaitable[None]], str], None]
Work: TypeAlias = Callable[[Turn], Awaitable[StopReason | None]]


class PromptQueue:
    """Owns the tickets of a session. `spawn` runs a task that logs what it raises."""

    def __init__(self, session: Session, work: Work, spawn: Spawn) -> None:
        self.session = session
        self.turn: Turn | None = None
        self.is_paused = False
        self._work = work
        self._spawn = spawn
        self._waiting: deque[Ticket] = deque()
        self._grace: Timer | None = None
        self._idle: anyio.Event | None = None

    def submit(self, ticket: Ticket) -> None:
        """Take a prompt: it begins now, in order, or waits its turn. Raises `RequestError` when too many wait."""
        limit = self.session.definition.max_waiting_prompts
        if len(self._waiting) >= limit:
            details = f"This session is busy and {limit} prompts are waiting already; try again when a turn has ended."
            raise RequestError(-32600, "Too many prompts are waiting", {"details": details})
        self._waiting.append(ticket)
        self._next()

    def resume(self) -> None:
        """The session is open: begin with what came meanwhile."""
        self.is_paused = False
        self._next()

    def refuse(self, error: RequestError) -> None:
        """The session could not be opened: so nothing of it can be done."""
        while self._waiting:
            self._waiting.popleft().drop(error)

    def cancel(self) -> None:
        """End the running turn, which takes its time, and drop what waits."""
        if self.turn is not None:
            self.turn.cancel()
        waiting, self._waiting = self._waiting, deque()
        for ticket in waiting:
            self.session.after_held(ticket.drop)

    def cancel_ticket(self, ticket: Ticket) -> None:
        """End this one prompt, wherever it is."""
        if self.turn is not None and self.turn.ticket is ticket:
            self.turn.cancel()
        elif ticket in self._waiting:
            self._waiting.remove(ticket)
            self.session.after_held(ticket.drop)

    async def wait_idle(self) -> None:
        """Return when no turn runs."""
        while self.turn is not None:
            if self._idle is None:
                self._idle = anyio.Event()
            await self._idle.wait()

    def _next(self) -> None:
        if self.turn is not None or self.is_paused or not self._waiting:
            return
        turn = self.turn = Turn(self.session, self._waiting.popleft())
        turn.on_cancelled = self._start_grace
        try:
            turn.insert()
            self._spawn(lambda: self._run(turn), "turn")
        except BaseException:  # a store that raises where it must not: this prompt fails, those behind it go on
            turn.is_over = True
            turn.ticket.finish(Outcome(error=RequestError.internal()))
            self._done(turn)
            raise

    async def _run(self, turn: Turn) -> None:
        try:
            await turn.run(self._work)
        finally:
            if not turn.is_over:
                try:
                    await turn.settle()
                finally:
                    self._done(turn)

    def _done(self, turn: Turn) -> None:
        if self.turn is turn:
            self.turn = None
            if self._grace is not None:
                self._grace.cancel()
                self._grace = None
            self._next()
            if self.turn is None and self._idle is not None:
                self._idle.set()
                self._idle = None

    def _start_grace(self) -> None:
        turn = self.turn
        seconds = self.session.definition.cancel_grace
        if turn is not None:
            self._grace = self.session.timers.call_later(seconds, lambda: self._abandon(turn))

    def _abandon(self, turn: Turn) -> None:
        if turn.is_over:
            return  # it is settling: that is bounded by itself
        logger.warning("a turn ignores its cancel and is abandoned", session=self.session.id)
        for call in turn.close():
            self._spawn(partial(turn.tidy, call), "tidy")
        turn.answer()
        self._done(turn)

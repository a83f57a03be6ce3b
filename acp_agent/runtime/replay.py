"""Bringing a session back from its journal: the model's history, and for a load all that was shown.

A journal that ends in the middle of a turn (a crash) is closed here: open calls failed, the history made whole.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from anyio.lowlevel import checkpoint

from acp_agent.events import (
    Event,
    HistoryAdded,
    ModeChanged,
    OptionsChanged,
    PromptInserted,
    SessionInfoChanged,
    ToolCallChanged,
    ToolCallOpened,
    TurnEnded,
    UsageChanged,
)
from acp_agent.history import HistoryMessage, missing_results
from acp_agent.runtime.calls import text_content
from acp_agent.runtime.session import Session

__all__ = ["Replay"]

BREATH = 64
CUT = "Interrupted: the agent stopped before this finished."
# Their last value is what counts; it is told once, behind the conversation.
STATE_EVENTS = (ModeChanged, OptionsChanged, SessionInfoChanged, UsageChanged)


class Replay:
    """One reading of a session's journal. `is_live` says that its turns run here: then nothing needs repair.

    `journal` is one that was begun earlier, by a client that asked earlier; else it is read as it is now.
    """

    def __init__(
        self, session: Session, *, is_live: bool, is_shown: bool, journal: AsyncGenerator[Event, None] | None = None
    ) -> None:
        self.session = session
        self.journal = journal or session.store.read_journal(session.id)
        self.is_live = is_live
        self.is_shown = is_shown
        self._open: dict[str, ToolCallOpened] = {}
        self._in_turn = False
        self._history: list[HistoryMessage] = []

    async def run(self) -> None:
        """Read it all, streaming; then mend what was cut, and tell the state."""
        session = self.session
        seen = 0
        async with aclosing(self.journal) as events:
            async for event in events:
                self._note(event)
                if self.is_shown and not isinstance(event, STATE_EVENTS):
                    session.port.replay(session.id, event)
                seen += 1
                if session.port.full:
                    await session.port.wait_for_room()
                elif seen % BREATH == 0:
                    await checkpoint()
        if not self.is_live:
            session.history = self._history
            self._mend()
        if self.is_shown:
            self._tell_state()

    def _note(self, event: Event) -> None:
        match event:
            case HistoryAdded(message=message, replaces=replaces):
                if replaces:
                    self._history.clear()
                if message is not None:
                    self._history.append(message)
            case PromptInserted():
                self._in_turn = True
            case TurnEnded():
                self._in_turn = False
            case ToolCallOpened(tool_call_id=call_id):
                self._open[call_id] = event
            case ToolCallChanged(tool_call_id=call_id, status="completed" | "failed"):
                self._open.pop(call_id, None)

    def _mend(self) -> None:
        """Close a turn that has no end."""
        repairs: list[Event] = [
            ToolCallChanged(call_id, "failed", title=call.title, content=text_content(CUT))
            for call_id, call in self._open.items()
        ]
        for event in repairs:
            if self.is_shown:
                self.session.port.replay(self.session.id, event)
        if self._in_turn:
            results = missing_results(self._history)
            self._history.extend(results)
            repairs.extend(HistoryAdded(result) for result in results)
            repairs.append(TurnEnded(error=CUT))
        if repairs:
            self.session.store.append(self.session.id, repairs)

    def _tell_state(self) -> None:
        session, header = self.session, self.session.header
        state: list[Event] = []
        if header.title is not None:
            state.append(SessionInfoChanged(title=header.title, updated_at=header.updated_at))
        if header.used is not None and header.size is not None:
            state.append(UsageChanged(header.used, header.size, header.cost))
        options = session.options.as_list()
        if options:
            state.extend([ModeChanged(session.mode), OptionsChanged(options)])
        for event in state:
            session.port.replay(session.id, event)
        session.announce_commands()

"""A prompt as a ticket with three ends: it is inserted, and then finished; or it is dropped before.

Protocol v1 answers a prompt when it is finished or dropped, v2 when it is inserted or dropped; the runtime knows
neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from acp_agent.content import ContentBlock, StopReason
from acp_agent.errors import RequestError

__all__ = ["Outcome", "Ticket"]


class Outcome(Struct, frozen=True):
    """How a turn ended: with a reason, or with an error for the user."""

    stop_reason: StopReason | None = None
    error: RequestError | None = None


def _ignore(_: Any) -> None:
    return


class Ticket:
    """One prompt on its way. Each callback is called at most once, from the loop, and must not raise."""

    def __init__(
        self,
        content: list[ContentBlock],
        *,
        meta: dict[str, Any] | None = None,
        on_inserted: Callable[[str], None] = _ignore,
        on_finished: Callable[[Outcome], None] = _ignore,
        on_dropped: Callable[[RequestError | None], None] = _ignore,
    ) -> None:
        self.content = content
        self.meta = meta
        self.message_id = ""
        self.is_over = False
        self._on_inserted = on_inserted
        self._on_finished = on_finished
        self._on_dropped = on_dropped

    def insert(self, message_id: str) -> None:
        self.message_id = message_id
        self._on_inserted(message_id)

    def finish(self, outcome: Outcome) -> None:
        if not self.is_over:
            self.is_over = True
            self._on_finished(outcome)

    def drop(self, error: RequestError | None = None) -> None:
        """Never inserted: cancelled while it waited, or with `error` because its session could not be opened."""
        if not self.is_over:
            self.is_over = True
            self._on_dropped(error)

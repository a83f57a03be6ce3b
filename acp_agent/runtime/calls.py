"""One tool call as the user sees it. The rule it owns: the ladder.

A call is opened first, once; its status only moves up pending -> in_progress -> completed | failed; while its question
is open nothing is said of it; after its end nothing is said at all. Progress is coalesced: at most four updates a
second, always the latest, never while the client has too much to read. A silent call may send a sign of life now and
then (`heartbeat`), for clients that give up on quiet ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import anyio
import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from acp_agent.content import ContentItem, Location, TerminalItem, TextContent, ToolContent, ToolStatus, clean_struct
from acp_agent.events import Event, ToolCallChanged, ToolCallOpened, ToolCallProgress
from acp_agent.runtime.client import PermissionOption, PermissionQuestion
from acp_agent.runtime.timers import Timer, Timers
from acp_agent.tools.base import Proposal, ToolOutput

__all__ = ["Call", "CallHost", "text_content"]

PROGRESS_SECONDS = 0.25


class CallHost(Protocol):
    """What a call needs of its turn."""

    timers: Timers

    @property
    def heartbeat(self) -> float | None: ...

    @property
    def full(self) -> bool: ...

    def show(self, event: Event, *, kept: Event | None = None) -> None: ...


def _readable(key: str, value: Any) -> Any:
    """Some editors show these two as they are, and fail if they are not texts; a model may have written anything."""
    if key in ("command", "description") and not isinstance(value, str):
        return msgspec.json.encode(value).decode()
    return value


def text_content(text: str) -> list[ToolContent]:
    return [ContentItem(TextContent(text))]


class Call:
    """The visible half of a call. `status` is what the client was last told."""

    def __init__(self, host: CallHost, call_id: str, name: str, proposal: Proposal, raw_input: dict[str, Any]) -> None:
        self.id = call_id
        self.name = name
        self.proposal = proposal
        self.raw_input = {key: _readable(key, value) for key, value in raw_input.items()}
        self.status: ToolStatus = "pending"
        self.on_finished: list[Callable[[], Awaitable[None]]] = []
        self._host = host
        self._asking = False
        self._shown: list[ToolContent] = list(proposal.content)
        self._places: list[Location] | UnsetType = UNSET  # that progress has shown: a replay has no progress
        self._waiting: ToolCallProgress | None = None
        self._timer: Timer | None = None
        self._heart: Timer | None = None
        self._next_progress = 0.0

    @property
    def is_over(self) -> bool:
        return self.status in ("completed", "failed")

    def open(self) -> None:
        """Announce it: the first that the client hears of this id."""
        proposal = self.proposal
        self._host.show(
            ToolCallOpened(
                self.id,
                proposal.title,
                self.name,
                kind=proposal.kind,
                content=list(proposal.content),
                locations=list(proposal.locations),
                raw_input=self.raw_input,
            )
        )

    def ask(self, options: list[PermissionOption]) -> PermissionQuestion:
        """The question that shows all there is to judge. Nothing else is said of this call until `answered`."""
        self._asking = True
        proposal = self.proposal
        self._shown = list(proposal.content)
        question = PermissionQuestion(
            tool_call_id=self.id,
            title=proposal.title,
            name=self.name,
            kind=proposal.kind,
            status=self.status,
            content=list(proposal.content),
            locations=list(proposal.locations),
            raw_input=self.raw_input,
            options=options,
        )
        return clean_struct(question)

    def answered(self) -> None:
        self._asking = False

    def start(self) -> None:
        """It runs: the content that was to be judged stays on show."""
        if self.status == "pending":
            self.status = "in_progress"
            shown = list(self.proposal.content) or UNSET
            locations = list(self.proposal.locations) or UNSET
            title = self.proposal.title
            self._host.show(ToolCallChanged(self.id, "in_progress", title=title, content=shown, locations=locations))
            self._beat_later()

    def report(
        self, content: Sequence[ToolContent] | str | None = None, *, locations: Sequence[Location] | None = None
    ) -> None:
        """Show `content` in place of what was shown; now, or within a quarter of a second."""
        if self.status != "in_progress" or self._asking:
            return
        if content is not None:
            self._shown = text_content(content) if isinstance(content, str) else list(content)
        if locations is not None:
            self._places = list(locations)
        self._waiting = ToolCallProgress(self.id, content=self._shown, locations=self._places)
        self._send_progress()

    def finish(self, output: ToolOutput) -> None:
        """The end of the ladder, with content that stands on its own."""
        if self.is_over:
            return
        self.status = "failed" if output.failed else "completed"
        self._asking = False
        self._drop_progress()
        event = ToolCallChanged(
            self.id,
            self.status,
            title=self.proposal.title,
            content=list(output.content),
            locations=self._places if output.locations is UNSET else output.locations,
            raw_output=output.raw_output,
        )
        self._host.show(event, kept=_without_terminals(event, output))

    def fail(self, text: str) -> None:
        """Failed, with a short text behind what was on show; a diff that was judged stays first."""
        if not self.is_over:
            kept = [item for item in self._shown if not isinstance(item, ContentItem)]
            self.finish(ToolOutput(content=[*kept, *text_content(text)], failed=True))

    def _send_progress(self) -> None:
        if self._timer is not None:
            return
        now = anyio.current_time()
        if now < self._next_progress or self._host.full:
            wait = max(self._next_progress - now, PROGRESS_SECONDS / 5)
            self._timer = self._host.timers.call_later(wait, self._progress_due)
            return
        if self._waiting is not None:
            self._next_progress = now + PROGRESS_SECONDS
            waiting, self._waiting = self._waiting, None
            self._host.show(waiting)

    def _progress_due(self) -> None:
        self._timer = None
        if self._waiting is not None and not self.is_over:
            self._send_progress()

    def _drop_progress(self) -> None:
        self._waiting = None
        for timer in (self._timer, self._heart):
            if timer is not None:
                timer.cancel()
        self._timer = self._heart = None

    def _beat_later(self) -> None:
        if self._host.heartbeat is not None:
            self._heart = self._host.timers.call_later(self._host.heartbeat, self._beat)

    def _beat(self) -> None:
        if not self._host.full:
            self._host.show(ToolCallProgress(self.id))
        self._beat_later()


def _without_terminals(event: ToolCallChanged, output: ToolOutput) -> ToolCallChanged | None:
    """What the journal keeps: a terminal's id means nothing later, so its text stands in its place."""
    if not any(isinstance(item, TerminalItem) for item in output.content):
        return None
    told: list[ToolContent] = [ContentItem(block) for block in output.told or ()]
    content: list[ToolContent] = []
    for item in output.content:
        content.extend(told if isinstance(item, TerminalItem) else [item])
    return replace(event, content=content)

"""What came of a prompt: the updates between its request and its response, and the sum of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any

from acp_agent.errors import RequestError
from acp_agent.testing.link import Asked
from acp_agent.testing.transcript import Update
from acp_agent.testing.view import ToolCallRow, ToolCallView

__all__ = ["PromptHandle", "PromptResult"]


class PromptResult:
    """A prompt that was answered: with a `stop_reason`, or with an `error`.

    `updates` are all of the session's while this prompt ran (not while it waited behind another one).
    """

    def __init__(self, stop_reason: str | None, error: RequestError | None, updates: list[Update]) -> None:
        self.stop_reason = stop_reason
        self.error = error
        self.updates = updates

    @property
    def text(self) -> str:
        """What the agent said."""
        return self._joined("agent_message_chunk")

    @property
    def thought(self) -> str:
        """What the agent thought aloud."""
        return self._joined("agent_thought_chunk")

    @cached_property
    def tool_calls(self) -> list[ToolCallRow]:
        """The tool calls as they look at the end, in the order of their appearance."""
        return ToolCallView(self.updates).rows

    @property
    def tool_call(self) -> ToolCallRow:
        """The one tool call there was. Raises `LookupError` if there was none, or more."""
        if len(self.tool_calls) != 1:
            titles = ", ".join(row.title for row in self.tool_calls) or "none"
            raise LookupError(f"Not one tool call, but {len(self.tool_calls)}: {titles}")
        return self.tool_calls[0]

    @property
    def tool_statuses(self) -> list[str]:
        """The statuses that were sent, in order, call after call; repeated ones once."""
        return [status for row in self.tool_calls for status in row.statuses]

    @property
    def plan(self) -> list[dict[str, Any]] | None:
        """The entries of the last plan."""
        entries: list[dict[str, Any]] | None = self._last("plan", "entries")
        return entries

    @property
    def title(self) -> str | None:
        """The session's title, if it was told."""
        title: str | None = self._last("session_info_update", "title")
        return title

    @property
    def usage(self) -> dict[str, Any] | None:
        """The last `usage_update`, whole."""
        found = [update.fields for update in self.updates if update.kind == "usage_update"]
        return found[-1] if found else None

    def _joined(self, kind: str) -> str:
        return "".join(update.text for update in self.updates if update.kind == kind)

    def _last(self, kind: str, name: str) -> Any:
        found = [update.fields[name] for update in self.updates if update.kind == kind and name in update.fields]
        return found[-1] if found else None

    def __repr__(self) -> str:
        end = self.stop_reason if self.error is None else f"error {self.error.code}: {self.error}"
        return f"<PromptResult {end}, text {self.text!r}, tools {self.tool_statuses}>"


class PromptHandle:
    """A prompt that was sent. `wait` for its end; meanwhile the test may do what it likes."""

    def __init__(self, session_id: str, asked: Asked, wait: Callable[[Asked], Awaitable[Any]]) -> None:
        self.session_id = session_id
        self.asked = asked
        self.updates: list[Update] = []
        self._wait = wait

    @property
    def id(self) -> int | str:
        """The id of the request, as `$/cancel_request` names it."""
        return self.asked.id

    @property
    def is_over(self) -> bool:
        return self.asked.is_over

    async def wait(self) -> PromptResult:
        """The result, an error of the agent's included. Raises `ConnectionClosed` if the agent ended without one."""
        try:
            result = await self._wait(self.asked)
        except RequestError as error:
            return PromptResult(None, error, self.updates)
        return PromptResult((result or {}).get("stopReason"), None, self.updates)

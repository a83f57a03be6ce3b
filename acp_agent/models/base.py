"""The seam of a model: a request in, an async generator of events out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from acp_agent.history import HistoryMessage, ToolUse

__all__ = [
    "Finish",
    "Model",
    "ModelEvent",
    "ModelRequest",
    "TextDelta",
    "ThoughtDelta",
    "ToolSpec",
    "ToolUse",
    "UsageDelta",
]


class ToolSpec(Struct, frozen=True):
    """A tool as a model is told of it. `input_schema` is a JSON Schema of type object, without `$ref`."""

    name: str
    description: str
    input_schema: dict[str, Any]


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One step: the whole history, which is always whole, and what the model may use."""

    session_id: str
    messages: list[HistoryMessage]
    tools: list[ToolSpec] = field(default_factory=list)
    system: str = ""
    thought_level: str | None = None


class TextDelta(Struct, frozen=True, gc=False):
    """The next piece of the answer."""

    text: str


class ThoughtDelta(Struct, frozen=True, gc=False):
    """The next piece of what the model thinks aloud."""

    text: str


class UsageDelta(Struct, frozen=True):
    """Tokens of this one request, as the provider counted them; the last one given stands. `cost` is in USD."""

    input_tokens: int
    output_tokens: int
    context_window: int | None = None
    cost: float | None = None


class Finish(Struct, frozen=True, omit_defaults=True):
    """The reply is over, and with any reason but `end_turn` the turn too.

    `native` goes back to the provider with the history (`AssistantMessage.native`).
    """

    reason: Literal["end_turn", "max_tokens", "max_turn_requests", "refusal"] = "end_turn"
    native: dict[str, Any] | None = None


ModelEvent: TypeAlias = TextDelta | ThoughtDelta | ToolUse | UsageDelta | Finish


class Model(ABC):
    """A model adapter. Subclass it and write `stream`.

    `name` is shown to users; `context_window` is in tokens, None when unknown.
    `thought_levels` names the levels of effort the model has, the default one first.
    """

    name: str = "model"
    context_window: int | None = None
    thought_levels: tuple[str, ...] = ()

    @abstractmethod
    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the reply's events in order. Raise `ModelError` when the provider fails.

        Leave by cancellation at any await, without a connection or a task left behind. Never yield inside a
        cancel scope or a task group.
        """

    def forget(self, session_id: str) -> None:
        """A session was closed here: let go of what was kept for it."""
        return

    async def aclose(self) -> None:
        """Give back what is shared by all requests. Called once, at the end."""
        return

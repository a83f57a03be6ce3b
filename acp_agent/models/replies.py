"""One reply, put together from a provider's stream: each piece of text exactly once, each tool use whole."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Literal

import structlog
from msgspec import Struct, field

from acp_agent.content import clean_text
from acp_agent.history import ToolUse
from acp_agent.models.base import Finish, ModelEvent, TextDelta, ThoughtDelta, UsageDelta
from acp_agent.models.failures import broken_off, unreadable
from acp_agent.models.provider import read_json

__all__ = ["Reply", "stop_reason"]

Reason = Literal["end_turn", "max_tokens", "refusal"]
SHORTEST_REPEAT = 8

log = structlog.get_logger(__name__)


class _Voice:
    """The text of a reply, or its thoughts: white space waits for words, and a repetition of the whole is dropped."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._held = ""
        self.spoke = False

    def take(self, piece: str, *, closing: bool = False) -> str:
        """What of `piece` is to be shown now. `closing` says that the provider ends the reply with it."""
        if not piece or self._repeats(piece, closing):
            return ""
        self._pieces.append(piece)
        self._length += len(piece)
        if not self.spoke and piece.isspace():
            self._held += piece
            return ""
        shown, self._held, self.spoke = self._held + piece, "", True
        return shown

    def _repeats(self, piece: str, closing: bool) -> bool:
        """Whether a provider that streamed the message in pieces now sends it again as a whole."""
        if len(piece) != self._length or len(self._pieces) < 2:
            return False
        likely = closing or (len(piece) >= SHORTEST_REPEAT and any(map(str.isalpha, piece)))
        return likely and piece == "".join(self._pieces)


class _Call(Struct):
    """A tool use whose arguments are still coming."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    given: dict[str, Any] | None = None  # the arguments as an object, from servers that send them so


class Reply:
    """What a model said so far in one request. The adapter feeds it; what is to be shown comes back.

    `tool_names` maps the names that the provider was given to the tools' own.
    """

    def __init__(self, label: str, tool_names: Mapping[str, str]) -> None:
        self._label = label
        self._tool_names = tool_names
        self._text = _Voice()
        self._thought = _Voice()
        self._calls: dict[Hashable, _Call] = {}
        self.reason: Reason | None = None  # set when the provider says that the reply is over
        self._counted = (0, 0)

    @property
    def has_text(self) -> bool:
        return self._text.spoke

    def say(self, piece: str | None, *, closing: bool = False) -> Iterator[TextDelta]:
        """The next piece of the answer. What comes after the end is a repetition, and is dropped."""
        if piece and self.reason is None and (shown := self._text.take(clean_text(piece), closing=closing)):
            yield TextDelta(shown)

    def think(self, piece: str | None) -> Iterator[ThoughtDelta]:
        """The next piece of thinking aloud."""
        if piece and self.reason is None and (shown := self._thought.take(clean_text(piece))):
            yield ThoughtDelta(shown)

    def call(
        self, key: Hashable, *, id: str | None = None, name: str | None = None, arguments: str | dict[str, Any] | None
    ) -> None:
        """A part of the tool use `key`: id and name count once, arguments are pieces of a JSON text."""
        call = self._calls.setdefault(key, _Call())
        call.id = call.id or id or ""
        call.name = call.name or name or ""
        if isinstance(arguments, str):
            call.pieces.append(arguments)
        elif arguments is not None:
            call.given = arguments

    @property
    def calls(self) -> int:
        """How many tool uses have begun."""
        return len(self._calls)

    def call_id(self, key: Hashable) -> str | None:
        """The id that the tool use `key` has so far; None when there is no such one."""
        call = self._calls.get(key)
        return call.id if call else None

    def count(self, input_tokens: int | None, output_tokens: int | None) -> None:
        """The provider's own count for this request, the last one given stands. Nothing counted is nothing known."""
        self._counted = (input_tokens or 0, output_tokens or 0)

    def close(self, native: dict[str, Any] | None, window: int | None) -> Iterator[ModelEvent]:
        """The tool uses, the usage and the end. Raises `ModelError` for a stream that ended before its reply."""
        if self.reason is None:
            if not (self._text.spoke or self._thought.spoke or self._calls):
                raise unreadable(self._label, "there is nothing in it")
            raise broken_off(self._label)
        for call in self._calls.values():
            yield self._tool_use(call)
        if any(self._counted):
            yield UsageDelta(*self._counted, context_window=window)
        yield Finish(self.reason, native)

    def _tool_use(self, call: _Call) -> ToolUse:
        name = self._tool_names.get(call.name, clean_text(call.name))
        arguments, problem = ({}, "") if call.given is None else (call.given, "")
        if call.given is None:
            arguments, problem = _read_arguments("".join(call.pieces))
        if problem and self.reason == "max_tokens":
            problem = "The arguments were cut off, because the reply reached its limit of tokens."
        if not name:
            name, problem = "unnamed", "The call does not say which tool is meant."
        return ToolUse(name, arguments, id=clean_text(call.id), problem=problem)


def stop_reason(table: Mapping[str, Reason], given: str) -> Reason:
    """The provider's reason in our words; one that is not in `table` ends the turn, and is logged."""
    reason = table.get(given)
    if reason is None:
        log.warning("unknown_stop_reason", reason=given)
        return "end_turn"
    return reason


def _read_arguments(text: str) -> tuple[dict[str, Any], str]:
    """The arguments object, or what is wrong with it, in words for the model."""
    if not text.strip():
        return {}, ""
    try:
        value = read_json(text)
    except ValueError as error:
        return {}, f"The arguments are not one JSON object: {error}."
    except RecursionError:
        return {}, "The arguments are nested too deeply."
    if not isinstance(value, dict):
        return {}, "The arguments are JSON, but not an object."
    return value, ""

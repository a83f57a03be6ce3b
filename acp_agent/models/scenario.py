"""The scenario file: what a model would have said, in TOML, checked as a whole before anything is served.

    name = "deploy"                # shown as the model's name; optional
    prompts = ["Deploy, please"]   # what a demo says for the user, in order; optional

    [[turns]]                      # one prompt of the user's
    when = "(?i)deploy"            # optional: a Python regex, searched in the prompt's text
      [[turns.replies]]            # one response of the model; the next one follows the tool results
      after = "completed"          # optional: only if the last tool result was "completed" or "failed"
      steps = [ ... ]              # what is said, in order

The steps, by `type`, with their keys (a `?` marks an optional one):

| type | keys |
|---|---|
| `text` | `text`, `repeat?` (so many chunks, default 1), `every?` (seconds between them, default 0) |
| `thought` | `text` |
| `tool_use` | `name`, `arguments?` (a table of JSON values), `id?` (as a provider would give) |
| `usage` | `input_tokens`, `output_tokens`, `context_window?` (all in tokens), `cost?` (USD) |
| `sleep` | `seconds` (`inf` waits until the turn is cancelled) |
| `error` | `message`, `kind?`, `status?`, `retryable?`: the fields of `ModelError` |
| `finish` | `reason?`: `end_turn` (default), `max_tokens`, `max_turn_requests` or `refusal` |

A reply without `finish` ends as `end_turn` does; what stands behind a `finish` or an `error` is not played. The
protocol's fifth stop reason, `cancelled`, is the user's doing and cannot be scripted.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta, Struct, field

from acp_agent.errors import ScenarioError
from acp_agent.toml_lines import KeyPath
from acp_agent.toml_text import Fault, TomlText, explain

__all__ = [
    "ErrorStep",
    "FinishStep",
    "Scenario",
    "ScriptedReply",
    "ScriptedTurn",
    "SleepStep",
    "Step",
    "TextStep",
    "ThoughtStep",
    "ToolUseStep",
    "UsageStep",
]

Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
Tokens: TypeAlias = Annotated[int, Meta(ge=0)]
FinishReason: TypeAlias = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal"]
Outcome: TypeAlias = Literal["completed", "failed"]
ErrorKind: TypeAlias = Literal[
    "auth",
    "not_found",
    "rate_limit",
    "overloaded",
    "timeout",
    "connection",
    "bad_request",
    "context_overflow",
    "protocol",
    "other",
]


class _Step(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    """One thing that a model does."""


class TextStep(_Step, frozen=True, tag="text"):
    """`repeat` chunks of `text`, with `every` seconds between them."""

    text: str
    repeat: Annotated[int, Meta(ge=1)] = 1
    every: Seconds = 0


class ThoughtStep(_Step, frozen=True, tag="thought"):
    """A piece of what the model thinks aloud."""

    text: str


class ToolUseStep(_Step, frozen=True, tag="tool_use"):
    """A call of one of the agent's tools; the executor, the question and the tool are real."""

    name: Annotated[str, Meta(min_length=1)]
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""


class UsageStep(_Step, frozen=True, tag="usage"):
    """What the provider would have counted for this reply."""

    input_tokens: Tokens
    output_tokens: Tokens
    context_window: Annotated[int, Meta(ge=1)] | None = None
    cost: Annotated[float, Meta(ge=0)] | None = None


class SleepStep(_Step, frozen=True, tag="sleep"):
    """A pause; cancellable, as all waiting is."""

    seconds: Seconds


class ErrorStep(_Step, frozen=True, tag="error"):
    """The provider fails: raised as a `ModelError`."""

    message: Annotated[str, Meta(min_length=1)]
    kind: ErrorKind = "other"
    status: int | None = None
    retryable: bool = False


class FinishStep(_Step, frozen=True, tag="finish"):
    """The reply is over, for this reason."""

    reason: FinishReason = "end_turn"


Step: TypeAlias = TextStep | ThoughtStep | ToolUseStep | UsageStep | SleepStep | ErrorStep | FinishStep


class ScriptedReply(Struct, frozen=True, forbid_unknown_fields=True):
    """One response of the model. With `after`, only if that is how the last tool call went."""

    steps: Annotated[list[Step], Meta(min_length=1)]
    after: Outcome | None = None


class ScriptedTurn(Struct, frozen=True, forbid_unknown_fields=True):
    """What follows one prompt. With `when`, any prompt that it is found in, any number of times."""

    replies: Annotated[list[ScriptedReply], Meta(min_length=1)]
    when: re.Pattern[str] | None = None


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """A script for `ScriptedModel`. `prompts` is what a demo says in the user's place, in order."""

    turns: Annotated[list[ScriptedTurn], Meta(min_length=1)]
    name: Annotated[str, Meta(min_length=1)] = "scenario"
    prompts: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, path: str | Path) -> Scenario:
        """The scenario in this file. Raises `ScenarioError`, also when it cannot be read."""
        return cls._of(TomlText.load(path, ScenarioError))

    @classmethod
    def parse(cls, text: str, *, file: str = "<scenario>") -> Scenario:
        """The scenario in this text. Raises `ScenarioError` naming `file`, the line and the key."""
        return cls._of(TomlText.parse(text, file, ScenarioError))

    @classmethod
    def _of(cls, toml: TomlText) -> Scenario:
        fault: Fault | None
        try:
            scenario = msgspec.convert(toml.values, cls, dec_hook=_compile_regex)
        except msgspec.ValidationError as problem:
            fault = explain(str(problem), _wrong_choice)
        else:
            fault = next(_unplayable(scenario), None)
            if fault is None:
                return scenario
        raise toml.fault(*fault)

    @classmethod
    def builtin(cls) -> Scenario:
        """What `acp-agent demo` plays, and what is served when no model is configured."""
        return cls.load(Path(__file__).with_name("builtin.toml"))


def _compile_regex(kind: type, value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
    try:
        return re.compile(value)
    except (re.error, OverflowError, RecursionError) as problem:
        raise ValueError(f"is not a regular expression: {problem}") from None


# What msgspec says, and what the author of a scenario reads.
_CHOICES = {
    "type": tuple(str(step.__struct_config__.tag) for step in get_args(Step)),
    "reason": get_args(FinishReason),
    "after": get_args(Outcome),
    "kind": get_args(ErrorKind),
}
_NOT_A_MODELS = {"cancelled": "is the user's doing, not a model's to give"}


def _wrong_choice(key: str, value: str) -> str:
    if key == "reason" and value in _NOT_A_MODELS:
        return f"{value!r} {_NOT_A_MODELS[value]}"
    return f"{value!r} is not one of {', '.join(_CHOICES[key])}"


def _unplayable(scenario: Scenario) -> Iterator[Fault]:
    """What has the right types and can still not be played."""
    for number, turn in enumerate(scenario.turns):
        for index, reply in enumerate(turn.replies):
            for position, step in enumerate(reply.steps):
                if isinstance(step, ToolUseStep):
                    path = ("turns", number, "replies", index, "steps", position, "arguments")
                    yield from _not_json(step.arguments, path)


def _not_json(value: object, path: KeyPath) -> Iterator[Fault]:
    """TOML has more than JSON has: dates, times, and floats that are no numbers."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _not_json(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _not_json(item, (*path, index))
    elif isinstance(value, datetime.date | datetime.time) or (isinstance(value, float) and not math.isfinite(value)):
        yield path, "arguments are JSON, which has no dates, times, inf or nan; write a string"

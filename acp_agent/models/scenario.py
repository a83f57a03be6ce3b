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
| `finish` | `reason?`: `end_turn` (default), `max_tokens` or `refusal` |

A reply without `finish` ends as `end_turn` does. The protocol has two more stop reasons, which are not a model's to
give and are refused here: `max_turn_requests` is the agent's own limit, `cancelled` is the user's doing.

What could never be played is refused too: steps behind a `finish` or an `error`, a first reply with `after`, and
replies behind one that uses no tool, since the turn ends there.
"""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta, Struct, field

from acp_agent.errors import ScenarioError
from acp_agent.models.toml_lines import KeyPath, line_of, lines_of_keys

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
FinishReason: TypeAlias = Literal["end_turn", "max_tokens", "refusal"]
Fault: TypeAlias = tuple[KeyPath, str]  # where, and what is wrong there
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
        file = str(path)
        try:
            data = Path(path).read_bytes()
        except OSError as problem:
            raise ScenarioError(f"cannot be read: {problem.strerror or problem}", file=file) from None
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as problem:
            line = data.count(b"\n", 0, problem.start) + 1
            raise ScenarioError("is not UTF-8", file=file, line=line) from None
        return cls.parse(text, file=file)

    @classmethod
    def parse(cls, text: str, *, file: str = "<scenario>") -> Scenario:
        """The scenario in this text. Raises `ScenarioError` naming `file`, the line and the key."""
        fault: Fault | None
        try:
            scenario = msgspec.convert(_parse_toml(text, file), cls, dec_hook=_compile_regex)
        except msgspec.ValidationError as problem:
            fault = _explain(str(problem))
        else:
            fault = next(_unplayable(scenario), None)
            if fault is None:
                return scenario
        path, sentence = fault
        line = line_of(path, lines_of_keys(text)) or 1
        raise ScenarioError(sentence, file=file, line=line, key=_spell(path))

    @classmethod
    def builtin(cls) -> Scenario:
        """What `acp-agent demo` plays, and what is served when no model is configured."""
        return cls.load(Path(__file__).with_name("builtin.toml"))


def _parse_toml(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ScenarioError("is nested too deeply", file=file) from None
    except tomllib.TOMLDecodeError as problem:
        sentence, _, place = str(problem).partition(" (at ")
        known = re.match(r"line (\d+)", place)
        line = int(known[1]) if known else text.rstrip().count("\n") + 1
        raise ScenarioError(f"is not TOML: {sentence}", file=file, line=line) from None


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
_NOT_A_MODELS = {
    "max_turn_requests": "is the agent's own limit, not a model's to give",
    "cancelled": "is the user's doing, not a model's to give",
}


def _explain(message: str) -> Fault:
    """The place and the problem in an error of msgspec's: `Expected ... - at `$.turns[0].when``."""
    problem, found, place = message.rpartition(" - at `$")
    problem = problem if found else message
    path: KeyPath = tuple(int(index) if index else key for key, index in re.findall(r"\.(\w+)|\[(\d+)\]", place))
    if unknown := re.fullmatch(r"Object contains unknown field `(.+)`", problem, re.DOTALL):
        return (*path, unknown[1]), "is not a key of this table"
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", problem):
        return (*path, missing[1]), "is missing"
    if value := re.fullmatch(r"Invalid (?:enum )?value '(.*)'", problem, re.DOTALL):
        return path, _wrong_choice(str(path[-1]), value[1])
    if problem.startswith(("Expected `array` of length", "Expected `str` of length")):
        return path, "is empty"
    return path, problem.replace("`object`", "`table`").replace("Expected", "expected", 1)


def _wrong_choice(key: str, value: str) -> str:
    if key == "reason" and value in _NOT_A_MODELS:
        return f"{value!r} {_NOT_A_MODELS[value]}"
    return f"{value!r} is not one of {', '.join(_CHOICES[key])}"


def _spell(path: KeyPath) -> str:
    """`turns[0].replies[1].after`: indexes count from 0, as in the errors of most tools."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _unplayable(scenario: Scenario) -> Iterator[Fault]:
    """What has the right types and can still not be meant."""
    for number, turn in enumerate(scenario.turns):
        path: KeyPath = ("turns", number, "replies")
        if turn.replies[0].after:
            yield (*path, 0, "after"), "the first reply follows the prompt, not a tool result"
        for index, reply in enumerate(turn.replies):
            yield from _unplayable_steps(reply, (*path, index, "steps"))
            if index + 1 < len(turn.replies) and _always_ends_turn(reply):
                yield (*path, index + 1), "is never played: the reply before it uses no tool, so the turn ends there"


def _always_ends_turn(reply: ScriptedReply) -> bool:
    """Whether no further reply can follow. A provider failure may be tried again, and then the next one follows."""
    return reply.after is None and not any(isinstance(step, ToolUseStep | ErrorStep) for step in reply.steps)


def _unplayable_steps(reply: ScriptedReply, path: KeyPath) -> Iterator[Fault]:
    for index, step in enumerate(reply.steps):
        if index and isinstance(reply.steps[index - 1], FinishStep | ErrorStep):
            yield (*path, index), "is never played: the reply is over before it"
        if isinstance(step, ToolUseStep):
            yield from _not_json(step.arguments, (*path, index, "arguments"))


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

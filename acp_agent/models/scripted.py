"""A model that plays a scenario: the same every time, with no provider and no key.

The rule it owns: **where a session is in the script depends on what that session was told, and on nothing else.**
A prompt that was not seen before starts a turn, whether or not the last one was played to its end (a cancel leaves
it in the middle). Anything else at the end of the history, a tool result or the same prompt tried again after a
provider failure, gets the next reply of the turn.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator

from anyio import sleep

from acp_agent.content import text_of
from acp_agent.errors import ModelError
from acp_agent.history import ToolResult, UserMessage
from acp_agent.models.base import Finish, Model, ModelEvent, ModelRequest, TextDelta, ThoughtDelta, ToolUse, UsageDelta
from acp_agent.models.scenario import (
    ErrorStep,
    FinishStep,
    Outcome,
    Scenario,
    ScriptedReply,
    ScriptedTurn,
    SleepStep,
    Step,
    TextStep,
    ThoughtStep,
    ToolUseStep,
    UsageStep,
)

__all__ = ["ScriptedModel"]

NO_TURN_LEFT = "The scenario has ended: it has no turn left for this prompt."
NO_REPLY_LEFT = "The scenario has ended: it has no reply left in this turn."


class ScriptedModel(Model):
    """Plays `scenario`, with a place of its own in the script for each session id.

    A session id never seen starts at the beginning. Among the turns, the first one in the file whose `when` is found
    in the prompt's text is played, any number of times; else the next one without `when`, once. With nothing left to
    say it says that the scenario has ended.

    `pace` stretches every pause: 1 is as written, 0 plays at once (in tests, also a pause of `inf`).
    """

    def __init__(self, scenario: Scenario, *, pace: float = 1.0) -> None:
        self.scenario = scenario
        self.name = scenario.name
        self.pace = pace
        self._places: dict[str, _Place] = {}

    def forget(self, session_id: str) -> None:
        """Drop the session's place; under the same id it would start again. For a closed session; unknown is fine."""
        self._places.pop(session_id, None)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the next reply. Raises `ModelError` at an `error` step."""
        place = self._places.setdefault(request.session_id, _Place(self.scenario))
        for step in place.next_steps(request):
            match step:
                case TextStep():
                    for number in range(step.repeat):
                        if number and step.every:
                            await self._pause(step.every)
                        yield TextDelta(step.text)
                case SleepStep(seconds=seconds):
                    await self._pause(seconds)
                case FinishStep(reason=reason):
                    yield Finish(reason)
                    return
                case _:
                    yield _event_of(step)
        yield Finish("end_turn")

    async def _pause(self, seconds: float) -> None:
        await sleep(seconds * self.pace if self.pace else 0)


def _event_of(step: ThoughtStep | ToolUseStep | UsageStep | ErrorStep) -> ModelEvent:
    """What a step that takes no time says. Raises `ModelError` for an `error` step."""
    match step:
        case ThoughtStep(text=text):
            return ThoughtDelta(text)
        case ToolUseStep(name=name, arguments=arguments, id=tool_use_id):
            return ToolUse(name, dict(arguments), tool_use_id)
        case UsageStep():
            return UsageDelta(step.input_tokens, step.output_tokens, step.context_window, step.cost)
        case ErrorStep():
            raise ModelError(step.message, kind=step.kind, status=step.status, retryable=step.retryable)


class _Place:
    """Where one session is in the script."""

    def __init__(self, scenario: Scenario) -> None:
        self._turns = scenario.turns
        self._unused = iter([turn for turn in scenario.turns if turn.when is None])
        self._replies: Iterator[ScriptedReply] | None = None
        self._prompt_id: str | None = None

    def next_steps(self, request: ModelRequest) -> list[Step]:
        """The steps of the reply that comes next, taken from the script."""
        last = request.messages[-1] if request.messages else None
        if isinstance(last, UserMessage) and last.message_id != self._prompt_id:
            self._prompt_id = last.message_id
            turn = self._choose_turn(text_of(last.content))
            self._replies = iter(turn.replies) if turn else None
        if self._replies is None:
            return [TextStep(NO_TURN_LEFT)]
        outcome = _outcome_of(last) if isinstance(last, ToolResult) else None
        for reply in self._replies:
            if reply.after in (None, outcome):
                return reply.steps
        return [TextStep(NO_REPLY_LEFT)]

    def _choose_turn(self, text: str) -> ScriptedTurn | None:
        for turn in self._turns:
            if turn.when and turn.when.search(text):
                return turn
        return next(self._unused, None)


def _outcome_of(result: ToolResult) -> Outcome:
    return "failed" if result.failed else "completed"

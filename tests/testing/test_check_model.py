"""`check_model` passes the models that keep the contract, and says which rule the others break."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from acp_agent.errors import ModelError
from acp_agent.history import ToolUse
from acp_agent.models.base import Finish, Model, ModelEvent, ModelRequest, TextDelta, ThoughtDelta, UsageDelta
from acp_agent.models.scenario import Scenario
from acp_agent.models.scripted import ScriptedModel
from acp_agent.testing.checks_model import check_model, sample_requests

pytestmark = pytest.mark.anyio


class ListModel(Model):
    """Answers with a list of events, with an await before each."""

    name = "list"

    def __init__(self, *events: ModelEvent) -> None:
        self.events = events

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        for event in self.events:
            await anyio.lowlevel.checkpoint()
            yield event


class FailingModel(ListModel):
    """As above, and then fails."""

    error: Exception = ModelError("The provider is overloaded.", kind="overloaded", status=529)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async with contextlib.aclosing(super().stream(request)) as events:
            async for event in events:
                yield event
        raise self.error


SCENARIO = """
[[turns]]
when = ""
  [[turns.replies]]
  steps = [
    { type = "thought", text = "Hm." },
    { type = "text", text = "la ", repeat = 3, every = 0.001 },
    { type = "usage", input_tokens = 12, output_tokens = 3, context_window = 1000, cost = 0.01 },
    { type = "sleep", seconds = 0.001 },
    { type = "tool_use", name = "read_file", arguments = { path = "a.txt" } },
  ]
  [[turns.replies]]
  steps = [{ type = "text", text = "Done." }, { type = "finish", reason = "max_tokens" }]
"""


async def test_a_scripted_model_keeps_the_contract() -> None:
    scenario = Scenario.parse(SCENARIO)
    failing = Scenario.parse('[[turns]]\nreplies = [{ steps = [{ type = "error", message = "no", kind = "auth" }] }]')
    await check_model(lambda: ScriptedModel(scenario), make_failing_model=lambda: ScriptedModel(failing))


async def test_a_model_of_awaits_shields_and_nested_scopes_keeps_the_contract() -> None:
    class CarefulModel(ListModel):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            async with shielded_close():
                yield TextDelta("hello")
                await anyio.lowlevel.checkpoint()
            yield Finish()

    @contextlib.asynccontextmanager
    async def shielded_close() -> AsyncIterator[None]:
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()

    await check_model(CarefulModel)


async def test_only_the_given_requests_are_asked() -> None:
    seen: list[ModelRequest] = []

    class NotingModel(ListModel):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            seen.append(request)
            yield Finish()

    request = sample_requests()[2]
    await check_model(NotingModel, requests=[request])
    assert {asked.session_id for asked in seen} == {"s1", "s1-other"}
    assert all(asked.messages == request.messages for asked in seen)


async def test_each_await_of_the_reply_is_cancelled_in_turn() -> None:
    cancelled_at: set[str] = set()

    class MarkingModel(Model):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            for place in ("connect", "head", "body"):
                try:
                    await anyio.sleep(0.001)
                except anyio.get_cancelled_exc_class():
                    cancelled_at.add(place)
                    raise
                yield TextDelta(place)
            yield Finish()

    await check_model(MarkingModel)
    assert cancelled_at == {"connect", "head", "body"}


async def test_every_model_is_closed() -> None:
    opened, closed = [], []

    class ClosingModel(ListModel):
        def __init__(self) -> None:
            super().__init__(TextDelta("x"), Finish())
            opened.append(self)

        async def aclose(self) -> None:
            closed.append(self)

    await check_model(ClosingModel)
    assert len(opened) > 5
    assert closed == opened


@pytest.mark.parametrize(
    ("events", "sentence"),
    [
        ([TextDelta("hello")], "without a Finish"),
        ([Finish(), Finish()], "after Finish came"),
        ([Finish(), TextDelta("more")], "after Finish came"),
        ([TextDelta("\ud800"), Finish()], "not clean Unicode"),
        ([ThoughtDelta("\udfff"), Finish()], "not clean Unicode"),
        ([ToolUse(""), Finish()], "names no tool"),
        ([ToolUse("x", {}, "1", "call-1"), Finish()], "sets call_id"),
        ([ToolUse("x", [1]), Finish()], "are no object"),
        ([ToolUse("x", {"path": Path("a")}), Finish()], "not clean JSON"),
        ([ToolUse("x", {"a": [float("nan")]}), Finish()], "not clean JSON"),
        ([ToolUse("x", {"a": {"\ud800": 1}}), Finish()], "not clean JSON"),
        ([UsageDelta(-1, 0), Finish()], "counts tokens"),
        ([UsageDelta(1, 2, 0), Finish()], "the window of"),
        ([UsageDelta(1, 2, cost=-0.5), Finish()], "the cost of"),
        ([Finish("stop")], "not a reason to finish"),
        ([Finish(native={"block": b"x"})], "not clean JSON"),
        (["hello", Finish()], "not a model event"),
    ],
)
async def test_a_reply_that_breaks_a_rule_is_named(events: list[ModelEvent], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        await check_model(lambda: ListModel(*events))


@pytest.mark.parametrize(
    ("name", "window", "levels"), [("", None, ()), ("x", 0, ()), ("x", None, ["high"]), ("x", None, ("",))]
)
async def test_a_model_with_odd_attributes_is_named(name: str, window: int | None, levels: tuple[str, ...]) -> None:
    def make() -> Model:
        model = ListModel(Finish())
        model.name, model.context_window, model.thought_levels = name, window, levels
        return model

    with pytest.raises(AssertionError, match=r"the name|context_window|thought_levels"):
        await check_model(make)


class ForgetfulModel(Model):
    """Keeps the only reply there is for whoever asks first."""

    def __init__(self) -> None:
        self.events: list[ModelEvent] = [TextDelta("a"), Finish()]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        while self.events:
            yield self.events.pop(0)


class RewritingModel(ListModel):
    """Adds to the session's own list."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        request.messages.append(request.messages[0])
        yield Finish()


class QuietModel(Model):
    """Takes a cancel for the end of the reply."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        with contextlib.suppress(anyio.get_cancelled_exc_class()):
            await anyio.sleep(0.001)
            yield Finish()


class StubbornModel(Model):
    """Takes a cancel for a reason to finish."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        with contextlib.suppress(anyio.get_cancelled_exc_class()):
            await anyio.sleep(0.001)
        yield Finish()


class BlamingModel(Model):
    """Takes a cancel for a failure of the provider."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        try:
            await anyio.sleep(0.001)
        except anyio.get_cancelled_exc_class():
            raise ModelError("connection lost") from None
        yield Finish()


@pytest.mark.parametrize(
    ("make_model", "sentence"),
    [
        (ForgetfulModel, "two sessions at once, a reply ended with"),
        (lambda: RewritingModel(), "the request was changed"),
        (QuietModel, "cancelled at await number 1 ended as if it were whole"),
        (StubbornModel, r"cancelled at await number 1 went on with Finish"),
        (BlamingModel, "cancelled at await number 1 raised ModelError"),
        (lambda: "gpt", "not a Model"),
    ],
)
async def test_a_model_that_breaks_a_rule_is_named(make_model: Callable[[], Model], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        await check_model(make_model)


async def test_a_task_left_behind_is_named() -> None:
    async with anyio.create_task_group() as tasks:

        class SpawningModel(Model):
            async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
                tasks.start_soon(anyio.sleep_forever, name="keep-alive")
                yield Finish()

        with pytest.raises(AssertionError, match="asked once left tasks running: keep-alive"):
            await check_model(SpawningModel)
        tasks.cancel_scope.cancel()


async def test_a_model_that_does_not_answer_is_named() -> None:
    class SilentModel(Model):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            await anyio.sleep_forever()
            yield Finish()

    with pytest.raises(AssertionError, match=r"the reply took longer than 0\.05 s"):
        await check_model(SilentModel, timeout=0.05)


async def test_a_model_that_holds_one_session_up_for_another_is_named() -> None:
    class LockingModel(Model):
        def __init__(self) -> None:
            self.lock = anyio.Semaphore(1)

        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            async with self.lock:
                yield TextDelta("x")
            yield Finish()

    with pytest.raises(AssertionError, match="with two sessions at once, an event took longer"):
        await check_model(LockingModel, timeout=0.05)


async def test_a_stream_that_is_not_an_async_generator_is_named() -> None:
    class ListedModel(Model):
        def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            return [Finish()]  # type: ignore[return-value]  # the mistake that is tested

    with pytest.raises(AssertionError, match="not an async generator"):
        await check_model(ListedModel)


async def test_another_exception_than_a_model_error_comes_through() -> None:
    class CrashingModel(FailingModel):
        error = ZeroDivisionError("ours")

    with pytest.raises(ZeroDivisionError, match="ours"):
        await check_model(CrashingModel)


async def test_a_failing_model_must_fail_with_a_sentence_and_a_known_kind() -> None:
    class WordlessModel(FailingModel):
        error = ModelError("")

    class OddModel(FailingModel):
        error = ModelError("no", kind="gremlins")

    def good() -> Model:
        return ListModel(Finish())

    await check_model(good, make_failing_model=lambda: FailingModel(TextDelta("x")))
    for make_failing, sentence in [
        (WordlessModel, "says nothing"),
        (OddModel, "not a kind"),
        (good, "no ModelError was raised"),
    ]:
        with pytest.raises(AssertionError, match=sentence):
            await check_model(good, make_failing_model=make_failing)

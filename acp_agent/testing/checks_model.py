"""Does a `Model` keep the contract that a turn relies on? Run this on your own, with a fake provider behind it.

    @pytest.mark.anyio
    async def test_my_model_keeps_the_contract() -> None:
        await check_model(lambda: MyModel(http=fake_provider()), make_failing_model=lambda: MyModel(http=broken()))

What is checked:

- **the model**: a name, a context window and thought levels of the right types; it can forget a session never seen;
- **each reply**: only model events, clean text, well-formed tool uses, counts that are not negative; exactly one
  `Finish`, and nothing behind it; the request is left as it was;
- **every history**: prompts with each kind of block, tool uses with results, failed results, an interrupted reply;
- **side by side**: two sessions at once on one model, each with a whole reply;
- **leaving early**: closed after each event, it ends at once;
- **cancel**: cancelled in turn at every await of the reply, it leaves by that cancellation: no further event, no
  `ModelError`, no quiet end, nothing left running;
- **failure** (with `make_failing_model`): a `ModelError`, with a sentence and a known kind, and no `Finish`.

A broken rule is an `AssertionError` with a sentence that says which. Any other exception is the model's own and
comes through with its traceback: a model may raise `ModelError` only, and of a provider that works not even that.
"""

from __future__ import annotations

import copy
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar, get_args

import anyio
from msgspec import structs

from acp_agent.content import EmbeddedResource, ImageContent, ResourceLink, TextContent, clean_text
from acp_agent.errors import ModelError
from acp_agent.history import AssistantMessage, HistoryMessage, ToolResult, ToolUse, UserMessage
from acp_agent.models.base import Finish, Model, ModelEvent, ModelRequest, TextDelta, ThoughtDelta, ToolSpec, UsageDelta
from acp_agent.models.scenario import ErrorKind, FinishReason

__all__ = ["check_model", "sample_requests"]

T = TypeVar("T")

_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="


async def check_model(
    make_model: Callable[[], Model],
    *,
    requests: Sequence[ModelRequest] | None = None,
    make_failing_model: Callable[[], Model] | None = None,
    timeout: float = 5.0,
    max_cuts: int = 50,
) -> None:
    """Raise `AssertionError` if a model of `make_model` breaks the contract of `Model`.

    `make_model` makes a fresh model each time, closed after use. It may answer what it likes; short is best, since
    the reply is read again for each event and each await that it is cut off at, `max_cuts` of each at most.
    `requests` are what it is asked, `sample_requests()` if not given; the first is used for all that needs only one.
    `make_failing_model` makes a model whose provider fails. `timeout` is how many seconds a model may take for a
    reply, and for leaving when it is closed or cancelled.
    """
    asked = list(requests or sample_requests())
    async with _leaving_nothing("closed without having been asked"), _opened(make_model) as model:
        _check_attributes(model)
        model.forget("a session never seen")
    for request in asked:
        async with _leaving_nothing("asked once"), _opened(make_model) as model:
            await _check_reply(model, request, timeout)
    async with _leaving_nothing("asked by two sessions at once"), _opened(make_model) as model:
        await _check_side_by_side(model, asked[0], timeout)
    await _check_closed_after_each_event(make_model, asked[0], timeout, max_cuts)
    await _check_cancelled_at_each_await(make_model, asked[0], timeout, max_cuts)
    if make_failing_model is not None:
        async with _leaving_nothing("failed by its provider"), _opened(make_failing_model) as model:
            await _check_failure(model, asked[0], timeout)


def sample_requests() -> list[ModelRequest]:
    """Requests with every kind of history that a turn may send: what a model must be able to pass on."""
    prompt = UserMessage("m1", [TextContent("Read a.txt, please.")])
    wide_prompt = UserMessage(
        "m1",
        [
            TextContent("What is this? \N{GRINNING FACE}"),
            ResourceLink("a.txt", "file:///project/a.txt"),
            EmbeddedResource("file:///project/b.txt", text="line one\nline two\n"),
            EmbeddedResource("file:///project/c.bin", blob="AAEC"),
            ImageContent(_PIXEL, "image/png"),
        ],
    )
    uses = [ToolUse("read_file", {"path": name}, "same-id", f"call-{name}") for name in ("a.txt", "b.txt")]
    after_tools: list[HistoryMessage] = [
        prompt,
        AssistantMessage("m2", "I will read both.", "Both may matter.", uses),
        ToolResult("call-a.txt", "read_file", [TextContent("hello")]),
        ToolResult("call-b.txt", "read_file", [TextContent("There is no b.txt.")], failed=True),
    ]
    after_cancel: list[HistoryMessage] = [
        *after_tools,
        AssistantMessage("m3"),  # nothing was said before the user pressed stop
        UserMessage("m4", [TextContent("Go on.")]),
    ]
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tools = [ToolSpec("read_file", "Read a file.", schema)]
    histories: list[list[HistoryMessage]] = [[prompt], [wide_prompt], after_tools, after_cancel]
    return [ModelRequest(session_id="s1", messages=messages, tools=tools, system="Be brief.") for messages in histories]


# --- what surrounds a check ---


def _require(is_kept: bool, sentence: str) -> None:
    """An assert that is there under `python -O` too."""
    if not is_kept:
        raise AssertionError(sentence)


@asynccontextmanager
async def _opened(make_model: Callable[[], Model]) -> AsyncIterator[Model]:
    model = make_model()
    _require(isinstance(model, Model), f"make_model gave {model!r}, which is not a Model")
    try:
        yield model
    finally:
        await model.aclose()


@asynccontextmanager
async def _leaving_nothing(when: str) -> AsyncIterator[None]:
    """What is done inside leaves no task behind. A task that is just ending gets the time for it."""
    before = {task.id for task in anyio.get_running_tasks()}
    yield
    await anyio.wait_all_tasks_blocked()
    left = [task.name or str(task.id) for task in anyio.get_running_tasks() if task.id not in before]
    _require(not left, f"a model that was {when} left tasks running: {', '.join(left)}")


def _open_stream(model: Model, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
    stream = model.stream(request)
    _require(isinstance(stream, AsyncGenerator), f"stream() gave {stream!r}, which is not an async generator")
    return stream


async def _next(stream: AsyncGenerator[ModelEvent, None]) -> ModelEvent | None:
    return await anext(stream, None)


async def _in_time(work: Coroutine[Any, Any, T], what: str, timeout: float) -> T:
    with anyio.move_on_after(timeout):
        return await work
    raise AssertionError(f"{what} took longer than {timeout} s")


# --- one reply ---


def _check_attributes(model: Model) -> None:
    _require(isinstance(model.name, str) and bool(model.name), f"the name is {model.name!r}; users are shown it")
    window = model.context_window
    _require(window is None or _is_count(window, least=1), f"context_window is {window!r}; tokens, or None if unknown")
    levels = model.thought_levels
    _require(
        isinstance(levels, tuple) and all(isinstance(level, str) and level for level in levels),
        f"thought_levels is {levels!r}, which is not a tuple of names",
    )


async def _check_reply(model: Model, request: ModelRequest, timeout: float) -> None:
    before = copy.deepcopy(request)
    events = await _in_time(_read(model, request), "the reply", timeout)
    finished = [index for index, event in enumerate(events) if isinstance(event, Finish)]
    _require(bool(finished), "the reply ended without a Finish")
    _require(finished[0] == len(events) - 1, f"after Finish came {events[finished[0] + 1 :]!r}")
    _require(request == before, "the request was changed; its lists belong to the session")


async def _read(model: Model, request: ModelRequest) -> list[ModelEvent]:
    events: list[ModelEvent] = []
    async with aclosing(_open_stream(model, request)) as stream:
        async for event in stream:
            _check_event(event)
            events.append(event)
    return events


def _check_event(event: object) -> None:
    match event:
        case TextDelta(text=text) | ThoughtDelta(text=text):
            _require(_is_clean(text), f"the text of {event!r} is not clean Unicode; see clean_text()")
        case ToolUse():
            _check_tool_use(event)
        case UsageDelta():
            _check_usage(event)
        case Finish(reason=reason, native=native):
            _require(reason in get_args(FinishReason), f"{reason!r} is not a reason to finish")
            _require(native is None or isinstance(native, dict), f"native is {native!r}, which is not an object")
            _require(_is_json(native), f"native is kept in the journal, and is not clean JSON: {native!r}")
        case _:
            raise AssertionError(f"{event!r} is not a model event")


def _check_tool_use(use: ToolUse) -> None:
    _require(all(map(_is_clean, (use.name, use.id, use.problem))), f"{use!r} has a text that is not clean Unicode")
    _require(bool(use.name), f"{use!r} names no tool")
    _require(not use.call_id, f"{use!r} sets call_id, which is for the runtime to give")
    _require(isinstance(use.arguments, dict), f"the arguments of {use!r} are no object; `problem` is there to say so")
    _require(_is_json(use.arguments), f"the arguments of {use!r} are not clean JSON")


def _check_usage(usage: UsageDelta) -> None:
    counts = (usage.input_tokens, usage.output_tokens)
    _require(all(map(_is_count, counts)), f"{usage!r} counts tokens: whole, from 0 on")
    window, cost = usage.context_window, usage.cost
    _require(window is None or _is_count(window, least=1), f"the window of {usage!r} is in tokens, or None")
    _require(cost is None or (math.isfinite(cost) and cost >= 0), f"the cost of {usage!r} is in USD, or None")


def _is_count(value: object, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_clean(value: object) -> bool:
    return isinstance(value, str) and clean_text(value) == value


def _is_json(value: object) -> bool:
    match value:
        case None | bool() | int():
            return True
        case float():
            return math.isfinite(value)
        case str():
            return _is_clean(value)
        case list():
            return all(map(_is_json, value))
        case dict():
            return all(map(_is_clean, value)) and all(map(_is_json, value.values()))
        case _:
            return False


async def _check_failure(model: Model, request: ModelRequest, timeout: float) -> None:
    try:
        events = await _in_time(_read(model, request), "the failure", timeout)
    except ModelError as error:
        _require(bool(error.message), "the ModelError says nothing; users are shown its text")
        _require(error.kind in get_args(ErrorKind), f"{error.kind!r} is not a kind of ModelError")
    else:
        raise AssertionError(f"the provider failed and no ModelError was raised; the reply was {events!r}")


# --- more than one, and not to the end ---


async def _check_side_by_side(model: Model, request: ModelRequest, timeout: float) -> None:
    """Event by event in turn: what a model keeps for one session must not be the other's, nor hold it up."""
    other = structs.replace(request, session_id=f"{request.session_id}-other")
    async with aclosing(_open_stream(model, request)) as one, aclosing(_open_stream(model, other)) as two:
        waiting = [one, two]
        last: dict[int, ModelEvent] = {}
        while waiting:
            stream = waiting.pop(0)
            event = await _in_time(_next(stream), "with two sessions at once, an event", timeout)
            if event is not None:
                last[id(stream)] = event
                waiting.append(stream)
        for stream in (one, two):
            event = last.get(id(stream))
            _require(isinstance(event, Finish), f"with two sessions at once, a reply ended with {event!r}")


async def _check_closed_after_each_event(
    make_model: Callable[[], Model], request: ModelRequest, timeout: float, max_cuts: int
) -> None:
    for number in range(max_cuts):
        where = f"closed after {number} events"
        async with (
            _leaving_nothing(where),
            _opened(make_model) as model,
            aclosing(_open_stream(model, request)) as stream,
        ):
            events = [await _in_time(_next(stream), "an event", timeout) for _ in range(number)]
            await _in_time(stream.aclose(), f"leaving when {where}", timeout)
        if None in events:
            return


async def _check_cancelled_at_each_await(
    make_model: Callable[[], Model], request: ModelRequest, timeout: float, max_cuts: int
) -> None:
    for number in range(max_cuts):
        where = f"cancelled at await number {number + 1}"
        cut = _Cut(number)
        async with _leaving_nothing(where), _opened(make_model) as model:
            await _in_time(_read_until_cut(model, request, cut), f"leaving when {where}", timeout)
        _require(not cut.complaint, f"a model that was {where} {cut.complaint}")
        if not cut.is_made:
            return  # the reply has fewer awaits than that: all were tried


async def _read_until_cut(model: Model, request: ModelRequest, cut: _Cut) -> None:
    with cut.scope:
        async with aclosing(_open_stream(model, request)) as stream:
            while not cut.complaint:
                try:
                    event = await _Watched(_next(stream), cut)
                except ModelError as error:
                    if not cut.is_delivered:
                        raise
                    cut.complaint = f"raised {error!r}; a cancel is not a provider's failure"
                    return
                if cut.is_delivered:
                    cut.complaint = "ended as if it were whole" if event is None else f"went on with {event!r}"
                if event is None:
                    return


class _Cut:
    """A cancel of `scope`, made while what is watched is suspended for the `number`th time, counted from 0."""

    def __init__(self, number: int) -> None:
        self.scope = anyio.CancelScope()
        self.complaint = ""
        self.is_made = False
        self.is_delivered = False
        self._awaits_left = number

    def pass_await(self) -> None:
        if self._awaits_left == 0:
            self.is_made = True
            self.scope.cancel()
        self._awaits_left -= 1

    def look_at(self, resumed_with: object) -> None:
        """A cancellation that is shielded off is not delivered, and then the model need not leave yet."""
        if self.is_made and isinstance(resumed_with, anyio.get_cancelled_exc_class()):
            self.is_delivered = True


class _Watched(Generator[Any, Any, T]):
    """An awaitable that passes everything between `work` and the event loop, and shows it to `cut`."""

    def __init__(self, work: Coroutine[Any, Any, T], cut: _Cut) -> None:
        self._work = work
        self._cut = cut

    def __await__(self) -> Generator[Any, Any, T]:
        return self

    def send(self, value: Any) -> Any:
        self._cut.look_at(getattr(value, "error", None))  # trio sends what happened, wrapped
        trap = self._work.send(value)
        self._cut.pass_await()
        return trap

    def throw(self, problem: Any, value: Any = None, traceback: Any = None) -> Any:
        self._cut.look_at(problem)  # asyncio throws it
        trap = self._work.throw(problem)
        self._cut.pass_await()
        return trap

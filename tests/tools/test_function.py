from __future__ import annotations

import threading
from typing import Annotated, Any, Literal

import anyio
import pytest
from msgspec import Meta, Struct

from acp_agent.content import ContentItem, Diff, ImageContent, Location, TextContent
from acp_agent.errors import ToolError
from acp_agent.tools.base import ToolContext, ToolOutput
from acp_agent.tools.function import FunctionTool, ThreadContext, output_of
from tests.tools.fakes import FakeCall, shown, told

pytestmark = pytest.mark.anyio


class Step(Struct):
    name: str
    count: int = 1


async def deploy(
    context: ToolContext,
    environment: Literal["staging", "production"],
    steps: list[Step] | None = None,
    retries: Annotated[int, Meta(ge=0)] = 3,
    tags: tuple[str, ...] = ("a",),
) -> str:
    """Deploy the current
    branch.

    More that the model need not read.

    Args:
        environment: Where to,
            in one word.
        retries (int): How often: at most.
    """
    context.report("deploying")
    return f"{environment} {retries} {tags} {steps}"


def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


def test_the_signature_is_the_schema_and_the_docstring_the_description() -> None:
    tool = FunctionTool(deploy, kind="execute")
    assert (tool.name, tool.kind, tool.permission) == ("deploy", "execute", "ask")
    assert tool.description == "Deploy the current branch."
    properties = tool.input_schema["properties"]
    assert list(properties) == ["environment", "steps", "retries", "tags"]
    assert properties["environment"] == {"enum": ["production", "staging"], "description": "Where to, in one word."}
    assert properties["retries"]["description"] == "How often: at most."
    assert properties["retries"]["default"] == 3
    assert tool.input_schema["required"] == ["environment"]
    assert "$ref" not in str(tool.input_schema)


async def test_an_async_function_gets_the_context_and_its_own_defaults(call: FakeCall) -> None:
    output = await call.call(FunctionTool(deploy), environment="staging", steps=[{"name": "x"}])
    assert told(output) == "staging 3 ('a',) [Step(name='x', count=1)]"
    assert call.reports == ["deploying"]


async def test_the_question_shows_all_arguments_and_remembers_exactly_these(call: FakeCall) -> None:
    tool = FunctionTool(add)
    proposal = await call.propose(tool, first=1, second=2)
    assert proposal.title == "add(first=1, second=2)"
    assert proposal.key == 'add {"first":1,"second":2}'
    assert proposal.scope == "`add(first=1, second=2)`"
    assert (await call.propose(tool, second=2, first=1)).key == proposal.key
    assert (await call.propose(tool, first=1, second=3)).key != proposal.key
    named = await call.propose(FunctionTool(add, title="Add up"), first=1, second=2)
    assert named.content == [ContentItem(TextContent('```json\n{\n  "first": 1,\n  "second": 2\n}\n```'))]


async def test_title_key_and_preview_may_come_from_the_arguments(call: FakeCall) -> None:
    def save(path: str, text: str) -> Diff:
        """Save."""
        return Diff(path, text)

    tool = FunctionTool(
        save, title=lambda path, text: f"Save {path}", key=lambda path, text: path, preview=save, name="keep"
    )
    proposal = await call.propose(tool, path="/a", text="x")
    assert (tool.name, proposal.title, proposal.key, proposal.scope) == ("keep", "Save /a", "/a", "`/a`")
    assert proposal.content == [Diff("/a", "x")]
    assert proposal.locations == [Location("/a")]


async def test_bad_arguments_say_what_and_where(call: FakeCall) -> None:
    for arguments, problem in (
        ({"environment": "moon"}, r"'moon'.*\$\.environment"),
        ({"environment": "staging", "retries": -1}, r"\$\.retries"),
        ({"environment": "staging", "steps": [{"count": 1}]}, r"`name`.*\$\.steps\[0\]"),
        ({}, "missing required field `environment`"),
        ({"environment": "staging", "speed": 1}, "unknown field `speed`"),
    ):
        with pytest.raises(ToolError, match=problem):
            FunctionTool(deploy).describe(arguments, call)


async def test_numbers_written_as_text_are_taken(call: FakeCall) -> None:
    assert told(await call.call(FunctionTool(add), first="1", second="2")) == "3"


async def test_a_plain_function_runs_in_a_thread_and_may_report_from_it(call: FakeCall) -> None:
    loop_thread = threading.get_ident()
    seen: list[bool] = []
    call.on_report = lambda: seen.append(threading.get_ident() == loop_thread)

    def work(context: ToolContext) -> str:
        """Work."""
        seen.append(threading.get_ident() == loop_thread)
        context.report("half")
        return "done"

    assert told(await call.call(FunctionTool(work))) == "done"
    assert seen == [False, True]
    assert call.reports == ["half"]


async def test_a_thread_may_wait_for_the_loop_but_the_loop_not_for_itself(call: FakeCall) -> None:
    def leave(context: ThreadContext, mode: str) -> None:
        """Change the mode."""
        context.wait_for(context.set_mode, mode)

    await call.call(FunctionTool(leave), mode="plan")
    assert call.modes == ["plan"]
    with pytest.raises(RuntimeError, match="worker thread"):
        ThreadContext(call).report("x")
    with pytest.raises(RuntimeError, match="worker thread"):
        ThreadContext(call).wait_for(call.set_mode, "ask")


async def test_a_thread_that_ignores_the_cancel_is_left_behind(call: FakeCall) -> None:
    release = threading.Event()
    started = anyio.Event()
    call.on_report = started.set

    def stuck(context: ToolContext) -> None:
        """Hang."""
        context.report("started")
        release.wait(10)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: call.call(FunctionTool(stuck)))
            await started.wait()
            tasks.cancel_scope.cancel()
    release.set()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "Done."),
        ("text \ud800", "text \ufffd"),
        ({"b": 1, "a": [True]}, '{\n  "a": [\n    true\n  ],\n  "b": 1\n}'),
        ([], "[]"),
        (1.5, "1.5"),
        (Step("x"), '{\n  "name": "x",\n  "count": 1\n}'),
        (TextContent("block"), "block"),
        ([TextContent("a"), TextContent("b")], "a\nb"),
    ],
)
def test_what_a_function_returns_is_told(value: Any, text: str) -> None:
    assert told(output_of(value)) == text


def test_blocks_diffs_and_outputs_are_taken_as_they_are() -> None:
    image = ImageContent("AA==", "image/png")
    assert output_of([image, Diff("/a", "x")]).content == [ContentItem(image), Diff("/a", "x")]
    output = ToolOutput.of_text("x")
    assert output_of(output) is output


def test_a_long_text_is_cut_for_people_and_for_the_model() -> None:
    output = output_of("x" * 1_000_000)
    assert len(shown(output)) < 60_000
    assert len(told(output)) < 140_000


def test_what_no_model_can_call_is_refused_when_it_is_made() -> None:
    def spread(*values: int) -> None: ...

    def unknown(value: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the point of the test

    for function in (spread, unknown):
        with pytest.raises(TypeError, match=function.__name__):
            FunctionTool(function)

"""Every file in examples/ is run as an editor would run it: as a process, over its stdin and stdout."""

from __future__ import annotations

import ast
import importlib.util
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from acp_agent.errors import ConnectionClosed
from acp_agent.models.scenario import Scenario
from acp_agent.testing import ConnectedClient, FakeEditor, TestClient
from acp_agent.testing.policies import AnswerPolicy

EXAMPLES = Path(__file__).parent.parent / "examples"

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """What is tested is a process of its own, with its own backend: the client's makes no difference."""
    return "asyncio"


def connect(
    example: str, *, permission: AnswerPolicy = "allow_once", editor: FakeEditor | None = None
) -> AbstractAsyncContextManager[ConnectedClient]:
    command = [sys.executable, str(EXAMPLES / example)]
    return TestClient(command, permission=permission, editor=editor).connect()


# the smallest ones ----------------------------------------------------------------------------------------------------


def lines_of_code(path: Path) -> int:
    """Lines that hold code: no blank ones, no comments, not the docstring of the module."""
    source = path.read_text()
    first = ast.parse(source).body[0]
    assert isinstance(first, ast.Expr), "An example says in its docstring what it is."
    lines = source.splitlines()[first.end_lineno :]
    return sum(1 for line in lines if line.strip() and not line.strip().startswith("#"))


@pytest.mark.parametrize(("example", "count"), [("echo.py", 6), ("permissioned_tool.py", 12)])
def test_the_smallest_agents_are_as_small_as_is_said(example: str, count: int) -> None:
    assert lines_of_code(EXAMPLES / example) == count


def test_every_example_is_run_here() -> None:
    here = Path(__file__).read_text()
    unknown = [path.name for path in EXAMPLES.iterdir() if path.is_file() and f'"{path.name}"' not in here]
    assert unknown == []


async def test_the_echo_says_what_it_was_told() -> None:
    async with connect("echo.py") as client:
        result = await client.prompt("Hello, is anybody there?")
    assert (result.text, result.stop_reason) == ("Hello, is anybody there?", "end_turn")


async def test_the_permissioned_tool_runs_when_the_user_allows_it() -> None:
    async with connect("permissioned_tool.py") as client:
        result = await client.prompt("staging")
        question = client.questions[0]
    assert question.tool_call["title"] == 'deploy(environment="staging")'
    assert result.tool_statuses == ["pending", "in_progress", "completed"]
    assert result.tool_call.text == "staging runs the new release."
    assert result.text == "Deployed."


async def test_the_permissioned_tool_does_not_run_when_the_user_rejects_it() -> None:
    async with connect("permissioned_tool.py", permission="reject_once") as client:
        result = await client.prompt("production")
    assert result.tool_statuses == ["pending", "failed"]
    assert result.text == "Nothing was deployed."


async def test_the_permissioned_tool_is_not_even_asked_for_with_a_bad_argument() -> None:
    async with connect("permissioned_tool.py") as client:
        result = await client.prompt("the moon")
        assert client.questions == []
    assert result.tool_statuses == ["pending", "failed"]


# models and loops -----------------------------------------------------------------------------------------------------


async def test_a_model_of_ones_own_uses_a_tool_and_tells_its_result() -> None:
    async with connect("own_model.py") as client:
        result = await client.prompt("What happened?")
    assert result.tool_statuses == ["pending", "in_progress", "completed"]
    assert result.text == "Let me look.The log says: 12:00 staging: 3 services restarted"


async def test_a_model_of_ones_own_hears_of_a_no() -> None:
    async with connect("own_model.py", permission="reject_once") as client:
        result = await client.prompt("What happened?")
    assert result.text == "Let me look.I may not read the log."


async def test_a_loop_of_ones_own_shows_its_plan_and_each_of_its_calls() -> None:
    async with connect("own_loop.py") as client:
        result = await client.prompt("Go on")
    assert [row.title for row in result.tool_calls] == ["Count the words", "Publish the count"]
    assert [row.text for row in result.tool_calls] == ["4 words\n(exit code 0)", "published\n(exit code 0)"]
    assert [entry["status"] for entry in result.plan or []] == ["completed", "completed"]
    assert result.text == "All steps are done."


async def test_a_loop_of_ones_own_stops_at_a_no() -> None:
    async with connect("own_loop.py", permission="reject_once") as client:
        result = await client.prompt("Go on")
    assert result.tool_statuses == ["pending", "failed"]
    assert result.text == "Count the words: you said no, so I stop here."


needs_pydantic_ai = pytest.mark.skipif(importlib.util.find_spec("pydantic_ai") is None, reason="needs pydantic-ai-slim")


@needs_pydantic_ai
async def test_a_pydantic_ai_agent_streams_and_asks_and_runs_its_tool() -> None:
    async with connect("pydantic_ai_agent.py") as client:
        result = await client.prompt("Ship it")
    assert result.tool_statuses == ["pending", "in_progress", "completed"]
    assert result.text == "I will deploy.Result: staging runs the new release"


@needs_pydantic_ai
async def test_a_pydantic_ai_agent_hears_of_a_no() -> None:
    async with connect("pydantic_ai_agent.py", permission="reject_once") as client:
        result = await client.prompt("Ship it")
    assert result.tool_statuses == ["pending", "failed"]
    assert result.text == "I will deploy.Result: Denied by the user."


@needs_pydantic_ai
async def test_a_pydantic_ai_agent_that_asks_can_be_cancelled() -> None:
    async with connect("pydantic_ai_agent.py", permission="never") as client:
        prompt = await client.start_prompt("Ship it")
        await client.permission_asked()
        client.cancel()
        result = await prompt.wait()
        await client.wait_for_frame("$/cancel_request")
    assert (result.stop_reason, result.tool_statuses) == ("cancelled", ["pending", "failed"])


# the test agent for editors -------------------------------------------------------------------------------------------


async def test_testy_lists_what_it_can_show() -> None:
    async with connect("testy.py") as client:
        result = await client.prompt("help")
    for name in ("text", "plan", "permission", "diff", "slow", "image", "error"):
        assert f"- `{name}`: " in result.text


async def test_testy_calls_tools() -> None:
    async with connect("testy.py") as client:
        statuses = {name: (await client.prompt(name)).tool_statuses for name in ("permission", "progress", "command")}
        failure = await client.prompt("failure")
        parallel = await client.prompt("parallel")
    assert set(map(tuple, statuses.values())) == {("pending", "in_progress", "completed")}
    assert failure.tool_statuses == ["pending", "in_progress", "failed"]
    assert [row.status for row in parallel.tool_calls] == ["completed"] * 3


async def test_testy_shows_the_diff_in_its_question() -> None:
    async with connect("testy.py") as client:
        await client.prompt("diff")
        content = client.questions[0].tool_call["content"]
    assert (content[0]["type"], content[0]["oldText"], content[0]["newText"]) == ("diff", "before\n", "after\n")


async def test_testy_says_markdown_and_thoughts_and_plans_in_pieces() -> None:
    async with connect("testy.py") as client:
        markdown = await client.prompt("text")
        thought = await client.prompt("thought")
        plan = await client.prompt("plan")
        flood = await client.prompt("flood 50")
    assert "print('é 🐍')" in markdown.text
    assert (thought.thought, thought.text) == ("First I think.", "I have thought about it.")
    assert [entry["status"] for entry in plan.plan or []] == ["completed"] * 3
    assert flood.text == "flood " * 50


async def test_testy_sends_what_is_not_text_and_tells_what_it_was_sent() -> None:
    async with connect("testy.py") as client:
        shown = await client.prompt("image")
        blocks = [
            {"type": "text", "text": "echo"},
            {"type": "resource_link", "name": "a.py", "uri": "file:///a.py"},
        ]
        told = await client.prompt(blocks)
    kinds = [each.fields["content"]["type"] for each in shown.updates if each.kind == "agent_message_chunk"]
    assert kinds == ["image", "resource_link", "resource"]
    assert told.text == "- TextContent\n- ResourceLink\n"


async def test_testy_works_with_the_editors_files(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with connect("testy.py", editor=editor) as client:
        written = await client.prompt("write")
        read = await client.prompt("read")
    assert (written.tool_statuses[-1], read.tool_statuses[-1]) == ("completed", "completed")
    assert "Written by testy." in read.tool_call.text


async def test_testy_names_the_session_and_tells_its_usage() -> None:
    async with connect("testy.py") as client:
        result = await client.prompt("title A day out")
    assert result.title == "Testy, A day out"
    assert (result.usage or {})["used"] == 12_345


async def test_testy_is_slow_and_can_be_cancelled() -> None:
    async with connect("testy.py") as client:
        prompt = await client.start_prompt("slow")
        await client.wait_for_update("agent_message_chunk")
        client.cancel()
        result = await prompt.wait()
    assert result.stop_reason == "cancelled"


async def test_testy_ends_turns_in_other_ways() -> None:
    async with connect("testy.py") as client:
        refused = await client.prompt("refusal")
        failed = await client.prompt("error")
        assert refused.stop_reason == "refusal"
        assert failed.error is not None
        assert failed.error.data == {"details": "You asked for it."}


async def test_testy_can_die() -> None:
    with pytest.raises(ConnectionClosed):
        async with connect("testy.py") as client:
            await client.prompt("exit")


# the scenario ---------------------------------------------------------------------------------------------------------


def play(folder: Path, permission: AnswerPolicy) -> AbstractAsyncContextManager[ConnectedClient]:
    """The program, with the example's scenario in a model's place."""
    options = ["--scenario", str(EXAMPLES / "scenario.toml"), "--state-dir", str(folder / "state")]
    return TestClient([sys.executable, "-m", "acp_agent", *options], permission=permission, cwd=folder).connect()


async def test_the_scenario_deploys_when_it_is_allowed_to(tmp_path: Path) -> None:
    async with play(tmp_path, "allow_once") as client:
        result = await client.prompt(Scenario.load(EXAMPLES / "scenario.toml").prompts[0])
    assert result.text.endswith("Done: staging runs the new release.")
    assert [entry["status"] for entry in result.plan or []] == ["completed", "completed"]
    assert (tmp_path / "RELEASE.md").read_text() == "# Release\n\nDeployed to staging first.\n"


async def test_the_scenario_goes_another_way_after_a_no(tmp_path: Path) -> None:
    async with play(tmp_path, "reject_once") as client:
        result = await client.prompt("deploy")
        overloaded = await client.prompt("overload")
    assert result.text.endswith("Without the note there is no release; nothing was deployed.")
    assert not (tmp_path / "RELEASE.md").exists()
    assert overloaded.error is not None

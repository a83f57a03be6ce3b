"""Editors that answer a request with an error, with nothing, or never: a turn ends all the same, and can be stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import anyio
import pytest

from acp_agent import Agent, coding_tools
from acp_agent.history import ToolUse
from acp_agent.testing import TestClient
from acp_agent.testing.editor import FakeEditor, Misbehaviour
from acp_agent.testing.policies import AnswerPolicy
from tests.runtime.support import DONE, PlayedModel

pytestmark = pytest.mark.anyio

EDIT = ToolUse("edit_file", {"path": "a.txt", "old_text": "old", "new_text": "new"})
COMMAND = ToolUse("run_command", {"command": "echo out"})
ENDLESS = ToolUse("run_command", {"command": "sleep 600"})
QUESTION = ToolUse("ask_user", {"question": "Which?", "options": ["red", "blue"]})
ASKS = {
    "fs/read_text_file": EDIT,
    "fs/write_text_file": EDIT,
    "terminal/create": COMMAND,
    "terminal/output": COMMAND,
    "terminal/wait_for_exit": ENDLESS,
    "terminal/release": COMMAND,
    "terminal/kill": ENDLESS,
}
CASES = [
    pytest.param(how, methods, id=f"{how} {methods[0] if len(methods) == 1 else 'everything'}")
    for how in get_args(Misbehaviour)
    for methods in (*((method,) for method in ASKS), tuple(ASKS))
]


def impatient(*uses: ToolUse, command_timeout: float = 0.3) -> Agent:
    """An agent that uses tools, one in each step, and waits for no answer longer than a moment."""
    model = PlayedModel(*([use] for use in uses), DONE)
    agent = Agent("impatient", model=model, tools=coding_tools(command_timeout=command_timeout), permission_timeout=0.1)
    agent.definition.editor_seconds = 0.1
    return agent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("old\n")
    return tmp_path


@pytest.mark.parametrize(("how", "methods"), CASES)
async def test_a_turn_ends_whatever_the_editor_answers(
    how: Misbehaviour, methods: tuple[str, ...], folder: Path
) -> None:
    editor = FakeEditor(misbehave=dict.fromkeys(methods, how))
    uses = [use for use in (EDIT, COMMAND, ENDLESS) if use in map(ASKS.get, methods)]
    async with TestClient(impatient(*uses), editor=editor, cwd=folder).connect() as client:
        with anyio.fail_after(8):
            result = await client.prompt("go")
        rows = {str(row.raw_input): row for row in client.tool_calls()}
    assert result.stop_reason == "end_turn"
    assert result.text == "Done."
    assert len(rows) == len(uses)
    assert {row.status for row in rows.values()} <= {"completed", "failed"}
    says_nothing = how in ("empty", "null")  # which by the protocol means that it is done
    if endless := rows.get(str(ENDLESS.arguments)):
        has_ended = says_nothing and methods == ("terminal/wait_for_exit",)
        assert endless.status == ("completed" if has_ended else "failed")
    if (edit := rows.get(str(EDIT.arguments))) and not (says_nothing and "fs/write_text_file" in methods):
        assert (folder / "a.txt").read_text() == ("new\n" if edit.status == "completed" else "old\n")
    if "terminal/release" not in methods:
        assert editor.terminals.unreleased == []


@pytest.mark.parametrize("method", ASKS)
async def test_a_request_that_is_never_answered_holds_up_no_cancel(method: str, folder: Path) -> None:
    agent = impatient(ASKS[method], command_timeout=0.1 if method == "terminal/kill" else 30)
    agent.definition.editor_seconds = 30
    editor = FakeEditor(misbehave={method: "never"})
    async with TestClient(agent, editor=editor, cwd=folder).connect() as client:
        handle = await client.start_prompt("go")
        await client.wait_for_frame(method)
        client.cancel()
        with anyio.fail_after(4):
            result = await handle.wait()
        (row,) = client.tool_calls()
    if method != "terminal/release":  # it is asked when all is done
        assert result.stop_reason == "cancelled"
        assert row.status == "failed"


def answering(result: dict[str, Any]) -> AnswerPolicy:
    return lambda _: result


UNUSABLE: list[AnswerPolicy] = ["error", "malformed", "never", answering({}), answering({"outcome": None})]


@pytest.mark.parametrize("answer", UNUSABLE)
async def test_a_question_without_a_usable_answer_is_not_approved(answer: AnswerPolicy, folder: Path) -> None:
    async with TestClient(impatient(EDIT), permission=answer, cwd=folder).connect() as client:
        with anyio.fail_after(5):
            result = await client.prompt("go")
        (row,) = client.tool_calls()
    assert result.stop_reason == "end_turn"
    assert row.status == "failed"
    assert (folder / "a.txt").read_text() == "old\n"


@pytest.mark.parametrize("how", get_args(Misbehaviour))
async def test_a_form_without_a_usable_answer_is_as_good_as_dismissed(how: Misbehaviour, folder: Path) -> None:
    editor = FakeEditor(form="accept", misbehave={"elicitation/create": how})
    async with TestClient(impatient(QUESTION), editor=editor, cwd=folder).connect() as client:
        handle = await client.start_prompt("go")
        if how == "never":  # a user may take their time
            await client.wait_for_frame("elicitation/create")
            client.cancel()
        with anyio.fail_after(5):
            result = await handle.wait()
        (row,) = client.tool_calls()
    assert result.stop_reason == ("cancelled" if how == "never" else "end_turn")
    assert row.text == ("Cancelled." if how == "never" else "The user dismissed the question without an answer.")

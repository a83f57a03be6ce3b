"""What broke agents, and their users' trust, at the permission gate.

Proved whole by other tests:

    a question about a call that the client has never seen (google-gemini/gemini-cli#21783)
        runtime/test_permissions.py::test_a_question_shows_all_that_is_to_be_judged
    the call runs, or changes, while its question is open (anomalyco/opencode#14301)
        runtime/test_permissions.py::test_nothing_is_said_of_a_call_while_its_question_is_open
    "always" is remembered too widely (Open-ACP/OpenACP#226, nimbalyst/nimbalyst#375)
        runtime/test_permissions.py::test_always_is_for_this_command_and_asks_again_for_another
    "never again" is forgotten (open-octo/octo-agent#613)
        runtime/test_permissions.py::test_a_refusal_can_be_remembered_too
    a remembered answer wins over a rule (open-octo/octo-agent#613)
        runtime/test_permissions.py::test_a_remembered_allow_does_not_pass_a_deny_rule_or_plan_mode
    a nested agent's question goes nowhere (anomalyco/opencode#12133)
        regressions/test_cancellation.py::test_nested_calls_ask_in_their_parents_session_and_end_with_it
    nobody is there to answer (QwenLM/qwen-code#4472)
        runtime/test_permissions.py::test_a_question_that_waits_too_long_is_taken_back_and_refused
    an agent's own loop passes the gate by (github/copilot-cli#845)
        runtime/test_permissions.py::test_an_agents_own_loop_goes_through_the_same_gate
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from acp_agent.agent import Agent
from acp_agent.models.base import ToolUse
from acp_agent.testing import FakeEditor, TestClient
from acp_agent.tools.coding import coding_tools
from tests.requirements import requirement
from tests.runtime.support import PlayedModel, make_agent, run

pytestmark = pytest.mark.anyio

KINDS = {"allow_once", "allow_always", "reject_once", "reject_always"}
GATED: dict[str, dict[str, Any]] = {
    "write_file": {"path": "new.txt", "content": "new"},
    "edit_file": {"path": "notes.txt", "old_text": "old", "new_text": "new"},
    "delete_file": {"path": "notes.txt"},
    "move_file": {"source": "notes.txt", "destination": "moved.txt"},
    "run_command": {"command": "touch ran.txt"},
    "fetch_url": {"url": "https://example.com/"},
    "read_file": {"path": "../outside.txt"},
}
"""A use of each tool that may not run without somebody's word."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("an old line\n")
    (tmp_path / "outside.txt").write_text("a secret\n")
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


async def use(tool: str, folder: Path, permission: Any, mode: str = "ask", editor: FakeEditor | None = None) -> Any:
    """The result of a turn in which the tool is used once, and the permission requests there were."""
    model = PlayedModel([ToolUse(tool, GATED[tool])])
    agent = Agent("coder", model=model, tools=coding_tools(), mode=mode)
    async with TestClient(agent, permission=permission, editor=editor, cwd=folder).connect() as client:
        result = await client.prompt("go")
        return result, client.questions, model.requests[-1].messages[-1]


# github/copilot-cli#845, github/copilot-cli#4537
@pytest.mark.parametrize("permission", ["reject_once", "reject_always", "error", "malformed", "unknown_option"])
@pytest.mark.parametrize("tool", list(GATED))
async def test_what_was_not_allowed_leaves_no_trace(tool: str, permission: Any, folder: Path) -> None:
    before = contents(folder)
    editor = FakeEditor() if permission == "reject_once" else None
    result, questions, told = await use(tool, folder, permission, editor=editor)
    assert len(questions) == 1
    assert result.tool_statuses == ["pending", "failed"]
    assert result.stop_reason == "end_turn"
    assert contents(folder) == before
    assert told.failed
    assert "a secret" not in str(told)
    if editor is not None:
        assert not editor.called("fs/write_text_file")
        assert not editor.called("terminal/create")


# github/copilot-cli#845, topcheer/ggcode#1145
@pytest.mark.parametrize("tool", list(GATED))
async def test_plan_mode_changes_nothing_and_asks_only_to_read(tool: str, folder: Path) -> None:
    before = contents(folder)
    _, questions, _ = await use(tool, folder, "reject_once", mode="plan")
    assert len(questions) == (tool == "read_file")
    assert contents(folder) == before


# QwenLM/qwen-code#6021: a link in the workspace leads out of it
async def test_accepting_edits_accepts_none_outside(folder: Path) -> None:
    os.symlink(folder.parent / "outside.txt", folder / "notes2.txt")
    arguments = {"path": "notes2.txt", "old_text": "secret", "new_text": "public"}
    agent = Agent("coder", model=PlayedModel([ToolUse("edit_file", arguments)]), tools=coding_tools())
    agent.definition.mode = "accept_edits"
    async with TestClient(agent, permission="reject_once", cwd=folder).connect() as client:
        await client.prompt("go")
        (question,) = client.questions
        assert "allow_always" not in question.option_kinds
    assert (folder.parent / "outside.txt").read_text() == "a secret\n"


# esengine/DeepSeek-Reasonix#5775, getpaseo/paseo#1854
@pytest.mark.parametrize("tool", list(GATED))
async def test_every_question_offers_known_kinds_under_ids_of_their_own(tool: str, folder: Path) -> None:
    _, (question,), _ = await use(tool, folder, "reject_once")
    options = question.frame.params["options"]
    assert {option["kind"] for option in options} <= KINDS
    assert options[0]["kind"] == "allow_once"  # the first is what a client in a hurry chooses
    assert "reject_once" in question.option_kinds
    assert len({option["optionId"] for option in options}) == len(options)
    assert all(option["name"].strip() for option in options)


# can1357/oh-my-pi#1192, getkimchi/kimchi#964
@requirement("paths-absolute")
@pytest.mark.parametrize("tool", list(GATED))
async def test_a_question_carries_the_call_as_it_was_announced(tool: str, folder: Path) -> None:
    result, (question,), _ = await use(tool, folder, "reject_once")
    opening = next(update.fields for update in result.updates if update.kind == "tool_call")
    asked = question.tool_call
    assert "sessionUpdate" not in asked
    assert (asked["toolCallId"], asked["status"]) == (opening["toolCallId"], "pending")
    assert (asked["kind"], asked["rawInput"]) == (opening["kind"], opening["rawInput"])
    assert asked["title"]
    assert all(location["path"].startswith("/") for location in asked.get("locations", []))
    if asked["kind"] == "edit":
        assert asked["content"][0]["type"] == "diff"
        assert asked["locations"][0]["path"] == asked["content"][0]["path"]


# can1357/oh-my-pi#10850
@requirement("tool-call-in-progress")
async def test_what_was_allowed_runs_once_and_is_asked_for_once() -> None:
    agent, _, ran = make_agent([run("ls")])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("go")
        assert result.tool_statuses == ["pending", "in_progress", "completed"]
        assert len(client.questions) == 1
    assert ran == ["ls"]


# aipoch/open-science#62
async def test_an_option_that_is_remembered_says_for_what() -> None:
    agent, _, _ = make_agent([run("git status")])
    async with TestClient(agent).connect() as client:
        await client.prompt("go")
        names = [option.name for option in client.questions[0].request.options if option.kind.endswith("always")]
        assert len(names) == 2
        assert all("in this session" in name for name in names)

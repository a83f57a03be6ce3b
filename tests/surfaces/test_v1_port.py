"""What an editor answers in version 1, sense and nonsense, and what the runtime makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_agent.agent import Agent
from acp_agent.history import ToolUse
from acp_agent.testing import TestClient
from acp_agent.testing.editor import FakeEditor
from acp_agent.tools.base import FormAnswer, ToolContext
from acp_agent.tools.coding import coding_tools
from tests.runtime.support import PlayedModel, handler_agent, make_agent, run

pytestmark = pytest.mark.anyio

SCHEMA = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "default": "blue"},
        "many": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
    },
}


class Answering(FakeEditor):
    """Answers some methods with a fixed result, whatever it is."""

    def __init__(self, answers: dict[str, Any], **options: Any) -> None:
        super().__init__(**options)
        self.answers = answers

    async def serve(self, method: str, params: dict[str, Any]) -> Any:
        if method in self.answers:
            self.calls.append((method, params))
            return self.answers[method]
        return await super().serve(method, params)


def asking_agent(answers: list[FormAnswer]) -> Agent:
    agent, _, _ = make_agent([ToolUse("ask")])

    @agent.tool(permission="allow")
    async def ask(context: ToolContext) -> str:
        """Ask the user."""
        answers.append(await context.editor.ask_form("Which colour?", SCHEMA))
        return "asked"

    return agent


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (
            {"action": "accept", "content": {"colour": "red", "many": ["a"]}},
            FormAnswer("accept", {"colour": "red", "many": ["a"]}),
        ),
        ({"action": "accept"}, FormAnswer("accept")),
        ({"action": "accept", "content": None}, FormAnswer("accept")),
        ({"action": "decline"}, FormAnswer("decline")),
        ({"action": "cancel"}, FormAnswer("cancel")),
        ({"action": "postpone", "until": "tomorrow"}, FormAnswer("cancel")),
        ({"action": 1}, FormAnswer("cancel")),
        ({"action": "accept", "content": {"colour": {"deep": "blue"}}}, FormAnswer("cancel")),
        ({}, FormAnswer("cancel")),
        (None, FormAnswer("cancel")),
        ("accept", FormAnswer("cancel")),
        ([], FormAnswer("cancel")),
    ],
)
async def test_what_the_user_did_with_a_form_and_what_makes_no_sense_is_a_cancel(
    result: Any, answer: FormAnswer
) -> None:
    answers: list[FormAnswer] = []
    editor = Answering({"elicitation/create": result}, form="accept")
    async with TestClient(asking_agent(answers), editor=editor).connect() as client:
        row = (await client.prompt("go")).tool_call
        assert (row.status, row.text) == ("completed", "asked")
        (asked,) = editor.called("elicitation/create")
        assert asked["mode"] == "form"
        assert asked["message"] == "Which colour?"
        assert asked["sessionId"] == client.session_id
        assert asked["toolCallId"] == row.tool_call_id
        assert asked["requestedSchema"]["properties"]["colour"] == {"type": "string", "default": "blue"}
    assert answers == [answer]


@pytest.mark.parametrize(
    "result",
    [
        {"outcome": {"outcome": "selected"}},
        {"outcome": {"outcome": "selected", "optionId": 1}},
        {"outcome": {"outcome": "allow_once", "optionId": "allow_once"}},
        {"outcome": None},
        {"optionId": "allow_once"},
        {},
    ],
)
async def test_an_answer_to_a_question_of_another_shape_allows_nothing(result: dict[str, Any]) -> None:
    agent, _, ran = make_agent([run("make")])
    async with TestClient(agent, permission=lambda _: result).connect() as client:
        response = await client.prompt("go")
        assert response.stop_reason in ("end_turn", "cancelled")
        assert response.tool_call.status == "failed"
    assert ran == []


@pytest.mark.parametrize("result", [{"content": 7}, {"content": None}, {"text": "x"}, [], "x", None])
async def test_an_editor_that_answers_with_no_text_leaves_the_file_to_the_disk(result: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("on disk\n")
    editor = Answering({"fs/read_text_file": result}, terminal=False)
    agent = Agent("reader", model=PlayedModel([ToolUse("read_file", {"path": "a.txt"})]), tools=coding_tools())
    async with TestClient(agent, editor=editor, cwd=tmp_path).connect() as client:
        row = (await client.prompt("read it")).tool_call
        assert row.status == "completed"
        assert "on disk" in row.text
    assert len(editor.called("fs/read_text_file")) == 1


@pytest.mark.parametrize("result", [{"terminalId": 7}, {"terminalId": None}, {"id": "t1"}, [], None])
async def test_an_editor_that_opens_no_terminal_leaves_the_command_to_us(result: Any, tmp_path: Path) -> None:
    editor = Answering({"terminal/create": result}, read=False, write=False)
    agent = Agent("runner", model=PlayedModel([ToolUse("run_command", {"command": "echo hi"})]), tools=coding_tools())
    async with TestClient(agent, editor=editor, cwd=tmp_path).connect() as client:
        row = (await client.prompt("run it")).tool_call
        assert row.status == "completed"
        assert "hi" in row.text
        assert row.raw_output["exitCode"] == 0
    assert len(editor.called("terminal/create")) == 1


ABILITIES: list[tuple[Any, dict[str, bool]]] = [
    ({}, {}),
    (None, {}),
    ({"fs": {"readTextFile": True}}, {"read_text_file": True}),
    ({"fs": {"writeTextFile": True}, "terminal": True}, {"write_text_file": True, "terminal": True}),
    ({"fs": None, "terminal": "yes"}, {}),
    ({"elicitation": {}}, {}),
    ({"elicitation": {"form": {}}}, {"form": True}),
    ({"elicitation": {"url": {}}}, {"url": True}),
    ({"session": {"notices": {}, "compaction": {}}}, {"notices": True, "compaction": True}),
    ({"session": {"configOptions": {"boolean": {}}}}, {"boolean_options": True}),
    ({"auth": {"terminal": True}}, {"terminal_auth": True}),
    ({"_meta": {"fs": {"readTextFile": True}}, "other": {"terminal": True}}, {}),
]


@pytest.mark.parametrize(("capabilities", "can"), ABILITIES)
async def test_a_client_can_what_it_said_and_nothing_else(capabilities: Any, can: dict[str, bool]) -> None:
    seen: list[dict[str, bool]] = []

    async def work(turn: Any) -> None:
        abilities = turn.session.port.abilities
        seen.append({name: True for name in abilities.__struct_fields__ if getattr(abilities, name)})

    async with TestClient(handler_agent(work)).connect(initialize=False) as client:
        await client.initialize(clientCapabilities=capabilities)
        await client.prompt("what can I?")
    assert seen == [can]

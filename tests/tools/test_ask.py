from __future__ import annotations

from typing import Any

import pytest

from acp_agent.errors import ToolError
from acp_agent.tools.ask import AskUser
from acp_agent.tools.base import FormAnswer
from acp_agent.tools.coding import coding_tools
from acp_agent.tools.mode import SwitchMode
from tests.requirements import requirement
from tests.tools.fakes import FakeCall, told

pytestmark = pytest.mark.anyio


async def ask(call: FakeCall, values: dict[str, Any] | None, **arguments: Any) -> str:
    call.editor.answer = FormAnswer("accept", values or {})
    return told(await call.call(AskUser(), **arguments))


async def test_a_question_becomes_a_form_and_its_answer_is_told(call: FakeCall) -> None:
    assert await ask(call, {"answer": "blue"}, question="Which colour?") == "The user answered.\nAnswer: blue"
    message, schema = call.editor.forms[0]
    assert message == "Which colour?"
    assert schema == {
        "type": "object",
        "properties": {"answer": {"type": "string", "title": "Your answer"}},
        "required": ["answer"],
    }
    proposal = await call.propose(AskUser(), question="Which colour?")
    assert (proposal.title, proposal.kind, proposal.permission) == ("Ask: Which colour?", "other", "allow")


async def test_options_may_be_chosen_or_passed_over(call: FakeCall) -> None:
    options = ["red", "blue"]
    assert await ask(call, {"answer": "red"}, question="?", options=options) == "The user answered.\nAnswer: red"
    assert await ask(call, {"other": "green"}, question="?", options=options) == (
        "The user answered.\nSomething else: green"
    )
    assert await ask(call, {"answer": ["red", "blue"]}, question="?", options=options, multiple=True) == (
        "The user answered.\nAnswer: red, blue"
    )
    assert await ask(call, {}, question="?", options=options) == "The user answered.\nThe user left it empty."
    assert call.editor.forms[0][1]["properties"]["answer"]["enum"] == options
    assert call.editor.forms[2][1]["properties"]["answer"]["items"] == {"type": "string", "enum": options}


async def test_a_form_of_several_fields_is_asked_at_once(call: FakeCall) -> None:
    fields = [
        {"name": "count", "type": "integer"},
        {"name": "sure", "type": "boolean", "title": "Really?"},
        {"name": "size", "type": "choice", "options": ["s", "m"], "required": False},
    ]
    answered = await ask(call, {"count": 3, "sure": True}, question="Details", fields=fields)
    assert answered == "The user answered.\ncount: 3\nsure: yes"
    assert call.editor.forms[0][1]["required"] == ["count", "sure"]


@requirement("elicitation-checked")
@pytest.mark.parametrize(
    "values", [{"count": "3"}, {"count": True}, {"count": 1.5}, {}, {"count": 3, "size": "xl"}, {"count": None}]
)
async def test_an_answer_that_does_not_fit_its_form_is_not_believed(call: FakeCall, values: dict[str, Any]) -> None:
    fields = [
        {"name": "count", "type": "integer"},
        {"name": "size", "type": "choice", "options": ["s", "m"], "required": False},
    ]
    with pytest.raises(ToolError, match="The editor's form came back"):
        await ask(call, values, question="Details", fields=fields)


@requirement("elicitation-endings")
async def test_declining_and_dismissing_are_told(call: FakeCall) -> None:
    for action, text in (("decline", "declined to answer"), ("cancel", "dismissed the question")):
        call.editor.answer = FormAnswer(action)  # type: ignore[arg-type]  # both are of its Literal
        output = await call.call(AskUser(), question="Why?")
        assert text in told(output)
        assert not output.ends_turn


@requirement("elicitation-fallback")
async def test_without_forms_the_question_is_put_in_words_and_the_turn_ends(call: FakeCall) -> None:
    output = await call.call(AskUser(), question="Which?", options=["red", "blue"])
    assert call.said == ["Which?\n\n1. red\n2. blue"]
    assert output.ends_turn
    assert not call.editor.forms


@requirement("elicitation-no-secrets")
@pytest.mark.parametrize(
    "arguments",
    [
        {"question": "Please enter your password"},
        {"question": "What is the API key?"},
        {"question": "Sign in", "fields": [{"name": "api_key"}]},
        {"question": "Sign in", "fields": [{"name": "x", "title": "Passphrase"}]},
    ],
)
async def test_secrets_are_not_asked_for(call: FakeCall, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match="Do not ask for secrets"):
        await call.propose(AskUser(), **arguments)


async def test_a_question_about_secrets_that_asks_for_none_is_fine(call: FakeCall) -> None:
    await call.propose(AskUser(), question="Should the password check be case-sensitive?")
    fields = [{"name": "strict", "type": "boolean"}]
    await call.propose(AskUser(), question="What should the API key check do?", fields=fields)


@pytest.mark.parametrize(
    "arguments",
    [
        {"question": "?", "options": ["a", "a"]},
        {"question": "?", "fields": [{"name": "a", "type": "choice"}]},
        {"question": "?", "fields": [{"name": "a"}, {"name": "a"}]},
        {"question": "?", "fields": [{"name": "a b"}]},
        {"question": "?", "options": ["a"], "fields": [{"name": "a"}]},
        {"question": ""},
    ],
)
async def test_a_form_that_cannot_be_shown_is_refused(call: FakeCall, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError):
        await call.propose(AskUser(), **arguments)


async def test_another_mode_is_asked_for_each_time(call: FakeCall) -> None:
    proposal = await call.propose(SwitchMode(), mode="ask")
    assert (proposal.title, proposal.kind, proposal.permission) == ("Switch to mode `ask`", "switch_mode", "ask")
    assert proposal.key == ""
    await SwitchMode().run(proposal, call)
    assert call.modes == ["ask"]
    with pytest.raises(ToolError, match="no mode 'fast'"):
        await call.call(SwitchMode(), mode="fast")


def test_every_kind_of_the_protocol_is_used_and_names_are_unique() -> None:
    tools = coding_tools()
    assert {tool.kind for tool in tools} == {
        *("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
    }
    assert len({tool.name for tool in tools}) == len(tools) == 13
    for tool in tools:
        assert tool.description
        assert tool.input_schema["type"] == "object"
        assert "$ref" not in str(tool.input_schema)

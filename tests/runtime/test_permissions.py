"""Questions: what is shown, what an answer means, what is remembered, and what modes and rules decide instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest

from acp_agent.agent import Agent
from acp_agent.content import Diff
from acp_agent.models.base import ToolUse
from acp_agent.protocol.v1.tool_calls import RequestPermissionRequest
from acp_agent.runtime.permissions import PermissionRule
from acp_agent.testing import TestClient
from acp_agent.testing.policies import AnswerPolicy
from tests.runtime.support import DONE, PlayedModel, Ran, is_whole, last_request, look, make_agent, run, told_results

pytestmark = pytest.mark.anyio


async def test_a_question_shows_all_that_is_to_be_judged() -> None:
    agent, _, _ = make_agent([run("pytest -q")])
    async with TestClient(agent, permission="reject_once").connect() as client:
        await client.prompt("test it")
        opening = client.updates(kind="tool_call")[0].fields
        question = client.questions[0]
    call = question.tool_call
    assert call["toolCallId"] == opening["toolCallId"]
    assert call["rawInput"] == {"command": "pytest -q"}
    assert (call["kind"], call["status"], call["title"]) == ("execute", "pending", opening["title"])
    options = [(option.kind, option.name) for option in question.request.options]
    assert options == [
        ("allow_once", "Allow once"),
        ("allow_always", "Always allow `pytest -q` in this session"),
        ("reject_once", "Reject"),
        ("reject_always", "Always reject `pytest -q` in this session"),
    ]


async def test_a_diff_to_be_judged_comes_first_with_its_place(tmp_path: Path) -> None:
    agent = Agent("tested", model=PlayedModel([ToolUse("save", {"text": "new"})]))
    path = str(tmp_path / "notes.txt")

    @agent.tool(kind="edit", preview=lambda text: Diff(path, text, "old"))
    async def save(text: str) -> Diff:
        """Save."""
        return Diff(path, text, "old")

    async with TestClient(agent).connect() as client:
        result = await client.prompt("save it")
        call = client.questions[0].tool_call
    assert call["content"] == [{"type": "diff", "path": path, "newText": "new", "oldText": "old"}]
    assert call["locations"] == [{"path": path}]
    assert result.tool_call.diffs == call["content"]


async def test_a_refused_call_did_not_run_and_the_model_goes_on() -> None:
    agent, model, ran = make_agent([run("rm -rf /")])
    async with TestClient(agent, permission="reject_once").connect() as client:
        result = await client.prompt("clean up")
        assert result.tool_statuses == ["pending", "failed"]
        assert (result.stop_reason, result.text) == ("end_turn", "Done.")
        assert result.tool_call.text == "Denied by the user."
    assert ran == []
    assert told_results(model.requests[-1].messages) == ["Denied by the user."]


async def test_a_dismissed_question_stops_the_turn_and_later_calls_do_not_run() -> None:
    agent, model, ran = make_agent([look("a"), run("b"), look("c"), run("d")])
    async with TestClient(agent, permission="cancelled").connect() as client:
        result = await client.prompt("go")
        assert result.stop_reason == "cancelled"
        assert [row.status for row in result.tool_calls] == ["completed", "failed", "failed", "failed"]
        assert len(client.questions) == 1
        history = await last_request(client, model)
    assert ran == ["a"]
    assert is_whole(history)
    assert told_results(history)[0] == "saw a"


@pytest.mark.parametrize(
    "answer",
    [
        "error",
        "malformed",
        "unknown_option",
        lambda request: {},
        lambda request: {"outcome": None},
        lambda request: {"outcome": {"outcome": "selected"}},
        lambda request: {"outcome": {"outcome": "selected", "optionId": None}},
        lambda request: {"outcome": {"outcome": "selected", "optionId": ["allow_once"]}},
        lambda request: {"outcome": {"outcome": "allowed", "optionId": "allow_once"}},
        lambda request: {"outcome": {"optionId": "allow_once"}},
        lambda request: {"outcome": {"outcome": "selected", "optionId": "ALLOW_ONCE"}},
        lambda request: {"optionId": "allow_once"},
    ],
)
async def test_an_answer_that_makes_no_sense_approves_nothing(answer: AnswerPolicy) -> None:
    agent, _, ran = make_agent([run("rm -rf /")])
    async with TestClient(agent, permission=answer).connect() as client:
        result = await client.prompt("clean up")
        assert (result.tool_statuses, result.stop_reason) == (["pending", "failed"], "end_turn")
    assert ran == []


async def test_an_option_of_an_earlier_question_counts_only_when_it_is_offered_again() -> None:
    agent, _, ran = make_agent([ToolUse("once", {"what": "x"})])

    @agent.tool(key=lambda what: "")
    async def once(what: str) -> str:
        """Ask each time."""
        ran.append(what)
        return "done"

    async with TestClient(
        agent, permission=lambda _: {"outcome": {"outcome": "selected", "optionId": "allow_always"}}
    ).connect() as client:
        result = await client.prompt("go")
        assert client.questions[0].option_kinds == ["allow_once", "reject_once"]
        assert result.tool_statuses == ["pending", "failed"]
    assert ran == []


async def test_a_question_that_waits_too_long_is_taken_back_and_refused() -> None:
    agent, _, ran = make_agent([run("rm -rf /")], permission_timeout=0.05)
    async with TestClient(agent, permission="never").connect() as client:
        result = await client.prompt("clean up")
        assert (result.tool_statuses, result.stop_reason) == (["pending", "failed"], "end_turn")
        assert client.questions[0].was_cancelled
    assert ran == []


# what is remembered ---------------------------------------------------------------------------------------------------


async def test_always_is_for_this_command_and_asks_again_for_another() -> None:
    agent, _, ran = make_agent([run("make")], DONE, [run("make"), run("make install")])
    async with TestClient(agent, permission="allow_always").connect() as client:
        await client.prompt("build")
        await client.prompt("and again")
        asked = [question.tool_call["rawInput"]["command"] for question in client.questions]
    assert asked == ["make", "make install"]
    assert ran == ["make", "make", "make install"]


async def test_a_refusal_can_be_remembered_too() -> None:
    agent, _, ran = make_agent([run("make")], DONE, [run("make"), run("ls")])
    async with TestClient(agent, permission="reject_always").connect() as client:
        await client.prompt("build")
        client.permission = "allow_once"
        result = await client.prompt("and again")
        assert [row.status for row in result.tool_calls] == ["failed", "completed"]
        assert len(client.questions) == 2
    assert ran == ["ls"]


async def test_once_is_not_remembered() -> None:
    agent, _, _ = make_agent([run("make"), run("make")])
    async with TestClient(agent).connect() as client:
        await client.prompt("build")
        assert len(client.questions) == 2


async def test_what_one_session_remembers_another_does_not_know() -> None:
    agent, _, _ = make_agent([run("make")], DONE, [run("make")])
    async with TestClient(agent, permission="allow_always").connect() as client:
        await client.prompt("build")
        await client.new_session()
        await client.prompt("build")
        assert len(client.questions) == 2


async def test_questions_are_asked_one_at_a_time_and_an_always_settles_its_equals() -> None:
    ran = Ran()
    uses = [ToolUse("peek", {"name": name}) for name in ("a", "a", "b")]
    agent = Agent("tested", model=PlayedModel(uses))

    @agent.tool(kind="read", read_only=True, key=lambda name: name)
    async def peek(name: str) -> str:
        """Peek."""
        ran.append(name)
        return name

    opened = Ran()

    async def decide(request: RequestPermissionRequest) -> str:
        name = str(request.tool_call.raw_input["name"])
        opened.append(name)
        assert len(opened) == 1
        await anyio.lowlevel.checkpoint()
        opened.clear()
        return {"a": "allow_always", "b": "reject_once"}[name]

    async with TestClient(agent, permission=decide).connect() as client:
        result = await client.prompt("go")
        asked = sorted(question.tool_call["rawInput"]["name"] for question in client.questions)
    assert asked == ["a", "b"]
    assert [row.status for row in result.tool_calls] == ["completed", "completed", "failed"]
    assert ran == ["a", "a"]


# modes and rules ------------------------------------------------------------------------------------------------------


async def test_a_mode_that_changes_while_a_question_is_open_does_not_answer_it() -> None:
    agent, _, ran = make_agent([run("one"), run("two")])
    async with TestClient(agent, permission="manual").connect() as client:
        handle = await client.start_prompt("go")
        question = await client.permission_asked()
        await client.set_mode("auto")
        await client.request("session/list", {})
        assert not handle.is_over
        assert not question.was_cancelled
        assert ran == []
        client.answer_permission("reject_once")
        result = await handle.wait()
        assert [row.status for row in result.tool_calls] == ["failed", "completed"]
        assert len(client.questions) == 1
    assert ran == ["two"]


async def test_plan_mode_denies_with_its_reason_and_asks_nothing() -> None:
    agent, model, ran = make_agent([run("make"), look("a")])
    async with TestClient(agent).connect() as client:
        await client.new_session()
        await client.set_mode("plan")
        result = await client.prompt("build")
        assert [row.status for row in result.tool_calls] == ["failed", "completed"]
        assert client.questions == []
    assert ran == ["a"]
    assert "plan mode" in told_results(model.requests[-1].messages)[0]


async def test_auto_mode_asks_nothing() -> None:
    agent, _, ran = make_agent([run("make")])
    async with TestClient(agent).connect() as client:
        await client.new_session()
        await client.set_mode("auto")
        await client.prompt("build")
        assert client.questions == []
    assert ran == ["make"]


async def test_accept_edits_allows_edits_and_asks_for_the_rest() -> None:
    agent, _, ran = make_agent([ToolUse("save", {"text": "x"}), run("make")])

    @agent.tool(kind="edit")
    async def save(text: str) -> str:
        """Save."""
        ran.append(text)
        return "saved"

    async with TestClient(agent, permission="reject_once").connect() as client:
        await client.new_session()
        await client.set_config_option("mode", "accept_edits")
        await client.prompt("go")
        assert [question.tool_call["kind"] for question in client.questions] == ["execute"]
    assert ran == ["x"]


async def test_rules_come_before_the_user() -> None:
    rules = [
        PermissionRule("deny", "run", "rm *"),
        PermissionRule("allow", "run", "ls *"),
        PermissionRule("ask", "look"),
    ]
    agent, _, ran = make_agent([run("rm -rf /"), run("ls -l"), look("a")], rules=rules)
    async with TestClient(agent, permission="reject_once").connect() as client:
        result = await client.prompt("go")
        assert [row.status for row in result.tool_calls] == ["failed", "completed", "failed"]
        assert [question.tool_call["rawInput"] for question in client.questions] == [{"name": "a"}]
    assert ran == ["ls -l"]


async def test_a_tool_that_is_switched_off_asks_nobody_and_does_not_run_in_any_mode() -> None:
    ran = Ran()
    agent = Agent("tested", model=PlayedModel(*[[ToolUse("launch")], DONE] * 2))

    @agent.tool(permission="deny")
    async def launch() -> str:
        """Launch it."""
        ran.append("launched")
        return "launched"

    async with TestClient(agent).connect() as client:
        await client.new_session()
        for mode in ("ask", "auto"):
            await client.set_mode(mode)
            row = (await client.prompt("go")).tool_call
            assert (row.status, row.text) == ("failed", "This tool is switched off.")
        assert client.questions == []
    assert ran == []


async def test_a_remembered_allow_does_not_pass_a_deny_rule_or_plan_mode() -> None:
    agent, _, ran = make_agent([run("make")], DONE, [run("make")])
    async with TestClient(agent, permission="allow_always").connect() as client:
        await client.prompt("build")
        await client.set_mode("plan")
        result = await client.prompt("build")
        assert result.tool_statuses == ["pending", "failed"]
    assert ran == ["make"]


async def test_nothing_is_said_of_a_call_while_its_question_is_open() -> None:
    agent, _, _ = make_agent([run("make")])
    async with TestClient(agent, permission="manual").connect() as client:
        handle = await client.start_prompt("build")
        question = await client.permission_asked()
        before = len(client.updates())
        await client.request("session/list", {})
        assert len(client.updates()) == before
        client.answer_permission("allow_once", question)
        assert (await handle.wait()).tool_statuses == ["pending", "in_progress", "completed"]


async def test_an_agents_own_loop_goes_through_the_same_gate() -> None:
    ran, opened = Ran(), list[str]()
    agent = Agent("tested")

    @agent.on_prompt
    async def work(turn: Any) -> None:
        call = turn.open_tool_call("deploy", {"to": "staging"}, title="Deploy", kind="execute", key="staging")
        opened.append(call.tool_call_id)
        if await call.ask_permission():
            call.report("half way")
            ran.append("deployed")
            call.complete(text="deployed")

    async with TestClient(agent, permission="reject_once").connect() as client:
        assert (await client.prompt("go")).tool_statuses == ["pending", "failed"]
        client.permission = "allow_always"
        assert (await client.prompt("go")).tool_statuses == ["pending", "in_progress", "completed"]
        client.permission = "never"
        with anyio.fail_after(5):
            assert (await client.prompt("go")).tool_statuses == ["pending", "in_progress", "completed"]
        assert [row.tool_call_id for row in client.tool_calls()] == opened
    assert ran == ["deployed", "deployed"]

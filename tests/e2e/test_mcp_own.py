"""Servers of the agent's own and of the settings file beside the editor's; and what servers ask the editor."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from acp_agent.mcp.names import server_slugs
from tests.e2e.editor import OfficialEditor, Pipe, official
from tests.e2e.mcp_scenes import (
    SERVERS,
    initialize,
    new_session,
    plain,
    play,
    prompt,
    rows,
    sdk,
    server_json,
    shown,
    toml,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

OWN = """
from acp_agent import Agent, McpServer
from acp_agent.models.scenario import Scenario
from acp_agent.models.scripted import ScriptedModel

server = McpServer(name="good", command=COMMAND, args=[SCRIPT, "good"])
agent = Agent("own", model=ScriptedModel(Scenario.load(SCENARIO)), mcp_servers=[server])

@agent.tool(name="mcp__good__work", permission="allow")
async def work() -> str:
    "Work by myself."
    return "done by the agent"
"""


ANSWER = """
[[turns]]
when = "^Hello"
  [[turns.replies]]
  steps = [{ type = "text", text = "I hear you." }]
"""


class FormEditor(OfficialEditor):
    """Fills in each form with what it was given, or declines."""

    def __init__(self, **values: str) -> None:
        super().__init__()
        self.values = values
        self.forms: list[str] = []

    async def create_elicitation(self, message: str, mode: Any, **kwargs: Any) -> Any:
        self.forms.append(message)
        if not self.values:
            return schema.DeclineElicitationResponse(action="decline")
        return schema.AcceptElicitationResponse(action="accept", content=dict(self.values))


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the user's settings file is."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "acp-agent"
    folder.mkdir(parents=True)
    return folder / "acp-agent.toml"


def table(name: str, script: str, *args: str, **more: object) -> str:
    fields = {"command": sys.executable, "args": [str(SERVERS / script), *args]} | more
    return "\n".join([f"[mcp.servers.{name}]", *(f"{key} = {toml(value)}" for key, value in fields.items())]) + "\n"


def test_servers_of_the_agent_and_of_the_client_are_all_there_and_the_agents_tool_is_not_replaced(
    tmp_path: Path,
) -> None:
    _, second, _ = server_slugs(["good", "good", "other"])
    uses = [("mcp__good__work", {}), (f"mcp__{second}__work", {}), ("mcp__other__work", {})]
    scenario = play(tmp_path, {"go": uses})
    values = {"COMMAND": sys.executable, "SCRIPT": str(SERVERS / "server_plain.py"), "SCENARIO": scenario}
    source = "".join(f"{name} = {value!r}\n" for name, value in values.items()) + OWN
    (tmp_path / "own.py").write_text(source)
    with Pipe("own:agent", "--mode", "auto", cwd=tmp_path) as pipe:
        initialize(pipe)
        new_session(pipe, [server_json("good"), server_json("good", name="other")])
        pipe.write(pipe.prompt("/mcp", 3), pipe.prompt("/tools", 4), pipe.prompt("go", 5))
        assert pipe.answer(5)["result"] == {"stopReason": "end_turn"}
    told = str(pipe.received)
    assert told.count("- good: connected, 1 tool") == 2
    assert "- other: connected, 1 tool" in told
    assert told.count("Work by myself.") == 1
    updates = [message["params"]["update"] for message in pipe.received if message.get("method") == "session/update"]
    results = [str(update["content"]) for update in updates if update.get("status") == "completed"]
    assert ["done by the agent" in result for result in results] == [True, False, False]


async def test_servers_of_the_settings_file_are_there_beside_the_clients_with_their_own_limits(
    settings: Path, tmp_path: Path
) -> None:
    settings.write_text(
        table("mine", "server_plain.py", "good")
        + table("mute", "server_plain.py", "silent", start_timeout=0.5)
        + table("lazy", "server_plain.py", "slow", call_timeout=0.5, env={"CANCEL_FILE": str(tmp_path / "cancel")})
    )
    scenario = play(tmp_path, {"go": [("mcp__mine__work", {}), ("mcp__good__work", {}), ("mcp__lazy__work", {})]})
    editor = OfficialEditor()
    async with official(editor, "--scenario", scenario, state=tmp_path / "s") as (agent, _):
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[plain("good")])
        assert await prompt(agent, session.session_id, "go") == "end_turn"
    mine, good, lazy = rows(editor)
    assert (shown(mine), shown(good)) == ("done", "done")
    assert "lazy did not answer within 0.5 seconds; the call was cancelled." in shown(lazy)
    assert "The MCP server mute cannot be used: It did not answer within 0.5 seconds." in editor.text()
    assert (tmp_path / "cancel").exists()  # it was told


@pytest.mark.parametrize(
    ("forms", "values", "answer"),
    [(True, {"size": "XL"}, "accept XL"), (True, {}, "decline"), (False, {"size": "XL"}, "decline")],
)
async def test_a_question_of_a_server_is_answered_by_the_user_if_the_editor_shows_forms_and_declined_otherwise(
    forms: bool, values: dict[str, str], answer: str, tmp_path: Path
) -> None:
    editor = FormEditor(**values)
    form = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities()) if forms else None
    capabilities = schema.ClientCapabilities(elicitation=form)
    scenario = play(tmp_path, {"go": [("mcp__sdk__order", {}), ("mcp__sdk__where", {})]})
    arguments = ("--scenario", scenario, "--mode", "auto")
    async with official(editor, *arguments, state=tmp_path / "s", capabilities=capabilities, unstable=True) as (
        agent,
        _,
    ):
        session = await agent.new_session(cwd=str(tmp_path), additional_directories=[str(SERVERS)], mcp_servers=[sdk()])
        assert await prompt(agent, session.session_id, "go") == "end_turn"
    order, where = rows(editor)
    assert shown(order) == answer
    assert editor.forms == (["sdk: Which size?"] if forms else [])
    assert shown(where).splitlines() == [tmp_path.as_uri(), SERVERS.as_uri()]


async def test_a_server_samples_the_sessions_model_only_where_the_users_own_settings_let_it(
    settings: Path, tmp_path: Path
) -> None:
    settings.write_text(table("trusted", "server_sdk.py", sampling=True))
    scenario = tmp_path / "with_answer.toml"
    written = Path(play(tmp_path, {"go": [("mcp__trusted__think", {}), ("mcp__sdk__think", {})]})).read_text()
    scenario.write_text(written + ANSWER)
    editor = OfficialEditor()
    async with official(editor, "--scenario", str(scenario), state=tmp_path / "s") as (agent, _):
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[sdk()])
        assert await prompt(agent, session.session_id, "go") == "end_turn"
    allowed, refused = rows(editor)
    assert (allowed["status"], shown(allowed)) == ("completed", "I hear you.")
    assert refused["status"] == "failed"
    assert "Sampling not supported" in shown(refused)

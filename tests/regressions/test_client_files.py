"""What broke between agents and the files and terminals of editors.

Proved whole by other tests:

    the whole command line is sent as the executable (MoonshotAI/kimi-cli#1517)
        runtime/test_terminals.py::test_a_terminal_is_opened_with_one_executable_and_its_arguments
    the editor refuses to read (zed-industries/zed#60156)
        runtime/test_workspace.py::test_an_editor_that_has_no_text_leaves_reading_to_the_disk
    a refusal is shown as `[object Object]` (QwenLM/qwen-code#6020)
        runtime/test_workspace.py::test_what_the_editor_says_is_said_in_words
    the boundary is a prefix of the path (QwenLM/qwen-code#6021)
        runtime/test_workspace.py::test_inside_is_where_the_path_really_leads
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from acp_agent.agent import Agent
from acp_agent.errors import RequestError
from acp_agent.models.base import ToolUse
from acp_agent.testing import ConnectedClient, FakeEditor, PromptHandle, TestClient
from acp_agent.tools.coding import coding_tools
from tests.requirements import requirement
from tests.runtime.support import PlayedModel

pytestmark = pytest.mark.anyio


def command(line: str, **more: Any) -> list[ToolUse]:
    return [ToolUse("run_command", {"command": line} | more)]


def coder(*replies: list[ToolUse]) -> Agent:
    return Agent("coder", model=PlayedModel(*replies), tools=coding_tools(fetch_timeout=0.1))


async def by_cancel(client: ConnectedClient, handle: PromptHandle) -> None:
    client.cancel()
    assert (await handle.wait()).stop_reason == "cancelled"


async def by_close(client: ConnectedClient, handle: PromptHandle) -> None:
    await client.close_session()
    assert (await handle.wait()).stop_reason == "cancelled"


# can1357/oh-my-pi#12435
@requirement("terminal-released")
@pytest.mark.parametrize("uses", [command("echo hi"), command("exit 3"), command("sleep 60", timeout=0.2)])
@pytest.mark.parametrize("misbehave", [{}, {"terminal/wait_for_exit": "error"}, {"terminal/output": "error"}])
async def test_a_terminal_is_released_once_however_its_command_ends(uses: list[ToolUse], misbehave: Any) -> None:
    editor = FakeEditor(misbehave=misbehave)
    async with TestClient(coder(uses), editor=editor).connect() as client:
        result = await client.prompt("go")
        assert result.tool_call.is_over
        assert len(editor.called("terminal/create")) == len(editor.called("terminal/release")) == 1
        assert editor.terminals.unreleased == []


# can1357/oh-my-pi#12435
@requirement("terminal-released")
@pytest.mark.parametrize("end", [by_cancel, by_close])
@pytest.mark.parametrize("forgetful", [False, True])
async def test_a_terminal_is_released_when_its_turn_is_stopped(end: Any, forgetful: bool) -> None:
    editor = FakeEditor(forgetful=forgetful)
    async with TestClient(coder(command("sleep 60")), editor=editor).connect() as client:
        handle = await client.start_prompt("go")
        await client.wait_for_frame("terminal/wait_for_exit")
        with anyio.fail_after(4):
            await end(client, handle)
        assert len(editor.called("terminal/release")) == 1
        assert editor.terminals.unreleased == []


# MoonshotAI/kimi-cli#1517, openclaw/acpx#169, openclaw/acpx#466
async def test_a_command_reaches_the_editor_as_it_was_written(tmp_path: Path) -> None:
    line = 'printf "%s|" "a  b" C:\\\\tmp \'$HOME\''
    editor = FakeEditor()
    async with TestClient(coder(command(line)), editor=editor, cwd=tmp_path).connect() as client:
        await client.prompt("go")
        (asked,) = editor.called("terminal/create")
        assert " " not in asked["command"]
        assert asked["args"][-1] == line
        assert asked["cwd"] == str(tmp_path)
        assert all(set(variable) == {"name", "value"} for variable in asked["env"])
        (terminal,) = editor.terminals.all.values()
        assert terminal.output == "a  b|C:\\tmp|$HOME|"


EVERY_TOOL = [
    ToolUse("write_file", {"path": "a.txt", "content": "one\n"}),
    ToolUse("read_file", {"path": "a.txt"}),
    ToolUse("edit_file", {"path": "a.txt", "old_text": "one", "new_text": "two"}),
    ToolUse("list_directory", {"path": "."}),
    ToolUse("find_files", {"pattern": "*.txt"}),
    ToolUse("search_text", {"pattern": "two"}),
    ToolUse("move_file", {"source": "a.txt", "destination": "b.txt"}),
    ToolUse("run_command", {"command": "cat b.txt"}),
    ToolUse("delete_file", {"path": "b.txt"}),
    ToolUse("update_plan", {"entries": [{"content": "one", "status": "pending"}]}),
]
NOTHING: list[Any] = [
    {},
    {"terminal": None, "fs": None},
    {"terminal": False, "fs": {}},
    {"fs": {"readTextFile": False, "writeTextFile": None}},
    {"terminal": "yes", "fs": {"readTextFile": "yes"}},
]


# poco-ai/Agentero#365, multica-ai/multica#7323
@requirement("initialize-omitted-capability", "initialize-any-capabilities", "fs-gated", "terminal-gated")
@pytest.mark.parametrize("capabilities", NOTHING, ids=str)
async def test_every_tool_works_without_the_editors_help(capabilities: Any, tmp_path: Path) -> None:
    async with TestClient(coder(EVERY_TOOL), capabilities=capabilities, cwd=tmp_path).connect() as client:
        result = await client.prompt("go")
        assert [(row.name, row.status) for row in result.tool_calls] == [(use.name, "completed") for use in EVERY_TOOL]
        requests = {frame.method for frame in client.transcript.received() if frame.is_request}
        assert requests == {"session/request_permission"}


# poco-ai/Agentero#365
@requirement("initialize-any-capabilities")
async def test_every_tool_works_with_an_editor_that_can_half_of_it(tmp_path: Path) -> None:
    for editor in (
        FakeEditor(write=False, terminal=False),
        FakeEditor(read=False),
        FakeEditor(forgetful=True),
        FakeEditor(misbehave={"fs/read_text_file": "error", "terminal/create": "error"}),
        FakeEditor(misbehave={"fs/read_text_file": "null", "terminal/create": "empty"}),
    ):
        async with TestClient(coder(EVERY_TOOL), editor=editor, cwd=tmp_path).connect() as client:
            result = await client.prompt("go")
            assert [row.status for row in result.tool_calls] == ["completed"] * len(EVERY_TOOL), result.tool_calls


# zed-industries/zed#60156, QwenLM/qwen-code#6020
@requirement("error-unknown-code")
@pytest.mark.parametrize("code", [-32002, -32602, -32603])
async def test_an_editor_that_refuses_a_file_does_not_hide_it(code: int, tmp_path: Path) -> None:
    class Refusing(FakeEditor):
        async def serve(self, method: str, params: dict[str, Any]) -> Any:
            if method == "fs/read_text_file":
                raise RequestError(code, "No", {"why": {"path": params["path"]}})
            return await super().serve(method, params)

    (tmp_path / "a.txt").write_text("on disk\n")
    agent = coder([ToolUse("read_file", {"path": "a.txt"})])
    async with TestClient(agent, editor=Refusing(), cwd=tmp_path).connect() as client:
        result = await client.prompt("go")
        assert "on disk" in result.tool_call.text
        assert "object Object" not in result.tool_call.text

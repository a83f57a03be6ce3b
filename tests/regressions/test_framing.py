"""What broke agents at the pipe: long lines, bad lines, stray output, odd ids.

Proved whole by other tests:

    code below Python writes to descriptor 1 (czlonkowski/n8n-mcp#673)
        e2e/test_process.py::test_stray_output_never_reaches_the_wire_and_children_read_nothing_of_ours
    a tool's child reads our stdin (getsigit/sigit#71)
        transports/test_stdio.py::test_nothing_else_gets_to_read_what_the_client_says
    stdin or stdout is no pipe (NousResearch/hermes-agent#84515)
        transports/test_stdio.py::test_it_speaks_over_whatever_it_is_given
    a descriptor that no loop can watch (agentclientprotocol/python-sdk#3)
        transports/test_wires.py::test_connections_converse_over_it
    a line over the cap (agentclientprotocol/python-sdk#27)
        jsonrpc/test_connection.py::test_a_line_over_the_cap_is_answered_and_the_next_line_is_served
    an id comes back in another type (agentclientprotocol/agent-client-protocol#138)
        jsonrpc/test_peer.py::test_an_id_comes_back_as_it_was_spelled
    an id that is still in flight (agentclientprotocol/agent-client-protocol#138)
        jsonrpc/test_connection.py::test_a_duplicate_id_is_refused_and_the_first_request_lives_on
"""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from acp_agent.agent import Agent
from acp_agent.content import PlanEntry
from acp_agent.models.base import TextDelta, ThoughtDelta, ToolUse, UsageDelta
from acp_agent.runtime.turn import Turn
from acp_agent.testing import FakeEditor, TestClient
from acp_agent.tools.base import ToolContext
from acp_agent.tools.coding import coding_tools
from tests.e2e.editor import Pipe
from tests.requirements import requirement
from tests.runtime.support import PlayedModel, handler_agent

MIB = 1024 * 1024
STABLE_KINDS = {
    *("agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call", "tool_call_update", "plan"),
    *("available_commands_update", "current_mode_update", "config_option_update", "session_info_update"),
    "usage_update",
}
ECHO = """
from acp_agent import Agent, Turn

agent = Agent("echo")

@agent.on_prompt
async def echo(turn: Turn) -> None:
    await turn.send_text(turn.text)
"""


# agentclientprotocol/python-sdk#27, MoonshotAI/kimi-cli#831
def test_long_lines_are_read_and_the_next_is_served(tmp_path: Path) -> None:
    image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(os.urandom(15 * MIB)).decode()}
    with Pipe(cwd=tmp_path) as pipe:
        pipe.open_session()
        pipe.write(pipe.prompt("x" * 200_000))
        assert pipe.answer(3)["result"]["stopReason"] == "end_turn"
        params = {"sessionId": pipe.session_id, "prompt": [image]}
        pipe.write({"id": 4, "method": "session/prompt", "params": params}, {"id": 5, "method": "session/list"})
        assert {pipe.read_until(lambda message: message.get("id") in (4, 5))["id"] for _ in range(2)} == {4, 5}


# jupyter-ai-contrib/jupyter-ai-acp-client#32
@pytest.mark.anyio
async def test_a_long_answer_of_the_editor_is_read(tmp_path: Path) -> None:
    text = "0123456789abcde\n" * (5 * MIB // 16)
    path = str(tmp_path / "big.txt")
    read: list[int] = []
    agent = Agent("reader")

    @agent.tool(kind="read", permission="allow")
    async def measure(context: ToolContext) -> str:
        """Measure the file."""
        read.append(len((await context.workspace.read_text(path)).text))
        return "done"

    @agent.on_prompt
    async def handle(turn: Turn) -> None:
        await turn.call_tool("measure")

    editor = FakeEditor(buffers={path: text})
    async with TestClient(agent, editor=editor, cwd=tmp_path).connect() as client:
        assert (await client.prompt("go")).tool_statuses == ["pending", "in_progress", "completed"]
    assert read == [len(text)]


# anomalyco/opencode#17016
@pytest.mark.anyio
async def test_no_line_of_ours_is_too_long_for_a_reader_with_a_small_limit() -> None:
    command = f"{sys.executable} -c \"print('a line of what a tool prints, with a quote: \\x22' * 6000)\""
    model = PlayedModel([ToolUse("run_command", {"command": command})], [TextDelta("long " * 40_000)])
    agent = Agent("verbose", model=model, tools=coding_tools())
    async with TestClient(agent).connect() as client:
        result = await client.prompt("print a lot")
        assert len(result.text) == 200_000
        assert result.tool_call.status == "completed"
        sizes = [frame.size for frame in client.transcript.received()]
        assert max(sizes) < 2 * 64 * 1024  # what is shown of one output is 64 KiB, and JSON escapes some of it
        chunks = [frame.size for frame in client.transcript.received("session/update") if "chunk" in str(frame)]
        assert max(chunks) < 64 * 1024
        (raw,) = {str(call.raw_output)[:80] for call in result.tool_calls}
        assert "a line of" not in raw


# anomalyco/opencode#13634, gptme/gptme#1268, openclaw/acpx#160, nexu-io/open-design#717
@requirement("stdout-only-messages")
@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        ((), {"PYTHONWARNINGS": "always", "PYTHONDEVMODE": "1"}),
        (("--log-level", "debug"), {}),
        ((), {"TERM": "", "FORCE_COLOR": "1"}),
    ],
    ids=["warnings", "debug log", "colours"],
)
def test_nothing_but_messages_is_on_stdout_in_a_home_that_is_empty(
    arguments: tuple[str, ...], environment: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(home)} | environment
    with Pipe(*arguments, cwd=tmp_path, env=env, start_new_session=True) as pipe:
        pipe.open_session()
        pipe.write(pipe.prompt("hello"))
        assert pipe.answer(3)["result"] == {"stopReason": "end_turn"}
        assert all(message["jsonrpc"] == "2.0" for message in pipe.received)


BAD_LINES: list[tuple[bytes, list[tuple[Any, int]]]] = [
    (b"{not json", [(None, -32700)]),
    (b"\xff\xfe\x00", [(None, -32700)]),
    (b"42", [(None, -32600)]),
    (b'"x"', [(None, -32600)]),
    (b"[]", [(None, -32600)]),
    (b'[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}]', [(None, -32600)]),
    (b'{"id":7}', [(7, -32600)]),
    (b'{"jsonrpc":"2.0","id":8,"method":"session/new","params":null}', [(8, -32602)]),
    (b'{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":[]}', [(9, -32602)]),
    (b'{"jsonrpc":"2.0","id":"a","method":"nobody/knows"}', [("a", -32601)]),
    (b"", []),
    (b"   \t", []),
    (b"\r", []),
]


# zed-industries/codex-acp#177, modelcontextprotocol/rust-sdk#825, toolboxmd/openbot#110, earendil-works/pi#1912
def test_each_bad_line_costs_itself_only(tmp_path: Path) -> None:
    """An error each, and what has an id gets it back; blank lines get nothing, and CRLF is a line end too."""
    with Pipe(cwd=tmp_path) as pipe:
        pipe.open_session()
        assert pipe.process.stdin is not None
        for number, (line, expected) in enumerate(BAD_LINES, 100):
            good = msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": "session/list"})
            pipe.process.stdin.write(line + b"\n" + good + b"\r\n")
            pipe.process.stdin.flush()
            answers = []
            while (message := pipe.read()).get("id") != number:
                if "method" not in message:
                    answers.append((message["id"], message["error"]["code"]))
            assert (line, answers) == (line, expected)
            assert "result" in message


# agentclientprotocol/rust-sdk#228
@requirement("jsonrpc-notification", "extension-ignored")
@pytest.mark.anyio
async def test_no_notification_is_answered_however_odd() -> None:
    async with TestClient(handler_agent(lambda turn: turn.send_text("hi"))).connect() as client:
        await client.new_session()
        heard = len(client.transcript.received())
        client.notify("_vendor.x/changed", {})
        client.notify("session/cancel", {})
        client.notify("session/cancel", {"sessionId": 7})
        client.notify("$/whatever")
        client.notify("session/prompt", {"sessionId": client.session_id})
        client.send_raw(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"x"}}\n')
        client.send_raw(b'{"jsonrpc":"2.0","id":4711,"result":{}}\n')
        await client.list_sessions()
        assert len(client.transcript.received()) == heard + 1
        assert (await client.prompt("still there?")).text == "hi"


# carlos-algms/agentic.nvim#314, StarTrail-org/LEANN#384
@requirement("extension-answered")
@pytest.mark.anyio
async def test_a_request_that_nobody_knows_is_answered_before_and_after_the_handshake() -> None:
    async with TestClient(Agent("any")).connect(initialize=False) as client:
        for method in ("server/discover", "_x/y"):
            client.start_request(method, id=method)
            assert (await client.wait_for_response(method)).message["error"]["code"] == -32601
        await client.initialize()
        for method in ("session/set_model", "_x/z"):
            client.start_request(method, id=method)
            assert (await client.wait_for_response(method)).message["error"]["code"] == -32601


SEPARATORS = "\u2028\u2029\x85\v\f\x1c\x1d\x1e\r\n"


# earendil-works/pi#1908, svkozak/pi-acp#41
@requirement("line-per-message")
def test_what_other_readers_take_for_a_line_end_is_text_to_us_and_escaped_for_them(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    with Pipe("echo:agent", cwd=tmp_path) as pipe:
        pipe.open_session()
        pipe.write(pipe.prompt(f"a{SEPARATORS}b"))
        assert pipe.process.stdout is not None
        line = pipe.process.stdout.readline().decode()
        message = msgspec.json.decode(line)
    assert message["params"]["update"]["content"]["text"] == f"a{SEPARATORS}b"
    assert len(line.splitlines()) == 1


# xenodium/agent-shell#455, agentclientprotocol/typescript-sdk#91
@requirement("update-gated")
@pytest.mark.anyio
async def test_a_client_that_opted_into_nothing_is_told_stable_kinds_only() -> None:
    plan = ToolUse("plan_it")
    model = PlayedModel([ThoughtDelta("Hm."), TextDelta("So."), UsageDelta(10, 5, 1000), plan], [TextDelta("Done.")])
    agent = Agent("full", model=model)

    @agent.tool(permission="allow", kind="think")
    async def plan_it(context: ToolContext) -> str:
        """Plan."""
        context.send_plan([PlanEntry("one")])
        return "planned"

    @agent.command("note")
    async def note(turn: Turn, arguments: str) -> None:
        """Raise a notice."""
        turn.send_notice("warning", "Careful", "with that")

    async with TestClient(agent).connect() as client:
        await client.prompt("everything")
        noted = await client.prompt("/note")
        for _ in range(20):
            await client.prompt("/note")
        await client.prompt("/compact")
        await client.set_mode("plan")
        await client.list_sessions()
        assert "Careful" in noted.text
        assert {update.kind for update in client.updates()} <= STABLE_KINDS
        ids = [update.fields["messageId"] for update in client.updates(kind="agent_message_chunk")]
        notices = [each for each in client.updates(kind="agent_message_chunk") if "Careful" in each.text]
        assert len(notices) == 21
        assert all(ids.count(notice.fields["messageId"]) == 1 for notice in notices)

"""Which MCP servers a session gets, from whom, in which shapes; and what the user reads of those that fail."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from acp import schema

from tests.e2e.editor import OfficialEditor, Pipe, is_alive, official
from tests.e2e.mcp_scenes import (
    environment,
    initialize,
    new_session,
    plain,
    play,
    processes_noted,
    prompt,
    rows,
    server_json,
    shown,
    stdio,
    without_the_extra,
)
from tests.e2e.test_process import wait_for

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

BROKEN = {
    "missing": "The command 'no-such-program' was not found, or cannot be executed.",
    "exits": "It ended with status 1. Its last words: no configuration; API_TOKEN is [redacted]",
    "nobody": "It cannot be reached: ",
}


def ten_servers() -> list[Any]:
    good = [plain("good", f"good{number}") for number in range(7)]
    return [
        *good[:3],
        stdio("missing", "no-such-program"),
        plain("exits", API_TOKEN="s3cret-token"),
        schema.HttpMcpServer(type="http", name="nobody", url="http://127.0.0.1:9/mcp", headers=[]),
        *good[3:],
    ]


async def test_of_ten_servers_three_broken_ones_are_named_with_their_reasons_and_seven_work(tmp_path: Path) -> None:
    scenario = play(tmp_path, {"go": [(f"mcp__good{number}__work", {}) for number in range(7)]})
    editor = OfficialEditor()
    async with official(editor, "--scenario", scenario, state=tmp_path / "s") as (agent, _):
        start = time.monotonic()
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=ten_servers())
        assert time.monotonic() - start < 1
        assert await prompt(agent, session.session_id, "go") == "end_turn"
        assert [row["status"] for row in rows(editor)] == ["completed"] * 7
        for name, reason in BROKEN.items():
            assert f"The MCP server {name} cannot be used: {reason}" in editor.text()
        editor.updates.clear()
        assert await prompt(agent, session.session_id, "/mcp") == "end_turn"
        listed = editor.text().splitlines()
        for number in range(7):
            assert f"- good{number}: connected, 1 tool" in listed
        for name, reason in BROKEN.items():
            assert f"- {name}: failed ({reason}" in editor.text()
        editor.updates.clear()
        assert await prompt(agent, session.session_id, "go") == "end_turn"
        assert editor.text() == "Done."  # what failed was said


def test_a_client_that_has_notices_reads_of_a_failure_in_a_notice(tmp_path: Path) -> None:
    with Pipe("--scenario", play(tmp_path, {"go": []}), cwd=tmp_path) as pipe:
        initialize(pipe, clientCapabilities={"session": {"notices": {}}})
        new_session(pipe, [server_json(name="missing", command="no-such-program")])
        pipe.write(pipe.prompt("go"))
        assert pipe.answer(3)["result"] == {"stopReason": "end_turn"}
        updates = [message["params"]["update"] for message in pipe.received if message.get("method")]
    (notice,) = [update for update in updates if "notice" in update["sessionUpdate"]]
    assert f"The MCP server missing cannot be used: {BROKEN['missing']}" in str(notice).replace("\\'", "'")


async def test_servers_are_connected_in_new_load_and_resume(tmp_path: Path) -> None:
    scenario = play(tmp_path, {"go": [("mcp__good__work", {})]})
    editor = OfficialEditor("allow_always")
    servers = [plain("good")]
    async with official(editor, "--scenario", scenario, state=tmp_path / "s") as (agent, _):
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=servers)
        await prompt(agent, session.session_id, "go")
        await agent.close_session(session_id=session.session_id)
        await agent.load_session(cwd=str(tmp_path), session_id=session.session_id, mcp_servers=servers)
        await prompt(agent, session.session_id, "go")
        await agent.close_session(session_id=session.session_id)
        await agent.resume_session(cwd=str(tmp_path), session_id=session.session_id, mcp_servers=servers)
        await prompt(agent, session.session_id, "go")
    assert [(row["status"], shown(row)) for row in rows(editor)] == [("completed", "done")] * 3


def test_a_session_that_is_open_gets_the_servers_of_its_next_load_and_keeps_those_that_are_the_same(
    tmp_path: Path,
) -> None:
    pids = tmp_path / "pids"
    one, two = (server_json("good", name=name, env={"PID_FILE": str(pids)}) for name in ("one", "two"))
    with Pipe("--scenario", play(tmp_path, {"go": []}), cwd=tmp_path) as pipe:
        initialize(pipe)
        params = {"sessionId": new_session(pipe, [one]), "cwd": str(tmp_path)}
        for number, (method, servers, shown_now) in enumerate(
            [
                ("session/resume", [one], "- one: connected, 1 tool"),
                ("session/load", [two], "- two: connected, 1 tool"),
                ("session/load", [], "This session has no MCP servers."),
            ]
        ):
            pipe.write({"id": 100 + number, "method": method, "params": params | {"mcpServers": servers}})
            assert "result" in pipe.answer(100 + number)
            pipe.received.clear()
            pipe.write(pipe.prompt("/mcp", number + 2))
            assert pipe.answer(number + 2)["result"] == {"stopReason": "end_turn"}
            assert shown_now in str(pipe.received)
            assert len(processes_noted(pids)) == min(number + 1, 2)
        wait_for(lambda: not any(map(is_alive, processes_noted(pids))))


def test_servers_are_connected_for_a_fork(tmp_path: Path) -> None:
    scenario = play(tmp_path, {"go": [("mcp__good__work", {})]})
    with Pipe("--scenario", scenario, "--unstable", "fork", cwd=tmp_path) as pipe:
        initialize(pipe)
        params = {"sessionId": new_session(pipe, []), "cwd": str(tmp_path), "mcpServers": [server_json("good")]}
        pipe.write({"id": 5, "method": "session/fork", "params": params})
        pipe.session_id = pipe.answer(5)["result"]["sessionId"]
        pipe.write({"id": 6, "method": "session/set_mode", "params": {"sessionId": pipe.session_id, "modeId": "auto"}})
        pipe.write(pipe.prompt("go"))
        assert pipe.answer(3)["result"] == {"stopReason": "end_turn"}
    assert "'text': 'done'" in str(pipe.received)


@pytest.mark.parametrize(
    "server",
    [
        server_json(env=[{"name": "GIVEN", "value": "value"}]),
        server_json(env={"GIVEN": "value"}),
        server_json(env={"GIVEN": "value"}, type="stdio"),
    ],
    ids=["list", "object", "type"],
)
def test_a_server_is_taken_in_every_shape_and_its_environment_is_small(server: dict[str, Any], tmp_path: Path) -> None:
    scenario = play(tmp_path, {"go": [("mcp__environment__work", {})]})
    with Pipe("--scenario", scenario, "--mode", "auto", cwd=tmp_path, env=environment(UNRELATED="1")) as pipe:
        initialize(pipe)
        new_session(pipe, [server])
        pipe.write(pipe.prompt("go"))
        assert pipe.answer(3)["result"] == {"stopReason": "end_turn"}
    told = str(pipe.received)
    assert '"GIVEN": "value"' in told
    assert "UNRELATED" not in told


@pytest.mark.parametrize(
    "params", [{}, {"mcpServers": None}, {"mcpServers": [server_json(env=None, args=None, command="true")]}]
)
def test_what_is_null_or_left_out_is_empty(params: dict[str, Any], tmp_path: Path) -> None:
    with Pipe("--scenario", play(tmp_path, {"go": []}), cwd=tmp_path) as pipe:
        initialize(pipe)
        pipe.write({"id": 2, "method": "session/new", "params": {"cwd": str(tmp_path)} | params})
        pipe.session_id = pipe.answer(2)["result"]["sessionId"]
        pipe.write(pipe.prompt("go"))
        assert pipe.answer(3)["result"] == {"stopReason": "end_turn"}


BAD: list[tuple[object, str, str]] = [
    ("npx", "$.mcpServers[1]", "Expected `object`"),
    (server_json(name=3), "$.mcpServers[1].name", "Expected `str`"),
    (server_json(name=" "), "$.mcpServers[1]", "no name"),
    (server_json(command=""), "$.mcpServers[1]", "no command"),
    (server_json(command="./server"), "$.mcpServers[1]", "relative path"),
    (server_json(env=[{"name": "A"}]), "$.mcpServers[1].env[0].value", "required"),
    (server_json(env={"A": 1}), "$.mcpServers[1].env[0].value", "Expected `str`"),
    (server_json(args="run"), "$.mcpServers[1].args", "Expected `array`"),
    ({"type": "http", "name": "web"}, "$.mcpServers[1].url", "required"),
    ({"type": "http", "name": "web", "url": "mailto:me"}, "$.mcpServers[1]", "http or https"),
    ({"type": "http", "name": "web", "url": "http://h", "headers": {"A B": "c"}}, "$.mcpServers[1]", "header"),
    ({"type": "acp", "name": "web", "id": "1"}, "$.mcpServers[1]", "acp"),
    ({"type": "ws", "name": "web", "url": "ws://h"}, "$.mcpServers[1]", "ws"),
]


def test_a_bad_server_is_refused_by_its_path_and_the_connection_lives(tmp_path: Path) -> None:
    with Pipe(cwd=tmp_path) as pipe:
        initialize(pipe)
        for server, path, words in BAD:
            for method in ("session/new", "session/load", "session/resume"):
                params = {"sessionId": "x", "cwd": str(tmp_path), "mcpServers": [server_json(), server]}
                pipe.write({"id": 2, "method": method, "params": params})
                error = pipe.answer(2)["error"]
                assert (error["code"], error["data"]["path"]) == (-32602, path)
                assert words in error["data"]["details"]
        new_session(pipe, [])


def test_without_the_extra_each_server_is_a_failure_that_names_the_pip_line_and_the_session_works(
    tmp_path: Path,
) -> None:
    scenario = play(tmp_path, {"go": [("update_plan", {"entries": []})]})
    with Pipe("--scenario", scenario, cwd=tmp_path, env=environment(**without_the_extra(tmp_path))) as pipe:
        initialized = initialize(pipe)
        assert initialized["agentCapabilities"].get("mcpCapabilities", {}) == {}
        web = {"type": "http", "name": "web", "url": "http://127.0.0.1:9/mcp", "headers": []}
        new_session(pipe, [server_json(name="one"), web])
        pipe.write(pipe.prompt("go"))
        assert pipe.answer(3)["result"] == {"stopReason": "end_turn"}
        told = str(pipe.received)
        for name in ("one", "web"):
            assert f"{name} cannot be used: MCP servers need the official SDK: pip install 'acp-agent[mcp]'." in told
        assert "Done." in told


MODULES_AT_THE_END = """
import os, sys
sys.argv[0] = "acp-agent"
real = os._exit
os._exit = lambda code: (sys.stderr.write(" ".join(sys.modules)), sys.stderr.flush(), real(code))
from acp_agent.__main__ import main
main()
"""


def test_a_session_without_servers_never_imports_the_sdk(tmp_path: Path) -> None:
    requests = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 2, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}},
        {"id": 3, "method": "session/list"},
    ]
    lines = b"".join(msgspec.json.encode({"jsonrpc": "2.0"} | request) + b"\n" for request in requests)
    command = [sys.executable, "-c", MODULES_AT_THE_END, "--state-dir", str(tmp_path / "s")]
    done = subprocess.run(command, input=lines, capture_output=True, timeout=30, check=True)
    assert b'"id":3' in done.stdout
    loaded = set(done.stderr.decode().split())
    assert "acp_agent.server" in loaded
    assert not {"mcp", "mcp_types", "pydantic", "httpx2", "jsonschema"} & loaded
    assert not [name for name in loaded if name.startswith("acp_agent.mcp.") and name != "acp_agent.mcp.servers"]

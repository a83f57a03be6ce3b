"""A session's servers together: who works, who does not and why, and that nothing is left of them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from acp_agent.errors import ToolError
from acp_agent.mcp.servers import McpServer
from tests.mcp.support import call, is_running, plain_server, process_ids, running, told, tool_named, toolset_of, until
from tests.requirements import requirement

pytestmark = pytest.mark.anyio


@requirement("mcp-all")
async def test_ten_servers_of_which_three_are_broken_give_seven_toolsets_and_three_reasons() -> None:
    good = [plain_server("good", name=f"good {number}") for number in range(7)]
    broken = [
        plain_server("exits", name="quitter"),
        plain_server("silent", name="mute", start_timeout=2.0),
        McpServer(name="ghost", command="no-such-program-here"),
    ]
    async with running(toolset_of(*good[:3], *broken, *good[3:])) as toolset:
        assert [tool.name for tool in await toolset.tools()] == [f"mcp__good_{number}__work" for number in range(7)]
        reasons = {failure.name: failure.reason for failure in toolset.failures()}
        assert set(reasons) == {"quitter", "mute", "ghost"}
        assert "status 1" in reasons["quitter"]
        assert "no configuration" in reasons["quitter"]
        assert reasons["mute"].startswith("It did not answer within 2 seconds.")
        assert "'no-such-program-here' was not found" in reasons["ghost"]
        assert told(await call(toolset, "good_6__work")) == "done"
        began = time.monotonic()
        await toolset.aclose()
        assert time.monotonic() - began < 4


async def test_a_failure_is_given_once_for_the_notice_and_stays_in_the_status() -> None:
    async with running(toolset_of(McpServer(name="ghost", command="no-such-program-here"))) as toolset:
        assert [failure.name for failure in toolset.take_new_failures()] == ["ghost"]
        assert toolset.take_new_failures() == []
        (status,) = toolset.status()
        assert (status.name, status.state, status.tools) == ("ghost", "failed", [])


async def test_without_the_sdk_every_server_is_a_failure_that_names_the_pip_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.startswith("acp_agent.mcp.")]:
        if name.rpartition(".")[2] in ("connection", "answers"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    async with running(toolset_of(plain_server("good"), plain_server("good", name="other"))) as toolset:
        assert await toolset.tools() == []
        assert [failure.name for failure in toolset.take_new_failures()] == ["good", "other"]
        assert all("pip install 'acp-agent[mcp]'" in failure.reason for failure in toolset.failures())


async def test_no_server_is_ready_at_once() -> None:
    told_ready: list[bool] = []
    toolset = toolset_of()
    with anyio.fail_after(5):
        await toolset.run(ready=lambda: told_ready.append(True))
        await toolset.wait_ready(60)
        assert await toolset.tools() == []
        assert told_ready == [True]
        await toolset.aclose()


async def test_waiting_for_servers_ends_when_the_time_is_over() -> None:
    toolset = toolset_of(plain_server("silent", start_timeout=60.0))
    async with anyio.create_task_group() as group:
        group.start_soon(toolset.run)
        with anyio.fail_after(5):
            await toolset.wait_ready(0.05)
        assert [status.state for status in toolset.status()] == ["connecting"]
        with anyio.fail_after(10):
            await toolset.aclose()


async def test_closing_before_the_start_makes_the_start_do_nothing() -> None:
    toolset = toolset_of(plain_server("good"))
    with anyio.fail_after(5):
        await toolset.aclose()
        await toolset.run()
    assert await toolset.tools() == []


@pytest.mark.parametrize("mode", ["good", "grandchild", "stubborn"])
async def test_after_the_close_no_process_of_a_server_is_left(mode: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    async with running(toolset_of(plain_server(mode, env={"PID_FILE": str(pids)}))) as toolset:
        assert all(is_running(pid) for pid in process_ids(pids))
        await toolset.aclose()
        assert [pid for pid in process_ids(pids) if is_running(pid)] == []
        assert [status.state for status in toolset.status()] == ["closed"]


@pytest.mark.parametrize("mode", ["good", "grandchild", "stubborn", "silent"])
async def test_after_a_cancel_of_the_owner_no_process_of_a_server_is_left(mode: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    toolset = toolset_of(plain_server(mode, env={"PID_FILE": str(pids)}))
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(toolset.run)
            if mode == "silent":
                await until(lambda: pids.exists() and bool(process_ids(pids)))
            else:
                await toolset.wait_ready(20)
            group.cancel_scope.cancel()
    assert [pid for pid in process_ids(pids) if is_running(pid)] == []


async def test_a_server_reads_eof_when_the_agent_is_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    source = f"""
import anyio
from tests.mcp.support import plain_server, running, toolset_of

async def main():
    async with running(toolset_of(plain_server("good", env={{"PID_FILE": {str(pids)!r}}}))):
        print("connected", flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""
    root = Path(__file__).parents[2]
    with anyio.fail_after(40):
        async with await anyio.open_process([sys.executable, "-c", source], cwd=root, stderr=None) as agent:
            assert agent.stdout is not None
            output = b""
            while b"connected" not in output:
                output += await agent.stdout.receive()
            (server,) = process_ids(pids)
            assert is_running(server)
            agent.kill()
        await until(lambda: not is_running(server))


async def test_servers_of_the_same_and_of_similar_names_keep_their_tools_apart() -> None:
    servers = [plain_server("good", name=name) for name in ("a", "a", "a b", "a__b", "数据")]
    async with running(toolset_of(*servers)) as toolset:
        names = [tool.name for tool in await toolset.tools()]
        assert len(set(names)) == 5
        assert names[0] == "mcp__a__work"
        assert all(name.startswith("mcp__") and name.endswith("__work") for name in names)


async def test_instructions_of_servers_are_named_and_bounded() -> None:
    async with running(toolset_of(plain_server("good"), plain_server("wordy"))) as toolset:
        text = toolset.instructions()
        assert "# MCP server good\n\nAsk me about work." in text
        assert "# MCP server wordy" in text
        assert len(text) < 6_000


async def test_a_call_to_a_server_that_has_failed_says_why(tmp_path: Path) -> None:
    async with running(toolset_of(plain_server("dies"))) as toolset:
        tool: Any = await tool_named(toolset, "work")
        for _ in range(2):
            with pytest.raises(ToolError, match="went away in the middle of the call"):
                await tool.run(tool.describe({}, None), None)
        with pytest.raises(
            ToolError, match=r"is not connected\. It ended with status 9\. Its last words: out of cheese"
        ):
            await tool.run(tool.describe({}, None), None)
        assert await toolset.tools() == []
        assert [failure.name for failure in toolset.take_new_failures()] == ["dies"]

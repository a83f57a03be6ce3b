"""An agent in a process of its own: how it is started, and that it and its children are gone afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from acp_agent.jsonrpc.connection import Connection
from acp_agent.transports.subprocess import AgentProcess, spawn_agent
from tests.jsonrpc.support import Functions

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


async def read_line(agent: AgentProcess) -> bytes:
    data = bytearray()
    with anyio.CancelScope() as scope:

        def feed(block: bytes) -> None:
            data.extend(block)
            if data.endswith(b"\n"):
                scope.cancel()

        await agent.wire.pump(feed)
    return bytes(data)


async def gone(pid: int) -> None:
    """Wait until a process that is not our child is no more, or a zombie of somebody."""
    while True:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return
        except FileNotFoundError:
            return
        await anyio.sleep(0.01)


async def test_an_agent_is_spoken_with_over_its_wire() -> None:
    command = [sys.executable, "-m", "tests.transports.stdio_child", "asyncio"]
    with anyio.fail_after(20):
        async with spawn_agent(command, cwd=ROOT) as agent:
            async with Connection(agent.wire, Functions()) as connection:
                connection.start(connection.run, "reader")
                assert bytes(await connection.request("echo", {"a": 1})) == b'{"a":1}'
                assert agent.returncode is None
            assert await agent.wait() == 0
        assert agent.returncode == 0


async def test_it_gets_its_folder_and_its_environment(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['NAME'], os.getsid(0) == os.getpid(), flush=True)"
    with anyio.fail_after(20):
        async with spawn_agent(python(code), cwd=tmp_path, env={"NAME": "value"}) as agent:
            assert (await read_line(agent)).split() == [str(tmp_path).encode(), b"value", b"True"]


async def test_stderr_goes_where_it_is_told(tmp_path: Path) -> None:
    with anyio.fail_after(20), (tmp_path / "errors").open("wb") as errors:
        async with spawn_agent(python("import sys; sys.stderr.write('oops')"), stderr=errors) as agent:
            await agent.wait()
        async with spawn_agent(python("import sys; sys.stderr.write('x')"), stderr=subprocess.DEVNULL) as agent:
            await agent.wait()
    assert (tmp_path / "errors").read_text() == "oops"


async def test_a_command_that_does_not_exist_says_so_and_leaves_nothing_open() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        async with spawn_agent(["/no/such/agent"]):
            pass
    assert sorted(os.listdir("/proc/self/fd")) == before


async def test_an_agent_that_leaves_at_eof_is_not_hurried() -> None:
    code = "import sys; sys.stdin.read(); sys.exit(7)"
    with anyio.fail_after(20):
        async with spawn_agent(python(code)) as agent:
            pass
        assert agent.returncode == 7


async def test_an_agent_that_ignores_eof_is_terminated() -> None:
    with anyio.fail_after(20):
        async with spawn_agent(python("import time; print(1, flush=True); time.sleep(600)"), grace=0.1) as agent:
            await read_line(agent)
        assert agent.returncode == -signal.SIGTERM


async def test_an_agent_that_ignores_that_too_is_killed_with_all_its_children() -> None:
    code = """
import signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(subprocess.Popen(["sleep", "600"]).pid, flush=True)
time.sleep(600)
"""
    with anyio.fail_after(20):
        async with spawn_agent(python(code), grace=0.1) as agent:
            child = int(await read_line(agent))
        assert agent.returncode == -signal.SIGKILL
        await gone(child)


async def test_what_an_agent_leaves_behind_is_ended() -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"
    with anyio.fail_after(20):
        async with spawn_agent(python(code)) as agent:
            child = int(await read_line(agent))
            assert await agent.wait() == 0
        await gone(child)


async def test_it_is_ended_when_the_one_who_uses_it_fails_or_is_cancelled() -> None:
    agents: list[AgentProcess] = []

    async def fail_inside() -> None:
        async with spawn_agent(python("import time; time.sleep(600)"), grace=0.05) as agent:
            agents.append(agent)
            raise LookupError("mine")

    with anyio.fail_after(20):
        with pytest.raises(LookupError):
            await fail_inside()
        with anyio.CancelScope() as scope:
            async with spawn_agent(python("import time; time.sleep(600)"), grace=0.05) as agent:
                agents.append(agent)
                scope.cancel()
                await anyio.sleep_forever()
    assert [agent.returncode for agent in agents] == [-signal.SIGTERM] * 2


async def test_ending_one_that_has_ended_is_no_error() -> None:
    with anyio.fail_after(20):
        async with spawn_agent(python("pass")) as agent:
            await agent.wait()
            agent.terminate()
            agent.kill()

"""MCP servers as an editor passes them, and scenarios that call their tools."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
from acp import schema

from tests.e2e.editor import OfficialEditor, Pipe

SERVERS = Path(__file__).parents[1] / "mcp"

Use = tuple[str, dict[str, Any]]


def stdio(name: str, command: str, *args: str, **env: str) -> schema.McpServerStdio:
    """A server that is started; `env` is what the editor adds to its environment."""
    variables = [schema.EnvVariable(name=key, value=value) for key, value in env.items()]
    return schema.McpServerStdio(name=name, command=command, args=list(args), env=variables)


def plain(mode: str, name: str = "", **env: str) -> schema.McpServerStdio:
    """`server_plain.py` in one of its modes: it starts in no time."""
    return stdio(name or mode, sys.executable, str(SERVERS / "server_plain.py"), mode, **env)


def sdk(name: str = "sdk", **env: str) -> schema.McpServerStdio:
    """`server_sdk.py` over stdio."""
    return stdio(name, sys.executable, str(SERVERS / "server_sdk.py"), **env)


@asynccontextmanager
async def sdk_at_an_address(
    name: str = "sdk",
) -> AsyncIterator[tuple[schema.HttpMcpServer, asyncio.subprocess.Process]]:
    """`server_sdk.py` over streamable HTTP on loopback, and its process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVERS / "server_sdk.py"), "http", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        yield schema.HttpMcpServer(type="http", name=name, url=f"http://127.0.0.1:{port}/mcp", headers=[]), process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def play(folder: Path, turns: Mapping[str, Sequence[Use]]) -> str:
    """A scenario file: for the prompt that is named, these tools are used one after the other, then `Done.` is said."""
    lines = ['name = "mcp"']
    for prompt, uses in turns.items():
        lines += ["", "[[turns]]", f"when = {toml(f'^{prompt}$')}"]
        for name, arguments in uses:
            step = {"type": "tool_use", "name": name, "arguments": arguments}
            lines += ["[[turns.replies]]", f"steps = [{toml(step)}]"]
        lines += ["[[turns.replies]]", 'steps = [{ type = "text", text = "Done." }]']
    path = folder / "scenario.toml"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def toml(value: object) -> str:
    """A value as it is written behind `=`."""
    match value:
        case dict():
            return "{ " + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case _:
            return json.dumps(value)


async def prompt(agent: Any, session_id: str, text: str, *, seconds: float = 60.0) -> str:
    """One turn; its stop reason."""
    async with asyncio.timeout(seconds):
        answer = await agent.prompt(session_id=session_id, prompt=[acp.text_block(text)])
    return str(answer.stop_reason)


def rows(editor: OfficialEditor) -> list[dict[str, Any]]:
    """The calls that the editor shows, in order, each with what it was told of it last."""
    found: dict[str, dict[str, Any]] = {}
    for update in editor.updates:
        if isinstance(update, schema.ToolCallStart | schema.ToolCallProgress):
            fields = update.model_dump(by_alias=True, exclude_unset=True, exclude={"session_update"})
            found.setdefault(update.tool_call_id, {}).update(fields)
    return list(found.values())


def shown(row: Mapping[str, Any]) -> str:
    """The texts of a call."""
    return "\n".join(item["content"].get("text", "") for item in row["content"] if item["type"] == "content")


def processes_noted(path: Path) -> list[int]:
    """The process ids that servers wrote into their PID_FILE."""
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def everything() -> list[str] | None:
    """The command of npm's server-everything, if it is installed where `MCP_SERVER_EVERYTHING` says or on PATH."""
    found = os.environ.get("MCP_SERVER_EVERYTHING") or shutil.which("mcp-server-everything")
    return [found, "stdio"] if found else None


# over a plain pipe ----------------------------------------------------------------------------------------------------

HIDE_THE_SDK = """
import sys
from importlib.machinery import PathFinder

class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in ("mcp", "mcp_types")
        return None if hidden else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
"""


def server_json(mode: str = "environment", **fields: Any) -> dict[str, Any]:
    """`server_plain.py` as it is on the wire."""
    args = [str(SERVERS / "server_plain.py"), mode]
    return {"name": mode, "command": sys.executable, "args": args, "env": []} | fields


def environment(**added: str) -> dict[str, str]:
    """For a process."""
    return dict(os.environ) | added


def without_the_extra(folder: Path) -> dict[str, str]:
    """Variables under which a Python program finds no MCP SDK."""
    (folder / "hiding").mkdir()
    (folder / "hiding" / "sitecustomize.py").write_text(HIDE_THE_SDK)
    return {"PYTHONPATH": str(folder / "hiding")}


def initialize(pipe: Pipe, **params: Any) -> dict[str, Any]:
    pipe.write({"id": 1, "method": "initialize", "params": {"protocolVersion": 1} | params})
    result: dict[str, Any] = pipe.answer(1)["result"]
    return result


def new_session(pipe: Pipe, servers: Sequence[object], request_id: int = 99) -> str:
    """Open a session in the pipe's folder; prompts go there."""
    params = {"cwd": str(pipe.cwd), "mcpServers": servers}
    pipe.write({"id": request_id, "method": "session/new", "params": params})
    pipe.session_id = pipe.answer(request_id)["result"]["sessionId"]
    return pipe.session_id

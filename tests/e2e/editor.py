"""An editor made of the official SDK, and the raw pipe of one: both drive the installed program as a subprocess."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import msgspec
from acp import schema

AGENT = [sys.executable, "-m", "acp_agent"]
LIFE_SECONDS = 60.0


class OfficialEditor(acp.Client):
    """Answers permissions with the first option of `kind`, and keeps all that it was told. It can do nothing else."""

    def __init__(self, kind: str = "allow_once") -> None:
        self.kind = kind
        self.updates: list[Any] = []
        self.asked: list[schema.ToolCallUpdate] = []
        self.question_open = asyncio.Event()
        self.never_answer = False
        self.seen: Callable[[Any], None] = lambda update: None

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **kwargs: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append(tool_call)
        self.question_open.set()
        if self.never_answer:
            await asyncio.Event().wait()
        chosen = next(option for option in options if option.kind == self.kind)
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        )

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)
        self.seen(update)

    def text(self) -> str:
        return "".join(update.content.text for update in self.updates if isinstance(update, schema.AgentMessageChunk))

    def statuses(self, kind: str) -> list[str]:
        """The statuses that the calls of this kind were given, in order."""
        started = [update for update in self.updates if isinstance(update, schema.ToolCallStart)]
        ids = {start.tool_call_id for start in started if start.kind == kind}
        return [
            update.status
            for update in self.updates
            if isinstance(update, schema.ToolCallStart | schema.ToolCallProgress)
            and update.tool_call_id in ids
            and update.status
        ]

    async def until(self, wanted: Callable[[Any], bool]) -> Any:
        """The first update, past or to come, that is wanted."""
        for update in self.updates:
            if wanted(update):
                return update
        found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def look(update: Any) -> None:
            if wanted(update) and not found.done():
                found.set_result(update)

        self.seen = look
        return await found


@asynccontextmanager
async def official(
    editor: OfficialEditor,
    *arguments: str,
    state: Path,
    capabilities: schema.ClientCapabilities | None = None,
    unstable: bool = False,
) -> AsyncIterator[tuple[Any, Any]]:
    """The installed program, driven by the SDK's client: the connection, initialized, and the process."""
    command = [*AGENT, "serve", *arguments, "--state-dir", str(state)]
    spawned = acp.spawn_agent_process(editor, *command, env=dict(os.environ), use_unstable_protocol=unstable)
    async with spawned as (connection, process):
        await connection.initialize(protocol_version=1, client_capabilities=capabilities or schema.ClientCapabilities())
        yield connection, process


class Pipe:
    """The program behind plain pipes: what is written and read are lines. It is ended when a test hangs."""

    def __init__(self, *arguments: str, cwd: Path, **options: Any) -> None:
        command = [*AGENT, "serve", *arguments, "--state-dir", str(cwd / "state")]
        self.cwd = cwd
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, **options
        )
        self.session_id = ""
        self.received: list[dict[str, Any]] = []
        self._watchdog = threading.Timer(LIFE_SECONDS, self.process.kill)
        self._watchdog.start()

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *_: object) -> None:
        self._watchdog.cancel()
        self.process.kill()
        self.process.wait(5)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue

    def write(self, *messages: dict[str, Any]) -> None:
        """In one write."""
        assert self.process.stdin is not None
        data = b"".join(msgspec.json.encode({"jsonrpc": "2.0"} | message) + b"\n" for message in messages)
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the agent closed its output"
        message: dict[str, Any] = msgspec.json.decode(line)
        self.received.append(message)
        return message

    def read_until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while not wanted(message := self.read()):
            pass
        return message

    def answer(self, request_id: int) -> dict[str, Any]:
        return self.read_until(lambda message: message.get("id") == request_id and "method" not in message)

    def open_session(self) -> str:
        self.write(
            {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
            {"id": 2, "method": "session/new", "params": {"cwd": str(self.cwd), "mcpServers": []}},
        )
        self.session_id = self.answer(2)["result"]["sessionId"]
        return self.session_id

    def prompt(self, text: str, request_id: int = 3) -> dict[str, Any]:
        """The message that prompts; it is not written."""
        params = {"sessionId": self.session_id, "prompt": [{"type": "text", "text": text}]}
        return {"id": request_id, "method": "session/prompt", "params": params}


def children_of(pid: int) -> list[int]:
    """All processes below `pid` that live."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, stack = [], [pid]
    while stack:
        for child in parents.get(stack.pop(), []):
            found.append(child)
            stack.append(child)
    return found


def is_alive(pid: int) -> bool:
    """Whether the process runs: a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def eventually(check: Callable[[], bool], *, seconds: float = 5.0) -> None:
    """Wait, within a deadline, for what the operating system does without telling."""
    async with asyncio.timeout(seconds):
        while not check():  # noqa: ASYNC110 -- nobody tells of another process's end
            await asyncio.sleep(0.01)

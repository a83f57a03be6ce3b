"""An editor made of the official SDK with files, forms and terminals, for many sessions at once.

Its files are on the disk, its terminals are processes, its user does in each session what a `Visit` says.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import acp
import msgspec
from acp import schema
from acp.connection import StreamDirection, StreamEvent

from acp_agent.testing.rules import check_transcript
from acp_agent.testing.transcript import Transcript
from tests.e2e.editor import AGENT, children_of, eventually
from tests.house_rules import check_house_rules
from tests.official import check_frames

Answer = Literal["allow_once", "reject_once"]


class Visit:
    """What the user does in one session: answers questions with `answer`, and stops the turn at one point or never.

    `stop_at_question` and `stop_at_call` count from 1: the user cancels while that question is open, or as soon as
    that call runs. `polite` says that the open question is answered `cancelled` then; else it is never answered.
    """

    def __init__(
        self,
        answer: Answer = "allow_once",
        *,
        stop_at_question: int | None = None,
        stop_at_call: int | None = None,
        polite: bool = True,
    ) -> None:
        self.answer = answer
        self.stop_at_question = stop_at_question
        self.stop_at_call = stop_at_call
        self.polite = polite
        self.calls: list[str] = []
        self.rows: dict[str, dict[str, Any]] = {}
        self.questions: list[Any] = []
        self.said = ""

    def statuses(self) -> list[str]:
        """The status of each call as it is now, in the order in which they were announced."""
        return [self.rows[call]["status"] for call in self.calls]


class Shell:
    """A terminal: a process with its output, its last bytes."""

    def __init__(self, process: asyncio.subprocess.Process, limit: int | None) -> None:
        self.process = process
        self.limit = limit or 1024 * 1024
        self.output = b""
        self.truncated = False
        self.watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        assert self.process.stdout is not None
        while block := await self.process.stdout.read(65536):
            self.output += block
            if len(self.output) > self.limit:
                self.output, self.truncated = self.output[-self.limit :], True
        await self.process.wait()

    def kill(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def status(self) -> dict[str, Any]:
        code = self.process.returncode
        if code is None:
            return {}
        return {"exit_code": code} if code >= 0 else {"signal": signal.Signals(-code).name}


class Workshop(acp.Client):
    """All sessions of one process. `can` names what it says it can: `read`, `write`, `terminal`, `form`."""

    def __init__(self, can: Sequence[str] = ()) -> None:
        self.can = set(can)
        self.visits: dict[str, Visit] = {}
        self.shells: dict[str, Shell] = {}
        self.released: Counter[str] = Counter()
        self.served: Counter[str] = Counter()
        self.agent: Any = None
        self.transcript = Transcript()

    def on_connect(self, conn: Any) -> None:
        self.agent = conn

    def observe(self, event: StreamEvent) -> None:
        direction: Literal["to_agent", "from_agent"] = (
            "from_agent" if event.direction == StreamDirection.INCOMING else "to_agent"
        )
        self.transcript.add(direction, event.message, msgspec.json.encode(event.message))

    def last_frames(self, session_id: str) -> str:
        frames = [frame for frame in self.transcript if frame.params.get("sessionId") == session_id]
        return "\n".join(map(str, frames[-10:]))

    def capabilities(self) -> schema.ClientCapabilities:
        fs = schema.FileSystemCapabilities(read_text_file="read" in self.can, write_text_file="write" in self.can)
        form = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities()) if "form" in self.can else None
        return schema.ClientCapabilities(fs=fs, terminal="terminal" in self.can, elicitation=form)

    # the user -------------------------------------------------------------------------------------------------------

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **kwargs: Any
    ) -> schema.RequestPermissionResponse:
        visit = self.visits[session_id]
        visit.questions.append(tool_call)
        if len(visit.questions) == visit.stop_at_question:
            await self.agent.cancel(session_id=session_id)
            if not visit.polite:
                await asyncio.Event().wait()
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        chosen = next(option for option in options if option.kind == visit.answer)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        visit = self.visits.get(session_id)
        if visit is None:  # a session's commands come before its visit begins
            return
        if isinstance(update, schema.AgentMessageChunk):
            visit.said += update.content.text
        if not isinstance(update, schema.ToolCallStart | schema.ToolCallProgress):
            return
        if isinstance(update, schema.ToolCallStart):
            visit.calls.append(update.tool_call_id)
        row = visit.rows.setdefault(update.tool_call_id, {})
        row |= update.model_dump(by_alias=True, exclude_unset=True, exclude={"session_update"})
        number = visit.calls.index(update.tool_call_id) + 1
        if update.status == "in_progress" and number == visit.stop_at_call:
            visit.stop_at_call = None
            await self.agent.cancel(session_id=session_id)

    async def complete_elicitation(self, elicitation_id: str, **kwargs: Any) -> None:
        raise AssertionError("nothing is asked in a browser")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise acp.RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self.served[method] += 1

    async def create_elicitation(self, message: str, mode: Any, **kwargs: Any) -> Any:
        self.served["form"] += 1
        return schema.AcceptElicitationResponse(action="accept", content={"answer": "blue"})

    # the files ------------------------------------------------------------------------------------------------------

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: Any
    ) -> schema.ReadTextFileResponse:
        self.served["read"] += 1
        try:
            return schema.ReadTextFileResponse(content=Path(path).read_bytes().decode())
        except FileNotFoundError:
            raise acp.RequestError.resource_not_found(path) from None

    async def write_text_file(self, session_id: str, path: str, content: str, **kwargs: Any) -> None:
        self.served["write"] += 1
        Path(path).write_bytes(content.encode())

    # the terminals --------------------------------------------------------------------------------------------------

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: Any = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **kwargs: Any,
    ) -> schema.CreateTerminalResponse:
        self.served["terminal"] += 1
        terminal_id = f"shell-{self.served['terminal']}"
        process = await asyncio.create_subprocess_exec(
            command,
            *(args or ()),
            cwd=cwd,
            env=os.environ | {each.name: each.value for each in env or ()},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        self.shells[terminal_id] = Shell(process, output_byte_limit)
        return schema.CreateTerminalResponse(terminal_id=terminal_id)

    async def terminal_output(self, session_id: str, terminal_id: str, **kwargs: Any) -> schema.TerminalOutputResponse:
        shell = self._shell(terminal_id)
        status = shell.status()
        return schema.TerminalOutputResponse(
            output=shell.output.decode(errors="replace"),
            truncated=shell.truncated,
            exit_status=schema.TerminalExitStatus(**status) if status else None,
        )

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> schema.WaitForTerminalExitResponse:
        shell = self._shell(terminal_id)
        await asyncio.shield(shell.watching)
        return schema.WaitForTerminalExitResponse(**shell.status())

    async def kill_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> None:
        self._shell(terminal_id).kill()

    async def release_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> None:
        self.released[terminal_id] += 1
        self.shells[terminal_id].kill()

    def _shell(self, terminal_id: str) -> Shell:
        if self.released[terminal_id]:
            raise acp.RequestError.resource_not_found(terminal_id)
        return self.shells[terminal_id]

    # the end --------------------------------------------------------------------------------------------------------

    async def check_everything(self) -> None:
        """Each frame is as the protocol has it, each terminal was released once, no process of one is left."""
        assert dict(self.released) == dict.fromkeys(self.shells, 1)
        async with asyncio.timeout(5):
            for shell in self.shells.values():
                await shell.watching
        for check in (check_frames, check_transcript, check_house_rules):
            check(self.transcript)


@asynccontextmanager
async def working(workshop: Workshop, *arguments: str, home: Path, **env: str) -> AsyncIterator[Any]:
    """The installed program with the workshop as its editor; `home` is the folder of its state and its `tmp`.

    At the end nothing may be left of what it made: no process, no temporary file, no terminal.
    """
    (home / "tmp").mkdir()
    command = [*AGENT, "serve", *arguments, "--state-dir", str(home / "state")]
    spawned = acp.spawn_agent_process(
        workshop,
        *command,
        env=os.environ | {"TMPDIR": str(home / "tmp"), "XDG_CONFIG_HOME": str(home)} | env,
        use_unstable_protocol=True,
        observers=[workshop.observe],
    )
    async with spawned as (agent, process):
        await agent.initialize(protocol_version=1, client_capabilities=workshop.capabilities())
        yield agent
        await eventually(lambda: children_of(process.pid) == [])
    assert list((home / "tmp").iterdir()) == []
    await workshop.check_everything()

"""Terminals of the fake editor: commands in processes of their own, their output kept up to a limit."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

import anyio
from anyio.abc import Process, TaskGroup

from acp_agent.errors import RequestError

__all__ = ["FakeTerminal", "FakeTerminals"]

END_SECONDS = 5.0


class FakeTerminal:
    """One command. `output` is its last bytes, `limit` of them at most, cut on a character boundary."""

    def __init__(self, terminal_id: str, process: Process, limit: int | None) -> None:
        self.terminal_id = terminal_id
        self.was_killed = False
        self.truncated = False
        self.exited = anyio.Event()
        self.released = anyio.Event()
        self._process = process
        self._limit = limit
        self._output = bytearray()

    @property
    def is_released(self) -> bool:
        return self.released.is_set()

    @property
    def output(self) -> str:
        return self._output.decode("utf-8", "ignore" if self.truncated else "replace")

    async def watch(self) -> None:
        """Collect the output until the command ends."""
        assert self._process.stdout is not None
        try:
            async for block in self._process.stdout:
                self._keep(block)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # it was closed under us, at the end
        await self._process.wait()
        self.exited.set()

    def _keep(self, block: bytes) -> None:
        self._output += block
        if self._limit is not None and len(self._output) > self._limit:
            self.truncated = True
            del self._output[: len(self._output) - self._limit]

    def status(self) -> dict[str, Any] | None:
        """The exit status as the protocol has it, None while the command runs."""
        code = self._process.returncode
        if code is None or not self.exited.is_set():
            return None
        return {"exitCode": code} if code >= 0 else {"signal": signal.Signals(-code).name}

    def kill(self) -> None:
        """End the command with all that it started."""
        self.was_killed = True
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # it has ended

    def release(self) -> None:
        """The agent gives it up: what still runs is ended."""
        self.released.set()
        if not self.exited.is_set():
            self.kill()

    async def aclose(self) -> None:
        self.release()
        with anyio.move_on_after(END_SECONDS, shield=True):
            await self._process.wait()
        with anyio.CancelScope(shield=True):
            await self._process.aclose()


class FakeTerminals:
    """All terminals of one editor. A released one is kept in `all` for the test to look at; the agent has it no more.

    With `forgetful`, waiting for the exit of a killed terminal lasts until it is released.
    """

    def __init__(self, *, forgetful: bool = False) -> None:
        self.all: dict[str, FakeTerminal] = {}
        self._forgetful = forgetful
        self._tasks: TaskGroup | None = None

    def attach(self, tasks: TaskGroup) -> None:
        """Where output is collected."""
        self._tasks = tasks

    @property
    def unreleased(self) -> list[str]:
        return [each.terminal_id for each in self.all.values() if not each.is_released]

    async def serve(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer one `terminal/*` request. Raises `RequestError`."""
        if method == "terminal/create":
            return await self._create(params)
        terminal = self.all.get(params.get("terminalId", ""))
        if terminal is None or terminal.is_released:
            raise RequestError(-32002, "Resource not found", {"terminalId": params.get("terminalId")})
        match method:
            case "terminal/output":
                status = terminal.status()
                output = {"output": terminal.output, "truncated": terminal.truncated}
                return output if status is None else output | {"exitStatus": status}
            case "terminal/wait_for_exit":
                await terminal.exited.wait()
                if self._forgetful and terminal.was_killed:
                    await terminal.released.wait()
                return terminal.status() or {}
            case "terminal/kill":
                terminal.kill()
                return {}
            case "terminal/release":
                terminal.release()
                return {}
        raise RequestError.method_not_found(method)

    async def aclose(self) -> None:
        for terminal in self.all.values():
            await terminal.aclose()

    async def _create(self, params: dict[str, Any]) -> dict[str, Any]:
        assert self._tasks is not None, "A FakeEditor works for the TestClient that it was given to."
        command, args = params["command"], params.get("args") or []
        variables = {each["name"]: each["value"] for each in params.get("env") or []}
        try:
            process = await anyio.open_process(
                [command, *args] if args else command,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.STDOUT,
                cwd=params.get("cwd"),
                env=os.environ | variables,
                start_new_session=True,
            )
        except OSError as error:
            raise RequestError(-32603, "The command cannot be started", {"details": str(error)}) from None
        terminal_id = f"term-{len(self.all) + 1}"
        terminal = self.all[terminal_id] = FakeTerminal(terminal_id, process, params.get("outputByteLimit"))
        self._tasks.start_soon(terminal.watch)
        return {"terminalId": terminal_id}

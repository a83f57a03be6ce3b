"""The editor behind a test client: its files with unsaved changes, its terminals, its forms.

Terminals are real processes. Each method can be made to misbehave, as the editors in the field do.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from acp_agent.errors import RequestError
from acp_agent.testing.terminals import FakeTerminals

__all__ = ["FakeEditor", "FormFunction", "Misbehaviour"]

Misbehaviour: TypeAlias = Literal["error", "empty", "null", "never"]
FormFunction: TypeAlias = Callable[[dict[str, Any]], "dict[str, Any] | Awaitable[dict[str, Any] | None] | None"]


class FakeEditor:
    """Files, terminals and forms for a `TestClient`; use one for each connection.

    `read`, `write` and `terminal` say what it can. `buffers` are unsaved texts by path, which win over the disk; with
    `save_writes` off, what the agent writes stays in them. `form` answers elicitation: "accept" with the schema's
    defaults, "decline", "cancel", or a function of the params that returns the values, or None to decline; None: it
    has no forms. `misbehave` maps methods to what they do instead: answer an "error", an "empty" object, "null", or
    "never". With `forgetful`, as some editors do it, a missing file reads as an empty one and a killed terminal says
    so only when its command would have ended anyway.
    """

    def __init__(
        self,
        *,
        read: bool = True,
        write: bool = True,
        terminal: bool = True,
        form: Literal["accept", "decline", "cancel"] | FormFunction | None = None,
        buffers: Mapping[str, str] | None = None,
        save_writes: bool = True,
        misbehave: Mapping[str, Misbehaviour] | None = None,
        forgetful: bool = False,
    ) -> None:
        self.read = read
        self.write = write
        self.terminal = terminal
        self.form = form
        self.buffers = dict(buffers or {})
        self.save_writes = save_writes
        self.misbehave = dict(misbehave or {})
        self.forgetful = forgetful
        self.terminals = FakeTerminals(forgetful=forgetful)
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def capabilities(self) -> dict[str, Any]:
        """What it says in `initialize`."""
        said: dict[str, Any] = {"fs": {"readTextFile": self.read, "writeTextFile": self.write}}
        said["terminal"] = self.terminal
        if self.form is not None:
            said["elicitation"] = {"form": {}}
        return said

    def called(self, method: str) -> list[dict[str, Any]]:
        """The params of each request for `method` so far."""
        return [params for name, params in self.calls if name == method]

    async def serve(self, method: str, params: dict[str, Any]) -> Any:
        """Answer one request. Raises `RequestError`."""
        self.calls.append((method, params))
        match self.misbehave.get(method):
            case "error":
                raise RequestError(-32603, "The editor failed")
            case "empty":
                return {}
            case "null":
                return None
            case "never":
                await anyio.sleep_forever()
        return await self._answer(method, params)

    def attach(self, tasks: TaskGroup) -> None:
        """Where its terminals collect their output: called by the test client."""
        self.terminals.attach(tasks)

    async def aclose(self) -> None:
        """End what runs in its terminals."""
        await self.terminals.aclose()

    async def _answer(self, method: str, params: dict[str, Any]) -> Any:
        match method:
            case "fs/read_text_file" if self.read:
                return {"content": await self._read(params["path"], params.get("line"), params.get("limit"))}
            case "fs/write_text_file" if self.write:
                await self._write(params["path"], params["content"])
                return None if self.forgetful else {}
            case "elicitation/create" if self.form is not None:
                return await self._fill_in(params)
            case _ if self.terminal and method.startswith("terminal/"):
                return await self.terminals.serve(method, params)
        raise RequestError.method_not_found(method)

    # files ----------------------------------------------------------------------------------------------------------

    async def _read(self, path: str, line: int | None, limit: int | None) -> str:
        text = self.buffers.get(path)
        if text is None:
            text = await to_thread.run_sync(self._read_disk, path)
        if line is None and limit is None:
            return text
        first = max((line or 1) - 1, 0)
        lines = text.splitlines(keepends=True)[first:]
        return "".join(lines if limit is None else lines[:limit])

    def _read_disk(self, path: str) -> str:
        try:
            with open(path, encoding="utf-8", newline="") as file:
                return file.read()
        except FileNotFoundError:
            if self.forgetful:
                return ""
            raise RequestError(-32002, "Resource not found", {"uri": path}) from None
        except (OSError, UnicodeDecodeError) as error:
            raise RequestError(-32603, "The editor cannot read this file", {"details": str(error)}) from None

    async def _write(self, path: str, text: str) -> None:
        if path in self.buffers or not self.save_writes:
            self.buffers[path] = text
        if self.save_writes:
            await to_thread.run_sync(_write_disk, path, text)

    # forms ----------------------------------------------------------------------------------------------------------

    async def _fill_in(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.form == "accept":
            properties = params.get("requestedSchema", {}).get("properties", {})
            values = {name: each["default"] for name, each in properties.items() if "default" in each}
            return {"action": "accept", "content": values}
        if not callable(self.form):
            return {"action": self.form}
        filled = self.form(params)
        chosen = await filled if inspect.isawaitable(filled) else filled
        return {"action": "decline"} if chosen is None else {"action": "accept", "content": chosen}


def _write_disk(path: str, text: str) -> None:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise RequestError(-32603, "The editor cannot write this file", {"details": str(error)}) from None

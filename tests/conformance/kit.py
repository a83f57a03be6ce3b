"""A conformance kit in small: its minimal client, and the mark that makes a test one row of it.

The client can nothing (`clientCapabilities: {}`), answers every permission request with the first option, and with
"cancelled" once it has cancelled. A row is MANDATORY (a MUST), CAPABILITY (what is advertised has to work), ADVISORY
(a SHOULD) or INFORMATIONAL (recorded only). `gate` is the path in the `initialize` result that has to be there, or
`modes` or `configOptions` for those that `session/new` tells of; without it the row is skipped.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
import pytest

from acp_agent.testing.transcript import Frame
from tests.official import check_frames

F = TypeVar("F", bound=Callable[..., None])
Tier: TypeAlias = Literal["MANDATORY", "CAPABILITY", "ADVISORY", "INFORMATIONAL"]

AGENT = [sys.executable, "-m", "acp_agent"]
SECONDS = 10.0  # for any answer
QUIET = 0.8  # how long is listened for what must not come
STOP_REASONS = {"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}
ABSENT: Any = object()
LONG = "Write a very long and detailed essay about the history of rivers, at least 2000 words."


class Row(NamedTuple):
    id: str
    tier: Tier
    gate: str = ""


def row(row_id: str, tier: Tier, gate: str = "") -> Callable[[F], F]:
    """Make the test this row of the kit: its id is in the test's name, and its gate is looked at first."""
    mark = pytest.mark.parametrize("gate", [pytest.param(Row(row_id, tier, gate), id=row_id)], indirect=True)

    def bind(test: F) -> F:
        bound: F = pytest.mark.usefixtures("gate")(mark(test))
        return bound

    return bind


def plain_environment(home: Path) -> dict[str, str]:
    """Ours, without what configures the agent, a key, or a keyring that has one."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("ACP_AGENT", "OPENAI"))}
    return ours | {"HOME": str(home), "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}


class MinimalClient:
    """One agent process, and what it said. Every wait has a deadline."""

    def __init__(self, cwd: Path, *arguments: str) -> None:
        self.cwd = cwd
        self.state = cwd / "state"
        command = [*AGENT, "serve", *arguments, "--state-dir", str(self.state)]
        env = plain_environment(self.state)
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=env)
        self.lines: list[bytes] = []
        self.frames: list[Frame] = []
        self.initialized: dict[str, Any] = {}
        self.has_cancelled = False
        self._last_id = 0
        self._incoming: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def close(self) -> None:
        """End the process, and hold all that it said against the official models and schema."""
        self.process.kill()
        self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        check_frames(self.frames)

    # saying ---------------------------------------------------------------------------------------------------------

    def send_line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, **message: Any) -> None:
        line = {"jsonrpc": "2.0"} | {name: value for name, value in message.items() if value is not ABSENT}
        self.frames.append(Frame(len(self.frames), 0.0, "to_agent", line, 0))
        self.send_line(msgspec.json.encode(line))

    def start(self, method: str, params: Any = ABSENT, *, id: Any = None) -> Any:
        """Send a request; its id."""
        if id is None:
            self._last_id += 1
            id = self._last_id
        self.send(id=id, method=method, params=params)
        return id

    def ask(self, method: str, params: Any = ABSENT, *, id: Any = None) -> dict[str, Any]:
        """Send a request, and wait for its response."""
        return self.answer(self.start(method, params, id=id))

    def result(self, method: str, params: Any = ABSENT) -> Any:
        """Ask what has to succeed."""
        response = self.ask(method, params)
        assert "result" in response, response
        return response["result"]

    # hearing --------------------------------------------------------------------------------------------------------

    def hear(self, seconds: float = SECONDS) -> dict[str, Any] | None:
        """The next message, None if there is none in time or the agent has gone. Permission requests are answered."""
        try:
            line = self._incoming.get(timeout=seconds)
        except queue.Empty:
            return None
        if not line:
            return None
        self.lines.append(line)
        message: dict[str, Any] = msgspec.json.decode(line)
        self.frames.append(Frame(len(self.frames), time.monotonic(), "from_agent", message, len(line)))
        if "id" in message and "method" in message:
            self._respond(message)
        return message

    def answer(self, request_id: Any) -> dict[str, Any]:
        """The response to a request."""
        while (message := self.hear()) is not None:
            if "method" not in message and message.get("id") == request_id:
                return message
        raise AssertionError(f"no answer to request {request_id!r}")

    def first_update(self) -> dict[str, Any]:
        while (message := self.hear()) is not None:
            if message.get("method") == "session/update":
                return message
        raise AssertionError("no update")

    def listen(self, seconds: float = QUIET) -> list[dict[str, Any]]:
        """What comes within that time."""
        heard, until = [], time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            message = self.hear(left)
            if message is not None:
                heard.append(message)
        return heard

    def heard(self, method: str) -> list[dict[str, Any]]:
        """All messages of a method so far, from the agent."""
        messages = (frame.message for frame in self.frames if frame.direction == "from_agent")
        return [message for message in messages if message.get("method") == method]

    def _respond(self, request: dict[str, Any]) -> None:
        if request["method"] != "session/request_permission":
            self.send(id=request["id"], error={"code": -32601, "message": "Method not found"})
            return
        first = request["params"]["options"][0]["optionId"]
        chosen = {"outcome": "cancelled"} if self.has_cancelled else {"outcome": "selected", "optionId": first}
        self.send(id=request["id"], result={"outcome": chosen})

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._incoming.put(line)
        self._incoming.put(b"")

    # the usual beginning --------------------------------------------------------------------------------------------

    def initialize(self) -> dict[str, Any]:
        self.initialized = self.result("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        return self.initialized

    def new_session(self, **more: Any) -> dict[str, Any]:
        """Open a session in the client's folder; the whole result."""
        result: dict[str, Any] = self.result("session/new", {"cwd": str(self.cwd), "mcpServers": []} | more)
        return result

    def open(self) -> str:
        """Initialize, and open a session; its id."""
        self.initialize()
        return str(self.new_session()["sessionId"])

    def start_prompt(self, session_id: str, *blocks: dict[str, Any], text: str = "hello", **more: Any) -> Any:
        prompt = [{"type": "text", "text": text}, *blocks]
        return self.start("session/prompt", {"sessionId": session_id, "prompt": prompt} | more)

    def prompt(self, session_id: str, *blocks: dict[str, Any], text: str = "hello", **more: Any) -> dict[str, Any]:
        """A turn that has to end with a stop reason; the result."""
        response = self.answer(self.start_prompt(session_id, *blocks, text=text, **more))
        assert response.get("result", {}).get("stopReason") in STOP_REASONS, response
        result: dict[str, Any] = response["result"]
        return result

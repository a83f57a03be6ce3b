"""`acp-agent replay FILE`: what `--trace` wrote, as a conversation that people can read.

Times are in seconds and count from the first frame. A trace says "in" and "out" as the agent does: what came in is the
client's.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TextIO, TypeAlias

import msgspec
from msgspec import Struct

from acp_agent.cli.plain import Lines, PlainStage
from acp_agent.cli.stage import Call, Choice, Director, clean, text_of_block
from acp_agent.cli.terminal import standard_output
from acp_agent.errors import AcpAgentError
from acp_agent.testing.transcript import Update

__all__ = ["replay"]

Direction: TypeAlias = Literal["in", "out"]

WHO: dict[Direction, str] = {"in": "client", "out": "agent"}
LONG = 160  # characters of params or a result


class TracedFrame(Struct, frozen=True):
    """A line of a trace. `time` is in seconds since 1970; `frame` is a string where what was sent was no JSON."""

    time: float
    direction: Direction
    frame: dict[str, Any] | str


class Request(Struct, frozen=True):
    """One that waits for its answer. `call` and `choices` are those of a permission question."""

    name: str
    time: float
    params: dict[str, Any]
    call: Call | None = None
    choices: list[Choice] = []


def replay(arguments: Namespace) -> None:
    """Show the whole file. Raises `AcpAgentError` if it cannot be read, or holds no frame."""
    path: Path = arguments.file
    try:
        with standard_output() as out, path.open("rb") as file:
            reader = TraceReader(out)
            for number, line in enumerate(file, 1):
                reader.read_line(number, line)
            reader.finish()
    except OSError as error:
        raise AcpAgentError(f"{path}: {error.strerror or error}") from None
    if not reader.count:
        raise AcpAgentError(f"{path} holds no frame; is it a file that --trace wrote?")


class TraceReader:
    """Shows one frame after the other; `count` is how many there were."""

    def __init__(self, out: TextIO) -> None:
        self.count = 0
        self._lines = Lines(out, self._stamp)
        self._stage = PlainStage(self._lines)
        self._start = self._now = 0.0
        self._open: dict[tuple[Direction, object], Request] = {}
        self._directors: dict[str, Director] = {}
        self._session_id = ""

    def read_line(self, number: int, line: bytes) -> None:
        """One line of the file; a bad one is named and skipped."""
        if not line.strip():
            return
        try:
            traced = msgspec.json.decode(line, type=TracedFrame)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._lines.block("skipped", f"line {number}: {clean(str(error))}")
            return
        if not self.count:
            self._start = traced.time
        self.count += 1
        self._now = traced.time
        try:
            self._read(traced.direction, traced.frame)
        except (AttributeError, KeyError, TypeError, ValueError):  # a trace holds what was said, right or wrong
            self._lines.block("skipped", f"line {number}: a frame of a shape that the protocol does not have")

    def finish(self) -> None:
        """Say what was left open, and how much there was."""
        self._note_unanswered()
        if self.count:
            self._lines.block("end", f"{self.count} frames")

    def _stamp(self) -> str:
        return f"{self._now - self._start:8.3f}  "

    def _read(self, direction: Direction, frame: dict[str, Any] | str) -> None:
        if isinstance(frame, str):
            self._lines.block(WHO[direction], f"sends what is no JSON: {shorten(clean(frame))}")
        elif "method" not in frame:
            self._read_answer(direction, frame)
        elif "id" in frame:
            self._read_request(direction, frame, object_of(frame.get("params")))
        else:
            self._read_notification(direction, str(frame["method"]), object_of(frame.get("params")))

    def _read_request(self, direction: Direction, frame: dict[str, Any], params: dict[str, Any]) -> None:
        method = clean(str(frame["method"]))
        if method == "initialize":
            self._begin_run()
        if "cwd" in params:
            self._directors[str(params.get("sessionId"))] = self._new_director(params)
        name = f"{method} #{clean(str(frame['id']))}"
        request = Request(name, self._now, params)
        if method == "session/request_permission":
            self._lines.block(WHO[direction], f"asks: {name}")
            request = self._ask(request, params)
        else:
            self._lines.block(WHO[direction], with_words(f"asks: {name}", params))
        if method == "session/prompt":
            blocks = params.get("prompt") or []
            self._director(params).prompt("\n".join(text_of_block(block) for block in blocks))
        self._open[direction, str(frame["id"])] = request

    def _ask(self, request: Request, params: dict[str, Any]) -> Request:
        offered = [object_of(option) for option in params.get("options") or []]
        choices = [Choice(*(str(option.get(key, "")) for key in ("optionId", "name", "kind"))) for option in offered]
        call = self._director(params).ask(object_of(params.get("toolCall")), choices)
        return msgspec.structs.replace(request, call=call, choices=choices)

    def _read_answer(self, direction: Direction, frame: dict[str, Any]) -> None:
        asker: Direction = "out" if direction == "in" else "in"
        request = self._open.pop((asker, str(frame.get("id"))), None)
        result = object_of(frame["error"] if "error" in frame else frame.get("result"))
        words = "answers with an error" if "error" in frame else "answers"
        if request is None:
            what = "what could not be read" if frame.get("id") is None else f"#{frame['id']}, which was not asked"
            self._lines.block(WHO[direction], with_words(f"{words}: {clean(what)}", result))
            return
        words = f"{words}: {request.name} after {self._now - request.time:.3f} s"
        self._lines.block(WHO[direction], with_words(words, result))
        if "sessionId" in result and "cwd" in request.params:
            self._directors[str(result["sessionId"])] = self._new_director(request.params)
        if request.call is not None and "error" not in frame:
            chosen = object_of(result.get("outcome")).get("optionId")
            choice = next((each for each in request.choices if each.id == chosen), None)
            self._director(request.params).answer(request.call, choice)

    def _read_notification(self, direction: Direction, method: str, params: dict[str, Any]) -> None:
        if method != "session/update":
            self._lines.block(WHO[direction], with_words(f"says: {clean(method)}", params))
            return
        fields = object_of(params.get("update"))
        kind = str(fields.get("sessionUpdate", "an update of no kind"))
        self._director(params).take(Update(self.count, self._now, str(params.get("sessionId")), kind, fields))

    def _director(self, params: dict[str, Any]) -> Director:
        """Who shows the session that is meant. A change of session is said."""
        session_id = str(params.get("sessionId"))
        if session_id != self._session_id:
            self._session_id = session_id
            self._lines.block("session", clean(session_id))
        if session_id not in self._directors:
            self._directors[session_id] = self._new_director(params)
        return self._directors[session_id]

    def _new_director(self, params: dict[str, Any]) -> Director:
        return Director(self._stage, str(params.get("cwd", "")), everything=True)

    def _begin_run(self) -> None:
        """A trace is added to: each start of the agent has ids and a beginning of its own."""
        self._note_unanswered()
        if self.count > 1:
            self._start = self._now
            self._lines.block("new run", "")
        self._open.clear()
        self._directors.clear()
        self._session_id = ""

    def _note_unanswered(self) -> None:
        if self._open:
            self._lines.block("note", "never answered: " + ", ".join(request.name for request in self._open.values()))


def object_of(value: object) -> dict[str, Any]:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def with_words(start: str, values: dict[str, Any]) -> str:
    """`start (cwd /tmp, clientInfo.name zed)`"""
    words = " ".join(clean(", ".join(words_of(values))).split())
    return f"{start} ({shorten(words)})" if words else start


def words_of(values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """The plain values, those inside of objects too; of a list only its length."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from words_of(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            yield f"{prefix}{name} [{len(value)}]"
        else:
            yield f"{prefix}{name} {value}"


def shorten(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]}..."

"""Everything that was said on a connection, in order, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import anyio
from msgspec import Struct

__all__ = ["Frame", "FrameObserver", "Transcript", "Update"]

Direction: TypeAlias = Literal["to_agent", "from_agent"]


class Frame(Struct, frozen=True):
    """One message. `index` is its place in the transcript, `at` the seconds since the connection began."""

    index: int
    at: float
    direction: Direction
    message: dict[str, Any]
    size: int

    @property
    def method(self) -> str | None:
        """None for a response."""
        return self.message.get("method")

    @property
    def id(self) -> Any:
        return self.message.get("id")

    @property
    def params(self) -> dict[str, Any]:
        return self.message.get("params") or {}

    @property
    def is_request(self) -> bool:
        return "method" in self.message and "id" in self.message

    @property
    def is_response(self) -> bool:
        return "method" not in self.message

    def __str__(self) -> str:
        arrow = "->" if self.direction == "to_agent" else "<-"
        return f"{self.index:4} {self.at:8.3f} {arrow} {shorten(repr(self.message))}"


class Update(Struct, frozen=True):
    """A `session/update` as it came: `kind` is its `sessionUpdate`, `fields` all of it, unknown kinds too."""

    index: int
    at: float
    session_id: str
    kind: str
    fields: dict[str, Any]

    @property
    def text(self) -> str:
        """The text of a chunk, empty for anything else."""
        content = self.fields.get("content")
        text = content.get("text") if isinstance(content, dict) else None
        return text if isinstance(text, str) else ""


FrameObserver: TypeAlias = Callable[[Frame], None]


class Transcript:
    """The frames of one connection, both directions, in the order in which the client sent and read them.

    `noise` are lines from the agent that are no JSON objects, `closed_at` is the index of the first frame after the
    client closed the agent's input. `observers` are called with each frame as it is added.
    """

    def __init__(self, *, keep: bool = True) -> None:
        self.frames: list[Frame] = []
        self.noise: list[bytes] = []
        self.closed_at: int | None = None
        self.observers: list[FrameObserver] = []
        self._keep = keep
        self._count = 0
        self._began = anyio.current_time()

    def add(self, direction: Direction, message: dict[str, Any], line: bytes) -> Frame:
        frame = Frame(self._count, anyio.current_time() - self._began, direction, message, len(line))
        self._count += 1
        if self._keep:
            self.frames.append(frame)
        for observer in self.observers:
            observer(frame)
        return frame

    def add_noise(self, line: bytes) -> None:
        self.noise.append(line)

    def close(self) -> None:
        """The client says nothing more."""
        self.closed_at = self._count

    def __iter__(self) -> Iterator[Frame]:
        return iter(self.frames)

    def __len__(self) -> int:
        return len(self.frames)

    # queries --------------------------------------------------------------------------------------------------------

    def sent(self, method: str | None = None) -> list[Frame]:
        """What the client sent, all or of one method."""
        return self._select("to_agent", method)

    def received(self, method: str | None = None) -> list[Frame]:
        """What the agent sent, all or of one method."""
        return self._select("from_agent", method)

    def response_to(self, request: Frame) -> Frame | None:
        """The first answer to a request of either side."""
        answers = (frame for frame in self.frames if frame.is_response and frame.direction != request.direction)
        return next((frame for frame in answers if frame.index > request.index and frame.id == request.id), None)

    def updates(self, session_id: str | None = None, kind: str | None = None) -> list[Update]:
        """The `session/update`s, of one session or all, of one kind or all."""
        found = (update_of(frame) for frame in self.received("session/update"))
        return [
            update
            for update in found
            if (session_id is None or update.session_id == session_id) and (kind is None or update.kind == kind)
        ]

    def outline(self) -> list[str]:
        """The conversation in words, a line a frame: for a failure's message, and to compare with."""
        return [outline_of(frame) for frame in self.frames]

    def tail(self, count: int = 12) -> str:
        """The last frames, for a failure's message."""
        return "\n".join(map(str, self.frames[-count:]))

    def _select(self, direction: Direction, method: str | None) -> list[Frame]:
        return [
            frame
            for frame in self.frames
            if frame.direction == direction and (method is None or frame.method == method)
        ]


def update_of(frame: Frame) -> Update:
    """The update in a `session/update` frame."""
    fields = frame.params.get("update") or {}
    return Update(frame.index, frame.at, frame.params.get("sessionId", ""), fields.get("sessionUpdate", ""), fields)


def outline_of(frame: Frame) -> str:
    arrow = ">" if frame.direction == "to_agent" else "<"
    if frame.is_response:
        error = frame.message.get("error")
        return f"{arrow} error {error.get('code')}" if isinstance(error, dict) else f"{arrow} result"
    if frame.method == "session/update":
        update = update_of(frame)
        status = update.fields.get("status")
        return f"{arrow} {update.kind} {status}" if isinstance(status, str) else f"{arrow} {update.kind}"
    return f"{arrow} {frame.method}"


def shorten(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"

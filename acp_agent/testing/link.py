"""The client's end of the wire, frame by frame: it can say anything, right or wrong, and keeps all that it hears.

It shares nothing with the agent's own connection but the wire, so that a mistake of one is seen by the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeGuard

import anyio
import msgspec

from acp_agent.errors import ConnectionClosed, RequestError
from acp_agent.testing.transcript import Frame, Transcript

__all__ = ["Asked", "ClientWire", "Link", "Receiver"]


class ClientWire(Protocol):
    """A wire whose writing half can end first."""

    async def pump(self, feed: Callable[[bytes], None]) -> None: ...

    def write(self, data: memoryview) -> int: ...

    async def wait_writable(self) -> None: ...

    def send_eof(self) -> None: ...

    async def aclose(self) -> None: ...


class Receiver(Protocol):
    """Who is told of what the agent sends, in order. Plain calls, from the reader."""

    def receive_request(self, frame: Frame) -> None: ...

    def receive_notification(self, frame: Frame) -> None: ...

    def receive_response(self, frame: Frame) -> None:
        """Also one that nothing waits for."""

    def receive_end(self) -> None:
        """The agent sends nothing more."""


class Asked:
    """A request of the client's, on its way. `sent` is where its frame is in the transcript, `answer` what came."""

    def __init__(self, id: int | str, method: str, sent: Frame) -> None:
        self.id = id
        self.method = method
        self.sent = sent
        self.answer: Frame | None = None
        self.is_over = False
        self.on_answer: Callable[[], None] | None = None
        self._event = anyio.Event()

    def settle(self, answer: Frame | None) -> None:
        self.answer = answer
        self.is_over = True
        self._event.set()
        if self.on_answer is not None:
            self.on_answer()

    async def wait(self) -> Any:
        """The result, as JSON. Raises the agent's `RequestError`, or `ConnectionClosed`."""
        await self._event.wait()
        if self.answer is None:
            raise ConnectionClosed
        error = self.answer.message.get("error")
        if error is not None:
            raise RequestError(error["code"], error["message"], error.get("data"))
        return self.answer.message.get("result")


class Link:
    """Sends frames at once, in order, and reads until the agent is gone."""

    def __init__(self, wire: ClientWire, transcript: Transcript) -> None:
        self.closed = False
        self._wire = wire
        self._transcript = transcript
        self._asked: dict[int | str, Asked] = {}
        self._last_id = 0
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._is_held = False
        self._is_ended = False
        self._is_blocked = False
        self._wake_writer = anyio.Event()

    async def run(self, receiver: Receiver) -> None:
        """Read and write until the agent closes its side."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_writing)
            await self._wire.pump(lambda block: self._feed(block, receiver))
            tasks.cancel_scope.cancel()
        self.closed = True
        asked, self._asked = self._asked, {}
        for request in asked.values():
            request.settle(None)
        receiver.receive_end()

    # what the client says -------------------------------------------------------------------------------------------

    def send(self, message: dict[str, Any]) -> Frame:
        """Send one frame, as it is. After `send_eof`, or when the agent is gone, it is lost."""
        data = msgspec.json.encode(message)
        frame = self._transcript.add("to_agent", message, data)
        self._put(data + b"\n")
        return frame

    def send_raw(self, data: bytes) -> None:
        """Send bytes that need not be frames; those lines that are, are in the transcript."""
        for line in data.splitlines():
            message = read_object(line)
            if message is not None:
                self._transcript.add("to_agent", message, line)
        self._put(data)

    def _put(self, data: bytes) -> None:
        self._outgoing += data
        if not (self._is_held or self._is_blocked):
            self._flush()

    def ask(self, method: str, params: Any, id: int | str | None = None) -> Asked:
        """Send a request. `id` is the next number unless one is given."""
        if self.closed:
            raise ConnectionClosed
        if id is None:
            self._last_id += 1
            id = self._last_id
        frame = self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        asked = self._asked[id] = Asked(id, method, frame)
        return asked

    @contextmanager
    def in_one_write(self) -> Iterator[None]:
        """What is sent inside leaves together, so that the agent finds it in one read."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            if not self._is_blocked:
                self._flush()

    def send_eof(self) -> None:
        """Send nothing more; what the agent still sends is read."""
        if not self._is_ended:
            self._is_ended = True
            self._transcript.close()
            self._wire.send_eof()

    def _flush(self) -> None:
        """Write what goes now; when the pipe is full, the rest is the writer's."""
        try:
            while self._outgoing and not (self._is_ended or self.closed):
                with memoryview(self._outgoing) as data:
                    taken = self._wire.write(data)
                if taken == 0:
                    self._is_blocked = True
                    self._wake_writer.set()
                    return
                del self._outgoing[:taken]
        except ConnectionClosed:
            pass
        self._outgoing.clear()

    async def _keep_writing(self) -> None:
        while True:
            await self._wake_writer.wait()
            self._wake_writer = anyio.Event()
            try:
                await self._wire.wait_writable()
            except ConnectionClosed:
                return
            self._is_blocked = False
            self._flush()

    # what the agent says --------------------------------------------------------------------------------------------

    def _feed(self, block: bytes, receiver: Receiver) -> None:
        *lines, tail = block.split(b"\n")
        for line in lines:
            self._incoming += line
            whole, self._incoming = bytes(self._incoming), bytearray()
            self._receive(whole, receiver)
        self._incoming += tail

    def _receive(self, line: bytes, receiver: Receiver) -> None:
        message = read_object(line)
        if message is None:
            self._transcript.add_noise(line)
            return
        frame = self._transcript.add("from_agent", message, line)
        if "method" not in message:
            asked = self._asked.pop(message["id"], None) if is_id(message.get("id")) else None
            if asked is not None:
                asked.settle(frame)
            receiver.receive_response(frame)
        elif "id" in message:
            receiver.receive_request(frame)
        else:
            receiver.receive_notification(frame)


def is_id(value: object) -> TypeGuard[int | str]:
    """Whether it can be the id of a request that somebody answers."""
    return isinstance(value, int | str) and not isinstance(value, bool)


def read_object(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line, if that is what it is."""
    try:
        message = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return message if isinstance(message, dict) else None

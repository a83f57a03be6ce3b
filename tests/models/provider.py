"""A provider on loopback: real HTTP, answers in the shapes that providers send, and the means to misbehave.

It runs in threads of its own, so that it is the same under asyncio and trio, and it keeps what it was asked.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeAlias


@dataclass
class Asked:
    """One request, as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Stream:
    """A stream of server-sent events. `then` says how it ends: properly, by a reset, or only when the client goes."""

    events: Iterable[dict[str, Any] | str]
    done: bool = True
    then: str = "end"  # end | cut | reset | hang
    content_type: str = "text/event-stream"


@dataclass
class Status:
    """An answer without a stream."""

    code: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Silence:
    """Nothing: the head never comes. With `reset` the connection breaks at once."""

    reset: bool = False


Answer: TypeAlias = Stream | Status | Silence


class FakeProvider:
    """Gives `answers` in order, the last one again and again.

    `reached` is set when a request has come, `dropped` when a client leaves before its answer ended.
    """

    def __init__(self, *answers: Answer, models: Any = None) -> None:
        self.models = models  # what it tells of its models; None: nothing
        self.looked_up: list[str] = []
        self.answers = list(answers)
        self.asked: list[Asked] = []
        self.reached = threading.Event()
        self.dropped = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def body(self) -> dict[str, Any]:
        """What the last request asked."""
        return self.asked[-1].body

    def next_answer(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(provider: FakeProvider) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            return

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                provider.dropped.set()

        def do_GET(self) -> None:
            provider.looked_up.append(self.path)
            if provider.models is None:
                self._status(404, {"error": {"message": "no such path"}}, {})
            else:
                self._status(200, provider.models, {})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            provider.asked.append(Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            provider.reached.set()
            match provider.next_answer():
                case Stream() as stream:
                    self._stream(stream)
                case Status(code, body, headers):
                    self._status(code, body, headers)
                case Silence(reset):
                    self._leave("reset" if reset else "hang")

        def _status(self, code: int, body: Any, headers: dict[str, str]) -> None:
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(code)
            for name, value in ({"content-type": "application/json"} | headers).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, stream: Stream) -> None:
            self.send_response(200)
            self.send_header("content-type", stream.content_type)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for event in stream.events:
                data = event if isinstance(event, str) else json.dumps(event)
                kind = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
                self._chunk(f"{kind}data: {data}\n\n")
            if stream.then != "end":
                self._leave(stream.then)
                return
            if stream.done:
                self._chunk("data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")

        def _chunk(self, text: str) -> None:
            data = text.encode("utf-8", "surrogatepass")
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def _leave(self, how: str) -> None:
            self.close_connection = True
            if how == "hang" and self.connection.recv(1) == b"":
                provider.dropped.set()
            if how == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()

    return Handler

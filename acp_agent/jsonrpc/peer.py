"""Who owes whom an answer. No I/O: lines go in, frames go out to whatever can hold them.

The rule it owns: **every request gets exactly one answer.** What the peer asked is `owed` until the first `respond`
or `fail`; a second answer is dropped, and a request whose id is still owed is refused while the first one lives on.
What we asked is in `asked` until it is answered, given up, or the connection ends; an answer to anything else is
dropped. The ids of the two directions have nothing to do with each other, so they are never in one table. Whatever
arrives that is neither a request nor broken is never answered, so two peers cannot answer each other's errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct

from acp_agent.errors import ConnectionClosed, RequestError
from acp_agent.jsonrpc.messages import Defect, ErrorObject, Message, id_key, read_error, read_message
from acp_agent.log import Repeats, get_logger

__all__ = ["CANCEL", "Cancellation", "Frames", "IncomingRequest", "Notification", "OutgoingRequest", "Peer"]

CANCEL = "$/cancel_request"

_END = b"}\n"
_NULL = b"null"
_CANNOT_ENCODE = (TypeError, ValueError, OverflowError, RecursionError)  # msgspec's own errors are ValueErrors


class Frames(Protocol):
    """Where a frame goes: `prefix`, the JSON of `value`, `suffix`. If it raises, for want of JSON, nothing was put."""

    def put(self, prefix: bytes, value: Any, suffix: bytes) -> None:
        """It leaves soon."""

    def send(self, prefix: bytes, value: Any, suffix: bytes) -> None:
        """It leaves now, with all that was put before: somebody waits for it."""


class IncomingRequest:
    """A request of the peer's. Whoever holds it answers it with `respond` or `fail`, in any order, from any task.

    `params` is as it came, None where it was missing or null, and shares the memory of its line. `on_cancel` is called
    when the peer wants it cancelled; it is set by a handler that answers such a request in its own way.
    """

    __slots__ = ("_peer", "answered", "id", "key", "method", "on_cancel", "params")

    def __init__(self, peer: Peer, id: bytes, key: bytes, method: str, params: Raw | None) -> None:
        self._peer = peer
        self.id = id
        self.key = key
        self.method = method
        self.params = params
        self.answered = False
        self.on_cancel: Callable[[], None] | None = None

    def respond(self, result: Any) -> None:
        """Answer with a Struct or a JSON value; one with no JSON is an internal error. A second answer is dropped."""
        self._peer.respond(self, result)

    def fail(self, error: RequestError) -> None:
        """Answer with an error. A second answer is dropped."""
        self._peer.fail(self, error)


class Notification(Struct, frozen=True):
    """The peer said something. Never answered, whatever it was."""

    method: str
    params: Raw | None


class Cancellation(Struct, frozen=True):
    """The peer no longer wants this answer; the request is owed until it is answered all the same."""

    request: IncomingRequest


Arrival: TypeAlias = IncomingRequest | Notification | Cancellation


class OutgoingRequest:
    """A request of ours. `wake` is called once, when there is an outcome."""

    __slots__ = ("_error", "_result", "id", "key", "method", "wake")

    def __init__(self, id: int, method: str, wake: Callable[[], None]) -> None:
        self.id = id
        self.key = b"%d" % id
        self.method = method
        self.wake = wake
        self._result = Raw(_NULL)
        self._error: RequestError | ConnectionClosed | None = None

    def settle(self, result: Raw, error: RequestError | ConnectionClosed | None = None) -> None:
        self._result = result
        self._error = error
        self.wake()

    def outcome(self) -> Raw:
        """The result; raises the peer's error, or `ConnectionClosed`."""
        if self._error is not None:
            raise self._error
        return self._result


class CancelParams(Struct, rename="camel"):
    """Params of `$/cancel_request`."""

    request_id: Raw


class Peer:
    """This end of the conversation: reads lines, keeps both tables, and puts frames."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self.owed: dict[bytes, IncomingRequest] = {}
        self.asked: dict[bytes, OutgoingRequest] = {}
        self.closed = False
        self.on_all_answered: Callable[[], None] | None = None  # called, once, when nothing is owed
        self._last_id = 0  # ids count from 1: there are clients that take 0 for "no id"
        self._prefixes: dict[str, bytes] = {}
        self._log = get_logger(__name__)
        self._noise = Repeats(self._log)

    # -- what arrives

    def receive(self, line: bytes | bytearray) -> Arrival | None:
        """What a line asks of us; None if it was an answer, or is dealt with already."""
        message = read_message(line)
        if isinstance(message, Defect):
            self.refuse(message)
            return None
        if message.method is UNSET:
            self._receive_answer(message)
            return None
        params = None if message.params is UNSET or bytes(memoryview(message.params)[:4]) == _NULL else message.params
        if message.id is not UNSET:
            return self._receive_request(bytes(message.id), message.method, params)
        if message.method == CANCEL:
            return self._receive_cancellation(params)
        return Notification(message.method, params)

    def refuse(self, defect: Defect) -> None:
        """Answer what is no message."""
        self._noise.warning("bad line", error=defect.error.message, data=defect.error.data)
        self._put_error(defect.id, defect.error)

    def _receive_request(self, id: bytes, method: str, params: Raw | None) -> IncomingRequest | None:
        key = id_key(id)
        if key in self.owed:
            details = "A request with this id is still being worked on."
            self.refuse(Defect(RequestError.invalid_request(details), id))
            return None
        request = self.owed[key] = IncomingRequest(self, id, key, method, params)
        return request

    def _receive_cancellation(self, params: Raw | None) -> Cancellation | None:
        try:
            wanted = msgspec.json.decode(params or b"{}", type=CancelParams).request_id
        except (msgspec.DecodeError, RecursionError):
            self._noise.warning("cancellation without an id")
            return None
        request = self.owed.get(id_key(bytes(wanted)))
        return Cancellation(request) if request else None

    def _receive_answer(self, message: Message) -> None:
        id = _NULL if message.id is UNSET else bytes(message.id)
        request = self.asked.pop(id_key(id), None)
        error = None if message.error is UNSET or bytes(message.error) == _NULL else read_error(message.error)
        if request:
            result = Raw(_NULL) if message.result is UNSET else message.result  # some leave a null result out
            request.settle(result, error)
        elif message.result is UNSET and message.error is UNSET and not self._asked_once(id):
            self.refuse(Defect(RequestError.invalid_request("A request has a `method`."), id))
        elif error:
            self._noise.warning("stray error", id=id.decode(), code=error.code, message=error.message)
        else:
            self._log.debug("late or stray answer", id=id.decode())

    def _asked_once(self, id: bytes) -> bool:
        return id.isdigit() and 0 < int(id) <= self._last_id

    # -- what we answer

    def respond(self, request: IncomingRequest, result: Any) -> None:
        if not self._settles(request):
            return
        try:
            self._frames.send(b'{"jsonrpc":"2.0","id":%b,"result":' % request.id, result, _END)
        except _CANNOT_ENCODE:
            self._log.exception("a result has no JSON", method=request.method)
            self._put_error(request.id, RequestError.internal())

    def fail(self, request: IncomingRequest, error: RequestError) -> None:
        if self._settles(request):
            self._put_error(request.id, error)

    def _settles(self, request: IncomingRequest) -> bool:
        """Whether this is the one answer to the request."""
        if request.answered:
            self._log.warning("a second answer is dropped", method=request.method)
            return False
        request.answered = True
        del self.owed[request.key]
        if not self.owed and self.on_all_answered:
            self.on_all_answered()
            self.on_all_answered = None
        return True

    def _put_error(self, id: bytes, error: RequestError) -> None:
        prefix = b'{"jsonrpc":"2.0","id":%b,"error":' % id
        try:
            self._frames.send(prefix, ErrorObject(error.code, error.message, error.data), _END)
        except _CANNOT_ENCODE:
            self._log.exception("an error has no JSON", code=error.code)
            internal = RequestError.internal()
            self._frames.send(prefix, ErrorObject(internal.code, internal.message), _END)

    # -- what we say and ask

    def notify(self, method: str, params: Any) -> None:
        """Say something; None is no params. Raises what msgspec raises for params that have no JSON."""
        if params is None:
            self._frames.put(b'{"jsonrpc":"2.0","method":', method, _END)
        else:
            self._frames.put(self._prefix(method), params, _END)

    def ask(self, method: str, params: Any, wake: Callable[[], None]) -> OutgoingRequest:
        """Send a request; `wake` is called when it has an outcome. Raises `ConnectionClosed`, and as `notify` does."""
        if self.closed:
            raise ConnectionClosed
        self._last_id += 1
        request = OutgoingRequest(self._last_id, method, wake)
        self.asked[request.key] = request
        try:
            self._frames.send(self._prefix(method), params, b',"id":%b}\n' % request.key)
        except _CANNOT_ENCODE:
            del self.asked[request.key]
            raise
        return request

    def give_up(self, request: OutgoingRequest) -> None:
        """Forget a request, and tell the peer that nobody waits for its answer; nothing if the answer is here."""
        if self.asked.pop(request.key, None):
            self._frames.send(self._prefix(CANCEL), {"requestId": request.id}, _END)

    def close(self) -> None:
        """Nothing will be heard any more: every request of ours fails now, a later one at once."""
        self.closed = True
        asked, self.asked = self.asked, {}
        for request in asked.values():
            request.settle(Raw(_NULL), ConnectionClosed())

    def _prefix(self, method: str) -> bytes:
        prefix = self._prefixes.get(method)
        if prefix is None:
            prefix = b'{"jsonrpc":"2.0","method":%b,"params":' % msgspec.json.encode(method)
            self._prefixes[method] = prefix
        return prefix

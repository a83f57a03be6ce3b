"""One conversation over one wire: a reader, an ordered outbox, and a task for each request that takes time.

The rule it owns: **what arrives is begun in the order in which it arrived, and nothing that waits runs in the reader.**

    arrives                     is dealt with
    a response                  at once; the task that waits for it runs next
    a notification              at once, in `Handler.receive_notification`
    `$/cancel_request`          at once: `on_cancel` of the request, or the end of its work
    a request                   at once, in `Handler.begin_request`: it answers there, or returns the work
    the work of a request       in a task of its own, any number at the same time
    a line that is no message   at once, with an error; the next line is served

What goes out keeps the order of the calls that said it, whoever said it, response or notification.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

import anyio
from anyio.abc import TaskGroup
from msgspec import Raw

from acp_agent.errors import ConnectionClosed, DecodeError, RequestError
from acp_agent.jsonrpc.framing import MAX_LINE, Line, LineDecoder, Oversized
from acp_agent.jsonrpc.messages import Defect
from acp_agent.jsonrpc.outbox import HIGH_WATER, Outbox, Trace
from acp_agent.jsonrpc.peer import Cancellation, IncomingRequest, Notification, Peer
from acp_agent.log import get_logger
from acp_agent.transports.base import Wire

__all__ = ["Connection", "Handler", "IncomingRequest", "Work"]

Work: TypeAlias = Callable[[], Awaitable[Any]]
"""The second half of a request. What it returns is the result, unless the request was answered meanwhile; a
`RequestError` that it raises is the answer, anything else an internal error with its traceback in the log."""


class Handler(Protocol):
    """What a connection does with what arrives. Both are plain calls from the reader, in the order of the wire."""

    def begin_request(self, request: IncomingRequest) -> Work | None:
        """Begin: decode, look up, claim. Return the work, or None if the request is answered, or will be by others.

        `RequestError` refuses the request, `DecodeError` says that its params do not fit (-32602).
        """

    def receive_notification(self, method: str, params: Raw | None) -> None:
        """Take note. What is raised here is logged, never answered."""


class Connection:
    """Requests both ways over a wire. Enter it, then `run`; leaving it ends what is left and closes the wire."""

    def __init__(
        self,
        wire: Wire,
        handler: Handler,
        *,
        max_line: int = MAX_LINE,
        high_water: int = HIGH_WATER,
        trace: Trace | None = None,
    ) -> None:
        """`max_line` and `high_water` are in bytes; `trace` sees each frame with "in" or "out"."""
        self.handler = handler
        self.closed = False
        """Nothing more will be heard, so asking fails at once. What is said may still reach the peer."""
        self.full = False
        """More waits for the peer than should: whoever produces waits for room before going on."""
        self._wire = wire
        self._trace = trace
        self._lines = LineDecoder(max_line)
        self._outbox = Outbox(wire, self, high_water, trace)
        self._peer = Peer(self._outbox)
        self._reading: anyio.CancelScope | None = None
        self._tasks: TaskGroup | None = None
        self._log = get_logger(__name__)

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._outbox.keep_writing, name="jsonrpc writer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
        assert self._tasks
        self._tasks.cancel_scope.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)  # no task of ours raises, so `error` stays what it is
        finally:
            self._outbox.flush()
            with anyio.CancelScope(shield=True):
                await self._wire.aclose()

    async def run(self) -> None:
        """Read until the input ends, the peer is found gone, or `close` is called. Work goes on after it."""
        with anyio.CancelScope() as self._reading:
            try:
                if not self.closed:
                    await self._wire.pump(self._feed)
                    self._receive_lines(self._lines.finish())
            except ConnectionClosed:
                pass
        self.close()

    def start(self, work: Callable[[], Awaitable[None]], name: str) -> None:
        """Run something in the background for as long as the connection is entered; what it raises is logged."""
        self._task_group().start_soon(self._run_background, work, name, name=name)

    def notify(self, method: str, params: Any) -> None:
        """Say something, in order. Never waits; raises what msgspec raises for params that have no JSON."""
        self._peer.notify(method, params)

    def send_prepared(self, prefix: bytes, value: Any, suffix: bytes) -> None:
        """Say a frame of which only `value` is not yet JSON; `suffix` ends with the newline."""
        self._outbox.put(prefix, value, suffix)

    async def request(self, method: str, params: Any) -> Raw:
        """Ask, and return the result. Raises the peer's `RequestError`, or `ConnectionClosed`.

        A wait that is cancelled tells the peer with `$/cancel_request`; an answer that comes all the same is dropped.
        """
        answered = anyio.Event()
        request = self._peer.ask(method, params, answered.set)
        try:
            await answered.wait()
        finally:
            self._peer.give_up(request)
        return request.outcome()

    async def wait_until_answered(self) -> None:
        """Return when the peer has an answer to everything it asked so far."""
        while self._peer.owed:
            answered = anyio.Event()
            self._peer.on_all_answered = answered.set
            await answered.wait()

    async def wait_for_room(self) -> None:
        """Return when the connection is not `full`: at once if it is not, or if nobody reads any more."""
        await self._outbox.wait_for_room()

    async def drain(self) -> None:
        """Return when everything said is on its way, or nobody reads any more."""
        await self._outbox.drain()

    def close(self) -> None:
        """Hear nothing more: `run` returns, and every request of ours fails with `ConnectionClosed`."""
        if not self.closed:
            self.closed = True
            self._peer.close()
            if self._reading:
                self._reading.cancel()

    # -- the reader

    def _feed(self, block: bytes) -> None:
        self._outbox.hold()
        try:
            self._receive_lines(self._lines.feed(block))
        finally:
            self._outbox.release()

    def _receive_lines(self, lines: list[Line | Oversized]) -> None:
        for line in lines:
            if self.closed:
                return
            try:
                self._receive(line)
            except Exception:  # of ours, or of the trace; one line is lost, the reader is not
                self._log.exception("line failed")

    def _receive(self, line: Line | Oversized) -> None:
        if isinstance(line, Oversized):
            details = f"A line of {line.size} bytes is too long: at most {self._lines.max_line} are read."
            self._peer.refuse(Defect(RequestError.invalid_request(details)))
            return
        if self._trace:
            self._trace("in", bytes(line))
        arrival = self._peer.receive(line)
        if isinstance(arrival, IncomingRequest):
            self._begin(arrival)
        elif isinstance(arrival, Notification):
            self._take_note(arrival)
        elif isinstance(arrival, Cancellation):
            self._cancel(arrival.request)

    def _begin(self, request: IncomingRequest) -> None:
        try:
            work = self.handler.begin_request(request)
        except DecodeError as error:
            request.fail(RequestError.invalid_params(error.problem, error.path))
        except RequestError as error:
            request.fail(error)
        except Exception:
            self._fail_unexpected(request)
        else:
            if work:
                scope = anyio.CancelScope()  # made here, so that a cancellation in the same read meets it
                if request.on_cancel is None:
                    request.on_cancel = scope.cancel
                name = f"request {request.method}"
                self._task_group().start_soon(self._run_work, request, work, scope, name=name)

    def _take_note(self, notification: Notification) -> None:
        try:
            self.handler.receive_notification(notification.method, notification.params)
        except Exception:
            self._log.exception("notification failed", method=notification.method)

    def _cancel(self, request: IncomingRequest) -> None:
        try:
            if request.on_cancel:
                request.on_cancel()
        except Exception:
            self._log.exception("cancellation failed", method=request.method)

    # -- the tasks

    def _task_group(self) -> TaskGroup:
        if self._tasks is None:
            raise RuntimeError("The connection is not entered: use `async with connection:`.")
        return self._tasks

    async def _run_work(self, request: IncomingRequest, work: Work, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                result = await work()
                if not request.answered:
                    request.respond(result)
        except RequestError as error:
            request.fail(error)
        except Exception:
            self._fail_unexpected(request)
        finally:
            if not request.answered:
                request.fail(RequestError.cancelled())

    def _fail_unexpected(self, request: IncomingRequest) -> None:
        """Ours, whatever it is: the traceback is for the log, the peer learns no more than that it failed."""
        self._log.exception("request failed", method=request.method)
        if not request.answered:
            request.fail(RequestError.internal())

    async def _run_background(self, work: Callable[[], Awaitable[None]], name: str) -> None:
        try:
            await work()
        except Exception:
            self._log.exception("background task failed", task=name)

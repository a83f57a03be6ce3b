"""The client's answers: permission by its policy, everything else by its editor. One answer a request, or none."""

from __future__ import annotations

from typing import Any, Protocol

import anyio
import msgspec
from anyio.abc import TaskGroup

from acp_agent.errors import DecodeError, RequestError
from acp_agent.protocol.codec import decode
from acp_agent.protocol.v1.tool_calls import RequestPermissionRequest
from acp_agent.testing.link import Link, is_id
from acp_agent.testing.policies import HELD, AnswerPolicy, PermissionAnswer, answer_permission, result_of
from acp_agent.testing.transcript import Frame

__all__ = ["Answers", "ClientSide", "Question"]


class ClientSide(Protocol):
    """What answers the agent's requests other than for permission."""

    async def serve(self, method: str, params: dict[str, Any]) -> Any:
        """The result. Raises `RequestError`, -32601 for a method it does not have."""


class Incoming:
    """A request of the agent's that is being answered."""

    def __init__(self, link: Link, frame: Frame) -> None:
        self.frame = frame
        self.is_answered = False
        self.was_cancelled = False
        self.scope = anyio.CancelScope()
        self._link = link

    def respond(self, result: Any) -> None:
        self.is_answered = True
        self._link.send({"jsonrpc": "2.0", "id": self.frame.id, "result": result})

    def fail(self, error: RequestError) -> None:
        self.is_answered = True
        body = {"code": error.code, "message": error.message} | ({} if error.data is None else {"data": error.data})
        self._link.send({"jsonrpc": "2.0", "id": self.frame.id, "error": body})


class Question(Incoming):
    """A permission request. `was_cancelled`: the agent took it back with `$/cancel_request`."""

    def __init__(self, link: Link, frame: Frame, request: RequestPermissionRequest) -> None:
        super().__init__(link, frame)
        self.request = request

    @property
    def session_id(self) -> str:
        return self.request.session_id

    @property
    def tool_call(self) -> dict[str, Any]:
        """The call to be judged, as JSON."""
        call: dict[str, Any] = self.frame.params["toolCall"]
        return call

    @property
    def option_kinds(self) -> list[str]:
        return [option.kind for option in self.request.options]


class Answers:
    """Answers what the agent asks, each request in a task of its own."""

    def __init__(self, link: Link, tasks: TaskGroup, policy: AnswerPolicy, editor: ClientSide | None) -> None:
        self.policy = policy
        self.questions: list[Question] = []
        self._link = link
        self._tasks = tasks
        self._editor = editor
        self._incoming: dict[int | str, Incoming] = {}

    def begin(self, frame: Frame) -> None:
        """Take a request; its answer comes from a task, or later, or never."""
        if frame.method == "session/request_permission":
            self._begin_question(frame)
            return
        incoming = self._keep(Incoming(self._link, frame))
        self._tasks.start_soon(self._serve, incoming)

    def answer(self, answer: PermissionAnswer, question: Question | None = None) -> None:
        """Answer a question that waits. Raises `LookupError` if none does."""
        waiting = question or next((each for each in self.questions if not each.is_answered), None)
        if waiting is None:
            raise LookupError("No permission request is open.")
        waiting.respond(result_of(answer, waiting.request))

    def dismiss(self, session_id: str | None) -> None:
        """The client cancels the turn: its dialogs close, but for those of a client that forgets them."""
        for question in self.questions:
            if question.session_id == session_id and not question.is_answered and self.policy != "never":
                question.scope.cancel()
                question.respond(result_of(None, question.request))

    def cancelled(self, request_id: object) -> None:
        """The agent takes a request back."""
        incoming = self._incoming.get(request_id) if is_id(request_id) else None
        if incoming is None or incoming.is_answered:
            return
        incoming.was_cancelled = True
        if not (isinstance(incoming, Question) and self.policy == "never"):
            incoming.scope.cancel()
            incoming.fail(RequestError.cancelled())

    def _begin_question(self, frame: Frame) -> None:
        try:
            request = decode(msgspec.json.encode(frame.params), RequestPermissionRequest)
        except DecodeError as error:
            Incoming(self._link, frame).fail(RequestError.invalid_params(error.problem, error.path))
            return
        question = Question(self._link, frame, request)
        self._keep(question)
        self.questions.append(question)
        if self.policy not in HELD:
            self._tasks.start_soon(self._judge, question)

    async def _judge(self, question: Question) -> None:
        with question.scope:
            try:
                result = await answer_permission(self.policy, question.request)
            except RequestError as error:
                question.fail(error)
            else:
                question.respond(result)

    async def _serve(self, incoming: Incoming) -> None:
        method = str(incoming.frame.method)
        with incoming.scope:
            try:
                if self._editor is None:
                    raise RequestError.method_not_found(method)
                result = await self._editor.serve(method, incoming.frame.params)
            except RequestError as error:
                incoming.fail(error)
            else:
                incoming.respond(result)

    def _keep(self, incoming: Incoming) -> Incoming:
        if is_id(incoming.frame.id):
            self._incoming[incoming.frame.id] = incoming
        return incoming

"""A client that is connected: the verbs of the protocol, what the agent said, and what it asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup

from acp_agent.errors import ConnectionClosed
from acp_agent.protocol.base import OneOf, Payload
from acp_agent.protocol.codec import decode
from acp_agent.protocol.v1 import (
    initialization,
    session_config_options,
    session_list,
    session_modes,
    session_setup,
)
from acp_agent.testing.link import Asked, Link
from acp_agent.testing.policies import AnswerPolicy, PermissionAnswer
from acp_agent.testing.prompts import PromptHandle, PromptResult
from acp_agent.testing.questions import Answers, ClientSide, Question
from acp_agent.testing.transcript import Frame, Transcript, Update, update_of
from acp_agent.testing.view import ToolCallView
from acp_agent.transports.subprocess import AgentProcess

__all__ = ["ConnectedClient"]

P = TypeVar("P", bound="Payload | OneOf")
T = TypeVar("T")

CLIENT_INFO = {"name": "acp-agent-test-client", "version": "1"}


class ConnectedClient:
    """The client of one connection. Verbs that ask return the answer, or raise the agent's `RequestError`.

    `session_id` is the session that is meant when none is named: the last one that was opened; the first use opens
    one. `permission` may be changed at any time. Every wait has a deadline, and fails with the last frames in its text.
    """

    def __init__(
        self,
        link: Link,
        transcript: Transcript,
        tasks: TaskGroup,
        *,
        cwd: str,
        permission: AnswerPolicy,
        editor: ClientSide | None,
        capabilities: Mapping[str, Any],
        timeout: float,
        process: AgentProcess | None = None,
    ) -> None:
        self.transcript = transcript
        self.cwd = cwd
        self.editor = editor
        self.capabilities = capabilities
        self.timeout = timeout
        self.process = process
        self.session_id: str | None = None
        self.initialize_result: initialization.InitializeResponse | None = None
        self._link = link
        self._answers = Answers(link, tasks, permission, editor)
        self._updates: list[Update] = []
        self._prompts: dict[str, deque[PromptHandle]] = {}
        self._waiters: list[anyio.Event] = []

    # the protocol's verbs -------------------------------------------------------------------------------------------

    async def initialize(self, protocol_version: int = 1, **fields: Any) -> initialization.InitializeResponse:
        """Say who we are; `fields` replace or add to the params."""
        params = {
            "protocolVersion": protocol_version,
            "clientCapabilities": dict(self.capabilities),
            "clientInfo": CLIENT_INFO,
        }
        self.initialize_result = await self._call("initialize", params | fields, initialization.InitializeResponse)
        return self.initialize_result

    async def new_session(
        self,
        cwd: str | None = None,
        mcp_servers: Sequence[Mapping[str, Any]] = (),
        additional_directories: Sequence[str] = (),
    ) -> session_setup.NewSessionResponse:
        """Open a session, in the client's `cwd` unless another is named."""
        params = self._place(cwd, mcp_servers, additional_directories)
        response = await self._call("session/new", params, session_setup.NewSessionResponse)
        self.session_id = response.session_id
        return response

    async def load_session(
        self,
        session_id: str,
        cwd: str | None = None,
        mcp_servers: Sequence[Mapping[str, Any]] = (),
        additional_directories: Sequence[str] = (),
    ) -> session_setup.LoadSessionResponse:
        """Open a kept session; what it replays is among `updates`."""
        params = {"sessionId": session_id} | self._place(cwd, mcp_servers, additional_directories)
        response = await self._call("session/load", params, session_setup.LoadSessionResponse)
        self.session_id = session_id
        return response

    async def resume_session(
        self,
        session_id: str,
        cwd: str | None = None,
        mcp_servers: Sequence[Mapping[str, Any]] = (),
        additional_directories: Sequence[str] = (),
    ) -> session_setup.ResumeSessionResponse:
        """Open a kept session without a replay."""
        params = {"sessionId": session_id} | self._place(cwd, mcp_servers, additional_directories)
        response = await self._call("session/resume", params, session_setup.ResumeSessionResponse)
        self.session_id = session_id
        return response

    async def list_sessions(
        self, *, cwd: str | None = None, cursor: str | None = None
    ) -> session_list.ListSessionsResponse:
        """One page of the sessions that are kept."""
        params = {name: value for name, value in (("cwd", cwd), ("cursor", cursor)) if value is not None}
        return await self._call("session/list", params, session_list.ListSessionsResponse)

    async def close_session(self, session_id: str | None = None) -> None:
        await self.request("session/close", {"sessionId": session_id or await self._session()})

    async def delete_session(self, session_id: str | None = None) -> None:
        await self.request("session/delete", {"sessionId": session_id or await self._session()})

    async def set_mode(self, mode_id: str, session_id: str | None = None) -> None:
        params = {"sessionId": session_id or await self._session(), "modeId": mode_id}
        await self._call("session/set_mode", params, session_modes.SetSessionModeResponse)

    async def set_config_option(
        self, config_id: str, value: str | bool, session_id: str | None = None
    ) -> session_config_options.SetSessionConfigOptionResponse:
        params = {"sessionId": session_id or await self._session(), "configId": config_id, "value": value}
        if isinstance(value, bool):
            params["type"] = "boolean"
        response = session_config_options.SetSessionConfigOptionResponse
        return await self._call("session/set_config_option", params, response)

    async def prompt(
        self,
        prompt: str | Sequence[Mapping[str, Any] | Payload],
        session_id: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> PromptResult:
        """Say a text, or content blocks, and wait for the end of the turn."""
        handle = await self.start_prompt(prompt, session_id, meta)
        return await handle.wait()

    async def start_prompt(
        self,
        prompt: str | Sequence[Mapping[str, Any] | Payload],
        session_id: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> PromptHandle:
        """Say it, and return while the turn runs. The request is sent when this returns."""
        session_id = session_id or await self._session()
        blocks = [{"type": "text", "text": prompt}] if isinstance(prompt, str) else msgspec.to_builtins(list(prompt))
        params = {"sessionId": session_id, "prompt": blocks} | ({"_meta": dict(meta)} if meta is not None else {})
        asked = self._link.ask("session/prompt", params)
        handle = PromptHandle(session_id, asked, self._wait_for_answer)
        line = self._prompts.setdefault(session_id, deque())
        line.append(handle)
        asked.on_answer = lambda: line.remove(handle)
        return handle

    def cancel(self, session_id: str | None = None) -> None:
        """Cancel the session's turn, and dismiss its dialogs as an editor does."""
        session_id = session_id or self.session_id
        self.notify("session/cancel", {"sessionId": session_id})
        self._answers.dismiss(session_id)

    # anything else --------------------------------------------------------------------------------------------------

    async def request(self, method: str, params: Any = None) -> Any:
        """Ask anything; the result as JSON."""
        return await self._wait_for_answer(self.start_request(method, params))

    def start_request(self, method: str, params: Any = None, id: int | str | None = None) -> Asked:
        """Ask anything, and return at once; `await client.answer_to(asked)` is its result."""
        return self._link.ask(method, params, id)

    async def answer_to(self, asked: Asked) -> Any:
        """The result of a request that was started, as JSON."""
        return await self._wait_for_answer(asked)

    def notify(self, method: str, params: Any = None) -> None:
        """Say anything that is not answered."""
        self._link.send({"jsonrpc": "2.0", "method": method, "params": params})

    def cancel_request(self, id: int | str) -> None:
        """Send `$/cancel_request` for one of the client's own requests."""
        self.notify("$/cancel_request", {"requestId": id})

    def send_raw(self, data: bytes) -> None:
        """Send bytes that need not be frames."""
        self._link.send_raw(data)

    def in_one_write(self) -> AbstractContextManager[None]:
        """`with client.in_one_write():` what is sent inside reaches the agent in one read."""
        return self._link.in_one_write()

    # permission -----------------------------------------------------------------------------------------------------

    @property
    def permission(self) -> AnswerPolicy:
        return self._answers.policy

    @permission.setter
    def permission(self, policy: AnswerPolicy) -> None:
        self._answers.policy = policy

    @property
    def questions(self) -> list[Question]:
        """Every permission request so far."""
        return self._answers.questions

    async def permission_asked(self, count: int = 1) -> Question:
        """Wait until the agent has asked `count` times in all; that question."""
        questions = self.questions
        return await self._until(
            lambda: questions[count - 1] if len(questions) >= count else None, f"permission request number {count}"
        )

    def answer_permission(self, answer: PermissionAnswer, question: Question | None = None) -> None:
        """Answer `question`, else the oldest open one: an option's id or kind, None for "cancelled", or a result."""
        self._answers.answer(answer, question)

    # what the agent said --------------------------------------------------------------------------------------------

    def updates(self, session_id: str | None = None, kind: str | None = None) -> list[Update]:
        """The updates so far, of all sessions or one, of all kinds or one."""
        return [
            update
            for update in self._updates
            if (session_id is None or update.session_id == session_id) and (kind is None or update.kind == kind)
        ]

    def tool_calls(self, session_id: str | None = None) -> ToolCallView:
        """The rows of tool calls as they look now."""
        return ToolCallView(self.updates(session_id or self.session_id))

    async def wait_for(self, predicate: Callable[[Update], bool], *, count: int = 1, what: str = "") -> Update:
        """Wait for the update of which `predicate` is true, the `count`-th one; those of the past count too."""

        def find() -> Update | None:
            found = [update for update in self._updates if predicate(update)]
            return found[count - 1] if len(found) >= count else None

        return await self._until(find, what or "such update")

    async def wait_for_update(self, kind: str, *, session_id: str | None = None, count: int = 1) -> Update:
        """Wait for the `count`-th update of a kind; those of the past count too."""

        def fits(update: Update) -> bool:
            return update.kind == kind and session_id in (None, update.session_id)

        return await self.wait_for(fits, count=count, what=f"{kind} update number {count}")

    async def wait_for_status(self, status: str, *, count: int = 1) -> Update:
        """Wait for the `count`-th update of a tool call with this status."""

        def fits(update: Update) -> bool:
            return update.kind in ("tool_call", "tool_call_update") and update.fields.get("status") == status

        return await self.wait_for(fits, count=count, what=f"tool call update {status}, number {count}")

    async def wait_for_frame(self, method: str, *, count: int = 1) -> Frame:
        """Wait for the `count`-th request or notification of a method from the agent. Needs the transcript."""

        def find() -> Frame | None:
            found = self.transcript.received(method)
            return found[count - 1] if len(found) >= count else None

        return await self._until(find, f"{method} number {count}")

    async def wait_for_response(self, id: int | str | None, *, count: int = 1) -> Frame:
        """Wait for the `count`-th response with an id, one to `send_raw` for instance. Needs the transcript."""

        def find() -> Frame | None:
            found = [each for each in self.transcript.received() if each.is_response and each.id == id]
            return found[count - 1] if len(found) >= count else None

        return await self._until(find, f"response to {id!r}, number {count}")

    # the end --------------------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether the agent has closed its side."""
        return self._link.closed

    def close(self) -> None:
        """Close the agent's input. What it still says is read."""
        self._link.send_eof()

    async def wait_closed(self) -> None:
        """Wait until the agent has closed its side."""
        await self._until(lambda: True if self.closed else None, "end of the agent's output")

    # what arrives ---------------------------------------------------------------------------------------------------

    def receive_request(self, frame: Frame) -> None:
        self._answers.begin(frame)
        self._announce()

    def receive_notification(self, frame: Frame) -> None:
        if frame.method == "session/update":
            update = update_of(frame)
            self._updates.append(update)
            line = self._prompts.get(update.session_id)
            if line:
                line[0].updates.append(update)
        elif frame.method == "$/cancel_request":
            self._answers.cancelled(frame.params.get("requestId"))
        self._announce()

    def receive_response(self, frame: Frame) -> None:
        self._announce()

    def receive_end(self) -> None:
        self._announce()

    # waiting --------------------------------------------------------------------------------------------------------

    def _announce(self) -> None:
        waiters, self._waiters = self._waiters, []
        for event in waiters:
            event.set()

    async def _until(self, find: Callable[[], T | None], what: str) -> T:
        with self._deadline(what):
            while True:
                found = find()
                if found is not None:
                    return found
                if self.closed:
                    raise ConnectionClosed(f"The agent is gone; there will be no {what}.")
                event = anyio.Event()
                self._waiters.append(event)
                await event.wait()

    async def _wait_for_answer(self, asked: Asked) -> Any:
        with self._deadline(f"answer to {asked.method}"):
            return await asked.wait()

    @contextmanager
    def _deadline(self, what: str) -> Iterator[None]:
        try:
            with anyio.fail_after(self.timeout):
                yield
        except TimeoutError:
            message = f"No {what} within {self.timeout:g} s. The last frames:\n{self.transcript.tail()}"
            raise TimeoutError(message) from None

    async def _call(self, method: str, params: Any, answer: type[P]) -> P:
        return decode(msgspec.json.encode(await self.request(method, params)), answer)

    async def _session(self) -> str:
        if self.session_id is None:
            await self.new_session()
        assert self.session_id is not None
        return self.session_id

    def _place(
        self, cwd: str | None, servers: Sequence[Mapping[str, Any]], directories: Sequence[str]
    ) -> dict[str, Any]:
        place: dict[str, Any] = {"cwd": cwd or self.cwd, "mcpServers": [dict(server) for server in servers]}
        return place | ({"additionalDirectories": list(directories)} if directories else {})

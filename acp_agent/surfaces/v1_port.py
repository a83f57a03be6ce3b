"""The editor over ACP v1: events go out as `session/update`, questions as the client's methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from acp_agent.errors import DecodeError, RequestError
from acp_agent.events import CompactionChanged, Event, NoticeRaised, PromptInserted
from acp_agent.jsonrpc.connection import Connection
from acp_agent.protocol.base import OneOf, Payload
from acp_agent.protocol.codec import decode
from acp_agent.protocol.v1 import elicitation, file_system, prompt_turn, session_setup, terminals, tool_calls
from acp_agent.protocol.v1.initialization import ClientCapabilities
from acp_agent.runtime.client import ClientAbilities, PermissionAnswer, PermissionQuestion
from acp_agent.surfaces.v1_words import PIECE, permission_request, pieces, updates
from acp_agent.tools.base import FormAnswer, TerminalOutput

__all__ = ["EditorPort", "abilities_of"]

T = TypeVar("T", bound="Payload | OneOf")

CHUNK_KINDS = {"agent": "agent_message_chunk", "thought": "agent_thought_chunk"}
CHUNK_END = b"}}}}\n"


def abilities_of(capabilities: ClientCapabilities) -> ClientAbilities:
    """What the client can, as the runtime asks it."""
    session = capabilities.session
    form = capabilities.elicitation
    options = session.config_options if session else None
    return ClientAbilities(
        read_text_file=capabilities.fs.read_text_file,
        write_text_file=capabilities.fs.write_text_file,
        terminal=capabilities.terminal,
        form=form is not None and form.form is not None,
        url=form is not None and form.url is not None,
        boolean_options=options is not None and options.boolean is not None,
        notices=session is not None and session.notices is not None,
        compaction=session is not None and session.compaction is not None,
        terminal_auth=capabilities.auth.terminal,
    )


class EditorPort:
    """`runtime.client.ClientPort` over a connection."""

    def __init__(self, connection: Connection) -> None:
        self.abilities = ClientAbilities()
        self._connection = connection
        self._send = connection.send_prepared
        self._chunk_starts: dict[str, tuple[str, bytes]] = {}

    @property
    def full(self) -> bool:
        return self._connection.full

    async def wait_for_room(self) -> None:
        await self._connection.wait_for_room()

    def show(self, session_id: str, event: Event) -> None:
        """A prompt is not told: the client shows its own."""
        if not isinstance(event, PromptInserted):
            self.replay(session_id, event)

    def replay(self, session_id: str, event: Event) -> None:
        if isinstance(event, CompactionChanged) and not self.abilities.compaction:
            return
        if isinstance(event, NoticeRaised) and not self.abilities.notices:
            return
        for update in updates(event):
            self._connection.notify(
                "session/update", prompt_turn.SessionNotification(session_id=session_id, update=update)
            )

    def show_chunk(self, session_id: str, role: Literal["agent", "thought"], message_id: str, text: str) -> None:
        """The hottest path: what comes before the text is encoded once a message."""
        message, start = self._chunk_starts.get(session_id, ("", b""))
        if message != message_id:
            start = _chunk_start(session_id, role, message_id)
            self._chunk_starts[session_id] = (message_id, start)
        if len(text) <= PIECE:
            self._send(start, text, CHUNK_END)
        else:
            for piece in pieces(text):
                self._send(start, piece, CHUNK_END)

    def forget(self, session_id: str) -> None:
        self._chunk_starts.pop(session_id, None)

    # questions ------------------------------------------------------------------------------------------------------

    async def request_permission(self, session_id: str, question: PermissionQuestion) -> PermissionAnswer:
        """Whatever comes back, it is an answer; only a closed connection raises."""
        try:
            raw = await self._connection.request("session/request_permission", permission_request(session_id, question))
            outcome = decode(raw, tool_calls.RequestPermissionResponse).outcome
        except (RequestError, DecodeError):
            return PermissionAnswer("unusable")
        if isinstance(outcome, tool_calls.SelectedPermissionOutcome):
            return PermissionAnswer("selected", outcome.option_id)
        return PermissionAnswer("cancelled")

    async def read_text_file(
        self, session_id: str, path: str, *, line: int | None = None, limit: int | None = None
    ) -> str:
        request = file_system.ReadTextFileRequest(session_id=session_id, path=path, line=line, limit=limit)
        return (await self._ask("fs/read_text_file", request, file_system.ReadTextFileResponse)).content

    async def write_text_file(self, session_id: str, path: str, content: str) -> None:
        request = file_system.WriteTextFileRequest(session_id=session_id, path=path, content=content)
        await self._connection.request("fs/write_text_file", request)

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        output_byte_limit: int,
    ) -> str:
        request = terminals.CreateTerminalRequest(
            session_id=session_id,
            command=command,
            args=list(args),
            env=[session_setup.EnvVariable(name=name, value=value) for name, value in env.items()],
            cwd=cwd,
            output_byte_limit=output_byte_limit,
        )
        return (await self._ask("terminal/create", request, terminals.CreateTerminalResponse)).terminal_id

    async def read_terminal(self, session_id: str, terminal_id: str) -> TerminalOutput:
        request = terminals.TerminalOutputRequest(session_id=session_id, terminal_id=terminal_id)
        answer = await self._ask("terminal/output", request, terminals.TerminalOutputResponse)
        status = answer.exit_status
        return TerminalOutput(
            text=answer.output,
            truncated=answer.truncated,
            exited=status is not None,
            exit_code=status.exit_code if status else None,
            signal=status.signal if status else None,
        )

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str) -> TerminalOutput:
        """The exit status alone; the text is empty."""
        request = terminals.WaitForTerminalExitRequest(session_id=session_id, terminal_id=terminal_id)
        answer = await self._ask("terminal/wait_for_exit", request, terminals.WaitForTerminalExitResponse)
        return TerminalOutput(text="", exited=True, exit_code=answer.exit_code, signal=answer.signal)

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None:
        request = terminals.KillTerminalRequest(session_id=session_id, terminal_id=terminal_id)
        await self._connection.request("terminal/kill", request)

    async def release_terminal(self, session_id: str, terminal_id: str) -> None:
        request = terminals.ReleaseTerminalRequest(session_id=session_id, terminal_id=terminal_id)
        await self._connection.request("terminal/release", request)

    async def ask_form(
        self, session_id: str, message: str, schema: Mapping[str, Any], *, tool_call_id: str | None = None
    ) -> FormAnswer:
        """An action of a later protocol, or an answer that makes no sense, is a cancel."""
        request = elicitation.ElicitationFormMode(
            message=message,
            session_id=session_id,
            tool_call_id=tool_call_id,
            requested_schema=decode(msgspec.json.encode(schema), elicitation.ElicitationSchema),
        )
        raw = await self._connection.request("elicitation/create", request)
        try:
            answer = decode(raw, elicitation.CreateElicitationResponse)
        except DecodeError:
            return FormAnswer("cancel")
        match answer:
            case elicitation.ElicitationAcceptAction(content=values):
                return FormAnswer("accept", values or {})
            case elicitation.ElicitationDeclineAction():
                return FormAnswer("decline")
            case _:
                return FormAnswer("cancel")

    async def _ask(self, method: str, params: Payload, answer: type[T]) -> T:
        raw = await self._connection.request(method, params)
        try:
            return decode(raw, answer)
        except DecodeError as error:
            details = {"details": f"The editor's answer to {method} makes no sense: {error}"}
            raise RequestError(-32603, "The editor gave an unusable answer", details) from None


def _chunk_start(session_id: str, role: str, message_id: str) -> bytes:
    encode = msgspec.json.encode
    return b"".join(
        (
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":',
            encode(session_id),
            b',"update":{"sessionUpdate":',
            encode(CHUNK_KINDS[role]),
            b',"messageId":',
            encode(message_id),
            b',"content":{"type":"text","text":',
        )
    )

"""ACP version 1: what each method of the client's means to the runtime.

Source: https://agentclientprotocol.com/protocol/overview. Each `_begin_*` is the synchronous half of its method: it
decodes, claims, and answers at once or returns the work. An answer is put before what must follow it, so the order of
the calls is the order on the wire.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Raw

from acp_agent.errors import DecodeError, RequestError
from acp_agent.jsonrpc.connection import Connection, IncomingRequest, Work
from acp_agent.log import Repeats, get_logger
from acp_agent.protocol.base import OneOf, Payload
from acp_agent.protocol.codec import decode
from acp_agent.protocol.v1 import (
    authentication,
    initialization,
    prompt_turn,
    session_config_options,
    session_fork,
    session_list,
    session_modes,
    session_setup,
)
from acp_agent.protocol.v1 import content as words
from acp_agent.runtime.definition import AgentDefinition
from acp_agent.runtime.places import SessionPlace
from acp_agent.runtime.session import Session
from acp_agent.runtime.sessions import SessionManager
from acp_agent.runtime.tickets import Outcome, Ticket
from acp_agent.surfaces.v1_auth import SignIn
from acp_agent.surfaces.v1_port import EditorPort, abilities_of
from acp_agent.surfaces.v1_words import block_in, mode_state, option_list

if TYPE_CHECKING:
    from acp_agent.mcp.servers import McpServer

__all__ = ["SurfaceV1"]

VERSION = 1

Begin: TypeAlias = Callable[[IncomingRequest, Any], Work | None]


class SurfaceV1:
    """Handles one connection's requests in the words of version 1."""

    def __init__(self, connection: Connection, definition: AgentDefinition, port: EditorPort) -> None:
        self.port = port
        self.sessions: SessionManager  # set by the server, which makes both
        self._definition = definition
        self._sign_in = SignIn(definition, port)
        self._connection = connection
        self._repairs = Repeats(get_logger("acp_agent.surfaces.v1"))
        self._methods: dict[str, tuple[type[Payload | OneOf], Begin]] = {
            "initialize": (initialization.InitializeRequest, self._begin_initialize),
            "session/new": (session_setup.NewSessionRequest, self._begin_new),
            "session/load": (session_setup.LoadSessionRequest, self._begin_load),
            "session/resume": (session_setup.ResumeSessionRequest, self._begin_resume),
            "session/close": (session_setup.CloseSessionRequest, self._begin_close),
            "session/list": (session_list.ListSessionsRequest, self._begin_list),
            "session/delete": (session_list.DeleteSessionRequest, self._begin_delete),
            "session/prompt": (prompt_turn.PromptRequest, self._begin_prompt),
            "session/set_mode": (session_modes.SetSessionModeRequest, self._begin_set_mode),
            "session/set_config_option": (
                session_config_options.SetSessionConfigOptionRequest,
                self._begin_set_config_option,
            ),
            "authenticate": (authentication.AuthenticateRequest, self._sign_in.begin_authenticate),
            "logout": (authentication.LogoutRequest, self._sign_in.begin_logout),
        }
        if "fork" in definition.unstable:
            self._methods["session/fork"] = (session_fork.ForkSessionRequest, self._begin_fork)

    def begin_request(self, request: IncomingRequest) -> Work | None:
        found = self._methods.get(request.method)
        if found is None:
            raise RequestError.method_not_found(request.method)
        params, begin = found
        return begin(request, decode(request.params, params, self._note_repair))

    def receive_notification(self, method: str, params: Raw | None) -> None:
        if method == "session/cancel":
            self.sessions.cancel(decode(params, prompt_turn.CancelNotification).session_id)

    def _note_repair(self, what: str) -> None:
        self._repairs.warning("the client left something out", what=what)

    # the start ------------------------------------------------------------------------------------------------------

    def _begin_initialize(self, request: IncomingRequest, params: initialization.InitializeRequest) -> None:
        self.port.abilities = abilities_of(params.client_capabilities)
        definition = self._definition
        marks = initialization
        request.respond(
            marks.InitializeResponse(
                protocol_version=VERSION,
                agent_capabilities=marks.AgentCapabilities(
                    load_session=True,
                    prompt_capabilities=marks.PromptCapabilities(
                        image="image" in definition.accepts,
                        audio="audio" in definition.accepts,
                        embedded_context="resource" in definition.accepts,
                    ),
                    mcp_capabilities=marks.McpCapabilities(http=definition.can_mcp, sse=definition.can_mcp),
                    session_capabilities=marks.SessionCapabilities(
                        list=marks.SessionListCapabilities(),
                        delete=marks.SessionDeleteCapabilities(),
                        additional_directories=marks.SessionAdditionalDirectoriesCapabilities(),
                        resume=marks.SessionResumeCapabilities(),
                        close=marks.SessionCloseCapabilities(),
                        fork=session_fork.SessionForkCapabilities() if "fork" in definition.unstable else None,
                    ),
                    auth=self._sign_in.capabilities(),
                ),
                auth_methods=self._sign_in.methods_needed(),
                agent_info=marks.Implementation(
                    name=definition.name, title=definition.title, version=definition.version
                ),
            )
        )

    # sessions -------------------------------------------------------------------------------------------------------

    def _begin_new(self, request: IncomingRequest, params: session_setup.NewSessionRequest) -> Work | None:
        self._sign_in.require()

        def answer(session: Session) -> None:
            request.respond(
                session_setup.NewSessionResponse(
                    session_id=session.id,
                    modes=mode_state(session.options),
                    config_options=option_list(session.options.as_list()) or None,
                )
            )

        return self.sessions.new(place_of(params), answer)

    def _begin_load(self, request: IncomingRequest, params: session_setup.LoadSessionRequest) -> Work:
        self._sign_in.require()

        def answer(session: Session) -> None:
            request.respond(
                session_setup.LoadSessionResponse(
                    modes=mode_state(session.options),
                    config_options=option_list(session.options.as_list()) or None,
                )
            )

        return self.sessions.open(params.session_id, place_of(params), answer, replay=True)

    def _begin_resume(self, request: IncomingRequest, params: session_setup.ResumeSessionRequest) -> Work:
        self._sign_in.require()

        def answer(session: Session) -> None:
            request.respond(
                session_setup.ResumeSessionResponse(
                    modes=mode_state(session.options),
                    config_options=option_list(session.options.as_list()) or None,
                )
            )

        return self.sessions.open(params.session_id, place_of(params), answer, replay=False)

    def _begin_fork(self, request: IncomingRequest, params: session_fork.ForkSessionRequest) -> Work:
        self._sign_in.require()

        def answer(session: Session) -> None:
            request.respond(
                session_fork.ForkSessionResponse(
                    session_id=session.id,
                    modes=mode_state(session.options),
                    config_options=option_list(session.options.as_list()) or None,
                )
            )

        return self.sessions.fork(params.session_id, place_of(params), answer)

    def _begin_close(self, request: IncomingRequest, params: session_setup.CloseSessionRequest) -> Work:
        def answer(session: Session) -> None:
            self.port.forget(session.id)
            request.respond(session_setup.CloseSessionResponse())

        return self.sessions.close(params.session_id, answer)

    def _begin_delete(self, request: IncomingRequest, params: session_list.DeleteSessionRequest) -> Work:
        def answer() -> None:
            self.port.forget(params.session_id)
            request.respond(session_list.DeleteSessionResponse())

        return self.sessions.delete(params.session_id, answer)

    def _begin_list(self, request: IncomingRequest, params: session_list.ListSessionsRequest) -> Work:
        async def work() -> session_list.ListSessionsResponse:
            page = await self.sessions.list(params.cwd, params.cursor)
            rows = [
                session_list.SessionInfo(
                    session_id=header.session_id,
                    cwd=header.cwd,
                    additional_directories=header.roots,
                    title=header.title,
                    updated_at=header.updated_at,
                )
                for header in page.headers
            ]
            return session_list.ListSessionsResponse(sessions=rows, next_cursor=page.next_cursor)

        return work

    def _begin_set_mode(self, request: IncomingRequest, params: session_modes.SetSessionModeRequest) -> Work | None:
        def answer(_: Session) -> None:
            request.respond(session_modes.SetSessionModeResponse())

        try:
            return self.sessions.set_option(params.session_id, "mode", params.mode_id, answer)
        except DecodeError as error:
            raise DecodeError(error.problem, "$.modeId") from None

    def _begin_set_config_option(
        self, request: IncomingRequest, params: session_config_options.SetSessionConfigOptionRequest
    ) -> Work | None:
        def answer(session: Session) -> None:
            request.respond(
                session_config_options.SetSessionConfigOptionResponse(
                    config_options=option_list(session.options.as_list())
                )
            )

        return self.sessions.set_option(params.session_id, params.config_id, params.value, answer)

    # a turn ---------------------------------------------------------------------------------------------------------

    def _begin_prompt(self, request: IncomingRequest, params: prompt_turn.PromptRequest) -> None:
        def finished(outcome: Outcome) -> None:
            if outcome.error is not None:
                request.fail(self._sign_in.complete(outcome.error))
            else:
                request.respond(prompt_turn.PromptResponse(stop_reason=outcome.stop_reason or "end_turn"))

        def dropped(error: RequestError | None) -> None:
            finished(Outcome("cancelled") if error is None else Outcome(error=error))

        self._check_blocks(params.prompt)
        blocks = [block_in(block) for block in params.prompt]
        ticket = Ticket(blocks, meta=params.meta, on_finished=finished, on_dropped=dropped)
        prompts = self.sessions.prompt(params.session_id, ticket)
        request.on_cancel = lambda: prompts.cancel_ticket(ticket)

    def _check_blocks(self, prompt: list[words.ContentBlock]) -> None:
        """Kinds that were not advertised are refused by name, not dropped."""
        kinds = {words.ImageContent: "image", words.AudioContent: "audio", words.EmbeddedResource: "resource"}
        for index, block in enumerate(prompt):
            kind = kinds.get(type(block))
            if kind is not None and kind not in self._definition.accepts:
                raise DecodeError(f"This agent does not take {kind} content.", f"$.prompt[{index}]")


def place_of(
    params: session_setup.NewSessionRequest
    | session_setup.LoadSessionRequest
    | session_setup.ResumeSessionRequest
    | session_fork.ForkSessionRequest,
) -> SessionPlace:
    servers = [mcp_server(server, f"$.mcpServers[{index}]") for index, server in enumerate(params.mcp_servers)]
    return SessionPlace(cwd=params.cwd, roots=params.additional_directories, mcp_servers=servers)


def mcp_server(server: session_setup.McpServer, path: str) -> McpServer:
    """A server as the MCP client knows it, whatever version named it. Raises `DecodeError` for one that cannot be."""
    from acp_agent.mcp.servers import McpServer, server_problem

    if isinstance(server, session_setup.McpServerStdio):
        env = {variable.name: variable.value for variable in server.env}
        found = McpServer(name=server.name, command=server.command, args=server.args, env=env)
    else:
        assert isinstance(server, session_setup.McpServerHttp | session_setup.McpServerSse)
        found = McpServer(
            name=server.name,
            transport="http" if isinstance(server, session_setup.McpServerHttp) else "sse",
            url=server.url,
            headers={header.name: header.value for header in server.headers},
        )
    problem = server_problem(found)
    if problem is not None:
        raise DecodeError(problem, path)
    return found

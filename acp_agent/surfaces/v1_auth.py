"""Signing in, in the words of version 1.

Source: https://agentclientprotocol.com/protocol/authentication. Methods are listed only while sign-in is needed: some
clients call `authenticate` whenever the list is not empty. Each question looks anew at what there is to sign in with,
so that a key which appears is found by the next `session/new` of the same process.
"""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from acp_agent.errors import AUTH_REQUIRED, RequestError
from acp_agent.jsonrpc.connection import IncomingRequest, Work
from acp_agent.protocol.v1.authentication import (
    AgentAuthCapabilities,
    AuthenticateRequest,
    AuthenticateResponse,
    AuthMethod,
    AuthMethodAgent,
    AuthMethodTerminal,
    LogoutCapabilities,
    LogoutRequest,
    LogoutResponse,
)
from acp_agent.runtime import auth
from acp_agent.runtime.definition import AgentDefinition
from acp_agent.surfaces.v1_port import EditorPort

__all__ = ["SignIn"]


class SignIn:
    """The connection's way to the agent's `AuthProvider`; without one nobody ever has to sign in."""

    def __init__(self, definition: AgentDefinition, port: EditorPort) -> None:
        self._definition = definition
        self._port = port

    @property
    def _provider(self) -> auth.AuthProvider | None:
        return self._definition.auth

    def methods_needed(self) -> list[AuthMethod]:
        """What `initialize` lists."""
        provider = self._provider
        return [] if provider is None or provider.is_signed_in() else self._methods(provider)

    def capabilities(self) -> AgentAuthCapabilities:
        can_sign_out = self._provider is not None and self._provider.can_sign_out()
        return AgentAuthCapabilities(logout=LogoutCapabilities() if can_sign_out else None)

    def require(self) -> None:
        """Raises `RequestError` -32000 with the methods when nothing could be asked of the model."""
        provider = self._provider
        if provider is not None and not provider.is_signed_in():
            raise RequestError.auth_required(provider.advice(), self._methods_as_json(provider))

    def complete(self, error: RequestError) -> RequestError:
        """The error of a turn; one that means "authentication required" gets the ways to sign in."""
        provider = self._provider
        if error.code != AUTH_REQUIRED or provider is None or not isinstance(error.data, dict):
            return error
        details = f"{error.data.get('details', '')} {provider.advice()}".strip()
        data = error.data | {"details": details, "authMethods": self._methods_as_json(provider)}
        return RequestError(error.code, error.message, data)

    def begin_authenticate(self, request: IncomingRequest, params: AuthenticateRequest) -> Work:
        provider = self._provider
        methods = provider.methods(terminal=False) if provider is not None else ()
        method = next((method for method in methods if method.id == params.method_id), None)
        if provider is None or method is None:
            raise RequestError.invalid_params(f"There is no sign-in method {params.method_id!r}.", "$.methodId")

        async def work() -> AuthenticateResponse:
            if await provider.authenticate(method.id):
                return AuthenticateResponse()
            raise RequestError.auth_required(method.description, self._methods_as_json(provider))

        return work

    def begin_logout(self, request: IncomingRequest, params: LogoutRequest) -> Work:
        provider = self._provider
        if provider is None:
            raise RequestError.method_not_found(request.method)

        async def work() -> LogoutResponse:
            await provider.logout()
            return LogoutResponse()

        return work

    def _methods(self, provider: auth.AuthProvider) -> list[AuthMethod]:
        return [method_out(method) for method in provider.methods(terminal=self._port.abilities.terminal_auth)]

    def _methods_as_json(self, provider: auth.AuthProvider) -> list[Any]:
        return [to_builtins(method) for method in self._methods(provider)]


def method_out(method: auth.AuthMethod) -> AuthMethod:
    if method.kind == "terminal":
        return AuthMethodTerminal(id=method.id, name=method.name, description=method.description, args=method.args)
    return AuthMethodAgent(id=method.id, name=method.name, description=method.description)

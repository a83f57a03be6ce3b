"""Whether the configured models have their keys, and how to give them one."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio.to_thread

from acp_agent.credentials import PROVIDERS, Credentials, KeyProvider
from acp_agent.runtime.auth import AuthMethod

__all__ = ["ModelSignIn", "login_command", "provider_of"]

KEY = "-api-key"
LOGIN = "-login"


def provider_of(spec: str) -> KeyProvider | None:
    """The provider that wants a key for this model; None for a server that is named by its URL."""
    from acp_agent.models.spec import parse_model_spec

    parsed = parse_model_spec(spec)
    if parsed.base_url is not None:
        return None
    provider = PROVIDERS[parsed.provider.partition("-")[0]]
    return None if os.environ.get(provider.address_variable) else provider


class ModelSignIn:
    """`AuthProvider` for the models that `specs` gives, the default first; `state_dir` is what was asked for.

    Sign-in is needed when the default model has no key. Another model without one fails when it is used.
    """

    def __init__(self, specs: Callable[[], Sequence[str]], credentials: Credentials, state_dir: Path | None) -> None:
        self._specs = specs
        self._credentials = credentials
        self._state_dir = state_dir

    def methods(self, *, terminal: bool) -> Sequence[AuthMethod]:
        providers = self._providers()
        return [
            *(self._key_method(provider) for provider in providers),
            *(_terminal_method(provider) for provider in providers[:1] if terminal),
        ]

    def is_signed_in(self) -> bool:
        default = next(map(provider_of, self._specs()), None)
        return default is None or self._credentials.has_key(default.id)

    def can_sign_out(self) -> bool:
        return any(self._credentials.is_stored(provider.id) for provider in self._providers())

    def advice(self) -> str:
        return " ".join(self._advice_for(provider) for provider in self._providers()[:1])

    async def authenticate(self, method_id: str) -> bool:
        """Look whether there is a key by now. A keyring that was named as its place is really asked."""
        provider = method_id.removesuffix(KEY)
        if not self._credentials.has_key(provider):
            return False
        if not self._credentials.is_stored(provider):
            return True
        return await anyio.to_thread.run_sync(self._credentials.find_key, provider) is not None

    async def logout(self) -> None:
        for provider in self._providers():
            await anyio.to_thread.run_sync(self._credentials.forget_key, provider.id)

    def _providers(self) -> list[KeyProvider]:
        found = (provider_of(spec) for spec in self._specs())
        return list(dict.fromkeys(provider for provider in found if provider is not None))

    def _key_method(self, provider: KeyProvider) -> AuthMethod:
        name = f"{provider.name} API key"
        return AuthMethod(id=provider.id + KEY, name=name, description=self._advice_for(provider))

    def _advice_for(self, provider: KeyProvider) -> str:
        command = login_command(provider.id, self._state_dir)
        return f"{provider.name} needs an API key: run `{command}` in a terminal, or set {provider.variables[0]}."


def _terminal_method(provider: KeyProvider) -> AuthMethod:
    return AuthMethod(
        id=provider.id + LOGIN,
        name=f"Enter the {provider.name} API key in a terminal",
        description="It is kept in the keyring, or in a file that only you can read.",
        kind="terminal",
        args=["login"],
    )


def login_command(provider: str, state_dir: Path | None) -> str:
    """What to type, so that it works where this program is not on the PATH, too."""
    on_path = shutil.which("acp-agent") is not None and os.path.basename(sys.argv[0]) != "__main__.py"
    program = ["acp-agent"] if on_path else [sys.executable, "-m", "acp_agent"]
    place = ["--state-dir", str(state_dir)] if state_dir is not None else []
    return shlex.join([*program, "login", *place, provider])

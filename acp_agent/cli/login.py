"""`acp-agent login` and `logout`: keep a provider's key, and forget it. The key itself is never shown."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from acp_agent.cli.signin import provider_of
from acp_agent.credentials import PROVIDERS, Credentials, KeyProvider
from acp_agent.errors import AcpAgentError, SettingsError

__all__ = ["login", "logout"]


def login(arguments: Namespace) -> None:
    """Ask for a key, at the terminal or as one line of stdin, and keep it. Raises `AcpAgentError`."""
    provider = wanted_provider(arguments)
    key = read_key(provider)
    if not key:
        raise AcpAgentError(f"No key was given; {provider.name} is as it was.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise AcpAgentError("A key has no blanks and nothing but printable ASCII characters; nothing was kept.")
    place = Credentials(arguments.state_dir).store_key(provider.id, key)
    tell(f"The key for {provider.name} is kept in {place}.")
    shadow = next((name for name in provider.variables if os.environ.get(name)), None)
    if shadow is not None:
        tell(f"Mind that {shadow} is set here; where it is, it is used instead.")


def logout(arguments: Namespace) -> None:
    """Forget the key of one provider, or of all."""
    credentials = Credentials(arguments.state_dir)
    chosen = PROVIDERS.values() if arguments.provider is None else [PROVIDERS[arguments.provider]]
    forgotten = [provider.name for provider in chosen if credentials.forget_key(provider.id)]
    tell(f"Forgotten: the key for {' and '.join(forgotten)}." if forgotten else "There was no key to forget.")
    for provider in chosen:
        if source := credentials.where(provider.id):
            tell(f"{provider.name} still has credentials in {source}.")


def wanted_provider(arguments: Namespace) -> KeyProvider:
    """The one that was named, or that the default model needs, or that the user chooses."""
    if arguments.provider is not None:
        return PROVIDERS[arguments.provider]
    for spec in configured_specs(arguments):
        if (provider := provider_of(spec)) is not None:
            return provider
    names = list(PROVIDERS)
    if not sys.stdin.isatty():
        raise AcpAgentError(f"Say which provider: acp-agent login {'|'.join(names)}")
    tell(f"Which provider ({', '.join(names)})? ", end="")
    answer = sys.stdin.readline().strip().lower()
    if answer not in PROVIDERS:
        raise AcpAgentError(f"{answer!r} is none of {', '.join(names)}.")
    return PROVIDERS[answer]


def configured_specs(arguments: Namespace) -> list[str]:
    """What would be served by the command line that `login` was appended to. Broken settings do not matter here."""
    from acp_agent.cli.configured import read_user_settings, specs_of

    try:
        settings = read_user_settings()
    except SettingsError:
        settings = None
    served = Namespace(**({"model": None, "scenario": None} | vars(arguments)))
    return specs_of(served, settings)


def read_key(provider: KeyProvider) -> str:
    """What is typed, unseen; or the first line of what is piped in."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    from getpass import getpass

    try:
        return getpass(f"{provider.name} API key (it is not shown): ").strip()
    except (EOFError, KeyboardInterrupt):
        tell("")
        return ""


def tell(text: str, end: str = "\n") -> None:
    sys.stderr.write(text + end)
    sys.stderr.flush()

"""Keys of model providers: from the environment, else from the platform's keyring or a file for its owner alone.

The rule it owns: a key is never logged, printed or shown, and what is asked often costs nothing. The file
`credentials.json` says of each provider that was signed in to where its key is, so that the keyring, which is slow to
import and may ask its user, is touched only for a key that is known to be there. Everything is read anew at each call:
a key that appears, or goes, counts at once.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from acp_agent.errors import AcpAgentError
from acp_agent.log import get_logger
from acp_agent.paths import state_directory

__all__ = ["PROVIDERS", "Credentials", "KeyProvider"]

FILE_NAME = "credentials.json"
SERVICE = "acp-agent"  # the name of our entries in a keyring

logger = get_logger("acp_agent.credentials")


class KeyProvider(Struct, frozen=True):
    """A provider that wants a key. The first of `variables` holds it; any other says that its SDK finds a way itself.

    So does the folder `profiles`, if nothing else is there. `address_variable` names another server, which may need no
    key.
    """

    id: str
    name: str
    variables: tuple[str, ...]
    address_variable: str
    profiles: str = ""


PROVIDERS: Mapping[str, KeyProvider] = {
    "openai": KeyProvider("openai", "OpenAI", ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    "anthropic": KeyProvider(
        "anthropic",
        "Anthropic",
        (
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_PROFILE",
            "ANTHROPIC_IDENTITY_TOKEN",
            "ANTHROPIC_IDENTITY_TOKEN_FILE",
            "ANTHROPIC_CONFIG_DIR",
        ),
        "ANTHROPIC_BASE_URL",
        "~/.config/anthropic/configs",
    ),
}


class _Entry(Struct, omit_defaults=True):
    """Where a key is: here, or in the keyring under the provider's name."""

    key: str = ""
    in_keyring: bool = False

    def __repr__(self) -> str:
        return f"_Entry(in_keyring={self.in_keyring})"


class Keyring(Protocol):
    """The three functions of the `keyring` package that are used, and the root of its errors."""

    def get_password(self, service_name: str, username: str) -> str | None: ...

    def set_password(self, service_name: str, username: str, password: str) -> None: ...

    def delete_password(self, service_name: str, username: str) -> None: ...


class Credentials:
    """The keys of one user, kept in `directory` (default: the state directory). Making one touches nothing."""

    def __init__(self, directory: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
        self._directory = directory
        self._environment = os.environ if environment is None else environment

    @property
    def path(self) -> Path:
        return (self._directory or state_directory()) / FILE_NAME

    def has_key(self, provider: str) -> bool:
        """Whether there is a key, or the provider's SDK is told of another way. Does not open the keyring."""
        known = PROVIDERS[provider]
        in_environment = any(self._environment.get(name) for name in known.variables)
        return in_environment or self.is_stored(provider) or _has_profiles(known)

    def find_key(self, provider: str) -> str | None:
        """The key as it is now. May wait for the keyring: call it in a thread. None when the environment says more."""
        variables = PROVIDERS[provider].variables
        if key := self._environment.get(variables[0]):
            return key
        if any(self._environment.get(name) for name in variables):
            return None
        entry = self._read().get(provider)
        if entry is None:
            return None
        return self._from_keyring(provider) if entry.in_keyring else entry.key or None

    def is_stored(self, provider: str) -> bool:
        """Whether `forget_key` would drop something."""
        return provider in self._read()

    def where(self, provider: str) -> str | None:
        """Where its key comes from, in words."""
        set_variables = [name for name in PROVIDERS[provider].variables if self._environment.get(name)]
        if set_variables:
            return f"the environment ({set_variables[0]})"
        entry = self._read().get(provider)
        if entry is None:
            return PROVIDERS[provider].profiles if _has_profiles(PROVIDERS[provider]) else None
        return "the keyring" if entry.in_keyring else str(self.path)

    def store_key(self, provider: str, key: str) -> str:
        """Keep the key, in the keyring if there is a usable one; where that was, in words. Raises `AcpAgentError`."""
        entry = _Entry(in_keyring=True) if self._into_keyring(provider, key) else _Entry(key)
        self._write(self._read() | {provider: entry})
        return "the keyring" if entry.in_keyring else str(self.path)

    def forget_key(self, provider: str) -> bool:
        """Drop the stored key; whether there was one. The environment is not ours to change."""
        entries = self._read()
        entry = entries.pop(provider, None)
        if entry is None:
            return False
        if entry.in_keyring:
            self._out_of_keyring(provider)
        self._write(entries)
        return True

    # the file ---------------------------------------------------------------------------------------------------------

    def _read(self) -> dict[str, _Entry]:
        try:
            data = self.path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            logger.warning("credentials_unreadable", path=str(self.path), problem=error.strerror)
            return {}
        try:
            return msgspec.json.decode(data, type=dict[str, _Entry])
        except (msgspec.DecodeError, UnicodeDecodeError):  # its text may quote the file
            logger.warning("credentials_damaged", path=str(self.path))
            return {}

    def _write(self, entries: dict[str, _Entry]) -> None:
        """All or nothing, and never readable by others, not even for a moment."""
        import tempfile

        folder = self.path.parent
        try:
            folder.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{FILE_NAME}.", dir=folder)  # with mode 0600
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(msgspec.json.encode(entries))
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(name, self.path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise
        except OSError as error:
            raise AcpAgentError(f"{self.path} cannot be written: {error.strerror or error}") from None

    # the keyring ------------------------------------------------------------------------------------------------------

    def _from_keyring(self, provider: str) -> str | None:
        keyring, failures = open_keyring()
        if keyring is None:
            logger.warning("keyring_missing", provider=provider)
            return None
        try:
            return keyring.get_password(SERVICE, provider) or None
        except failures as error:
            logger.warning("keyring_unreadable", provider=provider, problem=type(error).__name__)
            return None

    def _into_keyring(self, provider: str, key: str) -> bool:
        """Whether the keyring took it, and gives it back: some backends take everything and keep nothing."""
        keyring, failures = open_keyring()
        if keyring is None:
            return False
        try:
            keyring.set_password(SERVICE, provider, key)
            return keyring.get_password(SERVICE, provider) == key
        except failures:
            return False

    def _out_of_keyring(self, provider: str) -> None:
        keyring, failures = open_keyring()
        if keyring is not None:
            with suppress(*failures):
                keyring.delete_password(SERVICE, provider)


def open_keyring() -> tuple[Keyring | None, tuple[type[Exception], ...]]:
    """The `keyring` package and what it raises; None when it is not installed (`acp-agent[keyring]`)."""
    try:
        keyring, errors = import_module("keyring"), import_module("keyring.errors")
    except ImportError:
        return None, ()
    return keyring, (errors.KeyringError, OSError, RuntimeError)


def _has_profiles(provider: KeyProvider) -> bool:
    return bool(provider.profiles) and os.path.isdir(os.path.expanduser(provider.profiles))

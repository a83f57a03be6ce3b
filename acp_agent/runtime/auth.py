"""Signing in, as the runtime knows it: what an agent may need before its sessions can do anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct, field

__all__ = ["AuthMethod", "AuthProvider"]


class AuthMethod(Struct, frozen=True, kw_only=True):
    """One way to sign in. `description` is what a person reads: what to do, with the command to run.

    `agent`: the agent does it itself when it is asked to. `terminal`: the client starts the agent's own command again
    in a terminal, with `args` behind it.
    """

    id: str
    name: str
    description: str
    kind: Literal["agent", "terminal"] = "agent"
    args: list[str] = field(default_factory=list)


class AuthProvider(Protocol):
    """Knows whether sign-in is needed. Nothing is remembered: each question looks anew, so no restart is needed.

    The plain methods must not wait for anything but a small file: they are asked while a request is being read.
    """

    def methods(self, *, terminal: bool) -> Sequence[AuthMethod]:
        """All ways, one without a terminal first; those with one only for a client that has a `terminal`."""

    def is_signed_in(self) -> bool:
        """Whether new sessions can work."""

    def can_sign_out(self) -> bool:
        """Whether there is something that `logout` would drop."""

    def advice(self) -> str:
        """What a person can do to be signed in, with the command to run."""

    async def authenticate(self, method_id: str) -> bool:
        """Sign in by one of the `agent` methods; whether that worked."""

    async def logout(self) -> None:
        """Drop what was stored. Sessions that are open go on as long as their provider lets them."""

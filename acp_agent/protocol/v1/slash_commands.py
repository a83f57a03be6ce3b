"""Slash commands that the user may type.

Source: https://agentclientprotocol.com/protocol/slash-commands
"""

from __future__ import annotations

from typing import TypeAlias

from acp_agent.protocol.base import Lenient, Payload, Sifted

__all__ = ["AvailableCommand", "AvailableCommandInput", "AvailableCommandsUpdate", "UnstructuredCommandInput"]


class UnstructuredCommandInput(Payload, kw_only=True):
    """All text after the command's name. `hint` is shown until something is typed."""

    hint: str


AvailableCommandInput: TypeAlias = UnstructuredCommandInput


class AvailableCommand(Payload, kw_only=True):
    """A command; `name` has no slash."""

    name: str
    description: str
    input: Lenient[AvailableCommandInput | None] = None


class AvailableCommandsUpdate(Payload, kw_only=True, tag_field="sessionUpdate", tag="available_commands_update"):
    """All commands: they replace the ones before."""

    available_commands: Sifted[list[AvailableCommand]]

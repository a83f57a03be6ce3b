"""A session's options: `session/set_config_option` and the list of them.

Source: https://agentclientprotocol.com/protocol/session-config-options. The list is always complete.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from acp_agent.protocol.base import Lenient, OneOf, Payload, Sifted

__all__ = [
    "ConfigOptionUpdate",
    "SessionConfigBoolean",
    "SessionConfigOption",
    "SessionConfigSelect",
    "SessionConfigSelectChoice",
    "SessionConfigSelectGroup",
    "SessionConfigSelectOption",
    "SetSessionConfigOptionRequest",
    "SetSessionConfigOptionResponse",
]


class SessionConfigSelectChoice(OneOf):
    """An entry of a select's `options`: one value, or a group of them. A list has one sort only."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: dict[str, Any]) -> type[SessionConfigSelectOption | SessionConfigSelectGroup]:
        return SessionConfigSelectGroup if "group" in value else SessionConfigSelectOption


class SessionConfigSelectOption(Payload, SessionConfigSelectChoice, kw_only=True):
    """One value of a select."""

    value: str
    name: str
    description: Lenient[str | None] = None


class SessionConfigSelectGroup(Payload, SessionConfigSelectChoice, kw_only=True):
    """Values of a select under a heading."""

    group: str
    name: str
    options: Sifted[list[SessionConfigSelectOption]]


class SessionConfigSelect(Payload, kw_only=True, tag_field="type", tag="select"):
    """One of many. `category` is `mode`, `model`, `model_config`, `thought_level` or any other word."""

    id: str
    name: str
    current_value: str
    options: list[SessionConfigSelectChoice]
    description: Lenient[str | None] = None
    category: Lenient[str | None] = None


class SessionConfigBoolean(Payload, kw_only=True, tag_field="type", tag="boolean"):
    """On or off. Sent only with `clientCapabilities.session.configOptions.boolean`."""

    id: str
    name: str
    current_value: bool
    description: Lenient[str | None] = None
    category: Lenient[str | None] = None


SessionConfigOption: TypeAlias = SessionConfigSelect | SessionConfigBoolean


class SetSessionConfigOptionRequest(Payload, kw_only=True):
    """Change one option: `value` is a string, or with `type` `boolean` a boolean."""

    session_id: str
    config_id: str
    value: str | bool
    type: Lenient[str | None] = None

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) != (self.type == "boolean"):
            raise ValueError('A boolean `value` goes with `type` "boolean", a string `value` with no `type`')


class SetSessionConfigOptionResponse(Payload, kw_only=True):
    """All options, after the change."""

    config_options: Sifted[list[SessionConfigOption]]


class ConfigOptionUpdate(Payload, kw_only=True, tag_field="sessionUpdate", tag="config_option_update"):
    """All options, after a change, whoever made it."""

    config_options: Sifted[list[SessionConfigOption]]

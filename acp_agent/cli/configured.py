"""The coding agent as flags, the environment and the user's settings make it; the first of them that speaks counts.

A settings file that is broken when the program starts does not keep it from serving: sessions are refused with the
error until it is mended, and the first one after that finds the models and tools that the file names.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.agent import Agent
from acp_agent.cli.signin import ModelSignIn, provider_of
from acp_agent.credentials import Credentials
from acp_agent.errors import AcpAgentError, SettingsError
from acp_agent.log import get_logger
from acp_agent.models.base import Model
from acp_agent.settings.places import is_there, user_file
from acp_agent.store.base import SessionStore
from acp_agent.version import VERSION

if TYPE_CHECKING:
    from acp_agent.runtime.definition import SessionSetup
    from acp_agent.runtime.instructions import SystemPrompt
    from acp_agent.settings.file import SettingsFile
    from acp_agent.tools.base import Tool

__all__ = ["Configuration", "specs_of"]

logger = get_logger("acp_agent.settings")


class Configuration:
    """What the program was told. `state` is where sessions live. A bad flag raises `AcpAgentError`."""

    def __init__(self, arguments: Namespace, state: Path) -> None:
        self.arguments = arguments
        self.state = state
        self.credentials = Credentials(arguments.state_dir)
        self._settings: SettingsFile | None = None
        self._is_broken = False
        self._set_up: Callable[[str], SessionSetup] | None = None

    def make_agent(self) -> Agent:
        """The coding agent: its tools, its models, and sessions that are kept."""
        try:
            self._settings = read_user_settings()
        except SettingsError as error:
            self._is_broken = True
            logger.error("settings_broken", problem=str(error))
        agent = Agent(
            "acp-agent",
            title="acp-agent",
            version=VERSION,
            models=self.models(),
            tools=self.tools(),
            mode=self.arguments.mode,
            store=partial(open_store, self.state),
            system_prompt=self.system_prompt(),
        )
        agent.definition.set_up = partial(self.set_up, agent)
        agent.definition.auth = ModelSignIn(self.specs, self.credentials, self.arguments.state_dir)
        return agent

    def specs(self) -> list[str]:
        return specs_of(self.arguments, self._settings)

    def models(self) -> dict[str, Model]:
        """By name, the default first: a scenario, the models asked for, or the built-in scenario, which tells more."""
        specs = self.specs()
        if specs:
            return {spec: self._model(spec) for spec in specs}
        from acp_agent.models.scenario import Scenario
        from acp_agent.models.scripted import ScriptedModel

        file = self.arguments.scenario
        scenario = Scenario.load(file) if file else Scenario.builtin()
        return {scenario.name: ScriptedModel(scenario)}

    def tools(self) -> list[Tool]:
        from acp_agent.tools.coding import coding_tools

        written = self._settings.tools if self._settings is not None else None
        return coding_tools(
            terminal=self.arguments.terminal or (written and written.terminal) or "auto",
            fetch_allow_private=bool(written and written.fetch_allow_private),
        )

    def system_prompt(self) -> SystemPrompt | None:
        """What a real model is told first: the built-in text, or the user's file. Raises `AcpAgentError`."""
        file = self.arguments.system_prompt
        if not self.specs():
            return None
        from acp_agent.runtime.instructions import SystemPrompt

        try:
            return SystemPrompt(None if file is None else file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise AcpAgentError(f"--system-prompt {file}: {error}") from error

    def set_up(self, agent: Agent, cwd: str) -> SessionSetup:
        """What a session in `cwd` is made with. Imported with the first session. Raises `SettingsError`."""
        if self._set_up is None:
            from acp_agent.settings.force import SettingsSource

            self._set_up = SettingsSource(agent.definition.policy.rules)
        setup = self._set_up(cwd)
        if self._is_broken:
            self._settings = read_user_settings()
            self._is_broken = False
            definition = agent.definition
            definition.models, definition.tools = self.models(), self.tools()
            definition.system_prompt = self.system_prompt()
        return setup

    def _model(self, spec: str) -> Model:
        """The stored key is for the provider itself, and never sent to a server that is named by its URL."""
        from acp_agent.models.spec import model_from_spec

        provider = provider_of(spec)
        find_key = None if provider is None else partial(self.credentials.find_key, provider.id)
        return model_from_spec(spec, api_key=find_key)


def specs_of(arguments: Namespace, settings: SettingsFile | None) -> list[str]:
    """The models asked for, the default first; none when a scenario is played."""
    if arguments.scenario is not None:
        return []
    asked: list[str] = arguments.model or os.environ.get("ACP_AGENT_MODEL", "").split()
    return asked or (settings.models if settings is not None else [])


def read_user_settings() -> SettingsFile | None:
    """The user's own file, if there is one: nothing is imported for one that is not. Raises `SettingsError`."""
    if not is_there(user_file()):
        return None
    from acp_agent.settings.force import load_user_settings

    return load_user_settings()


def open_store(state: Path) -> SessionStore:
    """Sessions that outlive the process. Imported with the first session: it loads a database."""
    from acp_agent.store.sqlite import SqliteStore

    return SqliteStore(state)

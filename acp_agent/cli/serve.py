"""`acp-agent serve`: the built-in coding agent, or an `Agent` of the user's, on stdin and stdout."""

from __future__ import annotations

import importlib
import os
import sys
import time
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from acp_agent.agent import Agent
from acp_agent.errors import AcpAgentError
from acp_agent.log import configure
from acp_agent.models.base import Model
from acp_agent.paths import state_directory
from acp_agent.program import leave, run_on_stdio
from acp_agent.store.base import SessionStore
from acp_agent.version import VERSION

if TYPE_CHECKING:
    from acp_agent.runtime.instructions import SystemPrompt
    from acp_agent.server import Trace

__all__ = ["build_agent", "serve"]


def serve(arguments: Namespace) -> None:
    """Serve until the client is gone, and leave: no thread, stuck or not, holds the process."""
    state = arguments.state_dir or state_directory()
    configure(file=arguments.log_file or state / "acp-agent.log", stderr_level=arguments.log_level or "critical")
    agent = load_target(arguments.target) if arguments.target else build_agent(arguments, state)
    if arguments.target and arguments.mode != "ask":
        agent.definition.mode = arguments.mode
    trace = open_trace(arguments.trace) if arguments.trace else None
    run_on_stdio(agent, drain=arguments.drain, trace=trace)
    leave(0)


def build_agent(arguments: Namespace, state: Path) -> Agent:
    """The coding agent: its tools, its models, and sessions that are kept in `state`."""
    from acp_agent.tools.coding import coding_tools

    return Agent(
        "acp-agent",
        title="acp-agent",
        version=VERSION,
        models=models_of(arguments),
        tools=coding_tools(terminal=arguments.terminal),
        mode=arguments.mode,
        store=partial(open_store, state),
        system_prompt=system_prompt_of(arguments) if specs_of(arguments) else None,
    )


def system_prompt_of(arguments: Namespace) -> SystemPrompt:
    """What a real model is told first: the built-in text, or the user's file. Raises `AcpAgentError`."""
    from acp_agent.runtime.instructions import SystemPrompt

    if arguments.system_prompt is None:
        return SystemPrompt()
    try:
        return SystemPrompt(arguments.system_prompt.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise AcpAgentError(f"--system-prompt {arguments.system_prompt}: {error}") from error


def specs_of(arguments: Namespace) -> list[str]:
    """The models asked for, on the command line or in the environment; none when a scenario is played."""
    if arguments.scenario is not None:
        return []
    return arguments.model or os.environ.get("ACP_AGENT_MODEL", "").split()


def open_store(state: Path) -> SessionStore:
    """Sessions that outlive the process. Imported with the first session: it loads a database."""
    from acp_agent.store.sqlite import SqliteStore

    return SqliteStore(state)


def models_of(arguments: Namespace) -> dict[str, Model]:
    """By name, the default first: a scenario, the models asked for, or the built-in scenario that says what to do."""
    specs = specs_of(arguments)
    if specs:
        from acp_agent.models.spec import model_from_spec

        return {spec: model_from_spec(spec) for spec in specs}
    from acp_agent.models.scenario import Scenario
    from acp_agent.models.scripted import ScriptedModel

    scenario = Scenario.load(arguments.scenario) if arguments.scenario else Scenario.builtin()
    return {scenario.name: ScriptedModel(scenario)}


def load_target(target: str) -> Agent:
    """The `Agent` that MODULE:ATTRIBUTE names; modules of the current directory are found too."""
    module_name, _, attribute = target.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        agent = getattr(importlib.import_module(module_name), attribute or "agent")
    except (ImportError, AttributeError) as error:
        raise AcpAgentError(f"{target}: {error}") from error
    if not isinstance(agent, Agent):
        raise AcpAgentError(f"{target} is a {type(agent).__name__}, not an acp_agent.Agent.")
    return agent


def open_trace(path: Path) -> Trace:
    """A trace that writes each frame as a JSON line: `time` in seconds since 1970, `direction`, `frame`."""
    import msgspec

    file: BinaryIO = open(path, "ab", buffering=0)  # noqa: SIM115 -- it lives as long as the process
    encode = msgspec.json.encode

    def trace(direction: str, frame: bytes) -> None:
        try:
            value: object = msgspec.Raw(frame.strip()) if msgspec.json.decode(frame) is not None else None
        except msgspec.DecodeError:
            value = frame.decode(errors="replace")
        file.write(encode({"time": time.time(), "direction": direction, "frame": value}) + b"\n")

    return trace

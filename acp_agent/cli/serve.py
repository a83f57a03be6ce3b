"""`acp-agent serve`: the built-in coding agent, or an `Agent` of the user's, on stdin and stdout."""

from __future__ import annotations

import importlib
import os
import sys
from argparse import Namespace
from pathlib import Path

from acp_agent.agent import Agent
from acp_agent.errors import AcpAgentError
from acp_agent.log import configure
from acp_agent.paths import state_directory
from acp_agent.program import leave, run_on_stdio

__all__ = ["build_agent", "serve"]


def serve(arguments: Namespace) -> None:
    """Serve until the client is gone, and leave: no thread, stuck or not, holds the process."""
    if arguments.protocol == "2":
        raise AcpAgentError("--protocol 2: this version speaks protocol version 1 only.")
    state = arguments.state_dir or state_directory()
    configure(file=arguments.log_file or state / "acp-agent.log", stderr_level=arguments.log_level or "critical")
    agent = load_target(arguments.target) if arguments.target else build_agent(arguments, state)
    if arguments.target and arguments.mode != "ask":
        agent.definition.mode = arguments.mode
    agent.definition.unstable |= frozenset(arguments.unstable)
    trace = None
    if arguments.trace:
        from acp_agent.cli.trace import open_trace

        trace = open_trace(arguments.trace)
    run_on_stdio(agent, drain=arguments.drain, trace=trace)
    leave(0)


def build_agent(arguments: Namespace, state: Path) -> Agent:
    """The coding agent: its tools, its models, and sessions that are kept in `state`."""
    from acp_agent.cli.configured import Configuration

    return Configuration(arguments, state).make_agent()


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

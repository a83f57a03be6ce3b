"""`acp-agent serve`: the built-in coding agent, or an `Agent` of the user's, on stdin and stdout."""

from __future__ import annotations

import importlib
import os
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.agent import Agent
from acp_agent.errors import AcpAgentError
from acp_agent.log import configure
from acp_agent.paths import state_directory
from acp_agent.program import leave, run_on_stdio

if TYPE_CHECKING:
    from acp_agent.server import Trace

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
    trace = open_trace(arguments.trace) if arguments.trace else None
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


def open_trace(path: Path) -> Trace:
    """A trace that writes each frame as a JSON line: `time` in seconds since 1970, `direction`, `frame`.

    The file holds whole conversations, so only its owner can read it.
    """
    import msgspec

    try:
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab", buffering=0)
    except OSError as error:
        raise AcpAgentError(f"--trace {path}: {error.strerror}") from error
    encode = msgspec.json.encode

    def trace(direction: str, frame: bytes) -> None:
        try:
            value: object = msgspec.Raw(frame.strip()) if msgspec.json.decode(frame) is not None else None
        except msgspec.DecodeError:
            value = frame.decode(errors="replace")
        file.write(encode({"time": time.time(), "direction": direction, "frame": value}) + b"\n")

    return trace

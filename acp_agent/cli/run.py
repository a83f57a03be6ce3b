"""From parsed arguments to the command that does the work. Errors of the user's are one clear line, not a traceback."""

from __future__ import annotations

import sys
from argparse import Namespace

from acp_agent.errors import AcpAgentError

__all__ = ["run"]


def run(arguments: Namespace) -> None:
    """Run the command; exits with 2 for what the user got wrong."""
    try:
        _command(arguments)
    except AcpAgentError as error:
        sys.stderr.write(f"acp-agent: {error}\n")
        sys.exit(2)


def _command(arguments: Namespace) -> None:
    match arguments.command:
        case "serve":
            from acp_agent.cli.serve import serve

            serve(arguments)
        case "demo":
            from acp_agent.cli.demo import demo

            demo(arguments)
        case "replay":
            from acp_agent.cli.replay import replay

            replay(arguments)
        case "config":
            from acp_agent.cli.config import show_config

            show_config(arguments)
        case "sessions":
            from acp_agent.cli.sessions import sessions

            sessions(arguments)
        case "login" | "logout":
            from acp_agent.cli.login import login, logout

            (login if arguments.command == "login" else logout)(arguments)

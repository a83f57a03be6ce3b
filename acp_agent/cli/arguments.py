"""What the command line takes. Imports little, so that it is quick and cannot print."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from acp_agent.version import VERSION

__all__ = ["parse"]

COMMANDS = ("serve", "demo", "replay", "config", "sessions", "login", "logout")
MODES = ("ask", "accept_edits", "plan", "auto")
LEVELS = ("debug", "info", "warning", "error")


def parse(arguments: list[str]) -> argparse.Namespace:
    """The arguments, with `command` always set: without one it is `serve`. Exits on `--help`, `--version`, errors.

    A client that signs in in a terminal appends `login` to the agent's own command line, whatever that is: then the
    command is `login`, and what served (`model`, `state_dir`) says which key is wanted.
    """
    parser = _parser()
    if not arguments or (arguments[0] not in (*COMMANDS, "--version", "-h", "--help")):
        arguments = ["serve", *arguments]
    if arguments[0] == "serve" and _ends_in_login(arguments):
        parsed = parser.parse_args(arguments[:-1])
        parsed.command, parsed.provider = "login", None
        return parsed
    return parser.parse_args(arguments)


def _ends_in_login(arguments: list[str]) -> bool:
    """Whether the last argument is a command, and not the value of an option: each option of `serve` has one."""
    return arguments[-1] == "login" and (not arguments[-2].startswith("-") or "=" in arguments[-2])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="acp-agent", description="A coding agent for editors that speak ACP.")
    parser.add_argument("--version", action="version", version=f"acp-agent {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_serve(commands.add_parser("serve", help="speak ACP on stdin and stdout (the default command)"))
    _add_demo(commands.add_parser("demo", help="watch a scripted turn in a scratch workspace"))
    replay = commands.add_parser("replay", help="show a file that --trace wrote as a readable conversation")
    replay.add_argument("file", type=Path, help="the trace")
    config = commands.add_parser("config", help="show the settings in force")
    config.add_argument("what", choices=("permissions", "paths"), help="which of them")
    config.add_argument("--cwd", type=Path, default=None, help="the project (default: the current directory)")
    _add_state_dir(config)
    _add_sessions(commands.add_parser("sessions", help="list, read, export or delete kept sessions"))
    for name, text in (("login", "store a provider's key"), ("logout", "forget a provider's key")):
        command = commands.add_parser(name, help=text)
        command.add_argument("provider", nargs="?", choices=("openai", "anthropic"), default=None)
        _add_state_dir(command)
    return parser


def _add_serve(serve: argparse.ArgumentParser) -> None:
    serve.add_argument("target", nargs="?", metavar="MODULE:ATTRIBUTE", help="an Agent (default: the coding agent)")
    serve.add_argument("--scenario", type=Path, metavar="FILE", help="play a scenario instead of a model")
    serve.add_argument(
        "--model",
        action="append",
        metavar="SPEC",
        help="openai:NAME, anthropic:NAME, or a base URL with #NAME; may be given several times (ACP_AGENT_MODEL)",
    )
    _add_state_dir(serve)
    serve.add_argument("--mode", choices=MODES, metavar="ID", default="ask", help="ask, accept_edits, plan or auto")
    serve.add_argument("--protocol", choices=("1", "2", "auto"), default="1", help="protocol versions offered")
    serve.add_argument("--trace", type=Path, metavar="FILE", help="write every frame, with its time, as JSON lines")
    serve.add_argument("--log-level", choices=LEVELS, metavar="LEVEL", help="also log to stderr from this level")
    serve.add_argument(
        "--log-file", type=Path, metavar="FILE", help="where the log goes (default: the state directory)"
    )
    serve.add_argument(
        "--unstable",
        action="append",
        choices=("fork",),
        default=[],
        metavar="PART",
        help="offer a part of the protocol that may still change: fork",
    )
    serve.add_argument("--drain", type=float, metavar="SECONDS", help="how long answers may take after stdin closes")
    serve.add_argument("--system-prompt", type=Path, metavar="FILE", help="instead of the built-in one")
    serve.add_argument("--terminal", choices=("auto", "client", "local"), help="where commands run (default: auto)")


def _add_demo(demo: argparse.ArgumentParser) -> None:
    demo.add_argument("file", nargs="?", type=Path, help="a scenario (default: the built-in one)")
    answers = demo.add_mutually_exclusive_group()
    answers.add_argument("--yes", action="store_true", help="allow everything that is asked")
    answers.add_argument("--no", action="store_true", help="reject everything that is asked")
    demo.add_argument("--prompt", default=None, help="what to say to the agent")


def _add_sessions(sessions: argparse.ArgumentParser) -> None:
    _add_state_dir(sessions)
    actions = sessions.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="a table of them")
    listing.add_argument("--cwd", type=Path, default=None, help="only those of this directory")
    listing.add_argument("--json", action="store_true", help="as JSON lines")
    for name, text in (("show", "a readable transcript"), ("export", "JSON"), ("delete", "for good")):
        action = actions.add_parser(name, help=text)
        action.add_argument("session_id", metavar="ID", help="its id, or the beginning of it")
    action.add_argument("--yes", action="store_true", help="do not ask")


def _add_state_dir(parser: argparse.ArgumentParser) -> None:
    default = os.environ.get("ACP_AGENT_STATE_DIR")
    parser.add_argument(
        "--state-dir",
        type=Path,
        metavar="DIR",
        default=Path(default) if default else None,
        help="where sessions live (default: the platform's state directory; ACP_AGENT_STATE_DIR)",
    )

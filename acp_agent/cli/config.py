"""`acp-agent config permissions` and `config paths`: what holds for a session, and which file says so."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import TextIO

from acp_agent.cli.stage import clean
from acp_agent.cli.tables import write_table
from acp_agent.cli.terminal import standard_output
from acp_agent.credentials import PROVIDERS, Credentials
from acp_agent.paths import state_directory
from acp_agent.runtime.permissions import MODES
from acp_agent.runtime.rules import PermissionRule, Verdict
from acp_agent.settings.force import Settings, load_settings
from acp_agent.settings.places import FILE_NAME, is_there, project_file, user_file

__all__ = ["show_config"]


def show_config(arguments: Namespace) -> None:
    """Write to stdout. Raises `SettingsError` for a file that is broken."""
    cwd = os.path.abspath(arguments.cwd or Path.cwd())
    with standard_output() as out:
        if arguments.what == "permissions":
            show_permissions(out, cwd, load_settings(cwd))
        else:
            show_paths(out, cwd, arguments.state_dir)


def show_permissions(out: TextIO, cwd: str, settings: Settings) -> None:
    """All steps in which a call is judged, with the rules in their places."""
    out.write(f"A tool call in {cwd} is judged from the top; the first line that fits decides.\n\n")
    write_table(out, ("", "decision", "for", "from"), _numbered(_steps(settings)))
    out.write("\nNo rule allows a path outside the session's folders.\n")
    if settings.notice:
        out.write(f"\n{clean(settings.notice)}\n")
    if settings.rules_without_trust:
        out.write("\nNot in force:\n\n")
        write_table(out, ("decision", "for", "from"), [_row(rule) for rule in settings.rules_without_trust])
    out.write("\nModes:\n\n")
    write_table(out, ("mode", "meaning"), [(mode.value, mode.description or mode.name) for mode in MODES])


def _steps(settings: Settings) -> list[tuple[str, str, str]]:
    """The order of `PermissionPolicy.decide`."""
    return [
        *_rows(settings, "deny"),
        ("deny", "a tool that is switched off", "the tool"),
        ("deny", "what would change something, in mode plan", "the mode"),
        ("as answered", "what was answered with always, inside the session's folders", "the session"),
        *_rows(settings, "ask"),
        ("allow", "everything, in mode auto", "the mode"),
        *_rows(settings, "allow"),
        ("allow", "edits inside the session's folders but of sensitive files, in mode accept_edits", "the mode"),
        ("allow", "reading and searching inside the session's folders, but of sensitive files", "the tool"),
        ("ask", "everything else", "the tool"),
    ]


def _rows(settings: Settings, decision: Verdict) -> list[tuple[str, str, str]]:
    return [_row(rule) for rule in settings.rules if rule.decision == decision]


def _row(rule: PermissionRule) -> tuple[str, str, str]:
    what = rule.tool if rule.pattern == "*" else f"{rule.tool}({rule.pattern})"
    return rule.decision, what, rule.source


def _numbered(rows: list[tuple[str, str, str]]) -> list[tuple[str, str, str, str]]:
    return [(str(number), *row) for number, row in enumerate(rows, 1)]


def show_paths(out: TextIO, cwd: str, state_dir: Path | None) -> None:
    """Where everything is, whether it is there or not; also when a settings file is broken."""
    state, project = state_dir or state_directory(), project_file(cwd)
    credentials = Credentials(state_dir)
    rows = [
        ("your settings", str(user_file()), "" if is_there(user_file()) else "not there"),
        ("this project's settings", str(project or Path(cwd, FILE_NAME)), "" if project else "not there"),
        ("sessions", str(state / "sessions.db"), _missing(state / "sessions.db")),
        ("log", str(state / "acp-agent.log"), _missing(state / "acp-agent.log")),
        *((f"key for {each.name}", credentials.where(each.id) or "none", "") for each in PROVIDERS.values()),
    ]
    write_table(out, ("what", "where", ""), rows)


def _missing(path: Path) -> str:
    return "" if path.exists() else "not there"

"""The built-in tools of a coding agent, made together."""

from __future__ import annotations

from collections.abc import Mapping

from acp_agent.tools.base import Tool
from acp_agent.tools.command import TIMEOUT_SECONDS, RunCommand, TerminalChoice
from acp_agent.tools.edit import EditFile, WriteFile
from acp_agent.tools.mode import SwitchMode
from acp_agent.tools.plan import UpdatePlan
from acp_agent.tools.read import ListDirectory, ReadFile
from acp_agent.tools.text import DISPLAY_LIMIT, MODEL_LIMIT

__all__ = ["coding_tools"]


def coding_tools(
    *,
    terminal: TerminalChoice = "auto",
    shell: str = "/bin/sh",
    command_timeout: float = TIMEOUT_SECONDS,
    env: Mapping[str, str | None] | None = None,
    display_limit: int = DISPLAY_LIMIT,
    model_limit: int = MODEL_LIMIT,
) -> list[Tool]:
    """All of them, in the order that a model reads them.

    `terminal` says where commands run: in the editor's terminal when it has one (`auto`), only there (`client`), or
    never there (`local`). `command_timeout` is in seconds; `env` is added to a command's environment, None removing a
    variable. `display_limit` and `model_limit` are the bytes of one output that are shown, and told to the model.
    """
    return [
        ReadFile(display_limit=display_limit),
        ListDirectory(),
        WriteFile(),
        EditFile(),
        RunCommand(
            terminal=terminal,
            shell=shell,
            timeout=command_timeout,
            env=env,
            display_limit=display_limit,
            model_limit=model_limit,
        ),
        UpdatePlan(),
        SwitchMode(),
    ]

"""The built-in tools of a coding agent, made together."""

from __future__ import annotations

from collections.abc import Mapping

from acp_agent.tools.ask import AskUser
from acp_agent.tools.base import Tool
from acp_agent.tools.command import TIMEOUT_SECONDS, RunCommand, TerminalChoice
from acp_agent.tools.edit import EditFile, WriteFile
from acp_agent.tools.fetch import TIMEOUT_SECONDS as FETCH_SECONDS
from acp_agent.tools.fetch import FetchUrl
from acp_agent.tools.mode import SwitchMode
from acp_agent.tools.move import DeleteFile, MoveFile
from acp_agent.tools.plan import UpdatePlan
from acp_agent.tools.read import ListDirectory, ReadFile
from acp_agent.tools.search import FindFiles, SearchText
from acp_agent.tools.text import DISPLAY_LIMIT, MODEL_LIMIT

__all__ = ["coding_tools"]


def coding_tools(
    *,
    terminal: TerminalChoice = "auto",
    shell: str = "/bin/sh",
    command_timeout: float = TIMEOUT_SECONDS,
    env: Mapping[str, str | None] | None = None,
    fetch_allow_private: bool = False,
    fetch_timeout: float = FETCH_SECONDS,
    display_limit: int = DISPLAY_LIMIT,
    model_limit: int = MODEL_LIMIT,
) -> list[Tool]:
    """All of them, in the order that a model reads them.

    `terminal` says where commands run: in the editor's terminal when it has one (`auto`), only there (`client`), or
    never there (`local`). `command_timeout` is in seconds; `env` is added to a command's environment, None removing a
    variable. `fetch_allow_private` lets `fetch_url` reach this machine and the local network; `fetch_timeout` is in
    seconds. `display_limit` and `model_limit` are the bytes of one output that are shown, and told to the model (of a
    page twice as many, of a file four times).
    """
    return [
        ReadFile(display_limit=display_limit, model_limit=4 * model_limit),
        ListDirectory(),
        FindFiles(),
        SearchText(),
        WriteFile(),
        EditFile(),
        DeleteFile(),
        MoveFile(),
        RunCommand(
            terminal=terminal,
            shell=shell,
            timeout=command_timeout,
            env=env,
            display_limit=display_limit,
            model_limit=model_limit,
        ),
        FetchUrl(
            allow_private=fetch_allow_private,
            timeout=fetch_timeout,
            display_limit=display_limit,
            model_limit=2 * model_limit,
        ),
        UpdatePlan(),
        AskUser(),
        SwitchMode(),
    ]

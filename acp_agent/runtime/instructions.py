"""The system prompt of the coding agent: one file that users can replace, filled in for each session.

`{cwd}`, `{roots}`, `{mode}`, `{project}` and `{servers}` are filled in; anything else in braces stays as it is.
"""

from __future__ import annotations

import os
from pathlib import Path

from acp_agent.content import clean_text
from acp_agent.runtime.session import Session

__all__ = ["SystemPrompt", "project_instructions"]

PROJECT_FILE = "AGENTS.md"
PROJECT_LIMIT = 32 * 1024  # bytes of project instructions, of all files together

MODES = {
    "plan": "The session is in plan mode: nothing may be changed or run. Find out what is needed and propose a plan;"
    " call switch_mode when the user should let you carry it out.\n",
    "accept_edits": "Edits inside the folder are made without asking; commands are still asked for.\n",
    "auto": "Nothing is asked before it is done: be careful with what cannot be undone.\n",
}


class SystemPrompt:
    """Makes the system prompt of a session, anew for each request: the mode and the project's file may change.

    Reads the disk: call it in a thread. `template` is a text; None takes the built-in one.
    """

    def __init__(self, template: str | None = None) -> None:
        self._template = template

    def __call__(self, session: Session) -> str:
        if self._template is None:
            self._template = Path(__file__).with_name("system_prompt.md").read_text("utf-8")
        others = [root for root in session.roots if root != session.cwd]
        instructions = project_instructions(session.cwd)
        servers = "\n\n".join(filter(None, (service.instructions() for service in session.services)))
        values = {
            "cwd": session.cwd,
            "roots": f" These folders belong to it too: {', '.join(others)}." if others else "",
            "mode": MODES.get(session.mode, ""),
            "project": f"\nInstructions of this project:\n\n{instructions}\n" if instructions else "",
            "servers": f"\nWhat the MCP servers say:\n\n{servers}\n" if servers else "",
        }
        text = self._template
        for name, value in values.items():
            text = text.replace("{" + name + "}", value)
        return clean_text(text).strip()


def project_instructions(cwd: str) -> str:
    """The texts of all `AGENTS.md` from the root of the repository (or only `cwd`) down to `cwd`, bounded."""
    texts: list[str] = []
    left = PROJECT_LIMIT
    for folder in _folders(cwd):  # the nearest first: it may use up the room
        try:
            with open(os.path.join(folder, PROJECT_FILE), "rb") as file:
                text = file.read(left).decode("utf-8", "replace").strip()
        except OSError:
            continue
        if text:
            left = max(0, left - len(text.encode()))
            texts.append(text)
    return "\n\n".join(reversed(texts))


def _folders(cwd: str) -> list[str]:
    """`cwd` and the folders above it up to the one that holds `.git`; only `cwd` outside a repository."""
    folders = [cwd, *(str(parent) for parent in Path(cwd).parents)]
    for index, folder in enumerate(folders):
        if os.path.exists(os.path.join(folder, ".git")):
            return folders[: index + 1]
    return folders[:1]

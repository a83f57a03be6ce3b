"""Where settings files are: the user's own, and a project's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from acp_agent.paths import config_directory

__all__ = ["FILE_NAME", "is_there", "project_file", "user_file"]

FILE_NAME = "acp-agent.toml"


def user_file() -> Path:
    """The user's own file, whether it is there or not."""
    return config_directory() / FILE_NAME


def project_file(cwd: str) -> Path | None:
    """The project's file for a session in `cwd`: the nearest from there up to the root of the repository.

    Outside a repository it is looked for in `cwd` alone: what lies further up may be anybody's.
    """
    return next((file for folder in _folders(Path(cwd)) if is_there(file := folder / FILE_NAME)), None)


def is_there(file: Path) -> bool:
    """Whether there is such a file, even if it cannot be read: then reading it is an error, not silence."""
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _folders(cwd: Path) -> Iterator[Path]:
    root = next((folder for folder in (cwd, *cwd.parents) if os.path.exists(folder / ".git")), cwd)
    yield cwd
    for folder in cwd.parents if cwd != root else ():
        yield folder
        if folder == root:
            return

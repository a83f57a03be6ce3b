"""The settings in force for a session: the user's own file, and the project's as far as it may speak.

The rule it owns: a project's file can make things stricter and nothing else, unless the user's own file trusts its
folder (`[projects] trusted`). A repository that was just cloned is somebody else's text: its `deny`, `ask` and
`secret_patterns` count; its `allow` and its `[mcp.servers]`, which start programs, do not. Trusted or not, no rule of
the project's takes back one of the user's, since the stricter of two rules wins; a server of the same name is the
user's. Settings files themselves are sensitive: no rule but one that names them lets an agent write one unasked.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.mcp.servers import McpServer
from acp_agent.runtime.definition import SessionSetup
from acp_agent.runtime.permissions import PermissionPolicy
from acp_agent.runtime.rules import PermissionRule
from acp_agent.runtime.workspace import SECRET_PATTERNS
from acp_agent.settings.file import SettingsFile, read_settings
from acp_agent.settings.places import FILE_NAME, is_there, project_file, user_file

__all__ = ["Settings", "SettingsSource", "is_trusted", "load_settings", "load_user_settings"]


class Settings(Struct, frozen=True, kw_only=True):
    """Both files. One that is not there says nothing, under an empty path."""

    user: SettingsFile
    project: SettingsFile
    is_trusted: bool

    @property
    def rules(self) -> list[PermissionRule]:
        """Those that count."""
        return [*self.user.rules, *(rule for rule in self.project.rules if self._counts(rule))]

    @property
    def rules_without_trust(self) -> list[PermissionRule]:
        """Those of the project's that do not count."""
        return [rule for rule in self.project.rules if not self._counts(rule)]

    @property
    def mcp_servers(self) -> list[McpServer]:
        own = {server.name for server in self.user.mcp_servers}
        others = self.project.mcp_servers if self.is_trusted else []
        return [*self.user.mcp_servers, *(server for server in others if server.name not in own)]

    @property
    def secret_patterns(self) -> list[str]:
        return [*SECRET_PATTERNS, FILE_NAME, *self.user.tools.secret_patterns, *self.project.tools.secret_patterns]

    @property
    def notice(self) -> str | None:
        """What the user should know of a file that is not trusted, in one sentence."""
        if self.is_trusted or not (self.rules_without_trust or self.project.mcp_servers):
            return None
        folder = os.path.dirname(self.project.path)
        return (
            f"{self.project.path} allows tools or names MCP servers; that is ignored, because {user_file()} "
            f'does not trust its folder ([projects] trusted = ["{folder}"]).'
        )

    def _counts(self, rule: PermissionRule) -> bool:
        return self.is_trusted or rule.decision != "allow"


class SettingsSource:
    """Gives each session its set-up, from the files as they are at that moment. `rules` are the agent's own.

    What a session should be told of its project's file is told once for each folder.
    """

    def __init__(self, rules: Sequence[PermissionRule] = ()) -> None:
        self._rules = rules
        self._told: set[str] = set()

    def __call__(self, cwd: str) -> SessionSetup:
        """Raises `SettingsError`."""
        settings = load_settings(cwd)
        notice = settings.notice
        is_news = notice is not None and notice not in self._told
        if notice is not None:
            self._told.add(notice)
        return SessionSetup(
            policy=PermissionPolicy([*self._rules, *settings.rules]),
            mcp_servers=settings.mcp_servers,
            secret_patterns=settings.secret_patterns,
            notices=[notice] if notice is not None and is_news else [],
        )


def load_user_settings() -> SettingsFile:
    """The user's own file alone. Raises `SettingsError`."""
    own = user_file()
    return read_settings(own, base=os.path.expanduser("~")) if is_there(own) else SettingsFile()


def load_settings(cwd: str) -> Settings:
    """The settings for a session in `cwd`, as the files are now. Raises `SettingsError`."""
    own, other = user_file(), project_file(cwd)
    user = read_settings(own, base=cwd) if is_there(own) else SettingsFile()
    if other is None or _is_same(own, other):
        return Settings(user=user, project=SettingsFile(), is_trusted=False)
    project = read_settings(other, base=str(other.parent), is_project=True)
    return Settings(user=user, project=project, is_trusted=is_trusted(other.parent, user.trusted))


def is_trusted(folder: Path, trusted: list[str]) -> bool:
    """Whether one of the globs is this folder, by where it really is. What lies deeper is not trusted by that."""
    real = Path(os.path.realpath(folder))
    return any(real.match(glob) or str(real) == os.path.realpath(glob) for glob in trusted)


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)

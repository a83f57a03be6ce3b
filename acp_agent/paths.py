"""Where things live on this platform."""

from __future__ import annotations

from pathlib import Path

__all__ = ["config_directory", "state_directory"]


def state_directory() -> Path:
    """Sessions and logs. Not made here."""
    from platformdirs import user_state_path

    return user_state_path("acp-agent", appauthor=False)


def config_directory() -> Path:
    """The user's `acp-agent.toml`. Not made here."""
    from platformdirs import user_config_path

    return user_config_path("acp-agent", appauthor=False)

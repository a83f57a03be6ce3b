"""The testing kit: an editor for tests, its transcript, and checks of models and stores.

Names are imported when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acp_agent.testing.checks_model import check_model
    from acp_agent.testing.checks_store import check_session_store
    from acp_agent.testing.client import TestClient
    from acp_agent.testing.connected import ConnectedClient
    from acp_agent.testing.editor import FakeEditor
    from acp_agent.testing.prompts import PromptHandle, PromptResult
    from acp_agent.testing.rules import check_transcript
    from acp_agent.testing.transcript import Frame, Transcript, Update
    from acp_agent.testing.view import ToolCallRow, ToolCallView

__all__ = [
    "ConnectedClient",
    "FakeEditor",
    "Frame",
    "PromptHandle",
    "PromptResult",
    "TestClient",
    "ToolCallRow",
    "ToolCallView",
    "Transcript",
    "Update",
    "check_model",
    "check_session_store",
    "check_transcript",
]

_HOMES = {
    "ConnectedClient": "connected",
    "FakeEditor": "editor",
    "Frame": "transcript",
    "PromptHandle": "prompts",
    "PromptResult": "prompts",
    "TestClient": "client",
    "ToolCallRow": "view",
    "ToolCallView": "view",
    "Transcript": "transcript",
    "Update": "transcript",
    "check_model": "checks_model",
    "check_session_store": "checks_store",
    "check_transcript": "rules",
}

if not TYPE_CHECKING:  # a type checker would take every name for one of ours

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{home}"), name)

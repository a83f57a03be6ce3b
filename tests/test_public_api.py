"""The names that people import: pinned, importable, documented, typed, and cheap until they are used."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import acp_agent
import acp_agent.testing

ROOT = Path(__file__).parent.parent

PUBLIC = [
    "AcpAgentError",
    "Agent",
    "AgentServer",
    "AssistantMessage",
    "AudioContent",
    "ClientPort",
    "Connection",
    "ConnectionClosed",
    "ContentBlock",
    "Diff",
    "DiskWorkspace",
    "EditorWorkspace",
    "EmbeddedResource",
    "Finish",
    "ImageContent",
    "LineDecoder",
    "Location",
    "McpServer",
    "MemoryStore",
    "Model",
    "ModelError",
    "ModelEvent",
    "ModelRequest",
    "Peer",
    "PermissionMemory",
    "PermissionOption",
    "PermissionPolicy",
    "PermissionRule",
    "PlanEntry",
    "Proposal",
    "RequestError",
    "ResourceLink",
    "Scenario",
    "ScenarioError",
    "ScriptedModel",
    "Session",
    "SessionManager",
    "SessionStore",
    "ShownCall",
    "SqliteStore",
    "StopReason",
    "StoreError",
    "Surface",
    "TestClient",
    "TextContent",
    "TextDelta",
    "ThoughtDelta",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolExecutor",
    "ToolOutput",
    "ToolResult",
    "ToolUse",
    "Toolset",
    "Transcript",
    "Turn",
    "UsageDelta",
    "UserMessage",
    "Wire",
    "Workspace",
    "__version__",
    "check_model",
    "check_session_store",
    "claim_stdio",
    "coding_tools",
    "memory_pair",
    "spawn_agent",
    "stdio_stream",
]

TESTING = [
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

# What may follow a name that is a thing of its own (a class, a function), and not an alias of types.
ALIASES = {"ContentBlock", "ModelEvent", "StopReason", "__version__"}


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(acp_agent.__path__, "acp_agent."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def test_the_public_names_are_these_and_no_others() -> None:
    assert (acp_agent.__all__, acp_agent.testing.__all__) == (PUBLIC, TESTING)


@pytest.mark.parametrize(
    ("package", "names"), [(acp_agent, PUBLIC), (acp_agent.testing, TESTING)], ids=["acp_agent", "acp_agent.testing"]
)
def test_every_public_name_is_there_and_says_what_it_is_for(package: ModuleType, names: list[str]) -> None:
    found = {name: getattr(package, name) for name in names}
    undocumented = [name for name, value in found.items() if name not in ALIASES and not value.__doc__]
    assert undocumented == []


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Agnet'"):
        _ = acp_agent.Agnet  # type: ignore[attr-defined]  # this is what is tested
    assert "Agent" in dir(acp_agent)


def place(name: str) -> tuple[int, str]:
    """Constants first, then classes, then what is called."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_every_module_lists_its_names_sorted_and_truly() -> None:
    wrong = []
    for module in modules():
        names = getattr(module, "__all__", None)
        if names is None:
            continue
        if sorted(set(names), key=place) != list(names):
            wrong.append(f"{module.__name__}.__all__ is not sorted")
        wrong += [f"{module.__name__}.{name} is not there" for name in names if not hasattr(module, name)]
    assert wrong == []


def test_every_module_says_what_it_is_for() -> None:
    """A package's `__init__.py` may be empty: it has no rule of its own."""
    silent = [module.__name__ for module in modules() if not module.__doc__ and not hasattr(module, "__path__")]
    assert silent == []


def test_no_module_uses_a_private_name_of_another() -> None:
    private = []
    for path in (ROOT / "acp_agent").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("acp_agent"):
                private += [f"{path.name}: {each.name}" for each in node.names if each.name.startswith("_")]
    assert private == []


def test_importing_the_package_imports_nothing_of_it() -> None:
    code = "import acp_agent, sys; print([name for name in sys.modules if name.startswith('acp_agent.')])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "acp_agent" / "py.typed").exists()


@pytest.mark.slow
def test_the_public_api_is_what_a_type_checker_takes_it_for() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "tests/typing/api.py"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout

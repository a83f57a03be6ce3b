"""The wire vocabulary costs little to import."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"anyio", "asyncio", "pydantic", "structlog", "trio", "mcp", "openai", "anthropic", "httpx2"}
LATER = {"acp_agent.protocol.repair"}


def test_importing_all_of_version_1_imports_nothing_heavy() -> None:
    program = "import sys, acp_agent.protocol.v1.methods; print(*sys.modules)"
    output = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True, env=path()
    )
    loaded = set(output.stdout.split())
    assert "acp_agent.protocol.v1.elicitation" in loaded
    assert not loaded & (HEAVY | LATER)


def path() -> dict[str, str]:
    """Without `site`, so that what the environment loads on its own is not counted."""
    return {"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": ""}

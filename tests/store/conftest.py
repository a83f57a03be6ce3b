"""What the tests of stores are given."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory that is not there yet."""
    return tmp_path / "state"

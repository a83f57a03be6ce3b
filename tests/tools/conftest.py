"""A workspace in a scratch folder, and a call in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.fakes import FakeCall, call_in


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def call(root: Path) -> FakeCall:
    return call_in(root)

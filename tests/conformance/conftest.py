"""The agent under test is the program as an editor's user has it: no model configured, a fresh folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.kit import MinimalClient, Row


@pytest.fixture
def client(tmp_path: Path) -> Iterator[MinimalClient]:
    """A process of its own, to which nothing was said yet."""
    client = MinimalClient(tmp_path)
    yield client
    client.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MinimalClient]:
    """An initialized process for the rows that leave nothing behind."""
    client = MinimalClient(tmp_path_factory.mktemp("shared"))
    client.initialize()
    yield client
    client.close()


@pytest.fixture(scope="package")
def advertised(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the agent says of itself: the `initialize` result, with the `session/new` result beside it."""
    client = MinimalClient(tmp_path_factory.mktemp("advertised"))
    said = client.initialize() | client.new_session()
    client.close()
    return said


@pytest.fixture
def gate(request: pytest.FixtureRequest, advertised: dict[str, Any]) -> Row:
    """Skip a row whose gate the agent does not advertise."""
    row: Row = request.param
    said: Any = advertised
    for name in filter(None, row.gate.split(".")):
        said = said.get(name) if isinstance(said, dict) else None
    if said in (None, False, []):
        pytest.skip(f"{row.gate} is not advertised")
    return row

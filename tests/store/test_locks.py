"""One process has a session, and for no longer than it lives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from acp_agent.errors import StoreError
from acp_agent.store.locks import SessionLocks
from tests.store.tools import child, line

CLAIM = """
import sys
from pathlib import Path
from acp_agent.store.locks import SessionLocks
locks = SessionLocks(Path(sys.argv[1]))
locks.claim("a")
print("claimed", flush=True)
for command in sys.stdin:
    locks.release("a")
    print("released", flush=True)
"""


@pytest.fixture
def locks(tmp_path: Path) -> SessionLocks:
    return SessionLocks(tmp_path / "sessions.lock")


def test_a_session_of_another_process_is_refused_with_its_pid(tmp_path: Path, locks: SessionLocks) -> None:
    with child(CLAIM, str(tmp_path / "sessions.lock")) as other:
        assert line(other) == "claimed"
        with pytest.raises(StoreError, match=rf"Session 'a' is open in another process \(pid {other.pid}\)"):
            locks.claim("a")
        locks.claim("b")
        locks.close()


def test_a_claim_ends_when_its_process_is_killed(tmp_path: Path, locks: SessionLocks) -> None:
    with child(CLAIM, str(tmp_path / "sessions.lock")) as other:
        assert line(other) == "claimed"
        other.kill()
        other.wait()
        locks.claim("a")
        locks.close()


def test_a_session_that_was_given_back_can_be_taken_by_another_process(tmp_path: Path, locks: SessionLocks) -> None:
    with child(CLAIM, str(tmp_path / "sessions.lock")) as other:
        assert line(other) == "claimed"
        assert other.stdin is not None
        other.stdin.write("release\n")
        other.stdin.flush()
        assert line(other) == "released"
        locks.claim("a")
        locks.close()


def test_closing_gives_every_session_back(tmp_path: Path, locks: SessionLocks) -> None:
    locks.claim("a")
    locks.close()
    with child(CLAIM, str(tmp_path / "sessions.lock")) as other:
        assert line(other) == "claimed"


def test_claims_leave_one_small_private_file(tmp_path: Path, locks: SessionLocks) -> None:
    for number in range(100):
        locks.claim(f"../{number}")
    assert os.listdir(tmp_path) == ["sessions.lock"]
    status = (tmp_path / "sessions.lock").stat()
    assert (status.st_size, status.st_mode & 0o777) == (0, 0o600)
    locks.close()


def test_claims_are_granted_where_no_lock_can_be_had(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    locks = SessionLocks(tmp_path / "file" / "sessions.lock")
    locks.claim("a")
    locks.claim("a")
    locks.release("a")
    locks.close()

"""Which process has which session: one byte of a lock file for each, held by the kernel.

The rule: a claim ends with its process, however that ends. So no process is ever asked whether another one lives, and
nothing is left to tidy up. Ids never become paths: the byte is found by the id's hash. The kernel counts these locks
by process, so a program opens one store for one directory.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
from hashlib import sha256
from pathlib import Path

from acp_agent.errors import StoreError
from acp_agent.store.database import make_private_directory

__all__ = ["SessionLocks"]


class SessionLocks:
    """The claims of this process on the sessions of one directory. Where locks cannot be had, claims are granted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._held: set[str] = set()

    def claim(self, session_id: str) -> None:
        """Take the session. Raises `StoreError`, naming the other process, when it is taken."""
        if session_id in self._held:
            return
        try:
            fcntl.lockf(self._open(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(session_id))
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES) and self._fd >= 0:
                raise StoreError(f"Session {session_id!r} is open in {self._holder(session_id)}") from None
        self._held.add(session_id)

    def release(self, session_id: str) -> None:
        """Give the session back; one that was not claimed is no error."""
        if session_id in self._held:
            self._held.discard(session_id)
            if self._fd >= 0:
                fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, _place(session_id))

    def close(self) -> None:
        """Give back all of them."""
        self._held.clear()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> int:
        if self._fd < 0:
            make_private_directory(self._path.parent)
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._fd

    def _holder(self, session_id: str) -> str:
        """The other process, as the kernel names it (it may have ended since, or be of another machine)."""
        pid = _pid_of(fcntl.fcntl(self._fd, fcntl.F_GETLK, _question(_place(session_id))))
        return f"another process (pid {pid})" if pid > 0 else "another process"


def _place(session_id: str) -> int:
    """The session's byte, far behind the end of the empty file: 62 bits, so two never meet."""
    digest = sha256(session_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> 2


# The kernel's `struct flock`, which Python does not wrap. On Linux: type, whence, start, length, pid.
if sys.platform == "linux":

    def _question(place: int) -> bytes:
        return struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)

    def _pid_of(answer: bytes) -> int:
        return int(struct.unpack("hhqqi0q", answer)[4])

else:  # macOS and the BSDs: start, length, pid, type, whence

    def _question(place: int) -> bytes:
        return struct.pack("qqihh", place, 1, 0, fcntl.F_WRLCK, os.SEEK_SET)

    def _pid_of(answer: bytes) -> int:
        return int(struct.unpack("qqihh", answer)[2])

"""What ends a server's processes when we are killed and can end nothing any more.

The server reads EOF then, and goes if it is polite; what it started has no such sign. So a shell in a session of its
own waits on a pipe of which only we hold the other end: EOF there means that we are dead.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress

__all__ = ["Guard"]

_SCRIPT = """
read -r _
sleep 1
kill -s TERM -- "-$1"
sleep 1
kill -s KILL -- "-$1"
"""


class Guard:
    """Watches over one process group from the start to `dismiss`. Where there is no shell it does nothing."""

    def __init__(self, group: int) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "acp-agent-guard", str(group)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )

    def dismiss(self) -> None:
        """The group is gone. To be called before its id can mean another one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()

"""A child process and all that came of it: its group, its session, and descendants that left both.

Who belongs is read from `/proc`. A process is known by its number and its start time, so a number that was given to
somebody else meanwhile is never signalled. Where there is no `/proc`, the group is all that is known.
"""

from __future__ import annotations

import contextlib
import os

from msgspec import Struct

__all__ = ["Family"]


class ProcessEntry(Struct, frozen=True):
    """One line of `/proc`: `started` is in clock ticks since boot."""

    pid: int
    parent: int
    group: int
    session: int
    started: int


class Family:
    """The family of `leader`, a child of ours that leads its own session and is not reaped yet."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self._living: dict[int, ProcessEntry] = {}

    def find_living(self) -> bool:
        """Look who is there, and whether anybody is; a zombie is not. Blocks for some milliseconds."""
        entries = _read_processes()
        if entries is None:
            return _is_running(self.leader)
        living = {pid: entry for pid, entry in self._living.items() if _same(entries.get(pid), entry)}
        pending = [pid for pid, entry in entries.items() if self.leader in (pid, entry.group, entry.session)]
        children: dict[int, list[int]] = {}
        for pid, entry in entries.items():
            children.setdefault(entry.parent, []).append(pid)
        pending += [child for pid in (self.leader, *living) for child in children.get(pid, ())]
        while pending:
            pid = pending.pop()
            if pid not in living:
                living[pid] = entries[pid]
                pending += children.get(pid, ())
        self._living = living
        return bool(living)

    def send_signal(self, number: int) -> None:
        """Signal the group, and whoever was found outside of it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.leader, number)
        for pid, entry in self._living.items():
            found = _read_process(pid)  # it may have left the group since it was found
            if found is not None and _same(found, entry) and found.group != self.leader:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)


def _same(found: ProcessEntry | None, known: ProcessEntry) -> bool:
    return found is not None and found.started == known.started


def _read_processes() -> dict[int, ProcessEntry] | None:
    """All living processes by number; None where the system does not tell."""
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return None
    found = (_read_process(number) for number in numbers)
    return {entry.pid: entry for entry in found if entry is not None} or None


def _read_process(pid: int) -> ProcessEntry | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # behind the name, which may hold anything
    except OSError:
        return None
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    return ProcessEntry(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def _is_running(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None
    except ChildProcessError:
        return False

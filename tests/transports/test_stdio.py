"""Stdin and stdout of a real process, whatever they are, and whatever else is said there."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
import time
import tty
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CHILD = [sys.executable, "-m", "tests.transports.stdio_child"]
DEADLINE = 20  # seconds


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Ends:
    """Stdin and stdout of a child, of the kinds that are asked for, and our ends of them."""

    def __init__(self, source: str, sink: str, folder: Path, text: bytes) -> None:
        self.folder = folder
        self.text = text
        self.theirs: list[int] = []
        self.to_child: int | None = None
        self.from_child: int | None = None
        self.shared = source if source == sink and source in ("socket", "pty") else None
        if self.shared:
            ours, theirs = self._pair(source)
            self.to_child, self.from_child = ours, os.dup(ours)
            self.source, self.sink = theirs, os.dup(theirs)
        else:
            self.source = self._open_source(source)
            self.sink = self._open_sink(sink)
        self.theirs = [self.source, self.sink]

    def _pair(self, kind: str) -> tuple[int, int]:
        if kind == "socket":
            ours, theirs = socket.socketpair()
            return ours.detach(), theirs.detach()
        master, slave = pty.openpty()
        tty.setraw(slave)
        return master, slave

    def _open_source(self, kind: str) -> int:
        if kind == "pipe":
            theirs, self.to_child = os.pipe()
            return theirs
        if kind == "file":
            (self.folder / "in").write_bytes(self.text)
            return os.open(self.folder / "in", os.O_RDONLY)
        if kind == "null":
            return os.open(os.devnull, os.O_RDONLY)
        self.to_child, theirs = self._pair(kind)
        return theirs

    def _open_sink(self, kind: str) -> int:
        if kind == "pipe":
            self.from_child, theirs = os.pipe()
            return theirs
        if kind == "file":
            return os.open(self.folder / "out", os.O_WRONLY | os.O_CREAT)
        if kind == "null":
            return os.open(os.devnull, os.O_WRONLY)
        self.from_child, theirs = self._pair(kind)
        return theirs

    def write(self) -> None:
        if self.to_child is not None:
            os.write(self.to_child, self.text)

    def end_input(self) -> None:
        if self.to_child is not None:
            if self.shared == "socket":
                with socket.socket(fileno=os.dup(self.to_child)) as ours:
                    ours.shutdown(socket.SHUT_WR)
            os.close(self.to_child)
            self.to_child = None

    def read(self, lines: int | None) -> bytes:
        """So many lines, or all there is."""
        if self.from_child is None:
            return b""
        data = b""
        while lines is None or data.count(b"\n") < lines:
            try:
                block = os.read(self.from_child, 65536)
            except OSError:
                break
            if not block:
                break
            data += block
        return data

    def close(self) -> None:
        for fd in (self.to_child, self.from_child):
            if fd is not None:
                os.close(fd)


def converse(tmp_path: Path, backend: str, source: str, sink: str, *methods: str, log: Path | None = None) -> list[Any]:
    """Have a child answer each method, and return its answers."""
    requests = [{"jsonrpc": "2.0", "id": number, "method": m, "params": [m]} for number, m in enumerate(methods)]
    text = b"".join(json.dumps(request).encode() + b"\n" for request in requests)
    ends = Ends(source, sink, tmp_path, text)
    command = [*CHILD, backend, *([str(log)] if log else [])]
    process = subprocess.Popen(command, stdin=ends.source, stdout=ends.sink, stderr=subprocess.PIPE, cwd=ROOT)
    for fd in ends.theirs:
        os.close(fd)
    try:
        ends.write()
        data = ends.read(len(methods) if source != "null" else 0)
        ends.end_input()
        if sink != "pty" or source != "pty":
            data += ends.read(None)
        else:
            ends.close()
        _, errors = process.communicate(timeout=DEADLINE)
    finally:
        process.kill()
    assert errors == b""
    assert process.returncode == 0
    if sink == "file":
        data = (tmp_path / "out").read_bytes()
    return [json.loads(line) for line in data.split(b"\n") if line]


KINDS = [
    *[(other, "pipe") for other in ("pipe", "file", "socket", "pty")],
    *[("pipe", other) for other in ("file", "socket", "pty")],
    *[("file", "file"), ("socket", "socket"), ("pty", "pty"), ("file", "socket"), ("file", "pty")],
]


@pytest.mark.parametrize(("source", "sink"), KINDS)
def test_it_speaks_over_whatever_it_is_given(tmp_path: Path, backend: str, source: str, sink: str) -> None:
    answers = converse(tmp_path, backend, source, sink, "echo", "big", "echo")
    assert [answer["id"] for answer in answers] == [0, 1, 2]
    assert answers[0]["result"] == ["echo"]
    assert answers[1]["result"] == "\u2028é" * 100_000


@pytest.mark.parametrize(("source", "sink"), [("null", "pipe"), ("null", "null"), ("pipe", "null"), ("null", "file")])
def test_with_nothing_to_hear_or_nobody_to_tell_it_ends_well(
    tmp_path: Path, backend: str, source: str, sink: str
) -> None:
    assert converse(tmp_path, backend, source, sink) == []


def test_with_stdin_and_stdout_closed_it_ends_well(backend: str) -> None:
    command = f'exec "{CHILD[0]}" -m {CHILD[2]} {backend} <&- >&-'
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, timeout=DEADLINE, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, b"")


def test_no_noise_reaches_the_client_and_all_of_it_the_log(tmp_path: Path, backend: str) -> None:
    log = tmp_path / "logs" / "agent.log"
    answers = converse(tmp_path, backend, "pipe", "pipe", "noise", "echo", log=log)
    assert [answer["result"] for answer in answers] == ["noisy", ["echo"]]
    events = [json.loads(line) for line in log.read_text().splitlines()]
    said = [event["text"] for event in events if event["event"] == "stray output"]
    assert "".join(said).count("x") == 300_000
    for text in ("from the descriptor", "from a child", "from C", '{"jsonrpc":"2.0","id":1,"result":"forged"}'):
        assert text in said
    assert log.stat().st_mode & 0o777 == 0o600


def test_noise_that_nobody_logs_does_no_harm(tmp_path: Path, backend: str) -> None:
    answers = converse(tmp_path, backend, "pipe", "pipe", "noise", "echo")
    assert [answer["result"] for answer in answers] == ["noisy", ["echo"]]


def test_nothing_else_gets_to_read_what_the_client_says(tmp_path: Path, backend: str) -> None:
    answers = converse(tmp_path, backend, "pipe", "pipe", "eat", "echo")
    assert [answer["result"] for answer in answers] == ["", ["echo"]]


def test_the_wire_is_inherited_by_nobody_and_only_the_backend_that_runs_is_imported(
    tmp_path: Path, backend: str
) -> None:
    [answer] = converse(tmp_path, backend, "pipe", "pipe", "self")
    assert answer["result"] == {
        "trio": backend == "trio",
        "inheritable": [],
        "claimed once": True,
        "sigint": True,  # its default, until somebody handles it
    }


def test_a_log_that_prints_does_not_hear_itself() -> None:
    code = """
import threading, structlog
from acp_agent.transports.claim import claim_stdio
claim_stdio()
texts, done = [], threading.Event()
def keep(logger, method, event):
    texts.append(event["text"])
    if event["text"] == "done":
        done.set()
    return event
structlog.configure([keep, structlog.processors.KeyValueRenderer()])
for text in ("hello", "again", "done"):
    print(text)
assert done.wait(10)
assert texts == ["hello", "again", "done"], texts
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=DEADLINE, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("sink", ["pipe", "socket"])
def test_the_modes_of_what_it_was_given_are_left_alone(tmp_path: Path, backend: str, sink: str) -> None:
    ends = Ends("pipe", sink, tmp_path, b'{"id":1,"method":"echo"}\n')
    process = subprocess.Popen([*CHILD, backend], stdin=ends.source, stdout=ends.sink, cwd=ROOT)
    try:
        ends.write()
        assert ends.read(1)
        assert all(os.get_blocking(fd) for fd in ends.theirs)
        ends.end_input()
        assert process.wait(DEADLINE) == 0
        assert all(os.get_blocking(fd) for fd in ends.theirs)
    finally:
        process.kill()
        for fd in ends.theirs:
            os.close(fd)
        ends.close()


def test_a_client_that_goes_without_reading_ends_it_quietly(tmp_path: Path, backend: str) -> None:
    text = b"".join(b'{"id":%d,"method":"big"}\n' % number for number in range(20))
    ends = Ends("pipe", "pipe", tmp_path, text)
    process = subprocess.Popen(
        [*CHILD, backend], stdin=ends.source, stdout=ends.sink, stderr=subprocess.PIPE,
        cwd=ROOT,
    )  # fmt: skip
    for fd in ends.theirs:
        os.close(fd)
    try:
        ends.write()
        assert ends.from_child is not None
        os.read(ends.from_child, 10)
        os.close(ends.from_child)
        ends.from_child = None
        _, errors = process.communicate(timeout=DEADLINE)  # stdin is still open
        assert (process.returncode, errors) == (0, b"")
    finally:
        process.kill()
        ends.close()


def test_with_nothing_running_it_is_gone_soon_after_eof(tmp_path: Path, backend: str) -> None:
    ends = Ends("pipe", "pipe", tmp_path, b'{"id":1,"method":"echo"}\n')
    process = subprocess.Popen([*CHILD, backend], stdin=ends.source, stdout=ends.sink, cwd=ROOT)
    for fd in ends.theirs:
        os.close(fd)
    try:
        ends.write()
        assert ends.read(1)
        started = time.monotonic()
        ends.end_input()
        assert process.wait(DEADLINE) == 0
        assert time.monotonic() - started < 2
    finally:
        process.kill()
        ends.close()

"""A client that costs little itself: it looks at bytes, and decodes only what it must answer."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

__all__ = ["Client"]

PERMISSION = b'"session/request_permission"'
ID = re.compile(rb'"id":\s?("[^"]*"|\d+)')
SESSION = re.compile(rb'"sessionId":\s?"([^"]+)"')


class Client:
    """One agent process, initialized. Times are in seconds, of the wall and of the agent's CPU."""

    def __init__(self, command: list[str]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        environment = dict(os.environ)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        started = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in = self.process.stdin.fileno()
        self._out = self.process.stdout.fileno()
        self._tail = b""
        self._next_id = 1
        self.ask(b'"initialize"', b'{"protocolVersion":1,"clientCapabilities":{}}')
        self.start_seconds = time.perf_counter() - started
        self.start_cpu = self.cpu()

    def cpu(self) -> float:
        """Seconds of CPU that the agent has used."""
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def peak_memory(self) -> int:
        """KiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1])  # type: ignore[index]

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._in, view) :]

    def lines(self) -> list[bytes]:
        """The next lines, as many as have come."""
        while True:
            block = os.read(self._out, 1 << 16)
            if not block:
                raise EOFError("the agent is gone")
            *whole, self._tail = (self._tail + block).split(b"\n")
            if whole:
                return whole

    def send(self, method: bytes, params: bytes) -> bytes:
        """Write a request; the id that its answer will have."""
        request_id = b"%d" % self._next_id
        self._next_id += 1
        self.write(b'{"jsonrpc":"2.0","id":' + request_id + b',"method":' + method + b',"params":' + params + b"}\n")
        return request_id

    def ask(self, method: bytes, params: bytes) -> bytes:
        """The answer to one request, whatever else comes before it; permissions are allowed."""
        return self.wait(self.send(method, params))[0]

    def wait(self, request_id: bytes) -> tuple[bytes, int]:
        """The answer, and how many lines came before it."""
        count = 0
        while True:
            for line in self.lines():
                if PERMISSION in line:
                    self.allow(line)
                elif b'"method"' not in line[:200] and (found := ID.search(line)) and found[1] == request_id:
                    return line, count
                count += 1

    def allow(self, line: bytes) -> None:
        found = ID.search(line)
        assert found is not None
        self.write(
            b'{"jsonrpc":"2.0","id":'
            + found[1]
            + b',"result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}}\n'
        )

    def new_session(self) -> bytes:
        answer = self.ask(b'"session/new"', b'{"cwd":"%s","mcpServers":[]}' % self.folder.name.encode())
        found = SESSION.search(answer)
        assert found is not None, answer
        return found[1]

    def send_prompt(self, session: bytes, text: bytes) -> bytes:
        return self.send(
            b'"session/prompt"', b'{"sessionId":"%s","prompt":[{"type":"text","text":"%s"}]}' % (session, text)
        )

    def end_input(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()

    def close(self) -> None:
        self.end_input()
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.folder.cleanup()

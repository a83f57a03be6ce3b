"""An agent of one screenful, for the tests of stdin and stdout."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec

from acp_agent.jsonrpc.connection import Connection, IncomingRequest, Work
from acp_agent.log import configure
from acp_agent.transports.stdio import claim_stdio, stdio_stream


def make_noise() -> str:
    """Every way to stdout that there is, one of them too big for any pipe."""
    print("x" * 300_000)
    print('{"jsonrpc":"2.0","id":1,"result":"forged"}', flush=True)
    os.write(1, b"from the descriptor\n")
    subprocess.run(["echo", "from a child"], check=True)
    libc = ctypes.CDLL(None)
    libc.puts(b"from C")
    libc.fflush(None)
    return "noisy"


def eat_input() -> str:
    """What a child and a careless library get to read."""
    child = subprocess.run(["cat"], stdout=subprocess.PIPE, check=True)
    return child.stdout.decode() + sys.stdin.read()


def describe_self() -> dict[str, Any]:
    private = [fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2 and _is_inheritable(fd)]
    return {
        "trio": "trio" in sys.modules,
        "inheritable": private,
        "claimed once": claim_stdio() is claim_stdio(),
        "sigint": signal.getsignal(signal.SIGINT) == signal.SIG_DFL,
    }


def _is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:  # the one that listed the folder
        return False


class Handler:
    def begin_request(self, request: IncomingRequest) -> Work | None:
        answers = {
            "echo": lambda: msgspec.json.decode(request.params or b"null"),
            "noise": make_noise,
            "eat": eat_input,
            "self": describe_self,
            "big": lambda: "\u2028é" * 100_000,
        }
        request.respond(answers[request.method]())
        return None

    def receive_notification(self, method: str, params: msgspec.Raw | None) -> None: ...


async def main() -> None:
    async with Connection(stdio_stream(), Handler()) as connection:
        await connection.run()
        await connection.drain()


def serve(backend: str, log: str | None = None) -> None:
    if log:
        configure(file=Path(log))
    anyio.run(main, backend=backend)

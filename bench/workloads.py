"""What is measured. Each workload takes a fresh client and returns its figures, by name; less is better in all."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from bench.client import Client

__all__ = ["WORKLOADS", "Figures"]

Figures = dict[str, float]


def cold_start(client: Client) -> Figures:
    return {"wall s": client.start_seconds, "CPU s": client.start_cpu, "peak MiB": client.peak_memory() / 1024}


def stream(client: Client, updates: int = 20_000) -> Figures:
    session = client.new_session()
    cpu, started = client.cpu(), time.perf_counter()
    _, count = client.wait(client.send_prompt(session, b"stream %d" % updates))
    wall = time.perf_counter() - started
    assert count >= updates
    return {"wall us an update": wall / updates * 1e6, "CPU us an update": (client.cpu() - cpu) / updates * 1e6}


def tools(client: Client, calls: int = 2_000) -> Figures:
    session = client.new_session()
    cpu, started = client.cpu(), time.perf_counter()
    client.wait(client.send_prompt(session, b"tools %d" % calls))
    wall = time.perf_counter() - started
    return {"wall us a call": wall / calls * 1e6, "CPU us a call": (client.cpu() - cpu) / calls * 1e6}


def long_line(client: Client, mebibytes: int = 16) -> Figures:
    session = client.new_session()
    text = b"stream 1 " + b"def f(x):\\n    return x + 1\\n" * (mebibytes * 1024 * 1024 // 29)
    cpu, started = client.cpu(), time.perf_counter()
    client.wait(client.send_prompt(session, text[:9] + b"\\u0020" + text[9:]))
    return {"wall s": time.perf_counter() - started, "CPU s": client.cpu() - cpu}


def many_sessions(client: Client, sessions: int = 1_000) -> Figures:
    started, cpu = time.perf_counter(), client.cpu()
    names = [client.new_session() for _ in range(sessions)]
    waiting = {client.send_prompt(name, b"stream 20") for name in names[:1]}
    for name in names[1:]:
        waiting.add(client.send_prompt(name, b"stream 20"))
        if len(waiting) % 50 == 0:
            _read_some(client, waiting)
    while waiting:
        _read_some(client, waiting)
    return {"wall s": time.perf_counter() - started, "CPU s": client.cpu() - cpu}


def _read_some(client: Client, waiting: set[bytes]) -> None:
    for line in client.lines():
        if b'"stopReason"' in line:
            start = line.index(b'"id":') + 5
            waiting.discard(line[start:].lstrip().split(b",")[0].rstrip(b"}"))


def cancel(client: Client, times: int = 50) -> Figures:
    """From the write of `session/cancel`, under full streaming, to the `cancelled` answer."""
    session = client.new_session()
    delays = []
    for _ in range(times):
        request = client.send_prompt(session, b"forever")
        for _ in range(20):
            client.lines()
        started = time.perf_counter()
        client.write(b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"%s"}}\n' % session)
        client.wait(request)
        delays.append(time.perf_counter() - started)
    delays.sort()
    return {"p50 us": median(delays) * 1e6, "p99 us": delays[int(len(delays) * 0.99)] * 1e6}


def leave(client: Client) -> Figures:
    """From the end of the input to the end of the process, with an idle session."""
    client.new_session()
    started = time.perf_counter()
    client.end_input()
    client.process.wait()
    return {"wall ms": (time.perf_counter() - started) * 1e3}


WORKLOADS: dict[str, Callable[[Client], Figures]] = {
    "cold start": cold_start,
    "20,000 updates": stream,
    "2,000 permissioned calls": tools,
    "a line of 16 MiB": long_line,
    "1,000 sessions of 20 updates": many_sessions,
    "cancel while streaming": cancel,
    "end of input": leave,
}

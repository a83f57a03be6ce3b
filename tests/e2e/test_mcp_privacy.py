"""The secrets that an editor gives to MCP servers are written nowhere: no log, no trace, no error, no session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.editor import Pipe
from tests.e2e.mcp_scenes import initialize, new_session, play, server_json

pytestmark = pytest.mark.slow

SECRETS = ("env-secret-1", "header-secret-2", "url-secret-3", "user-secret-4", "path-secret-5-long-enough")

WEB = {
    "type": "http",
    "name": "web",
    "url": f"http://me:{SECRETS[3]}@127.0.0.1:9/{SECRETS[4]}/mcp?key={SECRETS[2]}",
    "headers": [{"name": "Authorization", "value": f"Bearer {SECRETS[1]}"}],
}
SSE = WEB | {"type": "sse", "name": "sse", "headers": {"Authorization": f"Bearer {SECRETS[1]}"}}
ENV = {"API_TOKEN": SECRETS[0]}


def server(mode: str) -> dict[str, Any]:
    return server_json(mode, env=ENV)


def everything_below(folder: Path) -> str:
    """All that was written, whatever the format: secrets are plain ASCII."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return "\n".join(path.read_bytes().decode("latin-1") for path in files)


def test_secrets_of_servers_are_in_no_file_and_in_no_frame(tmp_path: Path) -> None:
    folder = tmp_path / "cwd"
    folder.mkdir()
    scenario = play(tmp_path, {"go": [("mcp__refuses__work", {}), ("mcp__fails__work", {}), ("mcp__dies__work", {})]})
    trace = tmp_path / "trace.jsonl"
    options = ("--scenario", scenario, "--mode", "auto", "--log-level", "debug", "--trace", str(trace))
    with Pipe(*options, cwd=folder) as pipe:
        initialize(pipe)
        servers = [server("refuses"), server("fails"), server("dies"), server("exits"), WEB, SSE]
        new_session(pipe, servers)
        pipe.write(pipe.prompt("go"), pipe.prompt("/mcp", 4))
        assert pipe.answer(4)["result"] == {"stopReason": "end_turn"}
        bad = server("good") | {"command": "./relative", "args": [f"--url=http://x:{SECRETS[3]}@h/"]}
        for number, params in enumerate(({"mcpServers": [bad]}, {"mcpServers": [WEB | {"url": 3}]}), 5):
            pipe.write({"id": number, "method": "session/new", "params": {"cwd": str(folder)} | params})
            assert pipe.answer(number)["error"]["code"] == -32602
        assert pipe.process.stdin is not None
        assert pipe.process.stderr is not None
        pipe.process.stdin.close()
        assert pipe.process.wait(10) == 0
        errors = pipe.process.stderr.read().decode()
        received = str(pipe.received)
    written = everything_below(tmp_path)
    assert "Bad token [redacted]" in received
    assert "token [redacted] expired" in received
    assert '"mcpServers"' in written
    for secret in SECRETS:
        assert secret not in received
        assert secret not in errors
        assert secret not in written


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/\\ud800","mcpServers":[{"env":{"A":"SECRET"}}]}}',
        b'{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[{"env":{"A":"SECRET"}}]',
        b'{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"mcpServers":{"env":{"A":"SECRET"}}}}',
        b'{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"mcpServers":[{"env":["A=SECRET"],"x":"SECRET"}]}}',
        b'{"jsonrpc":"2.0","id":2,"method":"session/new","params":[{"mcpServers":[{"env":{"A":"SECRET"}}]}]}',
    ],
)
def test_a_frame_that_cannot_be_read_is_traced_without_what_may_be_secret(line: bytes, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    with Pipe("--trace", str(trace), "--log-level", "debug", cwd=tmp_path) as pipe:
        initialize(pipe)
        assert pipe.process.stdin is not None
        pipe.process.stdin.write(line + b"\n")
        pipe.process.stdin.flush()
        pipe.read()
        pipe.process.stdin.close()
        assert pipe.process.wait(10) == 0
        assert pipe.process.stderr is not None
        assert b"SECRET" not in pipe.process.stderr.read()
    assert "session/new" in trace.read_text()
    assert "SECRET" not in everything_below(tmp_path)

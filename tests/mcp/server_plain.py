"""An MCP server in plain Python, well behaved or broken in one way: `server_plain.py MODE`.

With PID_FILE in its environment it appends its process id there, and that of what it starts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


def note_pid(pid: int) -> None:
    if path := os.environ.get("PID_FILE"):
        with open(path, "a") as file:
            file.write(f"{pid}\n")


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any], result: Any) -> None:
    write({"id": request["id"], "result": result})


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


def flood() -> None:
    while True:
        sys.stderr.write("the sky is falling\n" * 1_000)


def initialize(request: dict[str, Any]) -> None:
    if MODE == "modern":
        error = {"code": -32022, "message": "Unsupported", "data": {"supported": ["2026-07-28"], "requested": "x"}}
        write({"id": request["id"], "error": error})
        return
    capabilities: dict[str, Any] = {"tools": {"listChanged": True}}
    if MODE == "toolless":
        capabilities = {}
    server = {"name": MODE, "version": "1"}
    answer(
        request,
        {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": capabilities,
            "serverInfo": server,
            "instructions": "Ask me about work." + "!" * (100_000 if MODE == "wordy" else 0),
        },
    )


def discover(request: dict[str, Any]) -> None:
    answer(
        request,
        {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "ttlMs": 0,
            "cacheScope": "private",
        },
    )


def list_tools(request: dict[str, Any]) -> None:
    if MODE == "toolless":
        write({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
        return
    tools = [{"name": "work", "description": "Work.", "inputSchema": OBJECT}]
    if MODE == "names":
        tools = [
            {"name": name, "inputSchema": OBJECT} for name in ("a.b", "a_b", "a b", "x" * 100, "x" * 99 + "y", "größe")
        ]
    if MODE == "modern":
        answer(request, {"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
        return
    answer(request, {"tools": tools})


def call_tool(request: dict[str, Any]) -> None:
    match MODE:
        case "dies" | "dies_once" if not os.path.exists(os.environ.get("DIED_FILE", "/nonexistent")):
            if path := os.environ.get("DIED_FILE"):
                open(path, "w").close()
            sys.stderr.write("out of cheese\n")
            sys.stderr.flush()
            os._exit(9)
        case "huge":
            answer(request, text("x" * 10_000_000))
        case "endless":
            sys.stdout.write("x" * 20_000_000)
            sys.stdout.flush()
        case "slow":
            pass  # the cancel comes, see `serve`
        case "refuses":
            secret = os.environ["API_TOKEN"]
            write({"id": request["id"], "error": {"code": -32000, "message": f"Bad token {secret}"}})
        case "fails":
            answer(request, {**text(f"token {os.environ['API_TOKEN']} expired"), "isError": True})
        case "environment":
            answer(request, text(json.dumps(dict(os.environ))))
        case "stuck":
            write({"method": "notifications/tools/list_changed"})
            answer(request, text("done"))
        case "modern":
            answer(request, {"resultType": "complete", **text("done")})
        case _:
            answer(request, text("done"))


def serve(line: str, waiting: list[dict[str, Any]]) -> None:
    request = json.loads(line)
    match request["method"]:
        case "initialize":
            initialize(request)
        case "server/discover" if MODE == "modern":
            discover(request)
        case "tools/list" if MODE == "stuck" and waiting:
            pass
        case "tools/list":
            list_tools(request)
        case "tools/call":
            if MODE == "banner":
                print("Now working!", flush=True)
            waiting.append(request)
            call_tool(request)
        case "notifications/cancelled":
            with open(os.environ["CANCEL_FILE"], "w") as file:
                file.write(str(request["params"]["requestId"]))
            answer(waiting[-1], text("too late"))
        case _ if "id" in request:
            write({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})


def main() -> None:
    note_pid(os.getpid())
    if MODE == "exits":
        sys.exit(f"no configuration; API_TOKEN is {os.environ.get('API_TOKEN')}")
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE in ("grandchild", "stubborn"):
        note_pid(subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid)
    if MODE == "banner":
        print("*** Welcome to the banner server ***\n{not json}\n[]", flush=True)
    if MODE == "flood":
        threading.Thread(target=flood, daemon=True).start()
    waiting: list[dict[str, Any]] = []
    for line in sys.stdin:
        if MODE != "silent":
            serve(line, waiting)
    if MODE == "stubborn":
        time.sleep(600)
    os._exit(0)


main()

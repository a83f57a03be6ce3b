"""A program as programs should be, claim first: `python -m tests.transports.stdio_child BACKEND [LOG]`."""

from __future__ import annotations

import sys

from acp_agent.transports.claim import claim_stdio

if __name__ == "__main__":
    claim_stdio()
    assert not {"trio", "asyncio", "structlog", "anyio"} & sys.modules.keys()

    from tests.transports.stdio_agent import serve

    serve(*sys.argv[1:])

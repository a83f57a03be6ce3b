"""Whatever the SDK raises, as one sentence for a person."""

from __future__ import annotations

import anyio
import httpx2
from mcp import MCPError
from mcp.client.streamable_http import StreamableHTTPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

__all__ = ["SDK_ERRORS", "is_lost", "one_sentence", "was_refused"]

# All that the SDK, and the libraries under it, may raise about a server that misbehaves: a wrong answer ends up in
# every part of them, and none of it may end more than that one connection.
SDK_ERRORS = (
    MCPError,
    StreamableHTTPError,
    OSError,
    ValueError,
    RuntimeError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    anyio.BusyResourceError,
    anyio.EndOfStream,
)

# What the SDK itself says of a lost connection. Its code proves nothing: it is the one that servers use for anything.
_LOST = ("Connection closed", "SSE stream", "Session terminated")


def first_error(error: BaseException) -> BaseException:
    """The first thing that went wrong, out of however many exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def one_sentence(error: BaseException) -> str:
    """What went wrong, without a class name or a traceback."""
    match first_error(error):
        case ValidationError():
            return "It answered with something that is not MCP."
        case httpx2.TimeoutException():
            return "It did not answer in time."
        case httpx2.TransportError() as problem:
            return f"It cannot be reached: {problem}."
        case MCPError(message=message):
            return _sentence(message)
        case OSError(strerror=str(problem), filename=filename) if filename:
            return f"{problem}: {filename}."
        case problem:
            return _sentence(str(problem) or type(problem).__name__)


def is_lost(error: MCPError, http_refusal: str) -> bool:
    """Whether only a new connection to an HTTP server can help: it broke, or the server has forgotten us.

    `http_refusal` is the status that the server refused with, if it did.
    """
    return error.message.startswith(_LOST) or bool(http_refusal and "session" in error.message.lower())


def was_refused(error: BaseException) -> bool:
    """Whether a server that is there answered with an error."""
    problem = first_error(error)
    return isinstance(problem, MCPError) and problem.code not in (CONNECTION_CLOSED, REQUEST_TIMEOUT)


def _sentence(text: str) -> str:
    line = text.strip().partition("\n")[0].strip()
    return line if line.endswith((".", "!", "?")) else f"{line}."

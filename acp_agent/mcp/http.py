"""A server at an address: streamable HTTP, or the older SSE, as a transport that the SDK's client drives."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from acp_agent.mcp.redaction import Redactor
from acp_agent.mcp.servers import McpServer
from acp_agent.mcp.stdio import MESSAGE_LIMIT

__all__ = ["Refusals", "http_streams", "redacted_logs"]

_CONNECT_TIMEOUT = 10.0
_DAY = 86_400.0  # a stream may be silent for long: each request has its own deadline
_LOGGERS_WITH_ADDRESSES = ("httpx2", "mcp.client.streamable_http", "mcp.client.sse")


class Refusals:
    """Remembers how the server refused the last request; the SDK's error does not say it."""

    def __init__(self) -> None:
        self.last = ""

    async def note(self, response: httpx2.Response) -> None:
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            return  # it offers no stream for messages of its own, which it need not
        if response.status_code < 400:
            self.last = ""
            return
        try:
            phrase = HTTPStatus(response.status_code).phrase
        except ValueError:
            phrase = ""
        self.last = f"HTTP {response.status_code} {phrase}".strip()


@asynccontextmanager
async def http_streams(server: McpServer, refusals: Refusals) -> AsyncIterator[Any]:
    """Streams to the server at `server.url`, with its headers on each request."""
    url, auth = _without_credentials(server.url)

    def client(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
    ) -> httpx2.AsyncClient:
        hooks = {"response": [refusals.note]}
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, event_hooks=hooks)

    if server.transport == "sse":
        streams: AbstractAsyncContextManager[Any] = sse_client(
            url, server.headers, _CONNECT_TIMEOUT, _DAY, httpx_client_factory=client, auth=auth
        )
        async with streams as pair:
            yield pair
        return
    timeout = httpx2.Timeout(_CONNECT_TIMEOUT, read=_DAY)
    async with (
        client(headers=server.headers, auth=auth, timeout=timeout) as http_client,
        streamable_http_client(url, http_client=http_client, max_sse_event_size=MESSAGE_LIMIT) as pair,
    ):
        yield pair


def _without_credentials(url: str) -> tuple[str, httpx2.BasicAuth | None]:
    """User and password belong into a header, not into an address that ends up in messages."""
    parts = urlsplit(url)
    if parts.username is None and parts.password is None:
        return url, None
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return bare, httpx2.BasicAuth(unquote(parts.username or ""), unquote(parts.password or ""))


class _Redaction(logging.Filter):
    """Takes the secrets out of a record, and a traceback down to its error: addresses are in both."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__()
        self._redact = redact

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}: {record.exc_info[1]}"
        record.msg, record.args, record.exc_info = self._redact(text), (), None
        return True


@contextmanager
def redacted_logs(redact: Redactor) -> Iterator[None]:
    """While this lasts, what the HTTP libraries log about any address is without this server's secrets."""
    filter_ = _Redaction(redact)
    loggers = [logging.getLogger(name) for name in _LOGGERS_WITH_ADDRESSES]
    for logger in loggers:
        logger.addFilter(filter_)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(filter_)

"""What must not be read anywhere: the secrets in a server's environment, headers and addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from acp_agent.content import clean_text
from acp_agent.mcp.servers import McpServer

__all__ = ["Redactor"]

_SHORTEST = 4  # a shorter value ("1", "on") would take words out of every text and protects nothing
_HIDDEN = "[redacted]"


class Redactor:
    """Takes one server's secrets out of any text that we write about it, and makes it clean Unicode."""

    def __init__(self, server: McpServer) -> None:
        secrets = {secret for secret in _secrets(server) if len(secret) >= _SHORTEST}
        longest_first = sorted(secrets, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        text = clean_text(text)
        return self._pattern.sub(_HIDDEN, text) if self._pattern else text

    def sentence(self, text: str, limit: int = 300) -> str:
        """`text` on one line of at most `limit` characters."""
        line = " ".join(self(text).split())
        return line if len(line) <= limit else line[: limit - 1] + "…"


def _secrets(server: McpServer) -> Iterator[str]:
    yield from server.env.values()
    for value in server.headers.values():
        yield value
        yield value.rpartition(" ")[2]  # the token behind "Bearer"
    for text in (server.url, *server.args):
        if "://" in text:
            yield from _url_secrets(text)


def _url_secrets(url: str) -> Iterator[str]:
    """User, password, query and fragment, as written and decoded; a long path too, since some carry a key there."""
    try:
        parts = urlsplit(url)
        written = [parts.username or "", parts.password or "", parts.query, parts.fragment]
    except ValueError:
        yield url
        return
    written += [value for _, value in parse_qsl(parts.query)]
    written += [segment for segment in parts.path.split("/") if len(segment) >= 16]
    for secret in written:
        yield from (secret, unquote(secret), quote(secret, safe=""))

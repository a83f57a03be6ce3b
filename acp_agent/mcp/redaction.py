"""What must not be read anywhere: the secrets in a server's environment, headers, addresses and arguments.

Of an argument that is what an address has to hide, and what an option named as a secret (`--api-key`) is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from acp_agent.content import clean_text
from acp_agent.mcp.servers import McpServer

__all__ = ["HIDDEN", "Redactor", "hide_secrets"]

HIDDEN = "[redacted]"

_SHORTEST = 4  # a shorter value ("1", "on") would take words out of every text and protects nothing
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_SECRET_OPTION = re.compile(
    r"--?[\w-]*(?:key|token|secret|passw|auth|header)[\w-]*(?:=(.*))?", re.IGNORECASE | re.DOTALL
)


class Redactor:
    """Takes one server's secrets out of any text that we write about it, and makes it clean Unicode."""

    def __init__(self, server: McpServer) -> None:
        self._pattern = _pattern(_secrets(server))

    def __call__(self, text: str) -> str:
        text = clean_text(text)
        return self._pattern.sub(HIDDEN, text) if self._pattern else text

    def sentence(self, text: str, limit: int = 300) -> str:
        """`text` on one line of at most `limit` characters."""
        line = " ".join(self(text).split())
        return line if len(line) <= limit else line[: limit - 1] + "…"


def hide_secrets(texts: Sequence[str]) -> list[str]:
    """A server's arguments, or its address, with what is secret in them replaced."""
    pattern = _pattern(_argument_secrets(texts))
    return [pattern.sub(HIDDEN, text) for text in texts] if pattern else list(texts)


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    longest_first = sorted({secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _secrets(server: McpServer) -> Iterator[str]:
    yield from server.env.values()
    for value in server.headers.values():
        yield value
        yield value.rpartition(" ")[2]  # the token behind "Bearer"
    yield from _argument_secrets([server.url, *server.args])


def _argument_secrets(texts: Sequence[str]) -> Iterator[str]:
    follows = False
    for text in texts:
        option = _SECRET_OPTION.fullmatch(text)
        if option or (follows and not text.startswith("--")):
            value = (option[1] or "") if option else text
            yield from (value, value.rpartition(" ")[2])
        follows = option is not None and option[1] is None
        for url in _URL.findall(text):
            yield from _url_secrets(url)


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

"""What is taken out of texts about a server."""

from __future__ import annotations

import pytest

from acp_agent.mcp.redaction import Redactor, hide_secrets
from acp_agent.mcp.servers import McpServer


@pytest.mark.parametrize(
    ("args", "hidden"),
    [
        (["--verbose", "run"], ["--verbose", "run"]),
        (["--api-key", "abcdef", "run"], ["--api-key", "[redacted]", "run"]),
        (["--access_token=abcdef"], ["--access_token=[redacted]"]),
        (["--header", "Authorization: Bearer abcdef"], ["--header", "[redacted]"]),
        (["--url=https://me:abcdef@host/path"], ["--url=https://me:[redacted]@host/path"]),
        (["postgres://user:abcdef@db/x?sslkey=k123"], ["postgres://[redacted]:[redacted]@db/x?[redacted]"]),
        (["--key", "--verbose"], ["--key", "--verbose"]),
    ],
)
def test_arguments_are_shown_without_what_is_secret_in_them(args: list[str], hidden: list[str]) -> None:
    assert hide_secrets(args) == hidden


def test_a_text_about_a_server_has_none_of_its_secrets() -> None:
    server = McpServer(
        name="s",
        url="https://host/?key=url-secret",
        headers={"Authorization": "Bearer head-secret"},
        env={"A": "env-secret", "B": "1"},
        args=["--token", "arg-secret"],
    )
    told = Redactor(server)("url-secret, head-secret, Bearer head-secret, env-secret, arg-secret and 1 more")
    assert told == "[redacted], [redacted], [redacted], [redacted], [redacted] and 1 more"

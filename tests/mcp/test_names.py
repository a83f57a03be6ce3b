"""Names that models see, and texts without secrets."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from acp_agent.mcp.names import server_slugs, tool_names
from acp_agent.mcp.redaction import Redactor
from acp_agent.mcp.servers import McpServer

SAFE = re.compile(r"mcp__[A-Za-z0-9_-]+__[A-Za-z0-9_-]+")


@given(st.lists(st.text(max_size=80), max_size=8), st.lists(st.text(max_size=80), max_size=8))
def test_names_are_safe_short_and_unique_over_all_servers(servers: list[str], tools: list[str]) -> None:
    slugs = server_slugs(servers)
    names = [name for slug in slugs for name in tool_names(slug, tools).values()]
    assert len(set(names)) == len(names) == len(servers) * len(set(tools))
    assert all(SAFE.fullmatch(name) and len(name) <= 64 for name in names)


@given(st.lists(st.text(max_size=80), unique=True, max_size=8), st.randoms())
def test_a_tools_name_does_not_depend_on_the_order_of_the_list(tools: list[str], random: object) -> None:
    shuffled = sorted(tools, key=lambda tool: hash((tool, str(random))))
    assert tool_names("server", tools) == tool_names("server", shuffled)


def test_a_name_that_needs_no_change_keeps_itself() -> None:
    assert server_slugs(["time"]) == ["time"]
    assert tool_names("time", ["a.b", "a_b"])["a_b"] == "mcp__time__a_b"


def test_secrets_of_environment_headers_and_addresses_are_taken_out() -> None:
    redact = Redactor(
        McpServer(
            name="a",
            transport="http",
            url="https://joe:p%40ssword@example.org/mcp?key=abcd-1234&mode=x",
            headers={"Authorization": "Bearer tok-99"},
            env={"TOKEN": "env-77", "DEBUG": "1"},
            args=["postgres://app:db-pass@localhost/db"],
        )
    )
    text = redact("p@ssword p%40ssword abcd-1234 Bearer tok-99 / tok-99 env-77 db-pass, step 1 of 1")
    assert re.sub(r"(\[redacted\] ?)+", "#", text) == "#/ #, step 1 of 1"


def test_a_sentence_is_one_line_of_bounded_length_and_clean_unicode() -> None:
    redact = Redactor(McpServer(name="a", command="b"))
    assert redact.sentence("one\n  two\ud800") == "one two\ufffd"
    assert len(redact.sentence("x" * 1_000)) == 300

"""Results of calls: every kind of content, within limits; and the proposals that go before."""

from __future__ import annotations

from typing import Any, cast

import mcp_types as mcp
import pytest
from msgspec import UNSET

from acp_agent.content import AudioContent, ContentItem, EmbeddedResource, ResourceLink, TextContent
from acp_agent.mcp.redaction import Redactor
from acp_agent.mcp.results import output_of, progress_text
from acp_agent.mcp.servers import McpServer
from acp_agent.mcp.tools import McpTool
from acp_agent.tools.base import ToolContext
from tests.mcp.support import told

REDACT = Redactor(McpServer(name="a", command="b", env={"TOKEN": "s3cret"}))
NOBODY = cast("ToolContext", None)


def result(*content: mcp.ContentBlock, **options: Any) -> mcp.CallToolResult:
    return mcp.CallToolResult(content=list(content), **options)


def test_structured_content_alone_is_told_as_json() -> None:
    output = output_of(result(structured_content={"sum": 5}), REDACT)
    assert told(output) == '{"sum":5}'
    assert output.raw_output == {"sum": 5}


def test_large_structured_content_is_not_repeated_beside_what_is_shown() -> None:
    output = output_of(result(mcp.TextContent(text="long"), structured_content={"x": "y" * 50_000}), REDACT)
    assert output.raw_output is UNSET


def test_nothing_is_said_to_be_nothing() -> None:
    output = output_of(result(), REDACT)
    assert (output.content, told(output)) == ([], "The tool returned nothing.")


def test_every_kind_of_content_is_passed_on() -> None:
    output = output_of(
        result(
            mcp.AudioContent(data="AAAA", mime_type="audio/wav"),
            mcp.ResourceLink(name="n", uri="file:///a", size=-1, annotations=mcp.Annotations(priority=0.5)),
            mcp.EmbeddedResource(resource=mcp.BlobResourceContents(uri="file:///b", blob="AAAA", mime_type="x/y")),
        ),
        REDACT,
    )
    assert output.told == [
        AudioContent("AAAA", "audio/wav"),
        ResourceLink(name="n", uri="file:///a", annotations={"priority": 0.5}),
        EmbeddedResource("file:///b", blob="AAAA", mime_type="x/y"),
    ]


def test_binary_data_and_parts_beyond_the_limits_are_left_out_with_a_note() -> None:
    image = mcp.ImageContent(data="A" * 3_000_000, mime_type="image/png")
    texts = [mcp.TextContent(text=str(number)) for number in range(80)]
    output = output_of(result(image, image, *texts), REDACT)
    assert "[3,000,000 characters of binary data left out: too large]" in told(output)
    assert "[18 more parts left out]" in told(output)


def test_many_long_texts_share_one_limit() -> None:
    output = output_of(result(*[mcp.TextContent(text="x" * 100_000)] * 10), REDACT)
    assert len(told(output)) < 40_000


def test_an_errors_text_is_redacted_and_a_results_text_is_left_as_it_is() -> None:
    text = mcp.TextContent(text="s3cret")
    assert told(output_of(result(text, is_error=True), REDACT)) == "[redacted]"
    assert told(output_of(result(text), REDACT)) == "s3cret"


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        ((3.0, 4.0, "Copying"), "Copying (3 of 4)"),
        ((0.5, None, "Copying"), "Copying (0.5)"),
        ((2.0, None, None), "Progress: 2"),
    ],
)
def test_progress_is_said_in_words(progress: tuple[float, float | None, str | None], text: str) -> None:
    assert progress_text(*progress) == text


def tool_with(**options: Any) -> McpTool:
    tool = mcp.Tool(name="send", input_schema={"type": "object"}, **options)
    return McpTool(tool, name="mcp__mail__send", server_name="mail", caller=cast("Any", None))


def test_a_proposal_shows_the_real_name_and_all_arguments() -> None:
    proposal = tool_with(title="A harmless read").describe({"to": "eve\n", "text": "x" * 500}, NOBODY)
    assert proposal.title.startswith('mail: send(to="eve\\n", text="xxx')
    assert len(proposal.title) < 130
    (item,) = proposal.content
    assert isinstance(item, ContentItem)
    assert isinstance(item.content, TextContent)
    assert "x" * 500 in item.content.text
    assert proposal.scope == "`mail: send` with these arguments"


def test_always_is_for_these_arguments_in_whatever_order_they_come() -> None:
    tool = tool_with()
    first = tool.describe({"a": 1, "b": [2]}, NOBODY).key
    assert tool.describe({"b": [2], "a": 1}, NOBODY).key == first
    assert tool.describe({"a": 1, "b": [3]}, NOBODY).key != first
    assert len(tool.describe({"a": "x" * 10_000}, NOBODY).key) == 64


@pytest.mark.parametrize(
    ("hints", "judged"),
    [
        (None, ("other", "ask", False)),
        ({"read_only_hint": True}, ("read", "allow", True)),
        ({"read_only_hint": True, "open_world_hint": False}, ("read", "allow", True)),
        ({"read_only_hint": True, "open_world_hint": True}, ("fetch", "ask", True)),
        ({"read_only_hint": True, "destructive_hint": True}, ("other", "ask", False)),
        ({"read_only_hint": False, "destructive_hint": False}, ("other", "ask", False)),
    ],
)
def test_only_a_tool_that_reads_and_stays_at_home_runs_without_a_question(
    hints: dict[str, Any] | None, judged: tuple[str, str, bool]
) -> None:
    tool = tool_with(annotations=mcp.ToolAnnotations(**hints) if hints else None)
    assert (tool.kind, tool.permission, tool.read_only) == judged

"""Each adapter against a real model: it wants a tool, reads the result, and stops when it is told to.

A model this small is weak: what it wants and where it looks is asserted, its prose is not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import anyio
import anyio.to_thread
import pytest
from msgspec import structs

from acp_agent.content import TextContent
from acp_agent.errors import ModelError
from acp_agent.history import AssistantMessage, ToolResult
from acp_agent.models.anthropic import AnthropicModel
from acp_agent.models.base import Model, TextDelta, ToolSpec, UsageDelta
from acp_agent.models.openai import OpenAIModel
from acp_agent.models.openai_responses import OpenAIResponsesModel
from tests.llm.conftest import CONTEXT, LocalModel
from tests.models.asking import ask, finish, prompt, request, texts, uses

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [ToolSpec("read_text_file", "Read a text file.", PATH), ToolSpec("list_directory", "List a directory.", PATH)]
PATIENCE = 180  # seconds: the machine may be busy

MakeModel = Callable[[int], Model]


@pytest.fixture(params=["openai", "openai-responses", "anthropic"])
def make_model(request: pytest.FixtureRequest, local_model: LocalModel) -> MakeModel:
    """A model of each kind, with a limit of tokens."""
    options: dict[str, Any] = {"temperature": 0.0}

    def make(max_tokens: int) -> Model:
        match request.param:
            case "openai":
                return OpenAIModel("local", base_url=f"{local_model.url}/v1", max_tokens=max_tokens, **options)
            case "openai-responses":
                return OpenAIResponsesModel("local", base_url=f"{local_model.url}/v1", max_tokens=max_tokens, **options)
            case _:
                return AnthropicModel("local", base_url=local_model.url, max_tokens=max_tokens, **options)

    return make


async def test_it_wants_the_tool_and_tells_what_the_file_says(make_model: MakeModel) -> None:
    question = prompt("read text file README.md")
    with anyio.fail_after(PATIENCE):
        wanted = await ask(make_model(64), request(question, tools=TOOLS))
        (use,) = uses(wanted)
        assert (use.name, use.arguments, use.problem) == ("read_text_file", {"path": "README.md"}, "")
        assert any(isinstance(event, UsageDelta) and event.output_tokens > 0 for event in wanted)
        said = AssistantMessage("m2", tool_uses=[structs.replace(use, call_id="call_1")], native=finish(wanted).native)
        result = ToolResult("call_1", use.name, [TextContent("blue giraffe")])
        answer = await ask(make_model(64), request(question, said, result, tools=TOOLS))
    assert len(texts(answer)) > 1, "the answer is streamed"
    assert "giraffe" in "".join(texts(answer))
    assert finish(answer).reason == "end_turn"


async def test_a_cancel_stops_the_model(make_model: MakeModel, local_model: LocalModel) -> None:
    model, came = make_model(2000), []
    with anyio.fail_after(PATIENCE):
        with anyio.CancelScope() as scope:
            async with aclosing(model.stream(request(prompt("Tell me a very long story about the sea.")))) as stream:
                async for event in stream:
                    came.append(event)
                    if len(came) == 3:
                        scope.cancel()
        assert scope.cancelled_caught
        assert all(isinstance(event, TextDelta) for event in came)
        assert await anyio.to_thread.run_sync(local_model.becomes_idle)
        await model.aclose()


async def test_the_limit_of_tokens_is_the_reason_to_stop(make_model: MakeModel) -> None:
    model = make_model(5)
    with anyio.fail_after(PATIENCE):
        events = await ask(model, request(prompt("Tell me a very long story about the sea.")))
    if isinstance(model, OpenAIResponsesModel):
        pytest.skip("this server calls a reply that was cut `completed` in its Responses API")
    assert finish(events).reason == "max_tokens"


async def test_a_conversation_that_is_too_long_is_called_so(make_model: MakeModel) -> None:
    with anyio.fail_after(PATIENCE), pytest.raises(ModelError) as caught:
        await ask(make_model(5), request(prompt("fish " * CONTEXT)))
    assert (caught.value.kind, caught.value.retryable) == ("context_overflow", False)

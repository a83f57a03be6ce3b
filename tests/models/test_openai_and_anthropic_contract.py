"""The adapters keep the contract of a model: whole replies, cancelled at each await, closed anywhere, nothing left."""

from __future__ import annotations

from typing import Any

import pytest

from acp_agent.models.anthropic import AnthropicModel
from acp_agent.models.base import Model
from acp_agent.models.openai import OpenAIModel
from acp_agent.models.openai_responses import OpenAIResponsesModel
from acp_agent.testing.checks_model import check_model
from tests.models import test_anthropic, test_openai, test_openai_responses
from tests.models.asking import AT_ONCE
from tests.models.provider import FakeProvider, Status, Stream

pytestmark = pytest.mark.anyio

CHAT = [
    test_openai.delta(reasoning_content="Hm."),
    test_openai.delta(content="I will "),
    test_openai.delta(content="read."),
    test_openai.call(0, '{"path": "a.txt"}', id="c", name="read_file"),
    test_openai.delta("tool_calls"),
    test_openai.usage(9, 3),
]
RESPONSES = [
    test_openai_responses.said("I will "),
    test_openai_responses.said("read."),
    test_openai_responses.item(
        "done", 1, type="function_call", call_id="c", name="read_file", arguments='{"path": "a.txt"}'
    ),
    test_openai_responses.done(),
]


def make(kind: str, provider: FakeProvider) -> Model:
    match kind:
        case "openai":
            return OpenAIModel("m", base_url=f"{provider.url}/v1", retry=AT_ONCE)
        case "openai-responses":
            return OpenAIResponsesModel("m", base_url=f"{provider.url}/v1", retry=AT_ONCE)
        case _:
            return AnthropicModel("m", base_url=provider.url, retry=AT_ONCE)


@pytest.mark.parametrize(
    ("kind", "reply"),
    [("openai", CHAT), ("openai-responses", RESPONSES), ("anthropic", test_anthropic.WHOLE)],
)
async def test_an_adapter_keeps_the_contract_of_a_model(kind: str, reply: list[dict[str, Any]]) -> None:
    refusal = Status(400, {"error": {"message": "no"}})
    with FakeProvider(Stream(reply)) as provider, FakeProvider(refusal) as refusing:
        await check_model(
            lambda: make(kind, provider), make_failing_model=lambda: make(kind, refusing), timeout=10, max_cuts=12
        )

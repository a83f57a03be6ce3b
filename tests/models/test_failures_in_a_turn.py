"""What a user sees of a provider that fails: a clear error of the prompt, and a session that goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from acp_agent.agent import Agent
from acp_agent.models.anthropic import AnthropicModel
from acp_agent.models.base import Model
from acp_agent.models.openai import OpenAIModel
from acp_agent.models.retry import RetryPolicy
from acp_agent.testing import TestClient
from tests.models.asking import NEVER
from tests.models.provider import Answer, FakeProvider, Silence, Status, Stream

pytestmark = pytest.mark.anyio

OPENAI_REPLY = Stream(
    [
        {"choices": [{"index": 0, "delta": {"content": "All is well."}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
)
ANTHROPIC_REPLY = Stream(
    [
        {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "All is well."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
        {"type": "message_stop"},
    ]
)


def openai(provider: FakeProvider, retry: RetryPolicy) -> Model:
    return OpenAIModel("m", base_url=f"{provider.url}/v1", api_key="k", retry=retry)


def anthropic(provider: FakeProvider, retry: RetryPolicy) -> Model:
    return AnthropicModel("m", base_url=provider.url, api_key="k", retry=retry)


PROVIDERS = [pytest.param(openai, OPENAI_REPLY, id="openai"), pytest.param(anthropic, ANTHROPIC_REPLY, id="anthropic")]
FAILURES: dict[str, tuple[Answer, dict[str, Any]]] = {
    "no key": (Status(401, {"error": {"message": "bad key"}}), {"code": -32000, "status": 401}),
    "forbidden": (Status(403, {"error": {"message": "not yours"}}), {"code": -32603, "status": 403}),
    "no such model": (Status(404, {"error": {"message": "no model m"}}), {"code": -32603, "kind": "not_found"}),
    "too many": (Status(429, {"error": {"message": "slow down"}}), {"code": -32603, "kind": "rate_limit"}),
    "overloaded": (Status(503, {"error": {"message": "busy"}}), {"code": -32603, "kind": "overloaded"}),
    "bad request": (Status(400, {"error": {"message": "no"}}), {"code": -32603, "retryable": False}),
    "reset before": (Silence(reset=True), {"code": -32603, "kind": "connection"}),
    "reset within": (Stream([], done=False, then="reset"), {"code": -32603, "kind": "connection"}),
    "broken chunk": (Stream(["{not json"]), {"code": -32603, "kind": "protocol"}),
    "empty stream": (Stream([], done=False), {"code": -32603}),
}


@pytest.mark.parametrize(("make", "reply"), PROVIDERS)
@pytest.mark.parametrize("failure", FAILURES)
async def test_a_failure_is_a_clear_error_and_the_next_prompt_is_answered(
    failure: str, make: Callable[[FakeProvider, RetryPolicy], Model], reply: Answer
) -> None:
    answer, expected = FAILURES[failure]
    with FakeProvider(answer, reply) as provider:
        agent = Agent("fails", model=make(provider, NEVER))
        async with TestClient(agent, timeout=20).connect() as client:
            failed = await client.prompt("first")
            assert failed.error is not None
            assert failed.error.message.strip()
            assert "\n" not in failed.error.message
            data = failed.error.data
            assert isinstance(data["details"], str)
            assert {"code": failed.error.code, **data}.items() >= expected.items()
            again = await client.prompt("second")
            assert (again.text, again.stop_reason) == ("All is well.", "end_turn")
        await agent.aclose()


@pytest.mark.parametrize(("make", "reply"), PROVIDERS)
async def test_no_retry_outlives_a_cancel(make: Callable[[FakeProvider, RetryPolicy], Model], reply: Answer) -> None:
    busy = Status(503, {"error": {"message": "busy"}}, headers={"retry-after": "30"})
    with FakeProvider(busy, reply) as provider:
        agent = Agent("retries", model=make(provider, RetryPolicy(budget=60)))
        async with TestClient(agent, timeout=20).connect() as client:
            waiting = await client.start_prompt("first")
            with anyio.fail_after(10):
                await anyio.to_thread.run_sync(provider.reached.wait)
                client.cancel()
                assert (await waiting.wait()).stop_reason == "cancelled"
            assert len(provider.asked) == 1
        await agent.aclose()

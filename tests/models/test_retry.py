"""When another try is made, when not, and for how long."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anyio
import pytest

from acp_agent.errors import ModelError
from acp_agent.models.base import Finish, ModelEvent, TextDelta
from acp_agent.models.openai import OpenAIModel
from acp_agent.models.retry import RetryPolicy, stream_with_retries
from tests.models.asking import AT_ONCE, ask, request, texts
from tests.models.provider import Answer, FakeProvider, Silence, Status, Stream

pytestmark = pytest.mark.anyio

FINE = Stream([{"choices": [{"delta": {"content": "fine"}, "finish_reason": "stop"}]}])
OVERLOADED = Status(503, {"error": {"message": "busy"}})


async def asked(*answers: Answer, retry: RetryPolicy = AT_ONCE) -> tuple[int, list[Any] | ModelError]:
    """How often the provider was asked, and what came of it."""
    with FakeProvider(*answers) as provider:
        model = OpenAIModel("m", base_url=f"{provider.url}/v1", retry=retry)
        try:
            came: list[Any] | ModelError = texts(await ask(model))
        except ModelError as error:
            came = error
        return len(provider.asked), came


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 529])
async def test_what_may_pass_is_tried_again(code: int) -> None:
    failing = Status(code, {"error": {"message": "busy"}})
    assert await asked(failing, failing, FINE) == (3, ["fine"])


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 413, 422])
async def test_what_was_refused_for_what_it_is_is_never_tried_again(code: int) -> None:
    tries, failure = await asked(Status(code, {"error": {"message": "no"}}), FINE)
    assert tries == 1
    assert isinstance(failure, ModelError)
    assert failure.status == code


@pytest.mark.parametrize("broken", [Silence(reset=True), Stream([], then="reset"), Stream([], done=False)])
async def test_a_connection_that_broke_before_a_word_is_tried_again(broken: Answer) -> None:
    assert await asked(broken, FINE) == (2, ["fine"])


async def test_a_connection_that_keeps_breaking_is_given_up_soon() -> None:
    tries, failure = await asked(Silence(reset=True))
    assert tries == AT_ONCE.short_tries
    assert isinstance(failure, ModelError)


async def test_nothing_is_tried_again_after_the_first_word() -> None:
    begun = Stream([{"choices": [{"delta": {"content": "fi"}}]}], then="reset")
    tries, failure = await asked(begun, FINE)
    assert tries == 1
    assert isinstance(failure, ModelError)


@pytest.mark.parametrize("headers", [{"retry-after-ms": "30"}, {"retry-after": "0.03"}])
async def test_the_providers_own_wish_is_kept(headers: dict[str, str]) -> None:
    begun = anyio.current_time()
    assert await asked(Status(429, {}, headers), FINE) == (2, ["fine"])
    assert anyio.current_time() - begun >= 0.03


async def test_a_wish_that_goes_beyond_the_budget_is_not_waited_for() -> None:
    with anyio.fail_after(5):
        later = format_datetime(datetime.now(UTC) + timedelta(hours=1))
        assert (await asked(Status(429, {}, {"retry-after": "3600"}), FINE))[0] == 1
        assert (await asked(Status(429, {}, {"retry-after": later}), FINE))[0] == 1


async def test_an_unreadable_wish_is_no_wish() -> None:
    assert await asked(Status(429, {}, {"retry-after": "soon"}), FINE) == (2, ["fine"])


async def test_the_budget_ends_the_tries_with_the_last_failure() -> None:
    tries, failure = await asked(OVERLOADED, retry=RetryPolicy(budget=1, first_delay=0.05, longest_delay=0.1))
    assert tries > 2
    assert isinstance(failure, ModelError)
    assert failure.status == 503


async def test_the_waits_grow_up_to_the_longest() -> None:
    policy, failure = RetryPolicy(first_delay=1, longest_delay=4), ModelError("", kind="overloaded", retryable=True)
    delays = [policy.delay(failure, tries) or 0 for tries in range(1, 6)]
    assert all(0.75 * wish <= delay <= wish for delay, wish in zip(delays, [1, 2, 4, 4, 4], strict=True))


async def test_waiting_for_another_try_can_be_cancelled() -> None:
    with FakeProvider(OVERLOADED) as provider, anyio.fail_after(5):
        model = OpenAIModel("m", base_url=f"{provider.url}/v1", retry=RetryPolicy(first_delay=50, longest_delay=50))
        with anyio.move_on_after(0.3) as scope:
            async with aclosing(model.stream(request())) as stream:
                await anext(stream)
        assert scope.cancelled_caught
        await model.aclose()


async def test_an_attempt_that_is_left_early_is_closed() -> None:
    closed: list[bool] = []

    async def attempt() -> AsyncGenerator[ModelEvent, None]:
        try:
            yield TextDelta("one")
            yield Finish()
        finally:
            closed.append(True)

    async with aclosing(stream_with_retries(attempt, AT_ONCE)) as events:
        assert await anext(events) == TextDelta("one")
    assert closed == [True]

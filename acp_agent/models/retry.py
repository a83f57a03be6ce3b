"""Try again, within a budget of seconds, and only while nothing has been said.

Once a single event went out, another try would say it twice; a request that was refused for what it is would be
refused again. So only a retryable failure before the first event is tried again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from random import random

import anyio
import structlog
from msgspec import Struct

from acp_agent.errors import ModelError
from acp_agent.models.base import ModelEvent

__all__ = ["RetryPolicy", "stream_with_retries"]

log = structlog.get_logger(__name__)


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How long to go on. Times are in seconds.

    `budget` is counted from the first try on: a wait that would end after it is not begun. A provider's own wish
    (`Retry-After`) goes before our growing delay. A connection that cannot be made, or an answer that cannot be read,
    is tried `short_tries` times only, since nobody is there who asks for patience.
    """

    budget: float = 60.0
    first_delay: float = 0.5
    longest_delay: float = 10.0
    short_tries: int = 3

    def delay(self, failure: ModelError, tries: int) -> float | None:
        """Seconds to wait after the failed try number `tries`, or None: give up."""
        patient = failure.kind in ("rate_limit", "overloaded")
        if not failure.retryable or (not patient and tries >= self.short_tries):
            return None
        asked: float | None = getattr(failure, "retry_after", None)
        if asked is not None:
            return asked
        if failure.kind == "connection" and tries == 1:
            return 0.0  # most often a kept connection that the server closed meanwhile
        return min(self.longest_delay, self.first_delay * 2.0 ** (tries - 1)) * (1 - random() / 4)


async def stream_with_retries(
    attempt: Callable[[], AsyncGenerator[ModelEvent, None]], policy: RetryPolicy
) -> AsyncGenerator[ModelEvent, None]:
    """The events of the first attempt that gets as far as to say something. Raises the last attempt's `ModelError`."""
    begun, tries, said = anyio.current_time(), 0, False
    while True:
        tries += 1
        try:
            async with aclosing(attempt()) as events:
                async for event in events:
                    said = True
                    yield event
            return
        except ModelError as failure:
            delay = None if said else policy.delay(failure, tries)
            if delay is None or anyio.current_time() - begun + delay > policy.budget:
                raise
            log.warning("model_retry", problem=failure.message, kind=failure.kind, tries=tries, delay=round(delay, 2))
        await anyio.sleep(delay)

"""A model behind an HTTP API. The way of a request is the same for all; an adapter adds its provider's words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from acp_agent.models.base import Model, ModelEvent, ModelRequest
from acp_agent.models.prompts import tool_names
from acp_agent.models.provider import ClientT, Provider, SdkResponse
from acp_agent.models.replies import Reply
from acp_agent.models.retry import RetryPolicy, stream_with_retries

__all__ = ["Reading", "RemoteModel"]

EventT = TypeVar("EventT")
TakenT = TypeVar("TakenT", contravariant=True)


class Reading(Protocol[TakenT]):
    """One stream on its way to a reply."""

    def take(self, event: TakenT) -> Iterator[ModelEvent]:
        """What the provider's event adds. One of an unknown kind adds nothing."""

    def close(self, window: int | None) -> Iterator[ModelEvent]:
        """The end of the reply. Raises `ModelError` when the stream ended without one."""


class RemoteModel(Model, Generic[ClientT, EventT]):
    """A model that `provider` leads to. `extra` goes over each request's body, and takes a field out by None."""

    event_type: ClassVar[type[Any]]

    def __init__(
        self,
        name: str,
        provider: Provider[ClientT],
        *,
        context_window: int | None,
        thought_levels: Sequence[str],
        extra: Mapping[str, Any] | None,
        retry: RetryPolicy | None,
    ) -> None:
        self.name = name
        self.context_window = context_window
        self.thought_levels = tuple(thought_levels)
        self._provider = provider
        self._extra = dict(extra or {})
        self._retry = retry or RetryPolicy()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(stream_with_retries(lambda: self._attempt(request), self._retry)) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        await self._provider.aclose()

    @abstractmethod
    def open(self, client: ClientT, request: ModelRequest) -> AbstractAsyncContextManager[SdkResponse]:
        """The provider's request; sent when it is entered."""

    @abstractmethod
    def read(self, reply: Reply) -> Reading[EventT]:
        """What feeds `reply` from one stream."""

    @abstractmethod
    def error_in(self, event: EventT) -> Any:
        """The error object of an event that is one, else None."""

    def is_last(self, event: EventT) -> bool:
        """Whether the stream ends with this event, where no `[DONE]` says so."""
        return False

    def body(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that have a value, and what the user added."""
        return {key: value for key, value in {**fields, **self._extra}.items() if value is not None}

    def effort(self, request: ModelRequest) -> str | None:
        """The level of effort that is asked for, if the model has it."""
        return request.thought_level if request.thought_level in self.thought_levels else None

    async def _attempt(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        opening = self.open(await self._provider.client(), request)
        reading = self.read(Reply(self._provider.label, tool_names(request.tools)))
        async with aclosing(self._provider.events(opening, self.event_type, self.is_last)) as stream:
            async for item in stream:
                if (error := self.error_in(item)) is not None:
                    raise self._provider.failure(error)
                for event in reading.take(item):
                    yield event
        if self.context_window is None:
            self.context_window = await self._provider.context_window(self.name)
        for event in reading.close(self.context_window):
            yield event

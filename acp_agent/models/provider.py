"""The way to a provider, shared by the adapters. The rule it owns: a request leaves nothing behind.

An SDK is imported, and its client made, in a worker thread at the first request; the SDK does the addresses, the keys
and the connections, and this file reads the stream. However a request ends (its end, an error, a cancel, a consumer
that goes away), its response is closed and each generator that read it has run to its end, so that neither a
connection nor a task is left.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias, TypeVar
from urllib.parse import quote

import anyio
import anyio.to_thread
import msgspec

from acp_agent.content import clean_json
from acp_agent.errors import ModelError
from acp_agent.models.failures import ProviderError, of_error_object, of_exception, unreadable
from acp_agent.models.windows import window_in

if TYPE_CHECKING:
    import httpx2

__all__ = ["ApiKey", "ClientT", "Provider", "SdkResponse", "address_of", "read_json"]

ApiKey: TypeAlias = str | Callable[[], str | None] | None


GRACE = 0.5  # seconds that a stream may take to end after its last event
PATIENCE = 2.0  # seconds that a server may take to tell of its models, before the first turn ends without it


class SdkClient(Protocol):
    """What the SDKs' clients have in common."""

    def copy(self, *, api_key: str) -> Self:
        """Another client with another key, on the same connections."""

    async def get(self, path: str, *, cast_to: type[object]) -> object: ...

    async def close(self) -> None: ...


class SdkResponse(Protocol):
    """A response whose head has come and whose body has not been read."""

    @property
    def http_response(self) -> httpx2.Response: ...


ClientT = TypeVar("ClientT", bound=SdkClient)
EventT = TypeVar("EventT")


class Provider(Generic[ClientT]):
    """One SDK's client, made at the first use and kept.

    `sdk` is the SDK's module and the name of our extra, `error_name` the root of its exceptions. `connect` makes the
    client from a key, or from None when there is none, and is run in a worker thread. `label` names the provider in
    errors. The key is `api_key`, or `key_variable` of the environment; an `api_key` that is callable is called again
    before each request, in a worker thread, so that a key can change without a restart. `models_path` is where the
    server tells of its models, `{name}` in it replaced; None when it has nothing to tell.
    """

    def __init__(
        self,
        sdk: str,
        connect: Callable[[str | None], ClientT],
        *,
        error_name: str,
        label: str,
        api_key: ApiKey,
        key_variable: str,
        models_path: str | None,
        owns_http: bool,
    ) -> None:
        self.label = label
        self._sdk = sdk
        self._error_name = error_name
        self._connect = connect
        self._api_key = api_key
        self._key_variable = key_variable
        self._models_path = models_path
        self._owns_http = owns_http
        self._lock = anyio.Lock()
        self._client: ClientT | None = None
        self._made: list[ClientT] = []  # those with connections of their own
        self._key: str | None = None
        self._errors: tuple[type[Exception], ...] = ()

    async def client(self) -> ClientT:
        """The client, with the key as it is now. Raises `ModelError` for a missing extra or key."""
        async with self._lock:
            if self._client is None or callable(self._api_key):
                self._client = await anyio.to_thread.run_sync(self._renew_client, abandon_on_cancel=True)
            return self._client

    async def events(
        self,
        opening: AbstractAsyncContextManager[SdkResponse],
        event_type: type[EventT],
        is_last: Callable[[EventT], bool] = lambda _: False,
    ) -> AsyncGenerator[EventT, None]:
        """The stream's server-sent events, decoded, until the last one or `[DONE]`. Raises `ModelError`."""
        try:
            async with opening as response, aclosing(_read(response.http_response)) as lines:
                async for data in lines:
                    if not data:
                        continue
                    if data.strip() != "[DONE]":
                        yield (event := self._decode(data, event_type))
                        if not is_last(event):
                            continue
                    await _drain(lines)
                    return
        except self._errors as error:
            raise of_exception(error, self.label, secret=self._key) from error

    async def context_window(self, name: str) -> int | None:
        """The window of the model `name` in tokens, asked of the server once; None when it does not say."""
        path, self._models_path = self._models_path, None
        if path is None or self._client is None:
            return None
        with anyio.move_on_after(PATIENCE):
            try:
                answer = await self._client.get(path.format(name=quote(name, safe="")), cast_to=object)
            except self._errors:
                return None
            return window_in(answer, name)
        return None

    def failure(self, error_object: Any) -> ProviderError:
        """An error that came as an event of the stream."""
        return of_error_object(error_object, self.label, secret=self._key)

    async def aclose(self) -> None:
        """Close the kept connections. The next request would open new ones."""
        async with self._lock:
            made, self._made, self._client = self._made, [], None
            with anyio.CancelScope(shield=True):
                for client in made if self._owns_http else ():
                    await client.close()

    def _renew_client(self) -> ClientT:
        """The client for the key as it is now: the one there is, one on the same connections, or a first one."""
        given = self._api_key() if callable(self._api_key) else self._api_key
        key = (given or os.environ.get(self._key_variable) or "").strip() or None
        client = self._client
        if client is None or (key is None and self._key is not None):
            client = self._first_client(key)
        elif key is not None and key != self._key:
            client = client.copy(api_key=key)
        self._key = key
        return client

    def _first_client(self, key: str | None) -> ClientT:
        try:
            http, sdk = import_module("httpx2"), import_module(self._sdk)
        except ImportError as error:
            raise ModelError(
                f"The model needs a package that is not installed: pip install 'acp-agent[{self._sdk}]'", kind="other"
            ) from error
        self._errors = (getattr(sdk, self._error_name), http.HTTPError, http.StreamError, ValueError)
        client = self._connect(key)
        self._made.append(client)
        return client

    def _decode(self, data: str, event_type: type[EventT]) -> EventT:
        try:
            return msgspec.json.decode(data, type=event_type)
        except msgspec.DecodeError:
            pass  # or it has a lone surrogate, which Python's own reader takes
        try:
            return msgspec.convert(read_json(data), event_type)
        except (ValueError, msgspec.ValidationError) as error:
            raise unreadable(self.label, "a part of it is not the JSON that was expected") from error


async def _read(response: httpx2.Response) -> AsyncGenerator[str, None]:
    """The data of each event. Never left half read: on the way out the response is closed and what read it ends."""
    from httpx2 import EventSource, HTTPError, StreamError

    events = aiter(EventSource(response))
    try:
        async for event in events:
            yield event.data
    finally:
        await response.aclose()
        with suppress(HTTPError, StreamError):  # what reading a closed response says, and what unwinds the generators
            async for _ in events:
                pass


async def _drain(lines: AsyncGenerator[str, None]) -> None:
    """Read to the end, which is due, so that the connection can be used again; but do not wait for it."""
    with anyio.move_on_after(GRACE):
        async for _ in lines:
            pass


def address_of(base_url: str | None, variable: str) -> str | None:
    """The server that is meant instead of the provider's own; `variable` of the environment may name one."""
    return base_url or os.environ.get(variable) or None


def read_json(text: str) -> Any:
    """A JSON value of the strict kind, except that what is not Unicode in its strings is replaced.

    Raises `ValueError` with what is wrong.
    """
    return clean_json(json.loads(text, parse_constant=_refuse_constant))


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")

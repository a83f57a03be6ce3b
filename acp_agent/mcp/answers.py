"""What we answer when a server asks us: the session's roots, a form for the user, a sample of the model.

A server may ask the user only while it works for a call: when the last one ends, or is cancelled, the questions
that are still open go with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import mcp_types as mcp
from mcp.client import ClientRequestContext
from pydantic import FileUrl

from acp_agent.content import clean_json, clean_text
from acp_agent.errors import AcpAgentError
from acp_agent.tools.base import FormAnswer

__all__ = ["AskForm", "ClientAnswers", "Sample"]

AskForm: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[FormAnswer]]
Sample: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class ClientAnswers:
    """The callbacks of one connection. `sample` is None when sampling is refused."""

    def __init__(
        self, server_name: str, *, roots: Sequence[str], ask_form: AskForm | None, sample: Sample | None
    ) -> None:
        self._server_name = server_name
        self._roots = roots
        self._ask_form = ask_form
        self._sample = sample
        self._calls = 0
        self._open: set[anyio.CancelScope] = set()
        self.sample = self._take_sample if sample else None

    def call_started(self) -> None:
        self._calls += 1

    def call_ended(self) -> None:
        self._calls -= 1
        if not self._calls:
            for scope in self._open:
                scope.cancel()

    async def list_roots(self, context: ClientRequestContext) -> mcp.ListRootsResult:
        return mcp.ListRootsResult(
            roots=[mcp.Root(uri=FileUrl(Path(root).as_uri()), name=Path(root).name or root) for root in self._roots]
        )

    async def elicit(self, context: ClientRequestContext, params: mcp.ElicitRequestParams) -> mcp.ElicitResult:
        if self._ask_form is None or not self._calls or not isinstance(params, mcp.ElicitRequestFormParams):
            return mcp.ElicitResult(action="decline")
        message = f"{self._server_name}: {clean_text(params.message)}"
        answer = FormAnswer("cancel")
        with self._while_called(), suppress(AcpAgentError):  # the editor refused or is gone: nobody answered
            answer = await self._ask_form(message, clean_json(params.requested_schema))
        values = dict(answer.values) if answer.action == "accept" else None
        return mcp.ElicitResult(action=answer.action, content=values)

    async def _take_sample(
        self, context: ClientRequestContext, params: mcp.CreateMessageRequestParams
    ) -> mcp.CreateMessageResult | mcp.ErrorData:
        if self._sample is None or not self._calls:
            return mcp.ErrorData(code=mcp.INVALID_REQUEST, message="Sampling is for a running tool call only")
        asked = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        problem = "The call is over"
        with self._while_called():
            try:
                return mcp.CreateMessageResult.model_validate(await self._sample(self._server_name, asked))
            except AcpAgentError as error:
                problem = str(error)
        return mcp.ErrorData(code=mcp.INTERNAL_ERROR, message=problem)

    @contextmanager
    def _while_called(self) -> Iterator[None]:
        """What waits in here is given up with the last call."""
        with anyio.CancelScope() as scope:
            self._open.add(scope)
            try:
                yield
            finally:
                self._open.discard(scope)

"""A plain function as a tool: the signature is the schema, the docstring the description."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, ParamSpec, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec
from anyio.lowlevel import current_token

from acp_agent.content import (
    AudioContent,
    ContentBlock,
    ContentItem,
    Diff,
    EmbeddedResource,
    ImageContent,
    Location,
    PlanEntry,
    ResourceLink,
    TerminalItem,
    TextContent,
    ToolContent,
    ToolKind,
    clean_text,
)
from acp_agent.tools.arguments import decode_arguments, schema_of
from acp_agent.tools.base import (
    Editor,
    PermissionDefault,
    Proposal,
    Tool,
    ToolContext,
    ToolOutput,
    Workspace,
)
from acp_agent.tools.signature import read_signature
from acp_agent.tools.text import DISPLAY_LIMIT, MODEL_LIMIT, code_span, cut_text, fenced, visible

__all__ = ["FunctionTool", "ThreadContext", "output_of"]

P = ParamSpec("P")
T = TypeVar("T")

TOLD_LIMIT = 4 * MODEL_LIMIT
BLOCKS = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)
ITEMS = (ContentItem, Diff, TerminalItem)


class FunctionTool(Tool):
    """A tool made of `function`.

    A first parameter annotated `ToolContext` receives the context. `async def` runs in the loop; a plain `def` in a
    worker thread with a `ThreadContext`, which is left behind when the turn is cancelled. It returns a text, anything
    that JSON can say, None, content blocks, a `Diff`, or a `ToolOutput`.

    `preview`, `key` and a callable `title` take the function's arguments by name. `preview` returns what the user is
    to judge and may read but not change anything; `key` is what "always" is remembered under: by default all
    arguments, as they were shown; empty for what must be asked each time.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        kind: ToolKind = "other",
        permission: PermissionDefault = "ask",
        read_only: bool = False,
        preview: Callable[..., Any] | None = None,
        title: str | Callable[..., str] | None = None,
        key: Callable[..., str] | None = None,
    ) -> None:
        self._function = function
        self._signature = read_signature(function, (ToolContext, ThreadContext))
        self._preview = preview
        self._preview_wants_context = preview is not None and _wants_context(preview)
        self._title = title
        self._key = key
        self.name = name or function.__name__
        self.description = self._signature.description
        self.input_schema = schema_of(self._signature.arguments)
        self.kind = kind
        self.permission = permission
        self.read_only = read_only

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        given = self._given(decode_arguments(self._signature.arguments, arguments))
        whole = visible(f"{self.name}({_spelled(arguments)})")
        title = self._title(**given) if callable(self._title) else self._title or whole
        key = f"{self.name} {_canonical(arguments)}" if self._key is None else self._key(**given)
        proposal = Proposal(
            title=title,
            kind=self.kind,
            arguments=arguments,
            permission=self.permission,
            key=key,
            scope=code_span(whole if self._key is None else visible(key)),
            read_only=self.read_only,
            state=given,
        )
        if self._preview is None and whole != title:  # the title does not say all there is to judge
            proposal.content = [ContentItem(TextContent(fenced(_canonical(arguments, indent=2), "json")))]
        return proposal

    async def prepare(self, proposal: Proposal, context: ToolContext) -> None:
        if self._preview is not None:
            shown = await _run(self._preview, self._preview_wants_context, proposal.state, context)
            proposal.content = output_of(shown).content
            proposal.locations = proposal.locations or _places(proposal.content)

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        return output_of(await _run(self._function, self._signature.wants_context, proposal.state, context))

    def _given(self, values: msgspec.Struct) -> dict[str, Any]:
        """The arguments by name, without those that the function's own default is for."""
        found = ((name, getattr(values, name)) for name in values.__struct_fields__)
        return {name: value for name, value in found if value is not msgspec.UNSET}


class ThreadContext:
    """The context of a plain function, in its worker thread. Each of its verbs waits for the loop to do it.

    `wait_for(context.workspace.read_text, path)` runs an async function in the loop and returns what it returns.
    Called in the loop's own thread they raise `RuntimeError` instead of waiting for ever.
    """

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._loop_thread = threading.get_ident()
        self._token = current_token()
        self.session_id: str = context.session_id
        self.tool_call_id: str = context.tool_call_id
        self.cwd: str = context.cwd
        self.roots: Sequence[str] = context.roots
        self.workspace: Workspace = context.workspace
        self.editor: Editor = context.editor

    @property
    def cancelled(self) -> bool:
        return self._context.cancelled

    def report(self, content: Sequence[ToolContent] | str, *, locations: Sequence[Location] | None = None) -> None:
        self._in_loop(self._context.report, content, locations=locations)

    def send_plan(self, entries: Sequence[PlanEntry]) -> None:
        self._in_loop(self._context.send_plan, entries)

    def on_finished(self, callback: Callable[[], Awaitable[None]]) -> None:
        self._in_loop(self._context.on_finished, callback)

    async def set_mode(self, mode_id: str) -> None:
        await self._context.set_mode(mode_id)

    def wait_for(self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_thread()
        return anyio.from_thread.run(functools.partial(function, *args, **kwargs), token=self._token)

    def _in_loop(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_thread()
        return anyio.from_thread.run_sync(functools.partial(function, *args, **kwargs), token=self._token)

    def _check_thread(self) -> None:
        if threading.get_ident() == self._loop_thread:
            raise RuntimeError("A ThreadContext belongs to a worker thread; in the loop, use an async def tool.")


async def _run(function: Callable[..., Any], wants_context: bool, given: dict[str, Any], context: ToolContext) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*([context] if wants_context else []), **given)
    positional = [ThreadContext(context)] if wants_context else []
    return await anyio.to_thread.run_sync(
        functools.partial(function, *positional, **given),
        abandon_on_cancel=True,
        limiter=anyio.CapacityLimiter(1),  # its own, so that a thread left behind keeps nobody else waiting
    )


def _wants_context(function: Callable[..., Any]) -> bool:
    return read_signature(function, (ToolContext, ThreadContext)).wants_context


def output_of(value: Any) -> ToolOutput:
    """What a function returned, as the output of a call; long texts are cut for people and for the model."""
    if isinstance(value, ToolOutput):
        return value
    if value is None:
        return ToolOutput.of_text("Done.")
    if isinstance(value, str):
        return _text_output(clean_text(value))
    if isinstance(value, BLOCKS + ITEMS):
        return ToolOutput(content=[_item(value)])
    if isinstance(value, list | tuple) and value and all(isinstance(part, BLOCKS + ITEMS) for part in value):
        return ToolOutput(content=[_item(part) for part in value])
    return _text_output(clean_text(_canonical(value, indent=2)), "json")


def _text_output(text: str, language: str | None = None) -> ToolOutput:
    shown = cut_text(text, DISPLAY_LIMIT)
    if language is not None:
        shown = fenced(shown, language)
    told: list[ContentBlock] = [TextContent(cut_text(text, TOLD_LIMIT))]
    return ToolOutput(content=[ContentItem(TextContent(shown))], told=told)


def _item(value: ContentBlock | ToolContent) -> ToolContent:
    return value if isinstance(value, ITEMS) else ContentItem(value)


def _places(content: Sequence[ToolContent]) -> list[Location]:
    return [Location(item.path) for item in content if isinstance(item, Diff)]


def _canonical(value: Any, *, indent: int = 0) -> str:
    """`value` as JSON, the same for equal values; what JSON cannot say is spelled as Python does."""
    text = msgspec.json.encode(value, order="deterministic", enc_hook=repr)
    return (msgspec.json.format(text, indent=indent) if indent else text).decode()


def _spelled(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_canonical(value)}" for name, value in arguments.items())

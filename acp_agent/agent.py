"""`Agent`: what people build. It collects the parts and runs them; how they work is `runtime`'s business."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from acp_agent.content import ToolKind
from acp_agent.events import Command
from acp_agent.models.base import Model
from acp_agent.runtime.auth import AuthProvider
from acp_agent.runtime.commands import built_in_commands
from acp_agent.runtime.definition import AgentDefinition, CommandHandler, PromptHandler, SessionCommand
from acp_agent.runtime.loop import run_model
from acp_agent.runtime.permissions import PermissionPolicy, PermissionRule
from acp_agent.server import AgentServer
from acp_agent.store.base import SessionStore
from acp_agent.store.memory import MemoryStore
from acp_agent.tools.base import PermissionDefault, Tool, Toolset
from acp_agent.transports.base import Wire

if TYPE_CHECKING:
    from anyio.abc import ByteStream

    from acp_agent.mcp.servers import McpServer

__all__ = ["Agent"]

F = TypeVar("F", bound=Callable[..., Any])
PromptBlock = Literal["image", "audio", "resource"]
UnstablePart = Literal["fork"]


class Agent:
    """An agent that editors can talk to.

        agent = Agent("echo", version="0.1.0")

        @agent.on_prompt
        async def echo(turn: Turn) -> None:
            await turn.send_text(turn.text)

        agent.run()

    Either `on_prompt` answers prompts, with a loop of your own, or `model` does, in the built-in loop with the tools.
    `models` offers several by name, the first being the default. Sessions live in memory unless a `store` is given, or
    a function that makes one when the first session needs it.
    `accepts` names the prompt blocks that are taken beside text and links. `mode` is what new sessions start in.
    `permission_timeout` is in seconds (None: a question waits for its user); `heartbeat` is how many seconds apart a
    running tool call gives a sign of life (None: never). `system_prompt` is a text, or a function
    of the session. `auth` says whether somebody must sign in first, and how. `unstable` names the parts of the protocol
    that may still change and are offered all the same: "fork" is `session/fork`.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        model: Model | None = None,
        models: Mapping[str, Model] | None = None,
        tools: Iterable[Tool] = (),
        toolsets: Iterable[Toolset] = (),
        rules: Sequence[PermissionRule] = (),
        mode: str = "ask",
        store: SessionStore | Callable[[], SessionStore] = MemoryStore,
        mcp_servers: Sequence[McpServer] = (),
        system_prompt: str | Callable[..., str] | None = None,
        accepts: Iterable[PromptBlock] = ("image", "resource"),
        max_steps: int = 100,
        permission_timeout: float | None = None,
        heartbeat: float | None = None,
        auth: AuthProvider | None = None,
        unstable: Iterable[UnstablePart] = (),
    ) -> None:
        named = dict(models or {})
        if model is not None:
            named = {model.name: model} | named
        self._store: SessionStore | None = store if isinstance(store, SessionStore) else None
        self._make_store = store if callable(store) else MemoryStore
        self.definition = AgentDefinition(
            name=name,
            version=version,
            title=title,
            handler=run_model,
            tools=list(tools),
            toolsets=list(toolsets),
            models=named,
            commands=built_in_commands() if named else {},
            policy=PermissionPolicy(rules),
            mode=mode,
            accepts=frozenset(accepts),
            mcp_servers=list(mcp_servers),
            system_prompt=(lambda _: system_prompt) if isinstance(system_prompt, str) else system_prompt,
            max_steps=max_steps,
            permission_timeout=permission_timeout,
            heartbeat=heartbeat,
            auth=auth,
            unstable=frozenset(unstable),
            can_mcp=find_spec("mcp") is not None,
        )

    @property
    def name(self) -> str:
        return self.definition.name

    # building -------------------------------------------------------------------------------------------------------

    def on_prompt(self, handler: PromptHandler) -> PromptHandler:
        """Answer prompts with `handler(turn)`. What it returns is the stop reason; None is `end_turn`."""
        self.definition.handler = handler
        return handler

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        kind: ToolKind = "other",
        permission: PermissionDefault = "ask",
        read_only: bool = False,
        title: str | Callable[..., str] | None = None,
        key: Callable[..., str] | None = None,
        preview: Callable[..., Any] | None = None,
    ) -> Callable[[F], F]: ...

    def tool(self, function: Callable[..., Any] | None = None, **options: Any) -> Any:
        """Make a tool of a function: its signature is the schema, its docstring the description.

        `preview` takes the same arguments and returns what the user is to judge (a text, a `Diff`, blocks). `title` and
        `key` (what "always" is remembered under) may be functions of the arguments too.
        """

        def add(function: F) -> F:
            from acp_agent.tools.function import FunctionTool

            self.add_tool(FunctionTool(function, **options))
            return function

        return add if function is None else add(function)

    def add_tool(self, tool: Tool) -> None:
        """Add a tool. A name can be used once."""
        if any(known.name == tool.name for known in self.definition.tools):
            raise ValueError(f"There is a tool named {tool.name!r} already.")
        self.definition.tools.append(tool)

    def command(
        self, name: str, *, description: str | None = None, hint: str | None = None
    ) -> Callable[[CommandHandler], CommandHandler]:
        """Answer `/name ...` with `handler(turn, arguments)`; `hint` says what may follow the name.

        Sessions that are open tell their clients the whole list anew. `Session.set_commands` is for one session's own.
        """

        def add(handler: CommandHandler) -> CommandHandler:
            text = description or (inspect.getdoc(handler) or name).split("\n\n")[0]
            self.definition.commands[name] = SessionCommand(Command(name, text, hint), handler)
            self._refresh_commands()
            return handler

        return add

    def remove_command(self, name: str) -> None:
        """Take a command away, a built-in one too. Raises `KeyError` if there is none of this name."""
        del self.definition.commands[name]
        self._refresh_commands()

    def _refresh_commands(self) -> None:
        for session in list(self.definition.sessions):
            session.refresh_commands()

    # running --------------------------------------------------------------------------------------------------------

    def make_server(self, **options: Any) -> AgentServer:
        """A server for one connection; see `AgentServer` for the options."""
        return AgentServer(self.definition, self.open_store, **options)

    def open_store(self) -> SessionStore:
        """The store of all connections, made when the first session needs it."""
        if self._store is None:
            self._store = self._make_store()
        return self._store

    async def serve(self, stream: Wire | ByteStream) -> None:
        """Serve one client over any anyio `ByteStream`, until it is gone."""
        from anyio.abc import ByteStream

        from acp_agent.transports.streams import StreamWire

        if isinstance(stream, ByteStream):
            async with StreamWire(stream) as wire:
                await self.make_server().serve(wire)
        else:
            await self.make_server().serve(stream)

    def run(self, *, backend: Literal["asyncio", "trio"] = "asyncio", drain: float | None = None) -> None:
        """Serve the editor that started this program, on stdin and stdout, until it is gone.

        `drain` is how many seconds owed answers, of tools too, may take after stdin has closed.
        """
        from acp_agent.program import run_on_stdio

        run_on_stdio(self, backend=backend, drain=drain)

    async def aclose(self) -> None:
        """Let go of models and store, when the last connection is over."""
        for model in self.definition.models.values():
            await model.aclose()
        if self._store is not None:
            await self._store.aclose()

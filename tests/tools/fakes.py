"""An editor and a call for tools to run against, with no runtime behind them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from acp_agent.content import ContentItem, Diff, ImageContent, Location, PlanEntry, TextContent, ToolContent
from acp_agent.errors import EditorRefused, ToolError
from acp_agent.runtime.workspace import DiskWorkspace
from acp_agent.tools.base import FormAnswer, Proposal, TerminalOutput, Tool, ToolOutput, Workspace


class FakeTerminal:
    """A terminal whose command ends as it is told; `calls` is what was asked of it."""

    def __init__(self, ending: TerminalOutput | None) -> None:
        self.terminal_id = "term-1"
        self.ending = ending
        self.calls: list[str] = []

    async def output(self) -> TerminalOutput:
        self.calls.append("output")
        return self.ending or TerminalOutput(text="so far\n")

    async def wait(self) -> TerminalOutput:
        import anyio

        self.calls.append("wait")
        if self.ending is None:
            await anyio.sleep_forever()
        assert self.ending is not None
        return self.ending

    async def kill(self) -> None:
        self.calls.append("kill")

    async def release(self) -> None:
        self.calls.append("release")


class FakeEditor:
    """An editor that can nothing, unless it is given a terminal or an answer to its forms."""

    def __init__(self) -> None:
        self.terminal: FakeTerminal | None = None
        self.refusal: ToolError | None = None
        self.answer: FormAnswer | None = None
        self.created: list[dict[str, Any]] = []
        self.forms: list[tuple[str, Mapping[str, Any]]] = []

    @property
    def can_run_terminals(self) -> bool:
        return self.terminal is not None or self.refusal is not None

    @property
    def can_show_forms(self) -> bool:
        return self.answer is not None

    async def create_terminal(
        self, command: str, args: Sequence[str], *, cwd: str, env: Mapping[str, str], output_byte_limit: int
    ) -> FakeTerminal:
        self.created.append({"command": command, "args": list(args), "cwd": cwd, "env": dict(env)})
        if self.refusal is not None:
            raise self.refusal
        if self.terminal is None:
            raise EditorRefused("no terminal")
        return self.terminal

    async def ask_form(self, message: str, schema: Mapping[str, Any]) -> FormAnswer:
        self.forms.append((message, schema))
        assert self.answer is not None
        return self.answer


class FakeCall:
    """A `ToolContext` that writes down what it is told."""

    def __init__(self, workspace: Workspace) -> None:
        self.session_id = "session"
        self.tool_call_id = "call"
        self.workspace = workspace
        self.cwd = workspace.cwd
        self.roots = workspace.roots
        self.editor = FakeEditor()
        self.cancelled = False
        self.reports: list[list[ToolContent] | str] = []
        self.plans: list[list[PlanEntry]] = []
        self.modes: list[str] = []
        self.said: list[str] = []
        self.finishers: list[Callable[[], Awaitable[None]]] = []
        self.on_report: Callable[[], None] = lambda: None

    def report(self, content: Sequence[ToolContent] | str, *, locations: Sequence[Location] | None = None) -> None:
        self.reports.append(content if isinstance(content, str) else list(content))
        self.on_report()

    async def call_tool(self, tool: str | Tool, arguments: dict[str, Any] | None = None) -> ToolOutput:
        raise NotImplementedError

    async def send_text(self, text: str) -> None:
        self.said.append(text)

    def send_plan(self, entries: Sequence[PlanEntry]) -> None:
        self.plans.append(list(entries))

    async def set_mode(self, mode_id: str) -> None:
        if mode_id not in ("ask", "accept_edits", "plan", "auto"):
            raise ToolError(f"There is no mode {mode_id!r}.")
        self.modes.append(mode_id)

    def on_finished(self, callback: Callable[[], Awaitable[None]]) -> None:
        self.finishers.append(callback)

    async def call(self, tool: Tool, **arguments: Any) -> ToolOutput:
        """The three steps in a row, as for a call that needs no question."""
        proposal = await self.propose(tool, **arguments)
        return await tool.run(proposal, self)

    async def propose(self, tool: Tool, **arguments: Any) -> Proposal:
        proposal = tool.describe(arguments, self)
        await tool.prepare(proposal, self)
        return proposal


def call_in(folder: Path) -> FakeCall:
    return FakeCall(DiskWorkspace(str(folder)))


def told(output: ToolOutput) -> str:
    """What a model reads, as text."""
    blocks = output.told
    if blocks is None:
        blocks = [item.content for item in output.content if isinstance(item, ContentItem)]
    return "\n".join(block.text for block in blocks if isinstance(block, TextContent))


def shown(output: ToolOutput | Proposal) -> str:
    """What a person sees, as text."""
    parts = []
    for item in output.content:
        if isinstance(item, ContentItem) and isinstance(item.content, TextContent):
            parts.append(item.content.text)
        elif isinstance(item, ContentItem) and isinstance(item.content, ImageContent):
            parts.append("[image]")
        elif isinstance(item, Diff):
            parts.append(f"[diff of {item.path}]")
    return "\n".join(parts)

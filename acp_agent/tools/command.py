"""run_command: a shell command, in the editor's terminal where it has one, else as a local process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import anyio
from msgspec import Meta, Struct

from acp_agent.content import ContentItem, TerminalItem, TextContent, ToolContent
from acp_agent.errors import EditorRefused, ToolError
from acp_agent.tools.arguments import ArgumentTool, decode_arguments
from acp_agent.tools.base import Proposal, Terminal, TerminalOutput, ToolContext, ToolOutput
from acp_agent.tools.paths import Target, judge_path
from acp_agent.tools.process import QUIET_ENVIRONMENT, CommandResult, OutputBuffer, run_process
from acp_agent.tools.text import DISPLAY_LIMIT, MODEL_LIMIT, code_span, cut_text, fenced, plain_output, visible

__all__ = ["RunCommand", "TerminalChoice"]

TerminalChoice: TypeAlias = Literal["auto", "client", "local"]

TAIL_CHARACTERS = 4096  # shown while it runs
TIMEOUT_SECONDS = 120.0
KILL_SECONDS = 0.5  # for an editor's answer when the turn is cancelled; the release ends it, too
EDITOR_ENVIRONMENT = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


class CommandArguments(Struct, forbid_unknown_fields=True):
    command: Annotated[str, Meta(description="A command line for /bin/sh.", min_length=1)]
    cwd: Annotated[str, Meta(description="The folder to run it in; the working directory if not given.")] | None = None
    timeout: Annotated[float, Meta(description="Seconds until it is ended.", gt=0, le=3600)] | None = None


class Ending(Struct):
    """How a command ended, wherever it ran."""

    exit_code: int | None = None
    signal: str | None = None
    timed_out: float | None = None  # seconds

    @property
    def failed(self) -> bool:
        return self.timed_out is not None or self.signal is not None

    def __str__(self) -> str:
        if self.timed_out is not None:
            return f"timed out after {self.timed_out:g} s and was ended"
        if self.exit_code is not None:
            return f"exit code {self.exit_code}"
        return f"ended by {self.signal}" if self.signal else "ended, its exit code is unknown"

    def raw_output(self, *, truncated: bool) -> dict[str, Any]:
        timed_out = self.timed_out is not None
        return {"exitCode": self.exit_code, "signal": self.signal, "timedOut": timed_out, "truncated": truncated}


class RunCommand(ArgumentTool):
    """A command line, run by `shell`.

    `timeout` is in seconds, for calls that name none; `display_limit` and `model_limit` are in bytes. `env` is added
    to the environment; a None in it removes a variable.
    """

    name = "run_command"
    description = (
        "Run a shell command and read what it prints. It has no terminal and no input, and what it leaves in the "
        "background is ended with it. Prefer the file tools for reading, searching and editing."
    )
    kind = "execute"
    arguments = CommandArguments

    def __init__(
        self,
        *,
        terminal: TerminalChoice = "auto",
        shell: str = "/bin/sh",
        timeout: float = TIMEOUT_SECONDS,
        display_limit: int = DISPLAY_LIMIT,
        model_limit: int = MODEL_LIMIT,
        env: Mapping[str, str | None] | None = None,
    ) -> None:
        self.terminal = terminal
        self.shell = shell
        self.timeout = timeout
        self.display_limit = display_limit
        self.model_limit = model_limit
        self.env = dict(env or {})

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        wanted = decode_arguments(CommandArguments, arguments)
        if not wanted.command.strip() or "\0" in wanted.command:
            raise ToolError("The command is empty or holds a null character.")
        target = judge_path(context, wanted.cwd or context.cwd)
        command = code_span(visible(wanted.command))
        here = target.real == os.path.realpath(context.cwd)
        place = "" if here else f" in {target.label}"
        return Proposal(
            title=f"Run {command}{place}",
            kind=self.kind,
            arguments=arguments,
            key=wanted.command if here else f"{wanted.command}\n(in {target.shown})",
            scope=f"{command}{place}",
            content=[
                ContentItem(TextContent(fenced(wanted.command, "sh"))),
                *(target.warning() if target.outside else []),
            ],
            outside=target.outside,
            state=target,
        )

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        wanted = decode_arguments(CommandArguments, proposal.arguments)
        target: Target = proposal.state
        if not await anyio.Path(target.real).is_dir():
            raise ToolError(f"There is no folder {target.label} to run it in.")
        timeout = wanted.timeout or self.timeout
        terminal = await self._open_terminal(wanted.command, target.real, context)
        if terminal is None:
            return await self._run_here(wanted.command, target.real, timeout, context)
        context.on_finished(terminal.release)
        context.report([TerminalItem(terminal.terminal_id)])
        return await self._run_in_terminal(terminal, timeout)

    async def _open_terminal(self, command: str, cwd: str, context: ToolContext) -> Terminal | None:
        """The editor's terminal with the command running in it; None to run it here."""
        if self.terminal == "local":
            return None
        if not context.editor.can_run_terminals:
            if self.terminal == "client":
                raise ToolError("The editor runs no terminals, and this agent is set to use nothing else.")
            return None
        env = _changed(EDITOR_ENVIRONMENT, self.env)
        limit = max(self.display_limit, self.model_limit)
        try:
            return await context.editor.create_terminal(
                self.shell, ["-c", command], cwd=cwd, env=env, output_byte_limit=limit
            )
        except EditorRefused:
            if self.terminal == "client":
                raise
            return None

    async def _run_in_terminal(self, terminal: Terminal, timeout: float) -> ToolOutput:
        ending = Ending()
        try:
            with anyio.move_on_after(timeout) as deadline:
                last = await terminal.wait()
            if deadline.cancelled_caught:
                ending.timed_out = timeout
                await terminal.kill()
                last = await terminal.output()
        except BaseException:
            with anyio.move_on_after(KILL_SECONDS, shield=True):
                await terminal.kill()
            raise
        ending.exit_code, ending.signal = last.exit_code, last.signal
        return self._terminal_output(terminal, last, ending)

    def _terminal_output(self, terminal: Terminal, last: TerminalOutput, ending: Ending) -> ToolOutput:
        """The terminal shows what was printed, and an exit; what ended it otherwise is said beside it."""
        text = cut_text(plain_output(last.text), self.model_limit)
        if last.truncated:
            text = f"[… the beginning is left out …]\n{text}"
        return ToolOutput(
            content=[TerminalItem(terminal.terminal_id), *([_said(ending)] if ending.failed else [])],
            told=[TextContent(_with_ending(text, ending))],
            raw_output=ending.raw_output(truncated=last.truncated),
            failed=ending.failed,
        )

    async def _run_here(self, command: str, cwd: str, timeout: float, context: ToolContext) -> ToolOutput:
        def show(output: OutputBuffer) -> None:
            context.report(_shown(plain_output(output.last(TAIL_CHARACTERS))))

        result = await run_process(
            [self.shell, "-c", command],
            cwd=cwd,
            env=_changed(dict(os.environ) | QUIET_ENVIRONMENT, self.env),
            timeout=timeout,
            ends=max(self.display_limit, self.model_limit),
            on_output=show,
        )
        return self._local_output(result, timeout)

    def _local_output(self, result: CommandResult, timeout: float) -> ToolOutput:
        ending = Ending(result.exit_code, result.signal, timeout if result.timed_out else None)
        shown = plain_output(result.output.text(self.display_limit))
        told = plain_output(result.output.text(self.model_limit))
        return ToolOutput(
            content=[*_shown(shown), _said(ending)],
            told=[TextContent(_with_ending(told, ending))],
            raw_output=ending.raw_output(truncated=result.output.is_cut),
            failed=ending.failed,
        )


def _shown(text: str) -> list[ToolContent]:
    return [ContentItem(TextContent(fenced(text)))] if text.strip() else []


def _said(ending: Ending) -> ToolContent:
    return ContentItem(TextContent(f"[{ending}]"))


def _with_ending(text: str, ending: Ending) -> str:
    text = text or "[no output]\n"
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}[{ending}]"


def _changed(env: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    both = {**env, **changes}
    return {name: value for name, value in both.items() if value is not None}

"""What a tool asks of the editor, beside files: terminals and forms. The rule it owns: no answer can hang a turn.

Editors answer `{}`, an error, late, or never. Each request has a deadline, except waiting for a command's exit, which
lasts as long as the command: beside it the output is asked for now and then, and an exit seen there ends the wait.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import anyio

from acp_agent.content import clean_json, clean_text
from acp_agent.errors import ConnectionClosed, DecodeError, EditorRefused, RequestError, ToolError
from acp_agent.runtime.client import ClientPort
from acp_agent.runtime.workspace import EDITOR_SECONDS, editor_words
from acp_agent.tools.base import FormAnswer, Terminal, TerminalOutput

__all__ = ["ClientEditor", "ClientTerminal"]

T = TypeVar("T")

RELEASE_SECONDS = 1.0  # it is on its way; whether it is answered matters to nobody
POLL_SECONDS = 5.0  # beside a wait that is still open
QUICK_POLL_SECONDS = 0.5  # when the editor does not know how to wait
MAX_MISSES = 3  # outputs in a row that were not answered


class ClientEditor:
    """The editor, as the tools of one call see it. Requests end after `seconds`; a form waits for its user."""

    def __init__(
        self, client: ClientPort, session_id: str, tool_call_id: str | None = None, *, seconds: float = EDITOR_SECONDS
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._tool_call_id = tool_call_id
        self._seconds = seconds

    @property
    def can_run_terminals(self) -> bool:
        return self._client.abilities.terminal

    @property
    def can_show_forms(self) -> bool:
        return self._client.abilities.form

    async def create_terminal(
        self, command: str, args: Sequence[str], *, cwd: str, env: Mapping[str, str], output_byte_limit: int
    ) -> Terminal:
        """A cancel waits a moment for the answer: what was opened is released, for nobody else knows its id."""
        creating = self._client.create_terminal(
            self._session_id, command, args, cwd=cwd, env=env, output_byte_limit=output_byte_limit
        )

        async def open_it() -> ClientTerminal:
            terminal_id = await within(self._seconds, creating)
            return ClientTerminal(self._client, self._session_id, terminal_id, seconds=self._seconds)

        try:
            terminal = await _finish_or_undo(open_it(), ClientTerminal.release, RELEASE_SECONDS)
        except RequestError as error:
            raise EditorRefused(f"The editor opened no terminal: {editor_words(error)}") from error
        if not terminal.terminal_id:
            raise EditorRefused("The editor opened no terminal.")
        return terminal

    async def ask_form(self, message: str, schema: Mapping[str, Any]) -> FormAnswer:
        try:
            answer = await self._client.ask_form(self._session_id, message, schema, tool_call_id=self._tool_call_id)
        except (RequestError, ConnectionClosed):
            return FormAnswer("cancel")
        except DecodeError as error:
            raise ToolError(f"The form is not of the protocol's kind: {error}") from error
        return FormAnswer(answer.action, clean_json(dict(answer.values)))


class ClientTerminal:
    """A terminal of the editor's. Released once, whatever happens; a second `release` does nothing."""

    def __init__(
        self,
        client: ClientPort,
        session_id: str,
        terminal_id: str,
        *,
        seconds: float = EDITOR_SECONDS,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self.terminal_id = terminal_id
        self._client = client
        self._session_id = session_id
        self._seconds = seconds
        self._poll_seconds = poll_seconds
        self._released = False

    async def output(self) -> TerminalOutput:
        try:
            last = await within(self._seconds, self._client.read_terminal(self._session_id, self.terminal_id))
        except RequestError as error:
            raise ToolError(f"The editor does not show its terminal: {editor_words(error)}") from error
        last.text = clean_text(last.text)
        return last

    async def wait(self) -> TerminalOutput:
        ending = TerminalOutput(text="")
        problem: ToolError | None = None
        async with anyio.create_task_group() as tasks:

            async def settle(source: Callable[[], Awaitable[TerminalOutput]]) -> None:
                nonlocal ending, problem
                try:
                    ending = await source()
                except ToolError as error:
                    problem = error
                tasks.cancel_scope.cancel()

            tasks.start_soon(settle, self._wait_for_exit)
            tasks.start_soon(settle, self._watch_output)
        if problem is not None:
            raise problem
        return await self._last_output(ending)

    async def kill(self) -> None:
        await self._do(self._seconds, self._client.kill_terminal(self._session_id, self.terminal_id))

    async def release(self) -> None:
        if not self._released:
            self._released = True
            await self._do(RELEASE_SECONDS, self._client.release_terminal(self._session_id, self.terminal_id))

    async def _do(self, seconds: float, request: Awaitable[None]) -> None:
        """As well as it goes: nothing can be done about a failure."""
        try:
            await within(seconds, request)
        except (RequestError, ConnectionClosed, ToolError):
            return

    async def _wait_for_exit(self) -> TerminalOutput:
        """What the editor says of the exit; where it does not know how to wait, its output is asked until it tells."""
        try:
            return await self._client.wait_for_terminal_exit(self._session_id, self.terminal_id)
        except RequestError:
            return await self._poll_for_exit(QUICK_POLL_SECONDS, MAX_MISSES)
        except ConnectionClosed as error:
            raise ToolError("The editor is gone, and its terminal with it.") from error

    async def _watch_output(self) -> TerminalOutput:
        return await self._poll_for_exit(self._poll_seconds, math.inf)

    async def _poll_for_exit(self, seconds: float, misses: float) -> TerminalOutput:
        missed = 0
        while True:
            await anyio.sleep(seconds)
            try:
                last = await self.output()
            except ToolError:
                missed += 1
                if missed >= misses:
                    raise
                continue
            missed = 0
            if last.exited:
                return last

    async def _last_output(self, exited: TerminalOutput) -> TerminalOutput:
        """The whole output with the exit status, from whichever answer has it."""
        try:
            last = await self.output()
        except ToolError:
            last = TerminalOutput(text=clean_text(exited.text), truncated=exited.truncated)
        last.exited = True
        if last.exit_code is None and last.signal is None:
            last.exit_code, last.signal = exited.exit_code, exited.signal
        if last.exit_code is not None and last.exit_code < 0:  # how some editors spell a signal
            last.signal = last.signal or f"signal {-last.exit_code}"
            last.exit_code = None
        return last


async def within(seconds: float, request: Awaitable[T]) -> T:
    """The answer of one request, or `ToolError` after `seconds`, or when the editor is gone."""
    try:
        with anyio.fail_after(seconds):
            return await request
    except TimeoutError as error:
        raise ToolError(f"The editor did not answer within {seconds:g} s.") from error
    except ConnectionClosed as error:
        raise ToolError("The editor is gone.") from error


async def _finish_or_undo(work: Awaitable[T], undo: Callable[[T], Awaitable[None]], seconds: float) -> T:
    """What `work` makes. A cancel gives it `seconds` more, and what it made by then is undone."""
    made: list[T] = []
    problem: RequestError | ToolError | None = None
    block = anyio.CancelScope(shield=True)

    async def finish() -> None:
        nonlocal problem
        with block:
            try:
                made.append(await work)
            except (RequestError, ToolError) as error:
                problem = error
        tasks.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(finish)
            try:
                await anyio.sleep_forever()
            finally:
                block.deadline = anyio.current_time() + seconds
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            for each in made:
                await undo(each)
        raise
    if problem is not None:
        raise problem
    return made[0]

"""An editor behind `ClientPort`, for the files and terminals of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import anyio

from acp_agent.events import Event
from acp_agent.runtime.client import ClientAbilities, PermissionAnswer, PermissionQuestion
from acp_agent.tools.base import FormAnswer, TerminalOutput

Answer = Callable[..., Any]


async def never() -> Any:
    await anyio.sleep_forever()


class ScriptedPort:
    """Answers each verb with what `answers` has under its name: a value, an exception to raise, or `never`."""

    def __init__(self, abilities: ClientAbilities, **answers: Any) -> None:
        self.abilities = abilities
        self.full = False
        self.answers = answers
        self.asked: list[tuple[Any, ...]] = []

    async def _answer(self, verb: str, *arguments: Any) -> Any:
        self.asked.append((verb, *arguments))
        answer = self.answers.get(verb)
        if answer is never:
            await never()
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, Exception):
            raise answer
        return answer(*arguments) if callable(answer) else answer

    def verbs(self) -> list[str]:
        return [asked[0] for asked in self.asked]

    def show(self, session_id: str, event: Event) -> None: ...

    def replay(self, session_id: str, event: Event) -> None: ...

    def show_chunk(self, session_id: str, role: Literal["agent", "thought"], message_id: str, text: str) -> None: ...

    async def wait_for_room(self) -> None: ...

    async def request_permission(self, session_id: str, question: PermissionQuestion) -> PermissionAnswer:
        raise NotImplementedError

    async def read_text_file(
        self, session_id: str, path: str, *, line: int | None = None, limit: int | None = None
    ) -> str:
        return str(await self._answer("read", path))

    async def write_text_file(self, session_id: str, path: str, content: str) -> None:
        await self._answer("write", path, content)

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        output_byte_limit: int,
    ) -> str:
        return str(await self._answer("create", command, list(args), cwd))

    async def read_terminal(self, session_id: str, terminal_id: str) -> TerminalOutput:
        output = await self._answer("output")
        assert isinstance(output, TerminalOutput)
        return output

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str) -> TerminalOutput:
        output = await self._answer("wait")
        assert isinstance(output, TerminalOutput)
        return output

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None:
        await self._answer("kill")

    async def release_terminal(self, session_id: str, terminal_id: str) -> None:
        await self._answer("release")

    async def ask_form(
        self, session_id: str, message: str, schema: Mapping[str, Any], *, tool_call_id: str | None = None
    ) -> FormAnswer:
        answer = await self._answer("form", message, tool_call_id)
        assert isinstance(answer, FormAnswer)
        return answer

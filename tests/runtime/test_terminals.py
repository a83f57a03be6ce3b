from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from acp_agent.errors import ConnectionClosed, DecodeError, EditorRefused, RequestError, ToolError
from acp_agent.runtime.client import ClientAbilities
from acp_agent.runtime.terminals import ClientEditor, ClientTerminal
from acp_agent.tools.base import FormAnswer, Terminal, TerminalOutput
from tests.requirements import requirement
from tests.runtime.client_port import ScriptedPort, never

pytestmark = pytest.mark.anyio

REFUSED = RequestError(-32601, "Method not found")
RUNNING = TerminalOutput(text="so far")


def ended(code: int | None = 0, text: str = "all") -> TerminalOutput:
    return TerminalOutput(text=text, exited=True, exit_code=code)


def terminal(**answers: Any) -> tuple[ScriptedPort, ClientTerminal]:
    port = ScriptedPort(ClientAbilities(terminal=True), **answers)
    return port, ClientTerminal(port, "session", "t1", seconds=0.05, poll_seconds=0.02)


class SlowPort(ScriptedPort):
    """Opens terminals as `opening` does."""

    def __init__(self, opening: Callable[..., Awaitable[str]]) -> None:
        super().__init__(ClientAbilities(terminal=True))
        self.opening = opening

    async def create_terminal(self, session_id: str, command: str, *arguments: Any, **options: Any) -> str:
        self.asked.append(("create", command))
        return await self.opening()


async def open_shell(editor: ClientEditor) -> Terminal:
    return await editor.create_terminal("/bin/sh", ["-c", "echo 'a b'"], cwd="/w", env={"A": "1"}, output_byte_limit=10)


async def test_what_the_editor_can_is_what_it_said() -> None:
    editor = ClientEditor(ScriptedPort(ClientAbilities(terminal=True)), "session")
    assert (editor.can_run_terminals, editor.can_show_forms) == (True, False)


async def test_a_terminal_is_opened_with_one_executable_and_its_arguments() -> None:
    port = ScriptedPort(ClientAbilities(terminal=True), create="t1")
    opened = await open_shell(ClientEditor(port, "session"))
    assert opened.terminal_id == "t1"
    assert port.asked == [("create", "/bin/sh", ["-c", "echo 'a b'"], "/w")]


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (RequestError(-32603, "Internal error", {"details": "no shell"}), EditorRefused, r"\(-32603\): no shell"),
        ("", EditorRefused, "opened no terminal"),
        (never, ToolError, r"did not answer within 0\.05 s"),
        (ConnectionClosed(), ToolError, "The editor is gone"),
    ],
)
async def test_a_terminal_that_is_not_opened_says_why(answer: Any, error: type[Exception], text: str) -> None:
    editor = ClientEditor(ScriptedPort(ClientAbilities(terminal=True), create=answer), "session", seconds=0.05)
    with pytest.raises(error, match=text) as caught:
        await editor.create_terminal("/bin/sh", [], cwd="/", env={}, output_byte_limit=10)
    assert type(caught.value) is error


@pytest.mark.parametrize("answers", [True, False])
async def test_a_terminal_that_opens_when_nobody_wants_it_any_more_is_released(
    answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_agent.runtime.terminals.RELEASE_SECONDS", 5 if answers else 0.01)
    asked, answer = anyio.Event(), anyio.Event()

    async def open_later(*arguments: Any) -> str:
        asked.set()
        await answer.wait()
        return "t1"

    port = SlowPort(open_later)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: open_shell(ClientEditor(port, "session")))
            await asked.wait()
            tasks.cancel_scope.cancel()
            if answers:
                answer.set()
    assert port.verbs() == (["create", "release"] if answers else ["create"])


async def test_the_exit_comes_with_the_whole_output() -> None:
    port, shell = terminal(wait=ended(3, ""), output=TerminalOutput(text="all \ud800", truncated=True))
    last = await shell.wait()
    assert last == TerminalOutput(text="all \ufffd", truncated=True, exited=True, exit_code=3)
    assert port.verbs() == ["wait", "output"]


async def test_an_editor_that_never_tells_of_the_exit_is_watched() -> None:
    _, shell = terminal(wait=never, output=[RUNNING, RUNNING, ended(1)])
    with anyio.fail_after(5):
        assert (await shell.wait()).exit_code == 1


async def test_an_editor_that_cannot_wait_is_asked_for_its_output() -> None:
    _, shell = terminal(wait=REFUSED, output=[RUNNING, ended(0)])
    with anyio.fail_after(5):
        assert await shell.wait() == ended(0)


async def test_an_output_that_is_not_answered_now_and_then_is_asked_for_again() -> None:
    hiccup = RequestError(-32603, "busy")
    port, shell = terminal(wait=never, output=[hiccup, hiccup, RUNNING, hiccup, hiccup, ended(1)])
    with anyio.fail_after(5):
        assert (await shell.wait()).exit_code == 1
    assert port.verbs().count("output") >= 6


async def test_an_editor_that_can_neither_wait_nor_tell_its_output_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acp_agent.runtime.terminals.QUICK_POLL_SECONDS", 0.01)
    port, shell = terminal(wait=REFUSED, output=REFUSED)
    with anyio.fail_after(5), pytest.raises(ToolError):
        await shell.wait()
    assert 3 <= port.verbs().count("output") < 10


async def test_an_empty_answer_is_an_exit_of_unknown_code() -> None:
    _, shell = terminal(wait=TerminalOutput(text="", exited=True), output=RequestError(-32603, "gone"))
    assert await shell.wait() == TerminalOutput(text="", exited=True)


async def test_a_negative_exit_code_is_a_signal() -> None:
    _, shell = terminal(wait=ended(-9), output=ended(-9))
    last = await shell.wait()
    assert (last.exit_code, last.signal) == (None, "signal 9")


async def test_an_editor_that_is_gone_ends_the_wait() -> None:
    _, shell = terminal(wait=ConnectionClosed(), output=ConnectionClosed())
    with anyio.fail_after(5), pytest.raises(ToolError, match="The editor is gone"):
        await shell.wait()


@pytest.mark.parametrize("answer", [None, REFUSED, ConnectionClosed(), never])
async def test_a_terminal_is_released_once_whatever_the_editor_says(answer: Any) -> None:
    port, shell = terminal(release=answer, kill=answer)
    with anyio.fail_after(5):
        await shell.kill()
        await shell.release()
        await shell.release()
    assert port.verbs() == ["kill", "release"]


@requirement("elicitation-endings")
@pytest.mark.parametrize(
    ("answer", "action"),
    [
        (FormAnswer("accept", {"a": "x\ud800"}), "accept"),
        (RequestError.invalid_params("no"), "cancel"),
        (ConnectionClosed(), "cancel"),
    ],
)
async def test_a_form_that_fails_is_a_cancel(answer: Any, action: str) -> None:
    port = ScriptedPort(ClientAbilities(form=True), form=answer)
    given = await ClientEditor(port, "session", "call-1").ask_form("Why?", {"type": "object"})
    assert given.action == action
    assert port.asked == [("form", "Why?", "call-1")]
    if action == "accept":
        assert given.values == {"a": "x\ufffd"}


async def test_a_form_that_the_protocol_has_no_words_for_is_the_tools_failure() -> None:
    port = ScriptedPort(ClientAbilities(form=True), form=DecodeError("has no `items`", "$.properties.days"))
    with pytest.raises(ToolError, match=r"\$\.properties\.days"):
        await ClientEditor(port, "session", "call-1").ask_form("Which days?", {"type": "object"})

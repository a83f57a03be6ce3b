"""An agent as a program, in this process: its stdin and stdout are two pipes, its client is a thread."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import anyio
import pytest

from acp_agent.agent import Agent
from acp_agent.runtime.turn import Turn
from acp_agent.transports.descriptors import DescriptorWire
from tests.runtime.support import handler_agent

Backend: TypeAlias = Literal["asyncio", "trio"]

SECONDS = 10


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> Backend:
    name: Backend = request.param
    return name


class Client:
    """Writes to the agent's stdin, and reads its stdout."""

    def __init__(self, to_agent: int, from_agent: int) -> None:
        self._input = os.fdopen(to_agent, "wb", buffering=0)
        self._output = os.fdopen(from_agent, "rb")
        self._last_id = 0

    def start(self, method: str, **params: Any) -> int:
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self._input.write(json.dumps(message).encode() + b"\n")
        return self._last_id

    def answer_to(self, request_id: int) -> Any:
        for line in self._output:
            message = json.loads(line)
            if message.get("id") == request_id:
                return message["result"]
        raise AssertionError("The agent ended without an answer.")

    def ask(self, method: str, **params: Any) -> Any:
        return self.answer_to(self.start(method, **params))

    def prompt(self) -> int:
        """Start a prompt in a new session."""
        self.ask("initialize", protocolVersion=1)
        session_id = self.ask("session/new", cwd="/", mcpServers=[])["sessionId"]
        return self.start("session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": "go"}])

    def leave(self) -> None:
        self._input.close()

    def is_at_end(self) -> bool:
        return self._output.read() == b""

    def close(self) -> None:
        self._input.close()
        self._output.close()


class Program:
    """Runs an agent until it ends by itself, beside what its client does; `exits` are the codes it left with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.exits: list[int | str] = []
        self.on_exit: Callable[[], None] = lambda: None
        agent_input, to_agent = os.pipe()
        from_agent, agent_output = os.pipe()
        self.client = Client(to_agent, from_agent)
        monkeypatch.setattr("acp_agent.program.claim_stdio", lambda: None)
        monkeypatch.setattr("acp_agent.program.stdio_stream", lambda: DescriptorWire(agent_input, agent_output))
        monkeypatch.setattr(os, "_exit", self._exit)
        monkeypatch.setattr(logging, "shutdown", lambda: self.exits.append("flushed"))

    def _exit(self, code: int) -> None:
        self.exits.append(code)
        self.on_exit()

    def run(self, agent: Agent, act: Callable[[Client], Any], **options: Any) -> Any:
        """What `act` returned, when the agent has ended."""
        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.append(act(self.client)), daemon=True)
        thread.start()
        agent.run(**options)
        thread.join(SECONDS)
        assert results, "The client is not through."
        return results[0]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    running = Program(monkeypatch)
    yield running
    running.client.close()


class Stubborn:
    """A turn that says when it runs and when it is cancelled, and then waits, or not."""

    def __init__(self, *, ignores_cancel: bool = False) -> None:
        self.started, self.cancelled, self.let_go = threading.Event(), threading.Event(), threading.Event()
        self.ignores_cancel = ignores_cancel

    async def work(self, turn: Turn) -> None:
        self.started.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()
            if self.ignores_cancel:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self.let_go.wait, SECONDS)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_it_serves_until_its_input_ends_and_then_lets_go_of_the_agent(
    program: Program, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Agent] = []

    async def work(turn: Turn) -> None:
        await turn.send_text("Hello.")

    async def aclose(self: Agent) -> None:
        closed.append(self)

    monkeypatch.setattr(Agent, "aclose", aclose)
    agent = handler_agent(work)

    def act(client: Client) -> Any:
        answer = client.answer_to(client.prompt())
        client.leave()
        return answer, client.is_at_end()

    assert program.run(agent, act, backend=backend) == ({"stopReason": "end_turn"}, True)
    assert closed == [agent]


def test_what_is_owed_when_the_input_ends_gets_the_time_that_was_given(program: Program, backend: Backend) -> None:
    async def work(turn: Turn) -> None:
        await turn.call_tool("slow")

    agent = handler_agent(work)

    @agent.tool(permission="allow")
    async def slow() -> str:
        """Take longer than the input."""
        await anyio.to_thread.run_sync(left.wait, SECONDS)
        return "done"

    left = threading.Event()

    def act(client: Client) -> Any:
        prompt = client.prompt()
        client.leave()
        left.set()
        return client.answer_to(prompt)

    assert program.run(agent, act, backend=backend, drain=float(SECONDS)) == {"stopReason": "end_turn"}


def test_a_signal_ends_it_at_once_whatever_time_there_would_be(program: Program, backend: Backend) -> None:
    turn = Stubborn()

    def act(client: Client) -> Any:
        prompt = client.prompt()
        assert turn.started.wait(SECONDS)
        interrupt()
        return client.answer_to(prompt)

    agent = handler_agent(turn.work)
    assert program.run(agent, act, backend=backend, drain=600.0) == {"stopReason": "cancelled"}


def test_a_second_signal_does_not_wait_for_anything(program: Program, backend: Backend) -> None:
    turn = Stubborn(ignores_cancel=True)
    program.on_exit = turn.let_go.set  # the real one would not return

    def act(client: Client) -> Any:
        client.prompt()
        assert turn.started.wait(SECONDS)
        interrupt()
        assert turn.cancelled.wait(SECONDS)
        interrupt()
        return turn.let_go.wait(SECONDS)

    assert program.run(handler_agent(turn.work), act, backend=backend)
    assert program.exits[0] == 128 + signal.SIGTERM


def test_a_thread_that_is_stuck_does_not_hold_it(program: Program, backend: Backend) -> None:
    let_go = threading.Event()
    stuck = threading.Thread(target=let_go.wait, args=[SECONDS], daemon=False)

    async def work(turn: Turn) -> None:
        stuck.start()

    def act(client: Client) -> Any:
        client.answer_to(client.prompt())
        client.leave()
        return True

    assert program.run(handler_agent(work), act, backend=backend)
    let_go.set()
    stuck.join()
    assert program.exits == ["flushed", 0]

"""`acp-agent demo`: a client starts the agent in a scratch workspace, says a scenario's prompts, and shows the turns.

Ctrl-C cancels the turn, as the stop button of an editor does; a second one leaves.
"""

from __future__ import annotations

import math
import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, TextIO, TypeAlias

import anyio
import msgspec

from acp_agent.cli.plain import Lines, PlainStage
from acp_agent.cli.scratch import Scratch, scratch_workspace
from acp_agent.cli.stage import Choice, Director, Stage, Summary
from acp_agent.cli.summary import Outcome, summarise
from acp_agent.cli.terminal import can_ask, has_colours, standard_output
from acp_agent.errors import AcpAgentError, ConnectionClosed
from acp_agent.models.scenario import Scenario
from acp_agent.protocol.v1.tool_calls import RequestPermissionRequest
from acp_agent.testing.client import TestClient
from acp_agent.testing.connected import ConnectedClient
from acp_agent.testing.transcript import Frame, update_of
from acp_agent.version import VERSION

__all__ = ["demo"]

Habit: TypeAlias = Literal["ask", "yes", "no"]

STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
CLIENT_INFO = {"name": "acp-agent-demo", "title": "acp-agent demo", "version": VERSION}
GO = "Go ahead."  # to a scenario that takes any prompt


class DemoStage(Stage, AbstractContextManager["DemoStage"], Protocol):
    """A stage that can be asked, and that has an end."""

    async def animate(self) -> None:
        """Keep moving what moves, until it is cancelled."""

    async def choose(self, choices: Sequence[Choice]) -> Choice | None:
        """The answer of who watches to the question on show; None when nobody is there any more."""

    def finish(self, summary: Summary) -> None: ...


def demo(arguments: Namespace) -> None:
    """Play, and exit: with 0 when the turn ended, 1 when it failed. What the user got wrong is an `AcpAgentError`."""
    habit: Habit = "yes" if arguments.yes else "no" if arguments.no else "ask"
    scenario = Scenario.load(arguments.file) if arguments.file else Scenario.builtin()
    prompts = prompts_of(scenario, arguments)
    if habit == "ask" and not can_ask():
        raise AcpAgentError("There is no terminal to ask at: say --yes to allow everything, --no to reject everything.")
    with standard_output() as out, scratch_workspace() as scratch, open_stage(out) as stage:
        stage.note(f"{scenario.name}: the model is a script; all that it does is real, in {scratch.project}")
        code = anyio.run(Demo(stage, scratch, habit).play, command_of(arguments.file, scratch), prompts)
    sys.exit(code)


def prompts_of(scenario: Scenario, arguments: Namespace) -> list[str]:
    """What is said in the user's place."""
    if arguments.prompt is not None:
        return [arguments.prompt]
    if scenario.prompts:
        return scenario.prompts
    if all(turn.when for turn in scenario.turns):
        raise AcpAgentError(f"{arguments.file} has no `prompts`: say with --prompt TEXT what starts it.")
    return [GO]


def command_of(file: Path | None, scratch: Scratch) -> list[str]:
    """The agent with the scenario as its model, and sessions that go with the workspace."""
    serve = [sys.executable, "-m", "acp_agent", "serve", "--drain", "0", "--state-dir", str(scratch.root / "state")]
    return [*serve, "--scenario", str(file.resolve())] if file else serve


def environment(scratch: Scratch) -> dict[str, str]:
    """Ours without the agent's settings, which would choose a model or answer for the user.

    `python3` in a scenario is the Python that runs this.
    """
    ours = {name: value for name, value in os.environ.items() if not name.startswith("ACP_AGENT_")}
    return ours | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), ours.get("PATH", os.defpath)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CONFIG_HOME": str(scratch.root / "settings"),
    }


def open_stage(out: TextIO) -> DemoStage:
    """Colours and moving rows on a terminal when rich is installed, else plain lines."""
    if has_colours():
        try:
            from acp_agent.cli.live import LiveStage

            return LiveStage()
        except ImportError:
            pass
    return PlainStage(Lines(out))


class Demo:
    """One demo: a client and its user."""

    def __init__(self, stage: DemoStage, scratch: Scratch, habit: Habit) -> None:
        self._stage = stage
        self._scratch = scratch
        self._habit = habit
        self._director = Director(stage, str(scratch.project))
        self._outcome = Outcome()
        self._tell, self._told = anyio.create_memory_object_stream[Callable[[], None]](math.inf)
        self._client: ConnectedClient | None = None
        self._was_stopped = False
        self._signal: int | None = None

    async def play(self, command: list[str], prompts: list[str]) -> int:
        """The exit code."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_on_signals, tasks.cancel_scope)
            tasks.start_soon(self._stage.animate)
            tasks.start_soon(self._draw)
            await self._converse(command, prompts)
            tasks.cancel_scope.cancel()
        if self._signal is not None:
            return 128 + self._signal
        self._stage.finish(summarise(self._outcome, self._director.rows, self._scratch.changes()))
        return 1 if self._outcome.has_failed else 0

    async def _converse(self, command: list[str], prompts: list[str]) -> None:
        errors = self._scratch.root / "stderr"
        with errors.open("wb") as stderr:
            client = self._make_client(command, stderr.fileno())
            try:
                async with client.connect(initialize=False) as connected:
                    await connected.initialize(clientInfo=CLIENT_INFO)
                    await connected.new_session()
                    await self._say_all(connected, prompts)
            except ConnectionClosed:
                said = errors.read_text(errors="replace").strip()
                self._outcome.fail("\n".join(["The agent ended before the turn did.", *said.splitlines()[-5:]]))
            except AssertionError:  # how the test client says that the agent stays on without its client
                self._outcome.fail("The agent did not leave when its client had gone, and was ended.")

    def _make_client(self, command: list[str], stderr: int) -> TestClient:
        """It waits for as long as it takes, and keeps no frames."""
        project = str(self._scratch.project)
        return TestClient(
            command,
            permission=self._answer,
            cwd=project,
            timeout=math.inf,
            env=environment(self._scratch),
            stderr=stderr,
            record=False,
        )

    async def _say_all(self, client: ConnectedClient, prompts: list[str]) -> None:
        client.transcript.observers.append(self._note_update)
        self._client = client
        began = anyio.current_time()
        for prompt in prompts:
            self._director.prompt(prompt)
            self._outcome.add(await client.prompt(prompt))
            await self._catch_up()
            if self._was_stopped or self._outcome.has_failed:
                break
        self._outcome.seconds = anyio.current_time() - began
        self._client = None

    # drawing is not the reader's work: what fails in it would be lost there

    def _note_update(self, frame: Frame) -> None:
        if frame.direction == "from_agent" and frame.method == "session/update":
            self._tell.send_nowait(partial(self._director.take, update_of(frame)))

    async def _draw(self) -> None:
        with self._tell, self._told:
            async for draw in self._told:
                draw()

    async def _catch_up(self) -> None:
        """Wait until all that was told so far is drawn."""
        drawn = anyio.Event()
        self._tell.send_nowait(drawn.set)
        await drawn.wait()

    # the user -------------------------------------------------------------------------------------------------------

    async def _answer(self, request: RequestPermissionRequest) -> str | None:
        """The user's answer, shown with its question. A turn that is cancelled meanwhile dismisses it."""
        await self._catch_up()
        choices = [Choice(option.option_id, option.name, option.kind) for option in request.options]
        call = self._director.ask(msgspec.to_builtins(request.tool_call), choices)
        choice = None
        try:
            choice = await self._stage.choose(choices) if self._habit == "ask" else choose_by(self._habit, choices)
        finally:
            self._director.answer(call, choice, by="" if self._habit == "ask" else f"--{self._habit}")
            self._outcome.answers.append(choice.kind if choice else None)
        return choice.id if choice else None

    async def _stop_on_signals(self, scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(*STOPPING) as received:
            async for number in received:
                if number == signal.SIGINT and self._client is not None and not self._was_stopped:
                    self._was_stopped = True
                    self._client.cancel()
                    self._stage.note("Stopping the turn; once more leaves at once.")
                else:
                    self._signal = number
                    scope.cancel()


def choose_by(habit: Habit, choices: Sequence[Choice]) -> Choice | None:
    """The mildest answer of the kind: once, if that is offered."""
    kinds = ("allow_once", "allow_always") if habit == "yes" else ("reject_once", "reject_always")
    return next((choice for kind in kinds for choice in choices if choice.kind == kind), None)

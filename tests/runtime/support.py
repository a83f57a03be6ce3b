"""Agents to drive end to end: a model that plays what it is given, and tools that a test can hold and let go."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from acp_agent.agent import Agent
from acp_agent.history import AssistantMessage, HistoryMessage, ToolResult, make_whole
from acp_agent.models.base import Finish, Model, ModelEvent, ModelRequest, TextDelta, ToolUse
from acp_agent.runtime.turn import Turn
from acp_agent.testing import ConnectedClient

Step: TypeAlias = ModelEvent | Callable[[], Any]


DONE: Sequence[Step] = (TextDelta("Done."),)
"""A reply without tools, which ends the turn."""


class PlayedModel(Model):
    """Plays one reply after the other; then says "Done." for ever. A step may be a function that is awaited."""

    name = "played"

    def __init__(self, *replies: Sequence[Step]) -> None:
        self.replies = list(replies)
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        await checkpoint()
        for step in self.replies.pop(0) if self.replies else DONE:
            if callable(step):
                await step()
            else:
                yield step
                if isinstance(step, Finish):
                    return
        yield Finish()


class Gate:
    """A place where a tool or a model waits: `reached` says that it is there, `open` lets it go on."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self.opened = anyio.Event()
        self.was_cancelled = False

    async def wait(self) -> None:
        self.reached.set()
        try:
            await self.opened.wait()
        except anyio.get_cancelled_exc_class():
            self.was_cancelled = True
            raise

    def open(self) -> None:
        self.opened.set()


class Ran(list[str]):
    """What a tool really did."""


def make_agent(*replies: Sequence[Step], **options: Any) -> tuple[Agent, PlayedModel, Ran]:
    """An agent with the model and two tools: `run` asks before it runs, `look` only reads and does not ask."""
    model = PlayedModel(*replies)
    agent = Agent("tested", model=model, **options)
    ran = Ran()

    @agent.tool(kind="execute", key=lambda command: command)
    async def run(command: str) -> str:
        """Run a command."""
        ran.append(command)
        return f"ran {command}"

    @agent.tool(kind="read", permission="allow", read_only=True)
    async def look(name: str) -> str:
        """Look at something."""
        ran.append(name)
        return f"saw {name}"

    return agent, model, ran


def run(command: str) -> ToolUse:
    return ToolUse("run", {"command": command})


def look(name: str) -> ToolUse:
    return ToolUse("look", {"name": name})


def handler_agent(work: Callable[[Turn], Any], **options: Any) -> Agent:
    """An agent whose prompts are answered by `work`."""
    agent = Agent("tested", **options)
    agent.on_prompt(work)
    return agent


def told_results(history: Sequence[HistoryMessage]) -> list[str]:
    """What the model was told by tools, in order."""
    return [
        "".join(getattr(block, "text", "") for block in message.content)
        for message in history
        if isinstance(message, ToolResult)
    ]


def is_whole(history: list[HistoryMessage]) -> bool:
    """Whether each use has its one result, right behind it."""
    return make_whole(history) == history


def uses_of(history: Sequence[HistoryMessage]) -> list[str]:
    return [
        use.arguments["command"]
        for message in history
        if isinstance(message, AssistantMessage)
        for use in message.tool_uses
    ]


async def last_request(client: ConnectedClient, model: PlayedModel) -> list[HistoryMessage]:
    """The history as the model is shown it with one prompt more."""
    await client.prompt("and now?")
    return model.requests[-1].messages

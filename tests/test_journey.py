"""Read this first: one line of JSON goes through every stop of the program and comes back, and each form is shown.

    stdio -> framing -> peer -> connection -> surface -> session -> turn -> executor -> tool
    stdout <- connection <- peer <- surface <- event <------------------------ report / ask

The agent is a real one, served over a pipe in memory. At each stop a watcher notes what came by and lets it pass; the
three checks at the end tell the story: the way in, the work, the way back.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncGenerator, Callable
from functools import wraps
from typing import Any

import anyio
import pytest

from acp_agent import (
    Agent,
    Connection,
    Finish,
    LineDecoder,
    Model,
    ModelEvent,
    ModelRequest,
    Peer,
    Session,
    SessionManager,
    TextContent,
    TextDelta,
    ToolExecutor,
    ToolUse,
    Turn,
    UserMessage,
    memory_pair,
)
from acp_agent import events as happened
from acp_agent.history import ToolResult
from acp_agent.jsonrpc.peer import IncomingRequest
from acp_agent.protocol.v1 import content as words
from acp_agent.protocol.v1 import prompt_turn, tool_calls
from acp_agent.runtime.client import PermissionAnswer, PermissionQuestion
from acp_agent.runtime.tickets import Ticket
from acp_agent.surfaces.v1 import SurfaceV1
from acp_agent.surfaces.v1_port import EditorPort
from acp_agent.transports.memory import MemoryWire

# The agent: a model that wants a tool, and a tool that asks -----------------------------------------------------------


class Captain(Model):
    """Uses a tool, and tells what came of it."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        if isinstance(request.messages[-1], UserMessage):
            yield ToolUse("deploy", {"environment": "staging"}, id="call_0")
        else:
            yield TextDelta("Shipped.")
        yield Finish("end_turn")


def make_agent(deployed: list[str]) -> Agent:
    agent = Agent("ship", model=Captain())

    @agent.tool(kind="execute", permission="ask", title="Deploy")
    async def deploy(environment: str) -> str:
        """Deploy the current branch."""
        deployed.append(environment)
        return "3 services restarted"

    return agent


# The watchers ---------------------------------------------------------------------------------------------------------


class Journey:
    """What came by at each stop, in order: the arguments of the call, and what it returned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.stops: list[str] = []
        self._given: dict[str, list[tuple[Any, ...]]] = {}
        self._returned: dict[str, list[Any]] = {}

    def watch(self, stop: str, owner: type, name: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        def note(arguments: tuple[Any, ...]) -> None:
            self.stops.append(stop)
            self._given.setdefault(stop, []).append(arguments[1:])

        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            note(arguments)
            result = function(*arguments, **options)
            self._returned.setdefault(stop, []).append(result)
            return result

        @wraps(function)
        async def await_call(*arguments: Any, **options: Any) -> Any:
            note(arguments)
            result = await function(*arguments, **options)
            self._returned.setdefault(stop, []).append(result)
            return result

        self._monkeypatch.setattr(owner, name, await_call if inspect.iscoroutinefunction(function) else call)

    def forget(self) -> None:
        """What came by so far was not the line of which the story is."""
        self.stops.clear()
        self._given.clear()
        self._returned.clear()

    def given(self, stop: str) -> list[tuple[Any, ...]]:
        return self._given[stop]

    def returned(self, stop: str) -> list[Any]:
        return self._returned[stop]


class Editor:
    """The other end of the pipe, with nothing but bytes."""

    def __init__(self, wire: MemoryWire) -> None:
        self.wire = wire
        self.lines: list[bytes] = []
        self._tail = b""
        self._arrived = anyio.Event()

    def write(self, data: bytes) -> None:
        assert self.wire.write(memoryview(data)) == len(data)

    async def read(self) -> None:
        await self.wire.pump(self._receive)

    async def wait_for(self, piece: bytes) -> bytes:
        """The first line with `piece` in it."""
        while True:
            for line in self.lines:
                if piece in line:
                    return line
            await self._arrived.wait()

    def _receive(self, block: bytes) -> None:
        *lines, self._tail = (self._tail + block).split(b"\n")
        self.lines += lines
        arrived, self._arrived = self._arrived, anyio.Event()
        arrived.set()


# The journey ----------------------------------------------------------------------------------------------------------


ALLOWED = b'{"outcome":{"outcome":"selected","optionId":"allow_once"}}'


@pytest.mark.anyio
async def test_one_line_goes_through_every_stop_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    journey = Journey(monkeypatch)
    journey.watch("framing", LineDecoder, "feed")
    journey.watch("peer", Peer, "receive")
    journey.watch("connection", SurfaceV1, "begin_request")
    journey.watch("surface", SurfaceV1, "_begin_prompt")
    journey.watch("session", SessionManager, "prompt")
    journey.watch("turn", Turn, "run")
    journey.watch("executor", ToolExecutor, "run_step")
    journey.watch("event", Session, "show")
    journey.watch("question", EditorPort, "request_permission")
    journey.watch("notification", Connection, "notify")
    deployed: list[str] = []
    agent = make_agent(deployed)
    ours, theirs = memory_pair()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            editor = Editor(ours)
            tasks.start_soon(agent.serve, theirs)
            tasks.start_soon(editor.read)
            editor.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n')
            editor.write(b'{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}\n')
            session_id = json.loads(await editor.wait_for(b'"id":2,'))["result"]["sessionId"]
            await editor.wait_for(b"available_commands_update")
            journey.forget()
            editor.lines.clear()

            head = b'{"jsonrpc":"2.0","id":"p-1","method":"session/prompt","params":{"sessionId":"%b",'
            tail = b'"prompt":[{"type":"text","text":"Ship it"}]}}\n'
            line = head % session_id.encode() + tail
            editor.write(line)
            question = json.loads(await editor.wait_for(b"session/request_permission"))
            way_in = list(journey.stops)
            editor.write(b'{"jsonrpc":"2.0","id":%d,"result":%b}\n' % (question["id"], ALLOWED))
            await editor.wait_for(b'"stopReason"')
            ours.send_eof()

    assert [stop for stop in way_in if stop not in ("event", "notification")] == [
        *("framing", "peer", "connection", "surface", "session", "turn", "executor", "question")
    ]
    check_the_way_in(journey, line, session_id)
    check_the_work(journey, agent, deployed)
    check_the_way_back(journey, editor.lines, session_id)


def check_the_way_in(journey: Journey, line: bytes, session_id: str) -> None:
    # Framing: a block of bytes becomes lines. It knows of nothing but byte 0x0A.
    assert journey.given("framing")[0] == (line,)
    assert journey.returned("framing")[0] == [line.rstrip(b"\n")]

    # Peer: a line becomes a request that is owed an answer. The id is kept as it was spelled, the params stay raw.
    request = journey.returned("peer")[0]
    assert isinstance(request, IncomingRequest)
    assert (request.id, request.method) == (b'"p-1"', "session/prompt")
    assert bytes(request.params or b"").startswith(b'{"sessionId":')

    # Connection: the request is begun in the order of the wire, by a plain call. The work goes on in a task.
    assert journey.given("connection") == [(request,)]
    assert journey.returned("connection") == [None]

    # Surface: the params become a Struct of the protocol's version 1...
    _, params = journey.given("surface")[0]
    blocks: list[words.ContentBlock] = [words.TextContent(text="Ship it")]
    assert params == prompt_turn.PromptRequest(session_id=session_id, prompt=blocks)

    # ... and then a ticket, which says the same in no version's words.
    asked_in, ticket = journey.given("session")[0]
    assert asked_in == session_id
    assert isinstance(ticket, Ticket)
    assert ticket.content == [TextContent("Ship it")]

    # Session: the prompt has a place in the conversation and a message id. This is its first event.
    inserted = journey.given("event")[0][0]
    assert inserted == happened.PromptInserted(ticket.message_id, [TextContent("Ship it")])


def check_the_work(journey: Journey, agent: Agent, deployed: list[str]) -> None:
    # Turn: the model is given the history, in which the prompt is now, and the tools.
    captain = agent.definition.models["model"]
    assert isinstance(captain, Captain)
    first, second = captain.requests
    assert [type(message).__name__ for message in first.messages] == ["UserMessage"]
    assert [tool.name for tool in first.tools] == ["deploy"]

    # Executor: what the model wants run, under an id of our own; providers repeat theirs.
    ((use,), tools) = journey.given("executor")[0]
    assert (use.name, use.arguments, use.id) == ("deploy", {"environment": "staging"}, "call_0")
    assert use.call_id.startswith("call_")
    assert use.call_id != "call_0"
    assert list(tools) == ["deploy"]

    # The question: all there is to judge, and the answers that may be given. Only `allow` runs the tool.
    question = journey.given("question")[0][1]
    assert isinstance(question, PermissionQuestion)
    assert (question.tool_call_id, question.title, question.status) == (use.call_id, "Deploy", "pending")
    assert [option.kind for option in question.options] == [
        *("allow_once", "allow_always", "reject_once", "reject_always")
    ]
    assert journey.returned("question") == [PermissionAnswer("selected", "allow_once")]

    # Tool: a plain function, called with plain arguments.
    assert deployed == ["staging"]

    # The result goes to the model under the same id, and the model speaks.
    result = ToolResult(use.call_id, "deploy", [TextContent("3 services restarted")])
    assert journey.returned("executor") == [[result]]
    assert second.messages[-1] == result


def check_the_way_back(journey: Journey, lines: list[bytes], session_id: str) -> None:
    # Events: what happened, as facts. The same ones are journalled, and shown again when the session is loaded.
    shown = [event for (event,) in journey.given("event")]
    assert [type(event).__name__ for event in shown] == [
        *("PromptInserted", "ToolCallOpened", "ToolCallChanged", "ToolCallChanged", "SessionInfoChanged", "TurnEnded")
    ]
    opened, running, finished = shown[1:4]
    assert (opened.status, running.status, finished.status) == ("pending", "in_progress", "completed")

    # Surface: each event becomes a Struct of version 1. The prompt and the end of the turn are not told as updates.
    updates = [params.update for method, params in journey.given("notification") if method == "session/update"]
    assert [type(update).__name__ for update in updates] == [
        *("ToolCall", "ToolCallUpdate", "ToolCallUpdate", "SessionInfoUpdate")
    ]
    assert isinstance(updates[0], tool_calls.ToolCall)
    assert updates[0].tool_call_id == opened.tool_call_id

    # Peer and connection: the Struct is encoded behind its envelope into one buffer, and leaves as one line.
    frames = [json.loads(line) for line in lines]
    assert [outline(frame) for frame in frames] == [
        "tool_call pending",
        "session/request_permission",
        "tool_call_update in_progress",
        "tool_call_update completed",
        "agent_message_chunk",
        "session_info_update",
        "response",
    ]
    assert {frame["params"]["sessionId"] for frame in frames[:-1]} == {session_id}

    # What the model said took a shorter way, the hottest one: a piece of text between two prepared ends of a line.
    assert frames[4]["params"]["update"]["content"] == {"type": "text", "text": "Shipped."}

    # The response comes last of all, exactly once, with the id as it was spelled.
    assert lines[-1] == b'{"jsonrpc":"2.0","id":"p-1","result":{"stopReason":"end_turn"}}'


def outline(frame: dict[str, Any]) -> str:
    if "method" not in frame:
        return "response"
    update = frame["params"].get("update", {})
    return " ".join([update.get("sessionUpdate", frame["method"]), update.get("status", "")]).strip()

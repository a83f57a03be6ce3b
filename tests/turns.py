"""Random turns as data, played by a real agent, in memory or in a process; and the rows that a client folds them to.

A prompt's first block is a script in JSON: what the model says, reply by reply, and what the user will answer. The
model is strict, as providers are: it refuses a history in which a tool use and its result are not a pair.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable
from random import Random
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from acp_agent import Agent, ToolContext, ToolError, Turn
from acp_agent.content import Diff, ImageContent, Location, TextContent, text_of
from acp_agent.errors import ModelError, RequestError
from acp_agent.history import AssistantMessage, HistoryMessage, ToolResult, UserMessage
from acp_agent.models.base import Finish, Model, ModelEvent, ModelRequest, TextDelta, ThoughtDelta, ToolUse, UsageDelta
from acp_agent.runtime.loop import run_model
from acp_agent.store.base import SessionStore
from acp_agent.store.memory import MemoryStore
from acp_agent.testing import ToolCallView, Update
from acp_agent.tools.plan import UpdatePlan

ANSWERS = ("allow_once", "allow_always", "reject_once", "cancelled", "error")
BLOCKS = (
    {"type": "text", "text": "and this"},
    {"type": "text", "text": " too, 十二 🥊", "annotations": {"priority": 1.0}},
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
    {"type": "resource_link", "name": "a.py", "uri": "file:///w/a%20b.py#L9", "size": 3},
    {"type": "resource", "resource": {"uri": "file:///w/a.py", "mimeType": "text/x-python", "text": "x = 1\n"}},
    {"type": "resource", "resource": {"uri": "file:///w/a.bin", "blob": "aGk="}},
)


# scripts --------------------------------------------------------------------------------------------------------------


def random_prompt(random: Random, number: int, *, pause: float = 0.0, used: int = 95) -> list[dict[str, Any]]:
    """The blocks of a prompt.

    `pause`, in seconds, is how long the model and its tools linger at most; `used` how full (of 100) the context gets:
    from 85 on it is compacted.
    """
    replies = [_random_reply(random, pause, used) for _ in range(random.randint(0, 3))]
    script = {"number": number, "replies": replies}
    if random.random() < 0.3:
        script["title"] = f"title {number}"
    if random.random() < 0.2:
        script["block"] = True
    if random.random() < 0.2:
        script["notice"] = f"notice {number}"
    if random.random() < 0.25:
        script["end"] = random.choice(("error", "refusal", "max_tokens"))
    more = [random.choice(BLOCKS) for _ in range(random.choice((0, 0, 1, 3)))]
    return [{"type": "text", "text": json.dumps(script)}, *more]


def _random_reply(random: Random, pause: float, used: int) -> list[list[Any]]:
    steps: list[list[Any]] = []
    for _ in range(random.randint(1, 6)):
        kind = random.choice(("text", "text", "text", "thought", "use", "use", "usage", "pause"))
        match kind:
            case "text" | "thought":
                size = random.choice((1, 7, 40, 9000)) if random.random() < 0.2 else 5
                steps.append([kind, f"{random.randint(0, 99)} ", size])
            case "use":
                steps.append(["use", *_random_use(random, pause)])
            case "usage":
                steps.append(["usage", random.randint(1, used)])
            case "pause":
                steps.append(["pause", random.random() * pause])
    return steps


def _random_use(random: Random, pause: float) -> tuple[str, dict[str, Any]]:
    number = random.randint(0, 9)
    entries = [{"content": f"step {index}", "status": "pending"} for index in range(number % 3)]
    return random.choice(
        (
            ("look", {"name": f"{number}"}),
            ("look", {"name": f"{number}"}),
            ("change", {"name": f"{number}", "answer": random.choice(ANSWERS)}),
            ("change", {"name": f"{number}", "answer": "allow_once"}),
            ("work", {"seconds": random.random() * pause}),
            ("fail", {"how": random.choice(("error", "crash"))}),
            ("look", {"wrong": True}),
            ("nothing_of_that_name", {}),
            ("update_plan", {"entries": entries}),
            ("switch", {"mode": random.choice(("ask", "plan", "accept_edits", "auto", "none"))}),
        )
    )


def answer_kind(arguments: Any) -> str:
    """What the user says about a call with these arguments: the script has it in them."""
    return str(arguments["answer"])


def answer_of(request: Any) -> str | None:
    """The same, as a test client's permission function."""
    answer = answer_kind(request.tool_call.raw_input)
    if answer == "error":
        raise RequestError(-32603, "The dialog could not be shown")
    return None if answer == "cancelled" else answer


# the agent ------------------------------------------------------------------------------------------------------------


class ScriptModel(Model):
    """Says what the last prompt's script has; `problems` are what a provider would have refused."""

    name = "script"
    context_window = 100

    def __init__(self) -> None:
        self.problems: list[str] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        problem = unpaired(request.messages)
        if problem:
            self.problems.append(problem)
            raise ModelError(problem, kind="invalid_request")
        if script_of(last_prompt(request.messages)) is None:
            yield TextDelta("what was said before")  # a summary is asked for
            return
        prompt, replies = last_turn(request.messages)
        if len(replies) >= len(prompt["replies"]):
            async for event in self._end(prompt):
                yield event
            return
        for step in prompt["replies"][len(replies)]:
            match step:
                case ["text", text, size]:
                    yield TextDelta(text.ljust(size, "é"))
                case ["thought", text, size]:
                    yield ThoughtDelta(text.ljust(size, "é"))
                case ["use", name, arguments]:
                    yield ToolUse(name, arguments, id="the-same")
                case ["usage", used]:
                    yield UsageDelta(used, 1, cost=0.01)
                case ["pause", seconds]:
                    await (anyio.sleep(seconds) if seconds else checkpoint())
        yield Finish()

    async def _end(self, script: dict[str, Any]) -> AsyncGenerator[ModelEvent, None]:
        yield TextDelta(f"end of {script['number']}")
        if script.get("end") == "error":
            raise ModelError("The provider fails.")
        yield Finish(script.get("end", "end_turn"))


def unpaired(messages: Iterable[HistoryMessage]) -> str:
    """What is wrong with the history, in the eyes of a strict provider."""
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolResult):
            if not waiting or message.call_id not in waiting:
                return f"A result without its use: {message.call_id}"
            waiting.remove(message.call_id)
        elif waiting:
            return f"Uses without a result: {waiting}"
        elif isinstance(message, AssistantMessage):
            waiting = [use.call_id for use in message.tool_uses]
    return f"Uses without a result: {waiting}" if waiting else ""


def last_turn(messages: list[HistoryMessage]) -> tuple[dict[str, Any], list[AssistantMessage]]:
    """The script of the last prompt, and what was said to it already."""
    last = last_prompt(messages)
    after = messages[messages.index(last) :]
    return script_of(last) or {}, [each for each in after if isinstance(each, AssistantMessage)]


def last_prompt(messages: list[HistoryMessage]) -> UserMessage:
    return next(message for message in reversed(messages) if isinstance(message, UserMessage))


def script_of(message: Any) -> dict[str, Any] | None:
    """The script in a prompt, or None for one that has none."""
    text = message.content[0].text
    script: dict[str, Any] | None = json.loads(text) if text.startswith("{") else None
    return script


def make_script_agent(store: SessionStore | Callable[[], SessionStore] = MemoryStore) -> tuple[Agent, ScriptModel]:
    """An agent that plays scripts. A prompt that begins with "known" is answered with the numbers it remembers."""
    model = ScriptModel()
    agent = Agent("script", model=model, store=store, accepts=("image", "audio", "resource"), tools=[UpdatePlan()])
    agent.add_tool(_Looking.tool())
    for function, options in _TOOLS:
        agent.tool(**options)(function)

    @agent.on_prompt
    async def play(turn: Turn) -> Any:
        before = turn.history[:-1]
        if problem := unpaired(before):
            model.problems.append(problem)
        if turn.text.startswith("known"):
            scripts = [script_of(message) for message in before if isinstance(message, UserMessage)]
            numbers = [script["number"] for script in scripts if script is not None]
            await turn.send_text(json.dumps(numbers + model.problems))
            return None
        script = json.loads(text_of(turn.content[:1]))
        if "title" in script:
            turn.set_title(script["title"])
        if "notice" in script:
            turn.send_notice("warning", script["notice"], "and why")
        if "block" in script:
            await turn.send_text("before the picture")
            await turn.send_content(ImageContent("aGk=", "image/png"))
            await turn.send_content(TextContent("below it"))
        return await run_model(turn)

    return agent, model


class _Looking:
    """A tool that may run beside others, and that says where it is while it runs."""

    @staticmethod
    def tool() -> Any:
        from acp_agent.tools.function import FunctionTool

        async def look(context: ToolContext, name: str) -> str:
            """Look at something."""
            context.report(f"looking at {name}", locations=[Location("/w/seen.py", 3)])
            await checkpoint()
            return f"saw {name}"

        return FunctionTool(look, kind="read", permission="allow", read_only=True)


def _diff(name: str, answer: str) -> Diff:
    return Diff(f"/w/{name}", "new", "old")


async def change(context: ToolContext, name: str, answer: str) -> Diff:
    """Change something, if the user lets us."""
    context.report(f"changing {name}")
    await checkpoint()
    return Diff(f"/w/{name}", "newer", "old")


async def work(context: ToolContext, seconds: float) -> str:
    """Take a while."""
    context.report("at it")
    await (anyio.sleep(seconds) if seconds else checkpoint())
    return "worked"


async def fail(how: str) -> str:
    """Fail."""
    if how == "crash":
        raise RuntimeError("a bug")
    raise ToolError("It cannot be done.")


async def switch(context: ToolContext, mode: str) -> str:
    """Go into another mode."""
    await context.set_mode(mode)
    return mode


_TOOLS: tuple[tuple[Callable[..., Any], dict[str, Any]], ...] = (
    (change, {"kind": "edit", "permission": "ask", "preview": _diff}),
    (work, {"kind": "execute", "permission": "allow"}),
    (fail, {"permission": "allow"}),
    (switch, {"permission": "allow"}),
)


# rows -----------------------------------------------------------------------------------------------------------------


class Rows:
    """What a client has on show: `rows` in the order of their appearance, and what there is once, in `state`."""

    def __init__(self, updates: Iterable[Update] = ()) -> None:
        self.state: dict[str, Any] = {}
        self._rows: dict[tuple[str, str], Any] = {}
        self._prompts = 0
        self.calls = ToolCallView()
        for update in updates:
            self.apply(update)

    @property
    def rows(self) -> list[tuple[str, str, Any]]:
        """Kind, id (of a prompt its number), and the blocks or the call as it looks now."""
        calls = {row["tool_call_id"]: row for row in self.calls.snapshot()}
        return [(kind, key, calls[key] if kind == "call" else said) for (kind, key), said in self._rows.items()]

    def add_prompt(self, blocks: list[dict[str, Any]]) -> None:
        """The client shows its own prompt."""
        self._rows["user", str(script_number(blocks))] = merged(blocks)

    def apply(self, update: Update) -> None:
        fields = update.fields
        match update.kind:
            case "user_message_chunk":
                self._chunk("user", fields["messageId"], fields["content"])
            case "agent_message_chunk" | "agent_thought_chunk":
                self._chunk(update.kind, fields["messageId"], fields["content"])
            case "tool_call" | "tool_call_update":
                self.calls.apply(update)
                self._rows.setdefault(("call", fields["toolCallId"]), None)
            case "plan":
                self.state["plan"] = fields["entries"]
            case "current_mode_update":
                self.state["mode"] = fields["currentModeId"]
            case "config_option_update":
                self.state["options"] = {each["id"]: each["currentValue"] for each in fields["configOptions"]}
            case "session_info_update":
                self.state["title"] = fields["title"]
            case "usage_update":
                self.state["usage"] = (fields["used"], fields["size"], fields["cost"])
            case "available_commands_update":
                self.state["commands"] = fields["availableCommands"]
            case _:
                raise AssertionError(f"an update that is not expected here: {update}")

    def _chunk(self, kind: str, message_id: str, block: dict[str, Any]) -> None:
        said = self._rows.get((kind, message_id), [])
        self._rows[kind, message_id] = merged([*said, block])

    def numbered(self) -> Rows:
        """The same, with prompts under their numbers: a client does not know the ids of its own."""
        rows = {
            (kind, str(script_number(said)) if kind == "user" else key): said
            for (kind, key), said in self._rows.items()
        }
        self._rows = rows
        return self


def merged(blocks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbouring texts as one."""
    found: list[dict[str, Any]] = []
    for block in blocks:
        if found and block.keys() == {"type", "text"} == found[-1].keys():
            found[-1] = {"type": "text", "text": found[-1]["text"] + block["text"]}
        else:
            found.append(block)
    return found


def script_number(blocks: list[dict[str, Any]]) -> int | str:
    """The number of the prompt that has these blocks, or its text where it is no script."""
    text = str(blocks[0]["text"])
    return int(json.JSONDecoder().raw_decode(text)[0]["number"]) if text.startswith("{") else text

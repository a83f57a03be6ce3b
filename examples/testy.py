"""A test agent for authors of editors: say the name of a feature and see it, the same every time, with no model.

    python examples/testy.py        # put this command into the editor's agent settings, then say "help"

All of it is real ACP traffic: the question waits for its answer, the diff comes with the question, the slow reply can
be cancelled, the image is a PNG. What takes arguments takes them behind the name: "slow 3", "flood 5000".
"""

import os
import sys
from collections.abc import Awaitable, Callable

import anyio

from acp_agent import (
    Agent,
    Diff,
    EmbeddedResource,
    ImageContent,
    PlanEntry,
    RequestError,
    ResourceLink,
    StopReason,
    ToolContext,
    ToolError,
    Turn,
    coding_tools,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
MARKDOWN = (
    "# Heading\n\n- **bold**, `code`\n- [link](https://agentclientprotocol.com)\n\n```python\nprint('é 🐍')\n```\n"
)

agent = Agent("testy", title="Testy", version="0.1.0", accepts=("image", "audio", "resource"), tools=coding_tools())

# Tools that there is a prompt for -------------------------------------------------------------------------------------


def preview_of_diff(context: ToolContext, name: str) -> Diff:
    return Diff(os.path.join(context.cwd, name), "after\n", "before\n")


@agent.tool(kind="edit", preview=preview_of_diff, title="Change a file")
async def show_diff(context: ToolContext, name: str) -> Diff:
    """Show a change of a file, and change nothing."""
    return preview_of_diff(context, name)


@agent.tool(kind="execute", permission="ask", title="Launch the rocket")
async def launch(pad: int) -> str:
    """Launch the rocket."""
    return f"Launched from pad {pad}."


@agent.tool(kind="think", permission="allow", title="Count to ten")
async def count(context: ToolContext) -> str:
    """Count to ten, and show how far it is."""
    for number in range(1, 11):
        context.report(f"{number} of 10")
        await anyio.sleep(0.05)
    return "10 of 10"


@agent.tool(kind="fetch", permission="allow", title="Fetch what is not there")
async def fail() -> str:
    """Fail."""
    raise ToolError("There is nothing at that address.")


# What can be asked for ------------------------------------------------------------------------------------------------


async def text(turn: Turn) -> None:
    """Markdown in many small pieces."""
    for piece in MARKDOWN:
        await turn.send_text(piece)


async def thought(turn: Turn) -> None:
    """Thoughts, then an answer."""
    await turn.send_thought("First I think.")
    await turn.send_text("I have thought about it.")


async def plan(turn: Turn) -> None:
    """A plan that moves on, sent whole each time."""
    steps = ("Look", "Change", "Check")
    for done in range(len(steps) + 1):
        turn.send_plan([PlanEntry(step, status="completed" if n < done else "pending") for n, step in enumerate(steps)])
        await anyio.sleep(0.05)


async def permission(turn: Turn) -> None:
    """A tool that asks: allow and reject, once and always."""
    output = await turn.call_tool("launch", {"pad": 39})
    await turn.send_text("You said no." if output.failed else "It flies.")


async def diff(turn: Turn) -> None:
    """A question with a diff to be judged."""
    await turn.call_tool("show_diff", {"name": "example.txt"})


async def progress(turn: Turn) -> None:
    """A tool that reports while it runs."""
    await turn.call_tool("count")


async def failure(turn: Turn) -> None:
    """A tool that fails."""
    await turn.call_tool("fail")


async def parallel(turn: Turn) -> None:
    """Three tools at once."""
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(turn.call_tool, "count")


async def command(turn: Turn) -> None:
    """A command, in the editor's terminal if it has one."""
    await turn.call_tool("run_command", {"command": "echo one; sleep 0.2; echo two"})


async def write(turn: Turn) -> None:
    """A file, written through the editor if it can."""
    await turn.call_tool("write_file", {"path": "testy.txt", "content": "Written by testy.\n"})


async def read(turn: Turn) -> None:
    """The file of "write", read through the editor if it can."""
    await turn.call_tool("read_file", {"path": "testy.txt"})


async def image(turn: Turn) -> None:
    """An image, a link and an embedded resource in the answer."""
    await turn.send_content(ImageContent(PIXEL, "image/png"))
    await turn.send_content(ResourceLink("README", "file:///README.md", mime_type="text/markdown"))
    await turn.send_content(EmbeddedResource("file:///notes.txt", text="A note.", mime_type="text/plain"))


async def echo(turn: Turn) -> None:
    """What the prompt was made of, block by block."""
    for block in turn.content:
        await turn.send_text(f"- {type(block).__name__}\n")


async def title(turn: Turn) -> None:
    """A title for the session, and how full the context is."""
    turn.set_title(f"Testy, {argument(turn) or 'untitled'}")
    turn.send_usage(used=12_345, size=200_000, cost=0.12)


async def slow(turn: Turn) -> None:
    """A piece of text each half second, ten times or as often as you say: try to cancel it."""
    for number in range(amount(turn, 10)):
        await turn.send_text(f"{number + 1} ")
        await anyio.sleep(0.5)


async def flood(turn: Turn) -> None:
    """Ten thousand pieces of text, or as many as you say, as fast as they go."""
    for _ in range(amount(turn, 10_000)):
        await turn.send_text("flood ")


async def refusal(turn: Turn) -> StopReason:
    """The turn ends as a refusal."""
    await turn.send_text("I would rather not.")
    return "refusal"


async def error(turn: Turn) -> None:
    """The turn ends with an error."""
    raise RequestError(-32603, "Testy failed", {"details": "You asked for it."})


async def exit(turn: Turn) -> None:
    """The agent dies, without a word."""
    os._exit(3)


Feature = Callable[[Turn], Awaitable[StopReason | None]]
FEATURES: dict[str, Feature] = {
    feature.__name__: feature
    for feature in (
        *(text, thought, plan, permission, diff, progress, failure, parallel, command, write, read),
        *(image, echo, title, slow, flood, refusal, error, exit),
    )
}


def argument(turn: Turn) -> str:
    return turn.text.partition(" ")[2].strip()


def amount(turn: Turn, default: int) -> int:
    word = argument(turn)
    return int(word) if word.isdigit() else default


@agent.on_prompt
async def answer(turn: Turn) -> StopReason | None:
    name = (turn.text.split() or [""])[0].strip(".,!?").lower()
    if name in FEATURES:
        return await FEATURES[name](turn)
    lines = (f"- `{name}`: {feature.__doc__}" for name, feature in FEATURES.items())
    await turn.send_text("Say one of these:\n\n" + "\n".join(lines) + "\n")
    return None


if __name__ == "__main__":
    agent.run(backend="trio" if "--trio" in sys.argv else "asyncio")

"""A model of one's own: one async generator of events. The agent loop, the tools and the questions come with `Agent`.

Replace the body of `stream` with a call of your backend: yield its text as it comes, and a `ToolUse` for each tool it
wants. The loop runs the tools and calls `stream` again with their results, until a reply uses none.
"""

from collections.abc import AsyncGenerator

from acp_agent import Agent, Finish, Model, ModelEvent, ModelRequest, TextDelta, ToolResult, ToolUse

FILES = {"deploy.log": "12:00 staging: 3 services restarted"}


class HouseModel(Model):
    """Stands in for a backend: it looks into a log before it answers."""

    name = "house"
    context_window = 8_000

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        match request.messages[-1]:
            case ToolResult(failed=False, content=[found]):
                yield TextDelta("The log says: ")
                yield TextDelta(str(getattr(found, "text", "")))
            case ToolResult():
                yield TextDelta("I may not read the log.")
            case _:
                yield TextDelta("Let me look.")
                yield ToolUse("read_log", {"name": "deploy.log"})
        yield Finish("end_turn")


agent = Agent("house-agent", version="0.1.0", model=HouseModel())


@agent.tool(kind="read", permission="ask")
def read_log(name: str) -> str:
    """Read one of the service's logs."""
    return FILES[name]


if __name__ == "__main__":
    agent.run()

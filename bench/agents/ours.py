"""The benchmark's agent on acp_agent: sessions, permissions, executor and all."""

from __future__ import annotations

from acp_agent import Agent, Turn

agent = Agent("bench")


@agent.tool(kind="execute", permission="ask", key=lambda index: "")
async def work(index: int) -> str:
    """Do a piece of work."""
    return f"piece {index} is done"


@agent.on_prompt
async def answer(turn: Turn) -> None:
    verb, _, count = turn.text.partition(" ")
    if verb == "tools":
        for index in range(int(count)):
            await turn.call_tool("work", {"index": index})
        return
    number = 0
    while verb == "forever" or number < int(count):
        await turn.send_text("a few words of the answer ")
        number += 1


if __name__ == "__main__":
    agent.run()

"""An agent with a tool that asks before it runs. Twelve lines of code, and no model: the prompt is the argument.

Say "staging" or "production". The editor shows the call and asks; nothing runs unless the user allows it.
"""

from typing import Literal

from acp_agent import Agent, Turn

agent = Agent("deployer", version="0.1.0")


@agent.tool(kind="execute", permission="ask")
async def deploy(environment: Literal["staging", "production"]) -> str:
    """Deploy the current branch."""
    return f"{environment} runs the new release."


@agent.on_prompt
async def answer(turn: Turn) -> None:
    result = await turn.call_tool("deploy", {"environment": turn.text})
    await turn.send_text("Nothing was deployed." if result.failed else "Deployed.")


agent.run()

"""The smallest agent: it says what it was told. Six lines of code.

python examples/echo.py          # speaks ACP on stdin and stdout; put this command into an editor's agent settings
"""

from acp_agent import Agent, Turn

agent = Agent("echo", version="0.1.0")


@agent.on_prompt
async def echo(turn: Turn) -> None:
    await turn.send_text(turn.text)


agent.run()

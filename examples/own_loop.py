"""A whole loop of one's own: this code decides what happens, and the editor sees each step of it.

`turn.open_tool_call` puts a call on show that this program runs itself. `ask_permission` asks the policy and the user;
when it is True the work may be done, and `report` and `complete` tell of it. A cancel arrives as the cancellation of
whatever is awaited here; a call that is still open then is closed by the turn.
"""

import sys

import anyio

from acp_agent import Agent, PlanEntry, Turn

STEPS = {
    "Count the words": "print(len('the quick brown fox'.split()), 'words')",
    "Publish the count": "print('published')",
}

agent = Agent("releaser", version="0.1.0")


@agent.on_prompt
async def release(turn: Turn) -> None:
    for number, (title, code) in enumerate(STEPS.items()):
        show_plan(turn, done=number)
        if not await run_python(turn, title, code):
            await turn.send_text(f"{title}: you said no, so I stop here.")
            return
    show_plan(turn, done=len(STEPS))
    await turn.send_text("All steps are done.")


def show_plan(turn: Turn, done: int) -> None:
    """A plan is always sent whole."""
    turn.send_plan([PlanEntry(title, status="completed" if n < done else "pending") for n, title in enumerate(STEPS)])


async def run_python(turn: Turn, title: str, code: str) -> bool:
    """Run a piece of Python as a call on show. False if it was not allowed."""
    call = turn.open_tool_call("python", {"command": code}, title=title, kind="execute", key=code)
    if not await call.ask_permission():
        return False
    call.report("running")
    result = await anyio.run_process([sys.executable, "-c", code], check=False, stderr=None)
    call.complete(text=f"{result.stdout.decode()}(exit code {result.returncode})")
    return True


if __name__ == "__main__":
    agent.run()

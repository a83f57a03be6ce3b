"""What a prompt asks for: a slash command, or the agent's own handler; once the session is ready for it."""

from __future__ import annotations

from acp_agent.content import StopReason, TextContent
from acp_agent.runtime.definition import SessionCommand
from acp_agent.runtime.turn import Turn

__all__ = ["work_on"]


async def work_on(turn: Turn) -> StopReason | None:
    """The work of one turn, from the first line of the prompt to the stop reason."""
    session = turn.session
    for service in session.services:
        await service.wait_ready(session.definition.mcp_wait)
        failures = service.take_new_failures()
        session.notices.extend(
            f"The MCP server {failure.name} cannot be used: {failure.reason}" for failure in failures
        )
    trouble = session.store.take_trouble()
    notices, session.notices = [*session.notices, *([trouble] if trouble else [])], []
    for notice in notices:
        turn.send_notice("warning", notice)
    found = find_command(turn)
    if found is not None:
        command, arguments = found
        turn.is_command = True
        return await command.handler(turn, arguments)
    return await session.definition.handler(turn)


def find_command(turn: Turn) -> tuple[SessionCommand, str] | None:
    """The command that the prompt begins with; other text that starts with a slash is for the model."""
    first = turn.content[0] if turn.content else None
    if not isinstance(first, TextContent) or not first.text.startswith("/"):
        return None
    words = first.text.split(maxsplit=1)
    command = turn.session.find_command(words[0][1:])
    return (command, "".join(words[1:]).strip()) if command is not None else None

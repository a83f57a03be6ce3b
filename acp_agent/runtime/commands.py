"""The slash commands that every agent with a model has. An agent's own of the same name takes its place."""

from __future__ import annotations

from acp_agent.content import StopReason
from acp_agent.events import Command
from acp_agent.runtime.compaction import compact
from acp_agent.runtime.definition import SessionCommand
from acp_agent.runtime.turn import Turn

__all__ = ["built_in_commands"]


def built_in_commands() -> dict[str, SessionCommand]:
    """By name, as they are listed."""
    entries = (
        (Command("help", "List the commands"), show_help),
        (Command("tools", "List the tools, and which of them ask"), show_tools),
        (Command("mcp", "Show how the MCP servers do"), show_mcp),
        (Command("clear", "Forget the conversation; what was shown stays"), clear),
        (Command("compact", "Replace the conversation by a summary, to make room"), compact_now),
    )
    return {command.name: SessionCommand(command, handler) for command, handler in entries}


async def show_help(turn: Turn, _: str) -> StopReason | None:
    lines = [
        f"- `/{command.name}{f' <{command.hint}>' if command.hint else ''}` {command.description}"
        for command in turn.session.commands()
    ]
    await turn.send_text("\n".join(["Commands:", "", *lines]))
    return None


async def show_tools(turn: Turn, _: str) -> StopReason | None:
    lines = [
        f"- `{tool.name}` ({tool.kind}, {tool.permission}): {_first_line(tool.description)}"
        for tool in (await turn.session.tools()).values()
    ]
    await turn.send_text("\n".join(["Tools:", "", *lines]) if lines else "There are no tools.")
    return None


async def show_mcp(turn: Turn, _: str) -> StopReason | None:
    lines = [
        f"- {status.name}: {status.state}{_count(len(status.tools))}{f' ({status.detail})' if status.detail else ''}"
        for service in turn.session.services
        for status in service.status()
    ]
    await turn.send_text("\n".join(["MCP servers:", "", *lines]) if lines else "This session has no MCP servers.")
    return None


async def clear(turn: Turn, _: str) -> StopReason | None:
    turn.session.replace_history([])
    turn.said = None
    await turn.send_text("The conversation is forgotten. What was shown stays, but I no longer know it.")
    return None


async def compact_now(turn: Turn, _: str) -> StopReason | None:
    session = turn.session
    model = session.options.model
    done = model is not None and await compact(turn, model)
    if not done:
        await turn.send_text("There is nothing to compact yet.")
    elif not session.port.abilities.compaction:
        await turn.send_text("The conversation is now a summary, and there is room again.")
    return None


def _count(tools: int) -> str:
    return f", {tools} {'tool' if tools == 1 else 'tools'}" if tools else ""


def _first_line(text: str) -> str:
    return text.strip().split("\n")[0]

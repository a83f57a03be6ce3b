"""switch_mode: ask the user to leave plan mode, or to work in another one."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from acp_agent.tools.arguments import ArgumentTool, decode_arguments
from acp_agent.tools.base import Proposal, ToolContext, ToolOutput
from acp_agent.tools.text import code_span, visible

__all__ = ["SwitchMode"]


class ModeArguments(Struct, forbid_unknown_fields=True):
    mode: Annotated[str, Meta(description="The id of the mode: ask, accept_edits, plan or auto.", min_length=1)]


class SwitchMode(ArgumentTool):
    """Another session mode, each time by the user's word: no answer is remembered."""

    name = "switch_mode"
    description = (
        "Ask the user to go on in another session mode. In plan mode, tell the user your plan and then use this to "
        "leave it; choose `ask` unless the user named another mode."
    )
    kind = "switch_mode"
    arguments = ModeArguments

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        wanted = decode_arguments(ModeArguments, arguments)
        return Proposal(
            title=f"Switch to mode {code_span(visible(wanted.mode))}",
            kind=self.kind,
            arguments=arguments,
            state=wanted.mode,
        )

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        await context.set_mode(proposal.state)
        return ToolOutput.of_text(f"The session is in mode {proposal.state} now.")

"""update_plan: what the agent means to do, as the editor shows it."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from acp_agent.content import ContentItem, PlanEntry, PlanPriority, PlanStatus, TextContent
from acp_agent.tools.arguments import ArgumentTool, decode_arguments
from acp_agent.tools.base import Proposal, ToolContext, ToolOutput

__all__ = ["UpdatePlan"]

MARKS = {"completed": "✓", "in_progress": "▸", "pending": "○"}


class Step(Struct, forbid_unknown_fields=True):
    content: Annotated[str, Meta(description="What is to be done, in one line.", min_length=1)]
    priority: PlanPriority = "medium"
    status: PlanStatus = "pending"


class PlanArguments(Struct, forbid_unknown_fields=True):
    entries: Annotated[list[Step], Meta(description="The complete plan, done steps too; it replaces the last one.")]


class UpdatePlan(ArgumentTool):
    """The plan, always whole."""

    name = "update_plan"
    description = (
        "Show the user your plan for a task of several steps, and keep it up to date: send all entries each time, "
        "with one in progress."
    )
    kind = "think"
    permission = "allow"
    read_only = True
    arguments = PlanArguments

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        steps = decode_arguments(PlanArguments, arguments).entries
        done = sum(step.status == "completed" for step in steps)
        title = f"Update the plan ({done} of {len(steps)} done)" if steps else "Clear the plan"
        return Proposal(
            title=title, kind=self.kind, arguments=arguments, permission="allow", read_only=True, state=steps
        )

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        steps: list[Step] = proposal.state
        context.send_plan([PlanEntry(step.content, step.priority, step.status) for step in steps])
        text = "\n".join(f"{MARKS[step.status]} {step.content}" for step in steps) or "The plan is empty."
        return ToolOutput(content=[ContentItem(TextContent(text))], told=[TextContent("The plan is shown.")])

"""The agent's plan.

Source: https://agentclientprotocol.com/protocol/agent-plan
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from acp_agent.protocol.base import Payload, Sifted

__all__ = ["Plan", "PlanEntry", "PlanEntryPriority", "PlanEntryStatus"]

PlanEntryPriority: TypeAlias = Literal["high", "medium", "low"]
PlanEntryStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


class PlanEntry(Payload, kw_only=True):
    """One step."""

    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus


class Plan(Payload, kw_only=True, tag_field="sessionUpdate", tag="plan"):
    """The plan, always whole: it replaces the one before."""

    entries: Sifted[list[PlanEntry]]

from __future__ import annotations

import pytest

from acp_agent.content import PlanEntry
from acp_agent.errors import ToolError
from acp_agent.tools.plan import UpdatePlan
from tests.requirements import requirement
from tests.tools.fakes import FakeCall, shown

pytestmark = pytest.mark.anyio


@requirement("plan-reported", "plan-complete")
async def test_the_plan_is_sent_whole(call: FakeCall) -> None:
    entries = [{"content": "read", "status": "completed"}, {"content": "write", "priority": "high"}]
    proposal = await call.propose(UpdatePlan(), entries=entries)
    assert (proposal.title, proposal.kind, proposal.permission) == ("Update the plan (1 of 2 done)", "think", "allow")
    output = await call.call(UpdatePlan(), entries=entries)
    assert call.plans == [[PlanEntry("read", "medium", "completed"), PlanEntry("write", "high", "pending")]]
    assert shown(output) == "✓ read\n○ write"


async def test_a_status_that_is_none_is_named(call: FakeCall) -> None:
    with pytest.raises(ToolError, match=r"\$\.entries\[0\]\.status"):
        await call.call(UpdatePlan(), entries=[{"content": "x", "status": "done"}])

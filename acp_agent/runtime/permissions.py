"""Who may run what: modes, rules, remembered answers, and the options a user is offered.

The order in which a call is judged, first match wins:

    deny rule                  always
    tool's own deny            deny
    mode `plan`                what would change something is denied, reading and leaving the mode still ask
    remembered answer          of this session, under the tool's own key; never for a path outside the roots
    ask rule                   always
    mode `auto`                allow
    allow rule                 never for a path outside the roots, nor for a sensitive file that it does not name
    mode `accept_edits`        edits inside the roots, but of sensitive files
    tool's own default         allow inside the roots, else ask
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from acp_agent.content import PermissionKind
from acp_agent.events import Choice
from acp_agent.runtime.client import PermissionAnswer, PermissionOption
from acp_agent.runtime.rules import PermissionRule, Verdict
from acp_agent.tools.base import Proposal

__all__ = [
    "MODES",
    "Decision",
    "PermissionMemory",
    "PermissionPolicy",
    "PermissionRule",
    "Verdict",
    "judge_answer",
    "offer_options",
]

MODES = (
    Choice("ask", "Ask", "Asks before it changes anything"),
    Choice("accept_edits", "Accept edits", "Edits files inside the workspace without asking"),
    Choice("plan", "Plan", "Reads and plans, changes nothing"),
    Choice("auto", "Auto", "Asks nothing"),
)

DENIED = "Denied by the user."
PLAN_DENIED = "Not allowed in plan mode, which changes nothing. Propose the change, or ask to leave plan mode."


class Decision(Struct, frozen=True):
    """What was decided for one call, and why. Without one that says `allow`, no tool runs."""

    verdict: Verdict
    reason: str
    stops_turn: bool = False


class PermissionMemory:
    """The "always" answers of one session, by tool and scope. They go when the session does."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], Verdict] = {}

    def remember(self, tool: str, proposal: Proposal, verdict: Verdict) -> None:
        if can_remember(proposal):
            self._answers[tool, proposal.key] = verdict

    def recall(self, tool: str, proposal: Proposal) -> Verdict | None:
        return self._answers.get((tool, proposal.key)) if can_remember(proposal) else None


class PermissionPolicy:
    """Rules and modes. Shared by all sessions; what differs (mode, memory) is given."""

    def __init__(self, rules: Sequence[PermissionRule] = ()) -> None:
        self.rules = list(rules)

    def decide(self, tool: str, proposal: Proposal, mode: str, memory: PermissionMemory) -> Decision:
        """Judge one call now. A later call of the same kind is judged anew."""
        found = {rule.decision: rule for rule in reversed(self.rules) if rule.matches(tool, proposal)}
        gated = proposal.permission == "ask" or proposal.outside or proposal.sensitive
        if "deny" in found:
            return Decision("deny", f"Denied by the rule `{found['deny']}`.")
        if proposal.permission == "deny":
            return Decision("deny", "This tool is switched off.")
        if gated and mode == "plan" and not (proposal.read_only or proposal.kind == "switch_mode"):
            return Decision("deny", PLAN_DENIED)
        remembered = memory.recall(tool, proposal)
        if remembered is not None:
            return Decision(remembered, "Remembered for this session." if remembered == "allow" else DENIED)
        if "ask" in found:
            return Decision("ask", f"The rule `{found['ask']}` asks.")
        return _decide_by_mode(proposal, mode, found.get("allow")) or Decision(
            "ask" if gated else "allow", "The user decides." if gated else "Allowed without asking."
        )


def _decide_by_mode(proposal: Proposal, mode: str, allowed_by: PermissionRule | None) -> Decision | None:
    if mode == "auto":
        return Decision("allow", "Mode auto asks nothing.")
    if proposal.outside:
        return None
    if allowed_by is not None:
        return Decision("allow", f"Allowed by the rule `{allowed_by}`.")
    if mode == "accept_edits" and proposal.kind == "edit" and not proposal.sensitive:
        return Decision("allow", "Mode accept_edits allows edits inside the workspace.")
    return None


def can_remember(proposal: Proposal) -> bool:
    return bool(proposal.key) and not proposal.outside


def offer_options(proposal: Proposal) -> list[PermissionOption]:
    """The answers for one question, an allowing one first; "always" only where it can be remembered."""
    options = [PermissionOption("allow_once", "Allow once", "allow_once")]
    scope = proposal.scope or f"`{proposal.title}`"
    if can_remember(proposal):
        options.append(PermissionOption("allow_always", f"Always allow {scope} in this session", "allow_always"))
    options.append(PermissionOption("reject_once", "Reject", "reject_once"))
    if can_remember(proposal):
        options.append(PermissionOption("reject_always", f"Always reject {scope} in this session", "reject_always"))
    return options


def judge_answer(
    options: Sequence[PermissionOption], answer: PermissionAnswer
) -> tuple[Decision, PermissionKind | None]:
    """The decision an answer means: looked up among the options of this very question, and judged by its kind."""
    if answer.outcome == "cancelled":
        return Decision("deny", "The question was dismissed, and the turn with it.", stops_turn=True), None
    kind = next((option.kind for option in options if option.option_id == answer.option_id), None)
    if answer.outcome == "unusable" or kind is None:
        return Decision("deny", "Not approved: the editor gave no usable answer."), None
    if kind in ("allow_once", "allow_always"):
        return Decision("allow", "Allowed by the user."), kind
    return Decision("deny", DENIED), kind

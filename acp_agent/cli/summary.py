"""What is left to say when a demo is over: how it went, what changed, and what to do next."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

from msgspec import Struct, field

from acp_agent.cli.stage import Summary, clean
from acp_agent.errors import RequestError
from acp_agent.testing.prompts import PromptResult
from acp_agent.testing.view import ToolCallRow

__all__ = ["Outcome", "summarise"]

ENDINGS = {
    "end_turn": "The turn is over.",
    "cancelled": "The turn was cancelled.",
    "max_tokens": "The turn ended: the model had no more tokens.",
    "max_turn_requests": "The turn ended: it took too many requests.",
    "refusal": "The turn ended: the model refused.",
}
ANSWERS = {
    "allow_once": "allowed",
    "allow_always": "allowed",
    "reject_once": "rejected",
    "reject_always": "rejected",
}


class Outcome(Struct):
    """A demo so far. `ending` says how its last turn went, `seconds` are those of all turns.

    `answers` are the kinds of the options that were chosen, None for a question that was dismissed.
    """

    ending: str = "Nothing was said."
    has_failed: bool = False
    seconds: float = 0.0
    answers: list[str | None] = field(default_factory=list)

    def add(self, result: PromptResult) -> None:
        """Take in how a turn ended."""
        if result.error is not None:
            self.fail(f"The turn failed: {in_words(result.error)}")
        else:
            self.ending = ENDINGS.get(str(result.stop_reason), f"The turn ended: {result.stop_reason}")

    def fail(self, ending: str) -> None:
        self.ending = ending
        self.has_failed = True


def summarise(outcome: Outcome, calls: list[ToolCallRow], changes: list[str]) -> Summary:
    """`changes` are of the workspace's files, in words."""
    facts = [
        ("files", ", ".join(changes) or "nothing changed"),
        ("calls", counted([row.status for row in calls])),
        ("asked", counted([ANSWERS.get(answer or "", "dismissed") for answer in outcome.answers])),
        ("time", f"{outcome.seconds:.1f} s"),
    ]
    return Summary(outcome.ending, not outcome.has_failed, facts, next_steps())


def next_steps() -> list[tuple[str, str]]:
    """For somebody who saw this for the first time."""
    return [
        ("in an editor", f"name it as an agent (Zed: agent_servers in the settings); the command is {command()}"),
        ("with a model", "add --model openai:NAME, anthropic:NAME or http://localhost:11434/v1#NAME to the command"),
        ("your own script", "acp-agent demo FILE plays a scenario of yours, and --scenario FILE serves it"),
    ]


def command() -> str:
    """How this program is started from anywhere: an editor's PATH need not be that of a shell."""
    beside = shutil.which("acp-agent", path=str(Path(sys.executable).parent))
    return beside or shutil.which("acp-agent") or f"{sys.executable} -m acp_agent"


def in_words(error: RequestError) -> str:
    """The sentence of an error, and what a person can act on."""
    details = error.data.get("details") if isinstance(error.data, dict) else None
    return clean(f"{error.message}: {details}" if details else error.message)


def counted(words: list[str]) -> str:
    """`2 completed, 1 failed`"""
    return ", ".join(f"{count} {word}" for word, count in Counter(words).items()) or "none"

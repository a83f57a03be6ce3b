"""Regular expressions from a model: refused when they are none, and when they could run for ever."""

from __future__ import annotations

import re
import warnings

from acp_agent.errors import ToolError

__all__ = ["compile_expression", "literal_of", "may_explode"]

_UNBOUNDED = re.compile(r"[*+]|\{\d*,\}")


def compile_expression(pattern: str) -> re.Pattern[str]:
    """Raises `ToolError` for what is no expression, and for one that could run for ever and hold up everything."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expression = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(f"{pattern!r} is no regular expression: {error}. Escape what is meant literally.") from error
    if may_explode(pattern):
        raise ToolError(f"{pattern!r} repeats a repetition, which can take for ever. Write it without the outer one.")
    return expression


def literal_of(pattern: str) -> str:
    """`pattern` when it means itself, else nothing."""
    return pattern if not re.search(r"[\\^$.|?*+()\[\]{}]", pattern) else ""


def may_explode(pattern: str) -> bool:
    """Whether a group that may end in a repetition, or repeats a dot, is itself repeated without bound: `(a+)+`.

    Python's `re` holds the interpreter while it searches, so that not even a cancel gets through.
    """
    plain = re.sub(r"\[\]?(?:\\.|[^\]\\])*\]", "a", re.sub(r"\\.", "a", pattern))
    groups = [False]
    for at, character in enumerate(plain):
        if character == "(":
            groups.append(False)
        elif character == ")" and len(groups) > 1:
            repeats = groups.pop()
            if repeats and _UNBOUNDED.match(plain, at + 1) and _is_loose(plain, at):
                return True
            groups[-1] |= repeats
        elif _UNBOUNDED.match(plain, at):
            groups[-1] = True
    return False


def _is_loose(plain: str, end: int) -> bool:
    """Whether the group that ends at `end` could be cut into rounds in many ways."""
    body = plain[plain.rfind("(", 0, end) : end]
    return plain[end - 1] in "*+?})" or bool(re.search(r"\.(?:[*+]|\{\d*,\})|[*+}]\|", body))

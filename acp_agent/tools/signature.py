"""A function read as a tool: its signature becomes a Struct, its docstring the descriptions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from acp_agent.tools.base import ToolContext

__all__ = ["Signature", "read_signature"]


class Signature(Struct, frozen=True):
    """`arguments` is a Struct with a field for each parameter; `wants_context` that the first one is the context."""

    arguments: type[Struct]
    wants_context: bool
    description: str


def read_signature(function: Callable[..., Any], context_types: tuple[type, ...] = (ToolContext,)) -> Signature:
    """Raises `TypeError`, naming function and parameter, for what no JSON object can call."""
    name = getattr(function, "__name__", repr(function))
    try:
        hints = get_type_hints(function, localns={kind.__name__: kind for kind in context_types}, include_extras=True)
    except NameError as error:
        raise TypeError(f"{name}: the annotations cannot be read: {error}") from error
    parameters = list(inspect.signature(function).parameters.values())
    wants_context = bool(parameters) and hints.get(parameters[0].name) in context_types
    summary, notes = read_docstring(inspect.getdoc(function) or "")
    fields = [
        _field(name, parameter, hints.get(parameter.name, Any), notes.get(parameter.name))
        for parameter in parameters[wants_context:]
    ]
    arguments = msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)
    return Signature(arguments, wants_context, summary)


def _field(function: str, parameter: inspect.Parameter, hint: Any, note: str | None) -> tuple[str, Any, Any]:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise TypeError(f"{function}: parameter {parameter} cannot be given by name, as a model does")
    if note:
        hint = Annotated[hint, Meta(description=note)]
    default = parameter.default
    if default is parameter.empty:
        return (parameter.name, hint, msgspec.NODEFAULT)
    if default is None or isinstance(default, str | int | float | bool):
        return (parameter.name, hint, default)
    return (parameter.name, hint | UnsetType, UNSET)  # left out of the call, so that the function's own one counts


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The first paragraph on one line, and what the "Args:" section says of each parameter."""
    summary = " ".join(re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0].split())
    section = re.search(r"^(?:Args|Arguments|Parameters):\s*\n((?:[ \t]+\S.*(?:\n|$)|[ \t]*\n)+)", text, re.MULTILINE)
    notes: dict[str, str] = {}
    current = ""
    indent = None
    for line in section.group(1).splitlines() if section else ():
        match = re.match(r"(\s+)\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)", line)
        if match and (indent is None or len(match.group(1)) <= indent):
            indent = len(match.group(1))
            current = match.group(2)
            notes[current] = match.group(3).strip()
        elif current and line.strip():
            notes[current] = f"{notes[current]} {line.strip()}".strip()
    return summary, notes

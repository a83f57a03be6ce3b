"""A tool's schema as models and providers take it: an object, complete in itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["inline_references"]

MOST_NODES = 5_000
LEFT_OUT = ("$defs", "definitions", "$schema", "$id")


def inline_references(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` as an object, each local `$ref` written out.

    What refers to itself, to nothing that is there, or is too large to be written out, may be anything.
    """
    own = {key: value for key, value in schema.items() if key not in LEFT_OUT}
    inlined: dict[str, Any] = _Inlining(schema).of(own, ())
    return {"properties": {}} | inlined | {"type": "object"}


class _Inlining:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def of(self, node: Any, inside: tuple[str, ...]) -> Any:
        """`node` written out; `inside` are the references that it is being written out for."""
        self._nodes += 1
        if isinstance(node, list):
            return [self.of(item, inside) for item in node]
        if not isinstance(node, Mapping):
            return node
        if self._nodes > MOST_NODES:
            return {}
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return {key: self.of(value, inside) for key, value in node.items()}
        beside = {key: self.of(value, inside) for key, value in node.items() if key != "$ref"}
        if reference in inside:
            return beside
        target = self.of(self._named(reference), (*inside, reference))
        return {**target, **beside} if isinstance(target, dict) else beside

    def _named(self, reference: str) -> Any:
        """What `#/$defs/Name` names in the schema; an empty one if nothing."""
        if not reference.startswith("#"):
            return {}
        node: Any = self._root
        for part in filter(None, reference[1:].split("/")):
            step = part.replace("~1", "/").replace("~0", "~")
            node = node.get(step, {}) if isinstance(node, Mapping) else {}
        return node

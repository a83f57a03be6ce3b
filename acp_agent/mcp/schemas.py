"""A server's input schemas: put in place for models, and checked before anything is asked or sent.

The check is a courtesy to the model, which gets a better text sooner; a schema that cannot be used for it is the
server's own business, and the server judges the call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jsonschema import SchemaError
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

__all__ = ["ArgumentCheck", "model_schema"]

_NODE_LIMIT = 5_000
_LEFT_OUT = ("$defs", "definitions", "$schema", "$id")


def model_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` as models get it: an object, each local `$ref` replaced by what it names.

    What names itself, or nothing, becomes a schema that takes anything; so does what is beyond the size limit.
    """
    inlined = _Inlining(schema).of(schema, ())
    whole: dict[str, Any] = inlined if isinstance(inlined, dict) else {}
    return {"properties": {}} | whole | {"type": "object"}


class _Inlining:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def of(self, node: Any, within: tuple[str, ...]) -> Any:
        self._nodes += 1
        if isinstance(node, list):
            return [self.of(item, within) for item in node]
        if not isinstance(node, dict):
            return node
        if self._nodes > _NODE_LIMIT:
            return {}
        beside = {key: self.of(value, within) for key, value in node.items() if key not in (*_LEFT_OUT, "$ref")}
        reference = node.get("$ref")
        if not isinstance(reference, str) or reference in within:
            return beside
        target = self.of(_lookup(self._root, reference), (*within, reference))
        return (target if isinstance(target, dict) else {}) | beside


def _lookup(root: Any, reference: str) -> Any:
    """What a JSON pointer within the document names; None if it names nothing there."""
    if not reference.startswith("#"):
        return None
    found = root
    for part in filter(None, reference[1:].split("/")):
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or key not in found:
            return None
        found = found[key]
    return found


class ArgumentCheck:
    """Checks arguments by a server's schema; compiled when first asked, nothing is ever fetched for it."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._validator: Validator | None = None
        self._compiled = False

    def problem(self, arguments: dict[str, Any]) -> str | None:
        """What is wrong with the arguments, for the model to mend; None if nothing is, or it cannot be told."""
        if not self._compiled:
            self._validator, self._compiled = _compile(self._schema), True
        if self._validator is None:
            return None
        try:
            error = best_match(self._validator.iter_errors(arguments))
        except (Unresolvable, re.error, TypeError, ValueError, RecursionError):
            return None
        if error is None:
            return None
        place = error.json_path
        return f"{error.message[:500]} (at {place})" if place != "$" else error.message[:500]


def _compile(schema: dict[str, Any]) -> Validator | None:
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except (SchemaError, re.error, RecursionError):
        return None
    return kind(schema, registry=Registry())

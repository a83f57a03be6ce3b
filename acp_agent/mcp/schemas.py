"""A server's input schemas, checked before anything is asked or sent.

The check is a courtesy to the model, which gets a better text sooner; a schema that cannot be used for it is the
server's own business, and the server judges the call.
"""

from __future__ import annotations

import re
from typing import Any

from jsonschema import SchemaError
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

__all__ = ["ArgumentCheck"]


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

"""Arguments of a call: a Struct is their schema, and what does not fit is said so that a model can mend it."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from acp_agent.errors import ToolError
from acp_agent.json_schema import inline_references
from acp_agent.tools.base import Tool

__all__ = ["ArgumentTool", "decode_arguments", "schema_of"]

T = TypeVar("T")


def decode_arguments(kind: type[T], arguments: dict[str, Any]) -> T:
    """`arguments` as `kind`; numbers and booleans are taken from strings too, as some models write them."""
    try:
        return msgspec.convert(arguments, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ToolError(f"The arguments do not fit: {error}.") from error


def schema_of(kind: type[Any]) -> dict[str, Any]:
    """The JSON Schema of `kind`, an object with everything in place: no `$ref`, which some providers refuse."""
    (schema,), components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    whole = inline_references(schema | {"$defs": components})
    return {key: value for key, value in whole.items() if key not in ("title", "description")}


class ArgumentTool(Tool):
    """A tool whose arguments are a Struct; the schema is made of it when a model first asks, not at start."""

    arguments: type[msgspec.Struct]
    _schema: dict[str, Any] | None = None

    @property
    def input_schema(self) -> dict[str, Any]:
        if self._schema is None:
            self._schema = schema_of(self.arguments)
        return self._schema

    @input_schema.setter
    def input_schema(self, schema: dict[str, Any]) -> None:
        self._schema = schema

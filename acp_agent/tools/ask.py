"""ask_user: a question as a form where the editor shows forms, else as words that end the turn."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from acp_agent.content import ContentItem, TextContent, clean_text
from acp_agent.errors import ToolError
from acp_agent.tools.arguments import ArgumentTool, decode_arguments
from acp_agent.tools.base import Proposal, ToolContext, ToolOutput
from acp_agent.tools.text import cut_text, visible

__all__ = ["AskUser"]

ANSWER, OTHER = "answer", "other"
MAX_ANSWER_BYTES = 32 * 1024
SECRETS = (
    r"pass(word|phrase|code)|\bsecret|api[ _-]?key|private[ _-]?key|(access|auth|bearer|api)[ _-]?token|credential"
)
DEMANDS = r"\b(enter|give|provide|type|paste|share|send|tell|what(?:'s| is| are))\b"


class Field(Struct, forbid_unknown_fields=True):
    """One field of a form."""

    name: Annotated[str, Meta(description="The key of the answer.", pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
    type: Annotated[
        Literal["text", "number", "integer", "boolean", "choice", "choices"],
        Meta(description="choice is one of options, choices any of them."),
    ] = "text"
    title: Annotated[str, Meta(description="What the user reads beside the field.")] | None = None
    description: str | None = None
    options: list[str] | None = None
    required: bool = True


class AskArguments(Struct, forbid_unknown_fields=True):
    question: Annotated[str, Meta(description="What you need to know, in one or two sentences.", min_length=1)]
    options: Annotated[list[str], Meta(description="Answers to choose from; the user may give another.")] | None = None
    multiple: Annotated[bool, Meta(description="Whether several options may be chosen.")] = False
    fields: Annotated[list[Field], Meta(description="For several questions at once: the fields of a form.")] | None = (
        None
    )


class AskUser(ArgumentTool):
    """A question to the user. Never for secrets: an answer goes to the model and is kept."""

    name = "ask_user"
    description = (
        "Ask the user something that you cannot find out yourself and need to go on: a short question, with options "
        "where you can name them. Never ask for passwords, keys or tokens."
    )
    kind = "other"
    permission = "allow"
    arguments = AskArguments

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        wanted = decode_arguments(AskArguments, arguments)
        fields = _fields(wanted)
        _refuse_secrets(wanted.question, fields)
        return Proposal(
            title=f"Ask: {visible(wanted.question)}",
            kind=self.kind,
            arguments=arguments,
            permission="allow",
            read_only=True,
            state=fields,
        )

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        wanted = decode_arguments(AskArguments, proposal.arguments)
        fields: list[Field] = proposal.state
        if not context.editor.can_show_forms:
            await context.send_text(_in_words(wanted.question, fields))
            return ToolOutput(
                content=[ContentItem(TextContent("The question is in the conversation."))],
                told=[TextContent("The question is shown. The user answers with the next message; end your turn now.")],
                ends_turn=True,
            )
        answer = await context.editor.ask_form(wanted.question, _form(fields))
        if answer.action != "accept":
            said = "declined to answer" if answer.action == "decline" else "dismissed the question without an answer"
            return ToolOutput.of_text(f"The user {said}.", raw_output={"action": answer.action})
        values = _check(fields, answer.values)
        lines = [f"{_label(fields, name)}: {_spelled(value)}" for name, value in values.items()]
        text = "\n".join(lines) or "The user left it empty."
        told = f"The user answered.\n{text}"
        return ToolOutput(
            content=[ContentItem(TextContent(text))],
            told=[TextContent(cut_text(told, MAX_ANSWER_BYTES))],
            raw_output={"action": "accept"},
        )


def _fields(wanted: AskArguments) -> list[Field]:
    """The fields to show: as given; or the options with a place for another answer; or one place for an answer."""
    if wanted.fields:
        fields = wanted.fields
        if wanted.options:
            raise ToolError("Give either options or fields.")
    elif wanted.options:
        kind: Literal["choice", "choices"] = "choices" if wanted.multiple else "choice"
        fields = [
            Field(ANSWER, kind, "Your answer", options=wanted.options, required=False),
            Field(OTHER, "text", "Something else", required=False),
        ]
    else:
        fields = [Field(ANSWER, "text", "Your answer")]
    for field in fields:
        options = field.options or []
        if field.type in ("choice", "choices") and (not options or len(set(options)) < len(options)):
            raise ToolError(f"Field {field.name!r} needs options, each different.")
    if len({field.name for field in fields}) < len(fields):
        raise ToolError("Two fields have the same name.")
    return fields


def _refuse_secrets(question: str, fields: list[Field]) -> None:
    typed = [field for field in fields if field.type == "text"]
    labels = " ".join(f"{field.name} {field.title or ''}" for field in typed)
    if typed and (_has(SECRETS, labels) or (_has(SECRETS, question) and _has(DEMANDS, question))):
        raise ToolError(
            "Do not ask for secrets: an answer is sent to the model and kept. Ask the user to put it where the program "
            "reads it, an environment variable or a settings file."
        )


def _has(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def _form(fields: list[Field]) -> dict[str, Any]:
    """The form as the protocol's flat schema."""
    required = [field.name for field in fields if field.required]
    schema: dict[str, Any] = {"type": "object", "properties": {field.name: _property(field) for field in fields}}
    return schema | ({"required": required} if required else {})


def _property(field: Field) -> dict[str, Any]:
    labels = {"title": field.title or field.name.replace("_", " ").capitalize()}
    if field.description:
        labels["description"] = field.description
    match field.type:
        case "text":
            return {"type": "string", **labels}
        case "choice":
            return {"type": "string", "enum": field.options, **labels}
        case "choices":
            return {"type": "array", "items": {"type": "string", "enum": field.options}, **labels}
        case "number" | "integer" | "boolean":
            return {"type": field.type, **labels}


def _check(fields: list[Field], values: Mapping[str, Any]) -> dict[str, Any]:
    """The answers that fit their fields, in order; what was left empty is left out. Raises `ToolError`."""
    checked: dict[str, Any] = {}
    for field in fields:
        value = values.get(field.name)
        if value in (None, "", []):
            if field.required and value != []:
                raise ToolError(f"The editor's form came back without {field.name!r}. Ask in words instead.")
            continue
        if not _fits(field, value):
            raise ToolError(f"The editor's form came back with an answer for {field.name!r} that does not fit it.")
        checked[field.name] = value
    return checked


def _fits(field: Field, value: Any) -> bool:
    options = field.options or []
    match field.type:
        case "text":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        case "choice":
            return value in options
        case "choices":
            return isinstance(value, list) and all(item in options for item in value)


def _label(fields: list[Field], name: str) -> str:
    if len(fields) == 1 or name in (ANSWER, OTHER):
        return "Answer" if name != OTHER else "Something else"
    return name


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return clean_text(", ".join(map(str, value)) if isinstance(value, list) else str(value))


def _in_words(question: str, fields: list[Field]) -> str:
    """The question as a message; the user answers with the next prompt."""
    lines: list[str] = []
    for field in fields:
        if field.name not in (ANSWER, OTHER):
            lines.append(f"- {field.title or field.name}" + (f": {', '.join(field.options)}" if field.options else ""))
        elif field.options:
            lines += [f"{number}. {option}" for number, option in enumerate(field.options, 1)]
    return "\n\n".join([question, "\n".join(lines)]) if lines else question

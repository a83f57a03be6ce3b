"""write_file and edit_file: a diff is judged first, and only that diff is made."""

from __future__ import annotations

import re
from abc import abstractmethod
from bisect import bisect_left
from itertools import islice
from typing import Annotated, Any

from msgspec import Meta, Struct

from acp_agent.content import Diff, Location, TextContent
from acp_agent.errors import FileMissing, ToolError
from acp_agent.tools.arguments import ArgumentTool, decode_arguments
from acp_agent.tools.base import Proposal, TextFile, ToolContext, ToolOutput
from acp_agent.tools.files import encode_text
from acp_agent.tools.paths import Target, judge_path

__all__ = ["EditFile", "WriteFile", "replace_text"]

MAX_FOUND = 100  # places that are counted of a text that should be there once
MAX_EDIT_BYTES = 2 * 1024 * 1024  # a diff carries the file twice, in one line


class Change(Struct):
    """An edit between its steps: the file as it was judged and as it will be, or why there is nothing to judge."""

    target: Target
    before: TextFile | None = None
    after: TextFile | None = None
    line: int | None = None
    problem: str = ""

    def diff(self) -> Diff:
        assert self.before is not None
        assert self.after is not None
        return Diff(self.target.shown, self.after.text, self.before.text if self.before.exists else None)


class TextChange(ArgumentTool):
    """What writing and editing share: they differ in how the new text is found."""

    kind = "edit"

    @abstractmethod
    def change_text(self, before: TextFile, target: Target, arguments: dict[str, Any]) -> tuple[str, int | None]:
        """The new text, and the 1-based line where it begins to differ. Raises `ToolError`."""

    def propose(self, verb: str, doing: str, path: str, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        target = judge_path(context, path)
        return Proposal(
            title=f"{verb} {target.label}",
            kind=self.kind,
            arguments=arguments,
            key=target.shown,
            scope=f"{doing} {target.label}",
            locations=[target.location],
            content=target.warning(),
            outside=target.outside,
            sensitive=target.secret or target.internal,
            state=Change(target),
        )

    async def prepare(self, proposal: Proposal, context: ToolContext) -> None:
        """Show the diff, or fail early. Of a file that needs the user's word, the model learns nothing before it."""
        change: Change = proposal.state
        try:
            await self._plan(change, proposal.arguments, context)
        except ToolError as error:
            if not change.target.is_guarded:
                raise
            change.problem = str(error)
        else:
            proposal.content = [change.diff(), *change.target.warning()]
            proposal.locations = [Location(change.target.shown, change.line)]

    async def _plan(self, change: Change, arguments: dict[str, Any], context: ToolContext) -> None:
        target = change.target
        before = await _read_before(target, context)
        text, change.line = self.change_text(before, target, arguments)
        after = TextFile(text=text, encoding=before.encoding, bom=before.bom)
        if len(encode_text(after, target.path)) > MAX_EDIT_BYTES:
            raise ToolError(f"The new text is too large ({len(text):,} characters).")
        change.before, change.after = before, after

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        change: Change = proposal.state
        target = change.target
        if change.problem or change.before is None or change.after is None:
            raise ToolError(change.problem or "The change was not prepared.")
        moved = judge_path(context, target.path).real != target.real
        if moved or await _read_before(target, context) != change.before:
            raise ToolError(f"{target.label} changed while the question was open. Nothing was written; read it again.")
        await context.workspace.write_text(target.path, change.after, outside=target.outside)
        created = not change.before.exists
        place = f" (line {change.line})" if change.line else ""
        return ToolOutput(
            content=[change.diff()],
            told=[TextContent(f"{'Created' if created else 'Changed'} {target.label}{place}.")],
            raw_output={"path": target.shown, "created": created},
            locations=list(proposal.locations),
        )


async def _read_before(target: Target, context: ToolContext) -> TextFile:
    """The file as it is; one that is not there is an empty one that does not exist."""
    try:
        file = await context.workspace.read_text(target.path, outside=target.outside)
    except FileMissing:
        return TextFile(text="", exists=False)
    if len(file.text) > MAX_EDIT_BYTES:
        raise ToolError(f"{target.label} is too large to edit ({len(file.text):,} characters).")
    return file


class WriteArguments(Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file, absolute or relative to the working directory.", min_length=1)]
    content: Annotated[str, Meta(description="The whole text of the file.")]


class WriteFile(TextChange):
    """A file made, or its whole text replaced."""

    name = "write_file"
    description = "Create a file, or replace all of its text. To change a part of a file use edit_file."
    arguments = WriteArguments

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        wanted = decode_arguments(WriteArguments, arguments)
        return self.propose("Write", "writing", wanted.path, arguments, context)

    def change_text(self, before: TextFile, target: Target, arguments: dict[str, Any]) -> tuple[str, int | None]:
        text = decode_arguments(WriteArguments, arguments).content
        if _line_end(before.text) == "\r\n":
            text = _with_line_ends(text, "\r\n")
        if before.exists and text == before.text:
            raise ToolError(f"{target.label} has exactly this text already.")
        return text, None


class EditArguments(Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file, absolute or relative to the working directory.", min_length=1)]
    old_text: Annotated[
        str, Meta(description="The text to replace, exactly as in the file, with enough around it to be unique.")
    ]
    new_text: Annotated[str, Meta(description="What stands there afterwards.")]
    replace_all: Annotated[bool, Meta(description="Replace each occurrence instead of exactly one.")] = False


class EditFile(TextChange):
    """One piece of text replaced by another; every other byte of the file stays."""

    name = "edit_file"
    description = (
        "Replace a piece of text in a file. old_text must match exactly, white space too, and occur once unless "
        "replace_all is true. Read the file first."
    )
    arguments = EditArguments

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        wanted = decode_arguments(EditArguments, arguments)
        if not wanted.old_text:
            raise ToolError("old_text is empty. To make a new file, or replace all of one, use write_file.")
        if wanted.old_text == wanted.new_text:
            raise ToolError("old_text and new_text are the same; there is nothing to change.")
        return self.propose("Edit", "editing", wanted.path, arguments, context)

    def change_text(self, before: TextFile, target: Target, arguments: dict[str, Any]) -> tuple[str, int | None]:
        wanted = decode_arguments(EditArguments, arguments)
        if not before.exists:
            raise ToolError(f"There is no file {target.label}. To make it, use write_file.")
        try:
            text, start = replace_text(before.text, wanted.old_text, wanted.new_text, replace_all=wanted.replace_all)
        except ToolError as error:
            raise ToolError(f"{target.label}: {error}") from error
        return text, before.text.count("\n", 0, start) + 1


def replace_text(text: str, old: str, new: str, *, replace_all: bool = False) -> tuple[str, int]:
    """`text` with `old` replaced, and where the first change begins; everything else is kept as it is.

    `\\n` in `old` matches the file's `\\r\\n` too, and `new` takes on the line end of the place it comes to.
    Raises `ToolError` when `old` is not there, or more than once without `replace_all`.
    """
    found = _find(text, old, replace_all) or _find_any_line_end(text, old, replace_all)
    if not found:
        raise ToolError(_not_found(text, old))
    if len(found) > 1 and not replace_all:
        raise ToolError(_found_often(text, found))
    usual = _line_end(text)
    pieces: list[str] = []
    kept = 0
    for start, end in found:
        pieces += [text[kept:start], _with_line_ends(new, _line_end(text[start:end]) or usual)]
        kept = end
    changed = "".join([*pieces, text[kept:]])
    if changed == text:
        raise ToolError("the change would leave the file as it is.")
    return changed, found[0][0]


def _find(text: str, old: str, replace_all: bool) -> list[tuple[int, int]]:
    """Start and end of each place of `old`: all that do not overlap, or a few, to see whether there is only one."""
    found: list[tuple[int, int]] = []
    start = text.find(old)
    while start >= 0 and (replace_all or len(found) < MAX_FOUND):
        found.append((start, start + len(old)))
        start = text.find(old, start + (len(old) if replace_all else 1))
    return found


def _find_any_line_end(text: str, old: str, replace_all: bool) -> list[tuple[int, int]]:
    """The same, with `\\n` and `\\r\\n` taken for equal."""
    if "\n" not in old:
        return []
    pairs = [match.start() - before for before, match in enumerate(re.finditer("\r\n", text))]  # where each comes to be
    plain = text.replace("\r\n", "\n")
    return [
        (start + bisect_left(pairs, start), end + bisect_left(pairs, end))
        for start, end in _find(plain, old.replace("\r\n", "\n"), replace_all)
    ]


def _found_often(text: str, found: list[tuple[int, int]]) -> str:
    lines = ", ".join(str(text.count("\n", 0, start) + 1) for start, _ in found[:10])
    number = f"{len(found)} times" if len(found) < MAX_FOUND else f"{MAX_FOUND} times or more"
    return (
        f"the text was found {number}, at lines {lines}{', …' if len(found) > 10 else ''}. "
        "Give more of the text around the one you mean, or set replace_all."
    )


def _line_end(text: str) -> str:
    """The line end that `text` uses most; empty when it has none."""
    windows = text.count("\r\n")
    unix = text.count("\n") - windows
    return "\r\n" if windows > unix else "\n" if unix else ""


def _with_line_ends(text: str, line_end: str) -> str:
    return re.sub(r"(?<!\r)\n", "\r\n", text) if line_end == "\r\n" else text


def _not_found(text: str, old: str) -> str:
    """What to tell a model whose `old` is not in `text`: the likely reason, when there is one to see."""
    line = _line_of_words(text, old)
    if line:
        return f"the text was not found, but it is there at line {line} with other white space. Copy it exactly."
    first = old.strip().split("\n", 1)[0].strip()
    lines = [number for number, line in enumerate(text.split("\n"), 1) if first and first in line]
    if lines and "\n" in old.strip():
        places = ", ".join(map(str, lines[:5]))
        return f"the text was not found; its first line is at line {places}, but what follows there differs."
    return "the text was not found. Read the file again; it may have changed."


def _line_of_words(text: str, old: str) -> int:
    """The line where the words of `old` follow each other in `text`, whatever is between them; 0 for none."""
    wanted = f" {' '.join(old.split())} "
    words = f" {' '.join(text.split())} "
    at = words.find(wanted) if wanted.strip() else -1
    if at < 0:
        return 0
    first = next(islice(re.finditer(r"\S+", text), words.count(" ", 0, at), None))
    return text.count("\n", 0, first.start()) + 1

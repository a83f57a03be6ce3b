"""delete_file and move_file: shown as diffs where there is text, judged by the entry and not by where a link leads."""

from __future__ import annotations

import os
from typing import Annotated, Any

import anyio
from msgspec import Meta, Struct

from acp_agent.content import ContentItem, Diff, TextContent, ToolContent
from acp_agent.errors import FileMissing, ToolError
from acp_agent.tools.arguments import ArgumentTool, decode_arguments
from acp_agent.tools.base import Proposal, ToolContext, ToolOutput
from acp_agent.tools.paths import Target, judge_entry
from acp_agent.tools.text import cut_text

__all__ = ["DeleteFile", "MoveFile"]

MAX_SHOWN_BYTES = 256 * 1024  # of a file that goes: enough to judge it
CHANGED = "{} changed while the question was open; nothing was done. Look at it again."


class Entry(Struct):
    """A directory entry between the steps: what it was when it was judged."""

    target: Target
    stamp: tuple[int, int, int] | None = None
    text: str | None = None
    note: str = ""

    def unchanged(self) -> bool:
        return self.stamp is None or _stamp(self.target.real) == self.stamp


def _stamp(path: str) -> tuple[int, int, int]:
    """What tells that an entry is still the one that was judged."""
    try:
        entry = os.lstat(path)
    except OSError:
        return (0, 0, 0)
    return (entry.st_ino, entry.st_mtime_ns, entry.st_size)


async def look_at(target: Target, context: ToolContext, *, folders: bool) -> Entry:
    """The entry as it is. Raises `ToolError` for what is not there, and for a folder where none is meant."""
    path = anyio.Path(target.real)
    entry = Entry(target)
    if await path.is_symlink():
        entry.note = "a symbolic link"
    elif await path.is_dir():
        if not folders:
            raise ToolError(f"{target.label} is a folder. To delete a folder, run a command.")
        entry.note = "a folder with all that is in it"
    elif not await path.exists():
        raise FileMissing(f"There is no file {target.label}.")
    else:
        try:
            file = await context.workspace.read_text(target.real, outside=target.outside)
            entry.text = file.text if len(file.text) <= MAX_SHOWN_BYTES else cut_text(file.text, MAX_SHOWN_BYTES)
        except FileMissing:
            raise
        except ToolError:
            entry.note = "not a text file"
    entry.stamp = _stamp(target.real)
    return entry


class PathArguments(Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file, absolute or relative to the working directory.", min_length=1)]


class DeleteFile(ArgumentTool):
    """One file gone; a symbolic link itself, not where it leads."""

    name = "delete_file"
    description = "Delete one file. Folders are not deleted."
    kind = "delete"
    arguments = PathArguments

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        target = judge_entry(context, decode_arguments(PathArguments, arguments).path)
        return Proposal(
            title=f"Delete {target.label}",
            kind=self.kind,
            arguments=arguments,
            key=target.shown,
            scope=f"deleting {target.label}",
            locations=[target.location],
            outside=target.outside,
            sensitive=target.secret or target.internal,
            state=Entry(target),
        )

    async def prepare(self, proposal: Proposal, context: ToolContext) -> None:
        entry: Entry = proposal.state
        if not entry.target.is_guarded:  # else nothing is said of it before the user allowed it
            proposal.state = entry = await look_at(entry.target, context, folders=False)
        proposal.content = [*_gone(entry), *entry.target.warning()]

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        entry: Entry = proposal.state
        target = entry.target
        if not entry.unchanged() or judge_entry(context, target.path).real != target.real:
            raise ToolError(CHANGED.format(target.label))
        await context.workspace.delete_file(target.real, outside=target.outside)
        text = TextContent(f"Deleted {target.label}.")
        return ToolOutput(content=[*_gone(entry), ContentItem(text)], told=[text], raw_output={"path": target.shown})


def _gone(entry: Entry) -> list[ToolContent]:
    if entry.text is not None:
        return [Diff(entry.target.shown, "", entry.text)]
    return [ContentItem(TextContent(f"{entry.target.label} is {entry.note}."))] if entry.note else []


class MoveArguments(Struct, forbid_unknown_fields=True):
    source: Annotated[str, Meta(description="What is to be moved or renamed.", min_length=1)]
    destination: Annotated[str, Meta(description="Its new path; nothing may be there yet.", min_length=1)]


class Move(Struct, frozen=True):
    source: Entry
    destination: Target


class MoveFile(ArgumentTool):
    """A file or folder under another path. Nothing is replaced."""

    name = "move_file"
    description = "Move or rename a file or folder. The destination must not exist; missing folders are made."
    kind = "move"
    arguments = MoveArguments

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        wanted = decode_arguments(MoveArguments, arguments)
        source = judge_entry(context, wanted.source)
        destination = judge_entry(context, wanted.destination)
        if source.real == destination.real:
            raise ToolError("source and destination are the same.")
        return Proposal(
            title=f"Move {source.label} to {destination.label}",
            kind=self.kind,
            arguments=arguments,
            key=f"{source.shown} -> {destination.shown}",
            scope=f"moving {source.label} to {destination.label}",
            locations=[source.location, destination.location],
            outside=source.outside or destination.outside,
            sensitive=any(end.secret or end.internal for end in (source, destination)),
            state=Move(Entry(source), destination),
        )

    async def prepare(self, proposal: Proposal, context: ToolContext) -> None:
        move: Move = proposal.state
        if not (move.source.target.is_guarded or move.destination.is_guarded):
            source = await look_at(move.source.target, context, folders=True)
            if await anyio.to_thread.run_sync(os.path.lexists, move.destination.real):
                raise ToolError(f"There is something at {move.destination.label} already.")
            proposal.state = move = Move(source, move.destination)
        proposal.content = [*_moved(move), *move.source.target.warning(), *move.destination.warning()]

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        move: Move = proposal.state
        source, destination = move.source.target, move.destination
        for target in (source, destination):
            if judge_entry(context, target.path).real != target.real or not move.source.unchanged():
                raise ToolError(CHANGED.format(target.label))
        outside = source.outside or destination.outside
        await context.workspace.move_file(source.real, destination.real, outside=outside)
        text = TextContent(f"Moved {source.label} to {destination.label}.")
        return ToolOutput(
            content=[*reversed(_moved(move)), ContentItem(text)],  # what is there now comes first
            told=[text],
            raw_output={"source": source.shown, "destination": destination.shown},
            locations=[destination.location],
        )


def _moved(move: Move) -> list[ToolContent]:
    """Protocol version 1 has no move: the text goes here and comes there."""
    source = move.source
    if source.text is None:
        return _gone(source)
    return [Diff(source.target.shown, "", source.text), Diff(move.destination.shown, source.text)]

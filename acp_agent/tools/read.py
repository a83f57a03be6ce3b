"""read_file and list_directory."""

from __future__ import annotations

import base64
import functools
import os
from typing import Annotated, Any

import anyio.to_thread
from msgspec import Meta, Struct

from acp_agent.content import ContentBlock, ContentItem, ImageContent, Location, TextContent
from acp_agent.errors import ToolError
from acp_agent.tools.arguments import ArgumentTool, decode_arguments
from acp_agent.tools.base import Proposal, Tool, ToolContext, ToolOutput
from acp_agent.tools.files import list_folder
from acp_agent.tools.paths import Target, judge_path, shown_name
from acp_agent.tools.text import DISPLAY_LIMIT, MODEL_LIMIT, cut_text, fenced

__all__ = ["ListDirectory", "ReadFile", "propose_reading"]

MAX_LINES = 2000
MAX_LINE_LENGTH = 2000  # characters; a minified file is one line
MAX_IMAGE_BYTES = 4 * 1024 * 1024
MAX_ENTRIES = 1000
IMAGE_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"} | {
    ".webp": "image/webp"
}


def propose_reading(tool: Tool, title: str, target: Target, arguments: dict[str, Any], line: int | None) -> Proposal:
    """Reading is allowed inside the roots; outside, and for secrets, the user is asked."""
    return Proposal(
        title=title,
        kind=tool.kind,
        arguments=arguments,
        permission="ask" if target.is_guarded else "allow",
        key=target.shown,
        scope=f"reading {target.label}",
        locations=[Location(target.shown, line)],
        content=target.warning() if target.is_guarded else [],
        outside=target.outside,
        sensitive=target.secret,
        read_only=True,
        state=target,
    )


class ReadArguments(Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file, absolute or relative to the working directory.", min_length=1)]
    line: Annotated[int, Meta(description="The first line to read, counted from 1.", ge=1)] | None = None
    limit: Annotated[int, Meta(description="How many lines to read at most.", ge=1)] | None = None


class ReadFile(ArgumentTool):
    """A file's text, or an image. `model_limit` and `display_limit` are in bytes."""

    name = "read_file"
    description = (
        "Read a text file, or look at an image. Long files come in parts: use line and limit to read on. "
        "Unsaved changes in the editor are seen."
    )
    kind = "read"
    permission = "allow"
    read_only = True
    arguments = ReadArguments

    def __init__(self, *, model_limit: int = 4 * MODEL_LIMIT, display_limit: int = DISPLAY_LIMIT) -> None:
        self.model_limit = model_limit
        self.display_limit = display_limit

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        wanted = decode_arguments(ReadArguments, arguments)
        target = judge_path(context, wanted.path)
        title = f"Read {target.label}"
        if wanted.limit:
            first = wanted.line or 1
            title += f" ({_lines(first, first + wanted.limit - 1)})"
        elif wanted.line:
            title += f" (from line {wanted.line})"
        return propose_reading(self, title, target, arguments, wanted.line)

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        target: Target = proposal.state
        mime_type = IMAGE_TYPES.get(os.path.splitext(target.real)[1].lower())
        if mime_type:
            return await self._read_image(target, mime_type, context)
        wanted = decode_arguments(ReadArguments, proposal.arguments)
        file = await context.workspace.read_text(target.path, outside=target.outside)
        lines = file.text.replace("\r\n", "\n").split("\n")
        if lines[-1] == "":
            lines.pop()  # the end of the last line, not one more
        first = (wanted.line or 1) - 1
        if first and first >= len(lines):
            raise ToolError(f"{target.label} has {len(lines)} lines; there is no line {wanted.line}.")
        return self._answer(target, lines, first, min(wanted.limit or MAX_LINES, MAX_LINES))

    def _answer(self, target: Target, lines: list[str], first: int, limit: int) -> ToolOutput:
        """Whole lines, as many as fit, and where to read on."""
        taken: list[str] = []
        room = self.model_limit
        for line in lines[first : first + limit]:
            short = line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]}[… line cut …]"
            room -= len(short.encode(errors="replace")) + 1
            if room < 0 and taken:
                break
            taken.append(short)
        text = "".join(f"{line}\n" for line in taken)
        last = first + len(taken)
        note = f"[{_lines(first + 1, last)} of {len(lines)}]" if taken else "[the file is empty]"
        if last < len(lines):
            note = f"{note[:-1]}; read on with line {last + 1}]"
        told = text if taken and first == 0 and last == len(lines) else f"{text}{note}"
        shown = fenced(cut_text(text, self.display_limit)) if taken else note
        if taken and told != text:
            shown = f"{shown}\n{note}"
        return ToolOutput(
            content=[ContentItem(TextContent(shown))],
            told=[TextContent(told)],
            raw_output={"lines": len(lines), "first": first + 1, "last": last},
        )

    async def _read_image(self, target: Target, mime_type: str, context: ToolContext) -> ToolOutput:
        data = await context.workspace.read_bytes(target.path, outside=target.outside, limit=MAX_IMAGE_BYTES + 1)
        if len(data) > MAX_IMAGE_BYTES:
            raise ToolError(f"{target.label} is an image of more than {MAX_IMAGE_BYTES // 1024 // 1024} MiB.")
        image = ImageContent(base64.b64encode(data).decode(), mime_type)
        label = TextContent(f"{target.label}, an image of {len(data):,} bytes")
        blocks: list[ContentBlock] = [label, image]
        raw_output = {"mimeType": mime_type, "bytes": len(data)}
        return ToolOutput(content=[ContentItem(block) for block in blocks], told=blocks, raw_output=raw_output)


def _lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first} to {last}"


class ListArguments(Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The folder, absolute or relative to the working directory.")] = "."


class ListDirectory(ArgumentTool):
    """The names in one folder, hidden and ignored ones too."""

    name = "list_directory"
    description = "List one folder. Folders end with a slash. Hidden and ignored files are listed too."
    kind = "search"
    permission = "allow"
    read_only = True
    arguments = ListArguments

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        wanted = decode_arguments(ListArguments, arguments)
        target = judge_path(context, wanted.path or ".")
        title = "List the working directory" if target.label == "." else f"List {target.label}"
        return propose_reading(self, title, target, arguments, None)

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        target: Target = proposal.state
        listing = functools.partial(list_folder, outside=target.outside, limit=MAX_ENTRIES)
        names, total = await anyio.to_thread.run_sync(
            listing, target.path, list(context.workspace.roots), abandon_on_cancel=True
        )
        text = "\n".join(map(shown_name, names)) or "[the folder is empty]"
        if total > len(names):
            text += f"\n[… {total - len(names):,} more …]"
        shown = fenced(cut_text(text, DISPLAY_LIMIT))
        return ToolOutput(
            content=[ContentItem(TextContent(shown))],
            told=[TextContent(cut_text(text, MODEL_LIMIT))],
            raw_output={"entries": total},
        )

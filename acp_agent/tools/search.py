"""find_files and search_text: through 50,000 files in seconds, without holding up the loop for any of them.

The work is a generator, advanced in a worker thread for a twentieth of a second at a time; between two slices a
cancel is seen, and a slice that is left behind stops at the next file.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import anyio.to_thread
from msgspec import Meta, Struct, field

from acp_agent.content import ContentItem, Location, TextContent
from acp_agent.tools.arguments import ArgumentTool, decode_arguments
from acp_agent.tools.base import Proposal, ToolContext, ToolOutput
from acp_agent.tools.expressions import compile_expression, literal_of
from acp_agent.tools.files import READ_FLAGS, file_errors, read_bytes
from acp_agent.tools.paths import Target, is_beneath, judge_path, short_path, shown_name
from acp_agent.tools.read import propose_reading
from acp_agent.tools.text import DISPLAY_LIMIT, MODEL_LIMIT, code_span, cut_text, fenced, visible
from acp_agent.tools.walk import FoundFile, match_globs, walk_files

__all__ = ["FindFiles", "SearchText"]

SLICE_SECONDS = 0.05
MAX_FILES = 1000
MAX_MATCHES = 300
MAX_PLACES = 20
MAX_SEARCHED_BYTES = 4 * 1024 * 1024  # of one file
READ_BYTES = 64 * 1024
MAX_LINE = 300  # characters shown of a line that matches
MAX_SEARCHED_LINE = 2000  # characters that are searched of a line: a slow expression stays bounded


class Hits(Struct):
    """What was found so far. `more` says that it stopped at a cap; `left_out` counts files that were not searched."""

    lines: list[str] = field(default_factory=list)
    places: list[Location] = field(default_factory=list)
    files: int = 0
    more: bool = False
    large: int = 0
    secret: int = 0

    def output(self, nothing: str, what: str) -> ToolOutput:
        notes = []
        if self.more:
            notes.append(f"[stopped after {len(self.lines):,} {what}; there are more: narrow it down]")
        if self.large:
            notes.append(f"[{self.large:,} large files were not searched]")
        if self.secret:
            notes.append(f"[{self.secret:,} files that may hold secrets were not searched]")
        text = "\n".join(self.lines) or nothing
        told = "\n".join([cut_text(text, MODEL_LIMIT), *notes])
        shown = "\n".join([fenced(cut_text(text, DISPLAY_LIMIT)) if self.lines else text, *notes])
        raw_output = {what: len(self.lines), "files": self.files, "truncated": self.more}
        return ToolOutput(
            content=[ContentItem(TextContent(shown))],
            told=[TextContent(told)],
            raw_output=raw_output,
            locations=self.places,
        )


async def run_in_slices(steps: Iterator[None]) -> None:
    """Advance `steps` to its end in a worker thread, and stop it when cancelled."""
    stopped = False

    def advance() -> bool:
        """Whether there is more to do."""
        end = time.monotonic() + SLICE_SECONDS
        for _ in steps:
            if stopped or time.monotonic() > end:
                return not stopped
        return False

    try:
        while await anyio.to_thread.run_sync(advance, abandon_on_cancel=True):
            pass
    finally:
        stopped = True


class FindArguments(Struct, forbid_unknown_fields=True):
    pattern: Annotated[
        str,
        Meta(description="A glob: `*.py` at any depth, `src/**/*.{ts,tsx}` from the working directory.", min_length=1),
    ]


class FindFiles(ArgumentTool):
    """Files by name."""

    name = "find_files"
    description = "Find files by a glob. Ignored files (.gitignore) are left out."
    kind = "search"
    permission = "allow"
    read_only = True
    arguments = FindArguments

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        pattern = decode_arguments(FindArguments, arguments).pattern
        match_globs(pattern)
        title = f"Find files {code_span(visible(pattern))}"
        return Proposal(
            title=title, kind=self.kind, arguments=arguments, permission="allow", key=pattern, read_only=True
        )

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        pattern = decode_arguments(FindArguments, proposal.arguments).pattern
        hits = Hits()
        await run_in_slices(_find(pattern, context, hits))
        return hits.output(f"No file matches {pattern}.", "found")


def _find(pattern: str, context: ToolContext, hits: Hits) -> Iterator[None]:
    cwd = os.path.realpath(context.cwd)
    for root in separate_roots(context.roots):
        inner = pattern.removeprefix(root).removeprefix(os.sep) if is_beneath(pattern, root) else pattern
        globs = match_globs(inner)
        for found in walk_files(root, context.roots):
            if found is not None and globs.match_file(found.path[len(root) :].lstrip(os.sep)):
                if len(hits.lines) == MAX_FILES:
                    hits.more = True
                    return
                hits.lines.append(short_path(found.path, cwd))
                hits.files += 1
            yield


def separate_roots(roots: Sequence[str]) -> list[str]:
    """The real roots, without those that lie in another one."""
    real = list(dict.fromkeys(map(os.path.realpath, roots)))
    return [root for root in real if not any(root != other and is_beneath(root, other) for other in real)]


class SearchArguments(Struct, forbid_unknown_fields=True):
    pattern: Annotated[str, Meta(description="A regular expression (Python), searched line by line.", min_length=1)]
    path: Annotated[str, Meta(description="A file or folder to search in; everything if not given.")] | None = None
    glob: Annotated[str, Meta(description="Only files that match: `*.py`, `src/**/*.ts`.")] | None = None


class Search(Struct, frozen=True):
    """A search, described: `target` None means all roots; `literal` is in each line that matches, or empty."""

    expression: re.Pattern[str]
    literal: str
    target: Target | None
    glob: str | None


class SearchText(ArgumentTool):
    """Lines that match an expression."""

    name = "search_text"
    description = "Search the text of files with a regular expression. Ignored, binary and secret files are left out."
    kind = "search"
    permission = "allow"
    read_only = True
    arguments = SearchArguments

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        wanted = decode_arguments(SearchArguments, arguments)
        target = judge_path(context, wanted.path) if wanted.path else None
        if wanted.glob:
            match_globs(wanted.glob)
        search = Search(compile_expression(wanted.pattern), literal_of(wanted.pattern), target, wanted.glob)
        title = f"Search for {code_span(visible(wanted.pattern))}"
        if target and target.label != ".":
            title += f" in {target.label}"
        if wanted.glob:
            title += f" ({visible(wanted.glob)})"
        if target is None:
            target = judge_path(context, context.cwd)
        proposal = propose_reading(self, title, target, arguments, None)
        proposal.state = search
        return proposal

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        search: Search = proposal.state
        hits = Hits()
        await run_in_slices(_search(search, context, hits))
        return hits.output("Nothing matches.", "matches")


def _search(search: Search, context: ToolContext, hits: Hits) -> Iterator[None]:
    for found in _candidates(search, context, hits):
        if found is not None and _search_file(*found, search, context, hits):
            return
        yield


def _candidates(search: Search, context: ToolContext, hits: Hits) -> Iterator[tuple[str, bytes] | None]:
    """The paths and bytes of the files to be searched."""
    target, roots = search.target, context.roots
    if target and not os.path.isdir(target.real):
        yield target.real, read_bytes(target.real, roots, outside=target.outside, limit=MAX_SEARCHED_BYTES)
        return
    globs = match_globs(search.glob) if search.glob else None
    for start in [target.real] if target else separate_roots(roots):
        with file_errors(start):
            for found in walk_files(start, roots, outside=target is not None and target.outside):
                if found is None or (globs and not globs.match_file(found.path[len(start) :].lstrip(os.sep))):
                    yield None
                else:
                    data = _read(found)
                    hits.large += len(data) > MAX_SEARCHED_BYTES
                    yield (found.path, data) if len(data) <= MAX_SEARCHED_BYTES else None


def _read(found: FoundFile) -> bytes:
    """The file's bytes, a little more than the cap at most; none of one that cannot be read."""
    try:
        descriptor = os.open(found.name, READ_FLAGS, dir_fd=found.folder)
    except OSError:
        return b""
    try:
        data = block = os.read(descriptor, READ_BYTES)  # most files are shorter than one block
        while len(block) == READ_BYTES and len(data) <= MAX_SEARCHED_BYTES:
            block = os.read(descriptor, READ_BYTES)
            data += block
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    return data


def _search_file(path: str, data: bytes, search: Search, context: ToolContext, hits: Hits) -> bool:
    """Add what matches to `hits`; whether the cap is reached."""
    if b"\0" in data[:8192]:
        return False
    text = data.decode(errors="replace")
    if search.literal and search.literal not in text:
        return False
    find = search.expression.search
    lines = enumerate(text.replace("\r\n", "\n").split("\n"), 1)
    found = [(number, line) for number, line in lines if find(line, 0, MAX_SEARCHED_LINE)]
    if not found:
        return False
    if context.workspace.is_secret(path) and not (search.target and search.target.real == path):
        hits.secret += 1
        return False
    hits.files += 1
    label = short_path(path, os.path.realpath(context.cwd))
    for number, line in found:
        if len(hits.lines) == MAX_MATCHES:
            hits.more = True
            return True
        hits.lines.append(f"{label}:{number}: {line.strip()[:MAX_LINE]}")
        if len(hits.places) < MAX_PLACES:
            hits.places.append(Location(shown_name(path), number))
    return False

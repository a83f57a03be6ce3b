"""The session's files. The rule it owns: the editor for what the user has open, the disk for everything else.

A file inside the roots goes through the editor where it says it can, reading and writing each on its own, so that
unsaved changes are seen and kept. What the editor does not answer, refuses or cannot carry (bytes, an encoding other
than plain UTF-8) is read from the disk. A write that the editor refuses fails with its words, unless it only means
that it does not know the method or the file. Paths are judged by where they really lead, at the moment of use.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec

from acp_agent.content import clean_text
from acp_agent.errors import (
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    ConnectionClosed,
    FileMissing,
    RequestError,
    ToolError,
)
from acp_agent.runtime.client import ClientPort
from acp_agent.tools import files
from acp_agent.tools.base import TextFile
from acp_agent.tools.paths import is_beneath, real_name, shown_name

__all__ = ["SECRET_PATTERNS", "DiskWorkspace", "EditorWorkspace", "editor_words"]

T = TypeVar("T")

EDITOR_SECONDS = 10.0
SECRET_PATTERNS = (
    *(".env", ".env.*", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials"),
    *("credentials", "credentials.json", "secrets.json", "secrets.toml", "secrets.yaml", "secrets.yml"),
)
NO_SECRETS = (".env.example", ".env.sample", ".env.template", ".env.dist")


class DiskWorkspace:
    """Files on disk. `roots` are the folders that need no question; the first is the session's `cwd`.

    `secret_patterns` are globs on a file's name, whatever its case.
    """

    def __init__(
        self, cwd: str, roots: Sequence[str] | None = None, *, secret_patterns: Sequence[str] = SECRET_PATTERNS
    ) -> None:
        self.cwd = os.path.normpath(cwd)
        self.roots: Sequence[str] = tuple(dict.fromkeys([self.cwd, *map(os.path.normpath, roots or ())]))
        self._secret = _name_matcher(tuple(secret_patterns))
        self._no_secret = _name_matcher(NO_SECRETS)

    def resolve(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.cwd, os.path.expanduser(real_name(path))))

    def is_inside(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(is_beneath(real, os.path.realpath(root)) for root in self.roots)

    def is_secret(self, path: str) -> bool:
        names = {os.path.basename(path), os.path.basename(os.path.realpath(path))}
        return any(self._secret(name) and not self._no_secret(name) for name in names)

    async def read_text(self, path: str, *, outside: bool = False) -> TextFile:
        data = await self.read_bytes(path, outside=outside, limit=files.MAX_TEXT_BYTES + 1)
        if len(data) > files.MAX_TEXT_BYTES:
            raise too_large(path)
        return files.decode_text(data, path)

    async def read_bytes(self, path: str, *, outside: bool = False, limit: int | None = None) -> bytes:
        reading = functools.partial(files.read_bytes, outside=outside, limit=limit)
        return await anyio.to_thread.run_sync(reading, path, self.roots, abandon_on_cancel=True)

    async def write_text(self, path: str, file: TextFile, *, outside: bool = False) -> None:
        data = files.encode_text(file, path)
        await _in_thread(functools.partial(files.write_bytes, path, data, self.roots, outside=outside))

    async def delete_file(self, path: str, *, outside: bool = False) -> None:
        await _in_thread(functools.partial(files.remove_entry, path, self.roots, outside=outside))

    async def move_file(self, source: str, destination: str, *, outside: bool = False) -> None:
        await _in_thread(functools.partial(files.move_entry, source, destination, self.roots, outside=outside))


class EditorWorkspace(DiskWorkspace):
    """Files through the editor where it can. Each request to it has a deadline of `seconds`."""

    def __init__(
        self,
        client: ClientPort,
        session_id: str,
        cwd: str,
        roots: Sequence[str] | None = None,
        *,
        secret_patterns: Sequence[str] = SECRET_PATTERNS,
        seconds: float = EDITOR_SECONDS,
    ) -> None:
        super().__init__(cwd, roots, secret_patterns=secret_patterns)
        self._client = client
        self._session_id = session_id
        self._seconds = seconds

    async def read_text(self, path: str, *, outside: bool = False) -> TextFile:
        if not (self._client.abilities.read_text_file and self._is_editors(path)):
            return await super().read_text(path, outside=outside)
        try:
            on_disk: TextFile | None = await super().read_text(path, outside=outside)
        except FileMissing:
            on_disk = None
        if on_disk is not None and not _is_plain(on_disk):
            return on_disk  # the editor's answer could not be written back byte by byte
        text = await self._ask_for_text(path)
        if not text:  # no answer; or "", which some clients say of a file that is not there
            if on_disk is None:
                raise FileMissing(f"There is no file {shown_name(path)}.")
            return on_disk
        if len(text) > files.MAX_TEXT_BYTES:
            raise too_large(path)
        return _as_on_disk(text, on_disk)

    async def write_text(self, path: str, file: TextFile, *, outside: bool = False) -> None:
        if not (self._client.abilities.write_text_file and self._is_editors(path) and _is_plain(file)):
            await super().write_text(path, file, outside=outside)
            return
        files.encode_text(file, path)
        await _in_thread(functools.partial(files.make_parent, path, self.roots, outside=outside))
        with anyio.move_on_after(self._seconds):
            try:
                await self._client.write_text_file(self._session_id, path, file.text)
            except RequestError as error:
                if error.code not in (METHOD_NOT_FOUND, RESOURCE_NOT_FOUND):
                    raise ToolError(f"The editor did not write {shown_name(path)}: {editor_words(error)}") from error
                await super().write_text(path, file, outside=outside)
            except ConnectionClosed as error:
                raise ToolError("The editor is gone; nothing is known to be written.") from error
            return
        if not await self._is_written(path, file, outside=outside):
            raise ToolError(
                f"The editor did not answer within {self._seconds:g} s; {shown_name(path)} may be written later or not."
            )

    async def _is_written(self, path: str, file: TextFile, *, outside: bool) -> bool:
        try:
            return (await DiskWorkspace.read_text(self, path, outside=outside)).text == file.text
        except ToolError:
            return False

    def _is_editors(self, path: str) -> bool:
        return self.is_inside(path) and clean_text(path) == path

    async def _ask_for_text(self, path: str) -> str | None:
        """What the editor has; None when it has nothing to say, whatever the reason."""
        with anyio.move_on_after(self._seconds):
            try:
                return clean_text(await self._client.read_text_file(self._session_id, path))
            except (RequestError, ConnectionClosed):
                return None
        return None


async def _in_thread(work: Callable[[], T]) -> T:
    """Run what changes the disk in a thread that is waited for: it is done or not, never half."""
    return await anyio.to_thread.run_sync(work)


@functools.cache
def _name_matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    expression = re.compile("|".join(map(translate, patterns)) or r"(?!)", re.IGNORECASE)
    return lambda name: expression.match(name) is not None


def _is_plain(file: TextFile) -> bool:
    return file.encoding == "utf-8" and not file.bom


def _as_on_disk(text: str, on_disk: TextFile | None) -> TextFile:
    """The editor's text with the disk's line ends, which some editors hide from us."""
    if on_disk is None or "\r" in text or "\r\n" not in on_disk.text:
        return TextFile(text=text)
    if on_disk.text.replace("\r\n", "\n") == text:
        return on_disk
    mostly_windows = on_disk.text.count("\r\n") * 2 > on_disk.text.count("\n")
    return TextFile(text=text.replace("\n", "\r\n") if mostly_windows else text)


def too_large(path: str) -> ToolError:
    return ToolError(f"{shown_name(path)} is larger than {files.MAX_TEXT_BYTES // 1024 // 1024} MiB.")


def editor_words(error: RequestError) -> str:
    """What the editor said, for a person: its message, code and details."""
    details = error.data.get("details") if isinstance(error.data, dict) else error.data
    if details is not None and not isinstance(details, str):
        details = msgspec.json.encode(details, enc_hook=repr).decode()
    return f"{error.message} ({error.code})" + (f": {details}" if details else "")

"""Files on disk, handled so that a symlink made at the wrong moment leads nowhere.

The rule it owns: a path is resolved and checked against the roots, and then walked component by component from the
root's descriptor without following any symlink. What changed in between makes the call fail; it never leads outside.
Everything here blocks: call it in a worker thread.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import stat
from collections.abc import Iterator, Sequence

from acp_agent.errors import FileMissing, ToolError
from acp_agent.tools.base import TextFile
from acp_agent.tools.paths import is_beneath, shown_name

__all__ = [
    "MAX_TEXT_BYTES",
    "READ_FLAGS",
    "decode_text",
    "encode_text",
    "file_errors",
    "list_folder",
    "make_parent",
    "move_entry",
    "open_folder",
    "read_bytes",
    "remove_entry",
    "write_bytes",
]

MAX_TEXT_BYTES = 8 * 1024 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: it begins with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@contextlib.contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Turn what the system says of `path` into a `ToolError` that says it in a sentence."""
    shown = shown_name(path)
    try:
        yield
    except FileNotFoundError as error:
        raise FileMissing(f"There is no file {shown}.") from error
    except IsADirectoryError as error:
        raise ToolError(f"{shown} is a folder.") from error
    except NotADirectoryError as error:
        raise ToolError(f"{shown}: a part of the path is not a folder, or changed just now.") from error
    except PermissionError as error:
        raise ToolError(f"No permission for {shown}.") from error
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ToolError(f"{shown}: {reason}.") from error


def open_folder(real: str, roots: Sequence[str], *, outside: bool = False, make: bool = False) -> int:
    """A descriptor of the folder `real`, an absolute path without symlinks, in one of `roots` unless `outside`."""
    anchor = next((root for root in map(os.path.realpath, roots) if is_beneath(real, root)), None)
    if anchor is None:
        if not outside:
            raise ToolError(f"{shown_name(real)} is outside the session's folders.")
        anchor = os.sep
    folder = os.open(anchor, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in [part for part in real[len(anchor) :].split(os.sep) if part]:
        try:
            inner = _enter(folder, name, make=make)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _enter(folder: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


@contextlib.contextmanager
def _opened_parent(real: str, roots: Sequence[str], *, outside: bool, make: bool = False) -> Iterator[tuple[int, str]]:
    """The descriptor of the folder that `real` is in, and its name there."""
    parent, name = os.path.split(real)
    if not name or any(os.path.realpath(root) == real for root in roots):
        raise IsADirectoryError(real)
    folder = open_folder(parent, roots, outside=outside, make=make)
    try:
        yield folder, name
    finally:
        os.close(folder)


def read_bytes(path: str, roots: Sequence[str], *, outside: bool = False, limit: int | None = None) -> bytes:
    """The bytes of a regular file, the first `limit` of them."""
    with file_errors(path), _opened_parent(os.path.realpath(path), roots, outside=outside) as (folder, name):
        descriptor = os.open(name, READ_FLAGS, dir_fd=folder)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(path)
            if not stat.S_ISREG(mode):
                raise ToolError(f"{shown_name(path)} is not a regular file.")
            with open(descriptor, "rb", closefd=False) as file:
                return file.read() if limit is None else file.read(limit)
        finally:
            os.close(descriptor)


def write_bytes(path: str, data: bytes, roots: Sequence[str], *, outside: bool = False) -> None:
    """Put `data` in the place of a regular file, or make one: all of it or nothing, mode and owner kept."""
    real = os.path.realpath(path)
    with file_errors(path), _opened_parent(real, roots, outside=outside, make=True) as (folder, name):
        before = _replaceable(folder, name, path)
        temporary = f".{os.urandom(6).hex()}.tmp"
        descriptor = os.open(temporary, _CREATE, 0o666, dir_fd=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if before is not None:
                    with contextlib.suppress(OSError):  # only root may give files away, and needs to
                        os.fchown(descriptor, before.st_uid, before.st_gid)
                    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
                os.fsync(descriptor)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        with contextlib.suppress(OSError):  # some file systems cannot sync a folder
            os.fsync(folder)


def make_parent(path: str, roots: Sequence[str], *, outside: bool = False) -> None:
    """Make the folders that `path` lies in; what is at `path` may be made or replaced by a file."""
    real = os.path.realpath(path)
    with file_errors(path), _opened_parent(real, roots, outside=outside, make=True) as (folder, name):
        _replaceable(folder, name, path)


def _replaceable(folder: int, name: str, path: str) -> os.stat_result | None:
    """What is there, None for a new file. Refuses what must not be replaced."""
    try:
        before = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(path)
    if not stat.S_ISREG(before.st_mode):
        raise ToolError(f"{shown_name(path)} is not a regular file.")
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise ToolError(f"{shown_name(path)} is write-protected.")
    return before


def _entry_path(path: str) -> str:
    """Where the entry itself is: the folders' symlinks followed, not its own."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def remove_entry(path: str, roots: Sequence[str], *, outside: bool = False) -> None:
    """Delete a file, or a symlink itself; a folder is refused."""
    with file_errors(path), _opened_parent(_entry_path(path), roots, outside=outside) as (folder, name):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise IsADirectoryError(path)
        os.unlink(name, dir_fd=folder)


def move_entry(source: str, destination: str, roots: Sequence[str], *, outside: bool = False) -> None:
    """Give a file (or a symlink itself) another path. Never replaces anything."""
    with (
        file_errors(source),
        _opened_parent(_entry_path(source), roots, outside=outside) as (from_folder, from_name),
    ):
        entry = os.stat(from_name, dir_fd=from_folder, follow_symlinks=False)
        with (
            file_errors(destination),
            _opened_parent(_entry_path(destination), roots, outside=outside, make=True) as (to_folder, to_name),
        ):
            if stat.S_ISDIR(entry.st_mode):
                _move_folder(from_folder, from_name, to_folder, to_name)
            else:
                _move_file(from_folder, from_name, to_folder, to_name)


def _move_file(from_folder: int, from_name: str, to_folder: int, to_name: str) -> None:
    """A hard link fails when the name is taken, where a rename would replace what is there."""
    try:
        os.link(from_name, to_name, src_dir_fd=from_folder, dst_dir_fd=to_folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # no hard links on this file system
        _move_folder(from_folder, from_name, to_folder, to_name)
    else:
        os.unlink(from_name, dir_fd=from_folder)


def _move_folder(from_folder: int, from_name: str, to_folder: int, to_name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.stat(to_name, dir_fd=to_folder, follow_symlinks=False)
        raise FileExistsError(17, "There is something at the destination already")
    os.rename(from_name, to_name, src_dir_fd=from_folder, dst_dir_fd=to_folder)


def list_folder(path: str, roots: Sequence[str], *, outside: bool = False, limit: int) -> tuple[list[str], int]:
    """The names in a folder, sorted, folders with `/` at the end; at most `limit`, and how many there are."""
    with file_errors(path):
        folder = open_folder(os.path.realpath(path), roots, outside=outside)
        try:
            with os.scandir(folder) as entries:
                found = sorted((not entry.is_dir(follow_symlinks=False), entry.name) for entry in entries)
        finally:
            os.close(folder)
    return [name if is_file else f"{name}/" for is_file, name in found[:limit]], len(found)


def decode_text(data: bytes, path: str) -> TextFile:
    """`data` as text that `encode_text` turns into the same bytes again. Raises `ToolError` for what is no text."""
    bom, encoding = next(((bom, codec) for bom, codec in _BOMS if data.startswith(bom)), (b"", "utf-8"))
    body = data[len(bom) :]
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        bom, encoding, text = b"", "latin-1", data.decode("latin-1")  # each byte is a character: any file survives it
    if "\0" in text or (encoding == "latin-1" and _is_mostly_control(text)):
        raise ToolError(f"{shown_name(path)} is not a text file.")
    return TextFile(text=text, encoding=encoding, bom=bom)


def _is_mostly_control(text: str) -> bool:
    sample = text[:4096]
    odd = sum(1 for character in sample if character < " " and character not in "\t\n\r\f\b\x1b")
    return odd * 20 > len(sample)


def encode_text(file: TextFile, path: str) -> bytes:
    """The bytes of `file`. Raises `ToolError` when its encoding has no place for a character."""
    try:
        return file.bom + file.text.encode(file.encoding)
    except UnicodeEncodeError as error:
        character = file.text[error.start : error.end][:1]
        raise ToolError(
            f"{shown_name(path)} is kept in {file.encoding}, which cannot hold {character!a}; nothing was written."
        ) from error

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_agent.errors import ConnectionClosed, FileMissing, RequestError, ToolError
from acp_agent.runtime.client import ClientAbilities
from acp_agent.runtime.workspace import DiskWorkspace, EditorWorkspace, editor_words
from acp_agent.tools.base import TextFile
from tests.requirements import requirement
from tests.runtime.client_port import ScriptedPort, never

pytestmark = pytest.mark.anyio

BOTH = ClientAbilities(read_text_file=True, write_text_file=True)
NOT_FOUND = RequestError(-32002, "Resource not found")
INTERNAL = RequestError(-32603, "Internal error", {"details": "locked"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def through_editor(
    root: Path, abilities: ClientAbilities = BOTH, **answers: Any
) -> tuple[ScriptedPort, EditorWorkspace]:
    port = ScriptedPort(abilities, **answers)
    return port, EditorWorkspace(port, "session", str(root), seconds=0.1)


async def text_of(workspace: DiskWorkspace, path: Path | str) -> str:
    return (await workspace.read_text(str(path))).text


def test_paths_are_resolved_by_name_against_the_sessions_folder(root: Path) -> None:
    workspace = DiskWorkspace(str(root))
    assert workspace.resolve("a/../b.txt") == f"{root}/b.txt"
    assert workspace.resolve("/x//y/./z") == "/x/y/z"
    assert workspace.resolve("~/x") == os.path.expanduser("~/x")
    assert workspace.resolve("caf\\xe9") == os.fsdecode(os.fsencode(f"{root}/caf") + b"\xe9")


def test_inside_is_where_the_path_really_leads(root: Path) -> None:
    (root.parent / "project-two").mkdir()
    (root / "link").symlink_to(root.parent)
    (root.parent / "back").symlink_to(root)
    workspace = DiskWorkspace(str(root))
    inside = [root, root / "a", root / "a" / "b", root.parent / "back" / "a"]
    outside = [root.parent, root.parent / "project-two", root / "link" / "a", root / "link", "/"]
    assert all(workspace.is_inside(str(path)) for path in inside)
    assert not any(workspace.is_inside(str(path)) for path in outside)


def test_the_whole_disk_may_be_a_root() -> None:
    assert DiskWorkspace("/").is_inside("/etc/passwd")


def test_secrets_are_known_by_name_also_behind_a_link(root: Path) -> None:
    (root / "notes").symlink_to(root / ".env")
    workspace = DiskWorkspace(str(root))
    for name in (".env", ".ENV", ".env.local", "id_rsa", "server.pem", "notes", "sub/.netrc"):
        assert workspace.is_secret(str(root / name)), name
    for name in ("env", ".env.example", "id_rsa.pub", "keys.py"):
        assert not workspace.is_secret(str(root / name)), name
    assert DiskWorkspace(str(root), secret_patterns=["*.txt"]).is_secret("/a/b.txt")


async def test_a_path_outside_is_refused_unless_the_user_allowed_it(root: Path) -> None:
    other = root.parent / "other.txt"
    other.write_text("text")
    (root / "link").symlink_to(other)
    workspace = DiskWorkspace(str(root))
    for path in (str(other), str(root / "link")):
        with pytest.raises(ToolError, match="outside the session's folders"):
            await workspace.read_text(path)
        with pytest.raises(ToolError, match="outside the session's folders"):
            await workspace.write_text(path, TextFile(text="x"))
        assert (await workspace.read_text(path, outside=True)).text == "text"
    assert other.read_text() == "text"


async def test_a_write_is_whole_or_not_at_all(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a.txt").write_text("before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match="No space left on device"):
        await DiskWorkspace(str(root)).write_text(str(root / "a.txt"), TextFile(text="after"))
    assert (root / "a.txt").read_text() == "before"
    assert os.listdir(root) == ["a.txt"]


async def test_the_editors_unsaved_text_is_read(root: Path) -> None:
    (root / "a.txt").write_text("saved")
    port, workspace = through_editor(root, read="unsaved")
    assert await text_of(workspace, root / "a.txt") == "unsaved"
    assert port.asked == [("read", str(root / "a.txt"))]
    assert await text_of(workspace, root / "only in the editor") == "unsaved"


@pytest.mark.parametrize("answer", [NOT_FOUND, INTERNAL, ConnectionClosed(), never, ""])
async def test_an_editor_that_has_no_text_leaves_reading_to_the_disk(root: Path, answer: Any) -> None:
    (root / "a.txt").write_text("saved")
    _, workspace = through_editor(root, read=answer)
    with anyio.fail_after(5):
        assert await text_of(workspace, root / "a.txt") == "saved"
        with pytest.raises(FileMissing):
            await workspace.read_text(str(root / "gone"))


@requirement("fs-gated")
async def test_the_editor_is_asked_only_for_what_it_can_and_only_inside(root: Path) -> None:
    (root / "a.txt").write_text("saved")
    (root.parent / "other.txt").write_text("other")
    (root / "b.bin").write_bytes(b"\0")
    port, workspace = through_editor(root, ClientAbilities(write_text_file=True), read="unsaved")
    assert await text_of(workspace, root / "a.txt") == "saved"
    port.abilities = ClientAbilities(read_text_file=True)
    await workspace.write_text(str(root / "a.txt"), TextFile(text="new"))
    assert (root / "a.txt").read_text() == "new"
    port.abilities = BOTH
    assert (await workspace.read_text(str(root.parent / "other.txt"), outside=True)).text == "other"
    with pytest.raises(ToolError, match="not a text file"):
        await workspace.read_text(str(root / "b.bin"))
    assert port.asked == []


async def test_line_ends_that_the_editor_hides_are_put_back(root: Path) -> None:
    (root / "a.txt").write_bytes(b"one\r\ntwo\n")
    _, workspace = through_editor(root, read=["one\ntwo\n", "one\nTWO\nthree\n"])
    assert await text_of(workspace, root / "a.txt") == "one\r\ntwo\n"
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    assert await text_of(workspace, root / "a.txt") == "one\r\nTWO\r\nthree\r\n"


async def test_a_file_that_is_not_plain_utf8_stays_on_the_disk(root: Path) -> None:
    (root / "a.txt").write_bytes(b"\xef\xbb\xbfone")
    port, workspace = through_editor(root, read="one")
    file = await workspace.read_text(str(root / "a.txt"))
    file.text = "two"
    await workspace.write_text(str(root / "a.txt"), file)
    assert (root / "a.txt").read_bytes() == b"\xef\xbb\xbftwo"
    assert port.asked == []


async def test_a_write_goes_to_the_editor_and_its_folder_is_there(root: Path) -> None:
    port, workspace = through_editor(root)
    await workspace.write_text(str(root / "a" / "b.txt"), TextFile(text="x"))
    assert port.asked == [("write", str(root / "a/b.txt"), "x")]
    assert (root / "a").is_dir()
    assert not (root / "a/b.txt").exists()


@pytest.mark.parametrize("answer", [NOT_FOUND, RequestError.method_not_found("fs/write_text_file")])
async def test_an_editor_that_does_not_know_the_file_or_the_method_leaves_it_to_the_disk(
    root: Path, answer: Exception
) -> None:
    _, workspace = through_editor(root, write=answer)
    await workspace.write_text(str(root / "a.txt"), TextFile(text="x"))
    assert (root / "a.txt").read_text() == "x"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (INTERNAL, r"did not write .*a\.txt: Internal error \(-32603\): locked"),
        (ConnectionClosed(), "The editor is gone"),
        (never, r"did not answer within 0\.1 s"),
    ],
)
async def test_a_write_that_the_editor_did_not_do_fails_with_its_words(root: Path, answer: Any, text: str) -> None:
    (root / "a.txt").write_text("before")
    _, workspace = through_editor(root, write=answer)
    with anyio.fail_after(5), pytest.raises(ToolError, match=text):
        await workspace.write_text(str(root / "a.txt"), TextFile(text="after"))
    assert (root / "a.txt").read_text() == "before"


async def test_a_new_file_that_the_editor_neither_wrote_nor_refused_is_no_success(root: Path) -> None:
    _, workspace = through_editor(root, write=never)
    with anyio.fail_after(5), pytest.raises(ToolError, match="may be written later or not"):
        await workspace.write_text(str(root / "new.txt"), TextFile(text="x"))


async def test_a_text_that_is_too_large_is_refused_wherever_it_comes_from(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_agent.tools.files.MAX_TEXT_BYTES", 1024 * 1024)
    (root / "a.txt").write_text("x" * (1024 * 1024 + 1))
    (root / "b.txt").write_text("x" * 1024 * 1024)
    with pytest.raises(ToolError, match=r"a\.txt is larger than 1 MiB"):
        await DiskWorkspace(str(root)).read_text(str(root / "a.txt"))
    assert len(await text_of(DiskWorkspace(str(root)), root / "b.txt")) == 1024 * 1024
    _, workspace = through_editor(root, read="x" * (1024 * 1024 + 1))
    with pytest.raises(ToolError, match=r"b\.txt is larger than 1 MiB"):
        await workspace.read_text(str(root / "b.txt"))


async def test_a_write_that_is_done_but_not_answered_has_succeeded(root: Path) -> None:
    (root / "a.txt").write_text("after")
    _, workspace = through_editor(root, write=never)
    await workspace.write_text(str(root / "a.txt"), TextFile(text="after"))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (None, "Bad (1)"),
        ("words", "Bad (1): words"),
        ({"details": "why"}, "Bad (1): why"),
        ({"details": {"a": [1]}}, 'Bad (1): {"a":[1]}'),
        ({"other": 1}, "Bad (1)"),
    ],
)
def test_what_the_editor_says_is_said_in_words(data: Any, text: str) -> None:
    assert editor_words(RequestError(1, "Bad", data)) == text


NAMES = st.sampled_from(["in", "sub", "up", "away", "loop", "a.txt", "..", "."])


@requirement("session-roots")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(parts=st.lists(NAMES, min_size=1, max_size=6))
def test_no_path_reaches_outside_without_the_users_word(root: Path, parts: list[str]) -> None:
    away = root.parent / "away"
    if not away.exists():
        (away / "sub").mkdir(parents=True)
        (away / "a.txt").write_text("away")
        (root / "sub" / "sub").mkdir(parents=True)
        (root / "a.txt").write_text("in")
        (root / "sub" / "a.txt").write_text("in")
        (root / "in").symlink_to("sub")
        (root / "up").symlink_to("..")
        (root / "away").symlink_to(away)
        (root / "sub" / "away").symlink_to(away / "a.txt")
        (root / "loop").symlink_to("loop")
    workspace = DiskWorkspace(str(root))
    path = workspace.resolve("/".join(parts))

    async def read_and_write() -> None:
        inside = workspace.is_inside(path)
        try:
            text = await text_of(workspace, path)
        except ToolError:
            pass
        else:
            assert inside
            assert text == "in"
        try:
            await workspace.write_text(path, TextFile(text="in"))
        except ToolError:
            pass
        else:
            assert inside
        if not inside:
            with pytest.raises(ToolError):
                await workspace.delete_file(os.path.realpath(path))

    anyio.run(read_and_write)
    assert (away / "a.txt").read_text() == "away"
    assert sorted(os.listdir(away)) == ["a.txt", "sub"]
    assert sorted(os.listdir(root.parent)) == ["away", "project"]

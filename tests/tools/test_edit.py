from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_agent.content import Diff, Location
from acp_agent.errors import ToolError
from acp_agent.tools.edit import EditFile, WriteFile, replace_text
from acp_agent.tools.files import decode_text, encode_text
from tests.tools.fakes import FakeCall, shown, told

pytestmark = pytest.mark.anyio


async def test_an_edit_shows_its_diff_before_it_is_made(call: FakeCall, root: Path) -> None:
    file = root / "src" / "app.py"
    file.parent.mkdir()
    file.write_text("one\ntwo\nthree\n")
    proposal = await call.propose(EditFile(), path="src/app.py", old_text="two", new_text="2")
    assert proposal.title == "Edit src/app.py"
    assert (proposal.kind, proposal.permission, proposal.key) == ("edit", "ask", str(file))
    assert proposal.content == [Diff(str(file), "one\n2\nthree\n", "one\ntwo\nthree\n")]
    assert proposal.locations == [Location(str(file), 2)]
    assert file.read_text() == "one\ntwo\nthree\n"
    output = await EditFile().run(proposal, call)
    assert file.read_text() == "one\n2\nthree\n"
    assert output.content == proposal.content
    assert told(output) == "Changed src/app.py (line 2)."


async def test_text_that_is_not_there_or_there_twice_fails_before_any_question(call: FakeCall, root: Path) -> None:
    (root / "a.txt").write_text("x = 1\nif  a:\n    x = 1\n")
    with pytest.raises(ToolError, match=r"a\.txt: the text was not found"):
        await call.propose(EditFile(), path="a.txt", old_text="y", new_text="z")
    with pytest.raises(ToolError, match=r"found 2 times, at lines 1, 3"):
        await call.propose(EditFile(), path="a.txt", old_text="x = 1", new_text="z")
    with pytest.raises(ToolError, match="at line 2 with other white space"):
        await call.propose(EditFile(), path="a.txt", old_text="if a:\n  x", new_text="z")
    with pytest.raises(ToolError, match="its first line is at line 2"):
        await call.propose(EditFile(), path="a.txt", old_text="if  a:\n    y", new_text="z")
    with pytest.raises(ToolError, match="There is no file b"):
        await call.propose(EditFile(), path="b", old_text="x", new_text="z")
    with pytest.raises(ToolError, match="old_text is empty"):
        await call.propose(EditFile(), path="a.txt", old_text="", new_text="z")
    with pytest.raises(ToolError, match="the same"):
        await call.propose(EditFile(), path="a.txt", old_text="x", new_text="x")


def test_large_and_repetitive_texts_are_searched_in_a_moment() -> None:
    started = time.monotonic()
    with pytest.raises(ToolError, match="found 100 times or more"):
        replace_text("a" * 1_000_000, "a" * 5000, "x")
    with pytest.raises(ToolError, match="not found"):
        replace_text("a " * 500_000, "a " * 2000 + "b", "x")
    assert replace_text("a" * 1_000_000, "aa", "b", replace_all=True) == ("b" * 500_000, 0)
    assert time.monotonic() - started < 5


async def test_replace_all_changes_each(call: FakeCall, root: Path) -> None:
    (root / "a.txt").write_text("a b a")
    await call.call(EditFile(), path="a.txt", old_text="a", new_text="c", replace_all=True)
    assert (root / "a.txt").read_text() == "c b c"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc"),
        (b"a\r\nb\r\n", "b", "b\nc", b"a\r\nb\r\nc\r\n"),
        (b"\xef\xbb\xbfa\nb", "a", "c", b"\xef\xbb\xbfc\nb"),
        (b"caf\xe9 a", "a", "b", None),
        (b"caf\xe9 tea", "tea", "th\xe9", b"caf\xe9 th\xe9"),
        ("\ufeffhé\r\n".encode("utf-16-le"), "h", "H", "\ufeffHé\r\n".encode("utf-16-le")),
        (b"no end", "no", "an", b"an end"),
        (b"a\nb\r\nc\n", "a\nb\nc", "x\ny", b"x\ny\n"),
    ],
)
async def test_every_other_byte_is_kept(
    call: FakeCall, root: Path, before: bytes, old: str, new: str, after: bytes | None
) -> None:
    (root / "f").write_bytes(before)
    if after is None:
        with pytest.raises(ToolError, match="found 2 times"):
            await call.call(EditFile(), path="f", old_text=old, new_text=new)
        after = before
    else:
        await call.call(EditFile(), path="f", old_text=old, new_text=new)
    assert (root / "f").read_bytes() == after


async def test_a_character_the_encoding_cannot_hold_is_refused_early(call: FakeCall, root: Path) -> None:
    (root / "f").write_bytes(b"caf\xe9")
    with pytest.raises(ToolError, match="kept in latin-1, which cannot hold"):
        await call.propose(EditFile(), path="f", old_text="caf", new_text="汉")


async def test_a_file_that_changed_while_the_question_was_open_is_left_alone(call: FakeCall, root: Path) -> None:
    (root / "a.txt").write_text("one")
    edit = await call.propose(EditFile(), path="a.txt", old_text="one", new_text="two")
    write = await call.propose(WriteFile(), path="new.txt", content="mine")
    (root / "a.txt").write_text("one, by the user")
    (root / "new.txt").write_text("theirs")
    for tool, proposal in ((EditFile(), edit), (WriteFile(), write)):
        with pytest.raises(ToolError, match="changed while the question was open"):
            await tool.run(proposal, call)
    assert (root / "a.txt").read_text() == "one, by the user"
    assert (root / "new.txt").read_text() == "theirs"


async def test_a_new_file_has_no_old_text_and_its_folders_are_made(call: FakeCall, root: Path) -> None:
    proposal = await call.propose(WriteFile(), path="a/b/c.txt", content="text")
    assert proposal.title == "Write a/b/c.txt"
    assert proposal.content == [Diff(str(root / "a/b/c.txt"), "text", None)]
    assert not (root / "a").exists()
    output = await WriteFile().run(proposal, call)
    assert (root / "a/b/c.txt").read_text() == "text"
    assert output.raw_output == {"path": str(root / "a/b/c.txt"), "created": True}


async def test_writing_keeps_the_mode_the_line_ends_and_a_symlink(call: FakeCall, root: Path) -> None:
    file = root / "run.sh"
    file.write_bytes(b"a\r\nb\r\n")
    file.chmod(0o750)
    (root / "link").symlink_to("run.sh")
    await call.call(WriteFile(), path="link", content="c\nd\n")
    assert file.read_bytes() == b"c\r\nd\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert (root / "link").is_symlink()
    assert sorted(os.listdir(root)) == ["link", "run.sh"]


async def test_binary_huge_and_other_files_are_not_written_over(call: FakeCall, root: Path) -> None:
    (root / "a.bin").write_bytes(b"\0\1")
    (root / "big").write_text("x" * (2 * 1024 * 1024 + 1))
    for path, problem in (("a.bin", "not a text file"), ("big", "too large"), (".", "is a folder")):
        with pytest.raises(ToolError, match=problem):
            await call.propose(WriteFile(), path=path, content="x")


async def test_outside_the_model_learns_nothing_before_the_user_agreed(call: FakeCall, root: Path) -> None:
    (root.parent / "other.txt").write_text("text")
    proposal = await call.propose(EditFile(), path="../other.txt", old_text="wrong", new_text="x")
    assert proposal.outside
    assert shown(proposal) == f"{root.parent}/other.txt is outside the folders of this session."
    with pytest.raises(ToolError, match="not found"):
        await EditFile().run(proposal, call)
    right = await call.propose(EditFile(), path="../other.txt", old_text="text", new_text="x")
    assert right.content[0] == Diff(str(root.parent / "other.txt"), "x", "text")
    assert shown(right) == f"[diff of {root.parent}/other.txt]\n{shown(proposal)}"
    await EditFile().run(right, call)
    assert (root.parent / "other.txt").read_text() == "x"


async def test_a_file_that_led_elsewhere_when_it_was_judged_is_left_alone(call: FakeCall, root: Path) -> None:
    (root / "a.txt").write_text("one")
    (root.parent / "other.txt").write_text("one")
    proposal = await call.propose(EditFile(), path="a.txt", old_text="one", new_text="two")
    (root / "a.txt").unlink()
    (root / "a.txt").symlink_to(root.parent / "other.txt")
    with pytest.raises(ToolError, match="changed while the question was open"):
        await EditFile().run(proposal, call)
    assert (root.parent / "other.txt").read_text() == "one"


async def test_editing_a_secret_is_marked(call: FakeCall, root: Path) -> None:
    (root / ".env").write_text("KEY=1")
    secret = await call.propose(EditFile(), path=".env", old_text="1", new_text="2")
    assert secret.sensitive
    assert shown(secret).endswith("\n.env may hold secrets.")
    hook = await call.propose(WriteFile(), path=".git/hooks/pre-commit", content="#!/bin/sh")
    assert hook.sensitive  # it would run by itself
    assert shown(hook).endswith("\n.git/hooks/pre-commit belongs to version control, which may run what stands there.")
    assert not (await call.propose(WriteFile(), path=".gitignore", content="x")).sensitive


PIECES = st.lists(st.sampled_from(["a", "b", "é", "汉", " ", "\t", "\n", "\r\n", "\r", "x.*", "\\n"]), max_size=12)


@settings(deadline=None)
@given(before=PIECES, old=PIECES.filter(bool), after=PIECES, new=PIECES, bom=st.booleans())
def test_an_edit_gives_the_text_that_was_meant_and_keeps_every_other_byte(
    before: list[str], old: list[str], after: list[str], new: list[str], bom: bool
) -> None:
    head, middle, tail = "".join(before), "".join(old), "".join(after)
    data = (b"\xef\xbb\xbf" if bom else b"") + (head + middle + tail).encode()
    file = decode_text(data, "f")
    assert encode_text(file, "f") == data
    places = sum(file.text.startswith(middle, at) for at in range(len(file.text)))
    if places > 1:
        with pytest.raises(ToolError, match="found"):
            replace_text(file.text, middle, "".join(new))
        return
    try:
        changed, start = replace_text(file.text, middle, "".join(new))
    except ToolError:
        changed, start = file.text, len(head)  # nothing to change: checked below like any other text
    assert start == len(head)
    assert changed.startswith(head)
    assert changed.endswith(tail)
    placed = changed[len(head) : len(changed) - len(tail)]
    assert placed.replace("\r\n", "\n") == "".join(new).replace("\r\n", "\n")


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_come_back_as_they_were(data: bytes) -> None:
    try:
        file = decode_text(data, "f")
    except ToolError:
        return
    assert encode_text(file, "f") == data
    file.text.encode()

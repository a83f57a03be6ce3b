from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from acp_agent.content import ContentItem, ImageContent, Location
from acp_agent.errors import FileMissing, ToolError
from acp_agent.tools.read import ListDirectory, ReadFile
from tests.requirements import requirement
from tests.tools.fakes import FakeCall, shown, told

pytestmark = pytest.mark.anyio


async def test_a_short_file_is_told_whole_and_shown_as_code(call: FakeCall, root: Path) -> None:
    (root / "a.py").write_text("one\ntwo\n")
    output = await call.call(ReadFile(), path="a.py")
    assert told(output) == "one\ntwo\n"
    assert shown(output) == "```\none\ntwo\n```"
    assert output.raw_output == {"lines": 2, "first": 1, "last": 2}


@requirement("lines-from-one")
async def test_lines_are_counted_from_one_and_the_rest_is_named(call: FakeCall, root: Path) -> None:
    (root / "a.txt").write_text("".join(f"{number}\n" for number in range(1, 11)))
    proposal = await call.propose(ReadFile(), path="a.txt", line=3, limit=2)
    assert proposal.title == "Read a.txt (lines 3 to 4)"
    assert proposal.locations == [Location(str(root / "a.txt"), 3)]
    output = await call.call(ReadFile(), path="a.txt", line=3, limit=2)
    assert told(output) == "3\n4\n[lines 3 to 4 of 10; read on with line 5]"
    assert told(await call.call(ReadFile(), path="a.txt", line=9)) == "9\n10\n[lines 9 to 10 of 10]"
    with pytest.raises(ToolError, match="has 10 lines"):
        await call.call(ReadFile(), path="a.txt", line=11)


async def test_a_long_file_stops_at_a_line_and_says_where_to_read_on(call: FakeCall, root: Path) -> None:
    (root / "long.txt").write_text("0123456789\n" * 10_000)
    output = await call.call(ReadFile(model_limit=1100, display_limit=500), path="long.txt")
    assert told(output).endswith("0123456789\n[lines 1 to 100 of 10000; read on with line 101]")
    assert "bytes left out" in shown(output)
    assert len(shown(output)) < 700


async def test_a_minified_line_is_cut(call: FakeCall, root: Path) -> None:
    (root / "min.js").write_text("x" * 100_000)
    assert told(await call.call(ReadFile(), path="min.js")) == "x" * 2000 + "[… line cut …]\n"


async def test_an_empty_file_says_so(call: FakeCall, root: Path) -> None:
    (root / "empty").touch()
    assert told(await call.call(ReadFile(), path="empty")) == "[the file is empty]"


async def test_what_is_not_text_is_refused_by_its_name(call: FakeCall, root: Path) -> None:
    (root / "a.bin").write_bytes(b"\x7fELF\0\0")
    os.mkfifo(root / "pipe")
    for path, problem in (("a.bin", "not a text file"), ("pipe", "not a regular file"), (".", "is a folder")):
        with pytest.raises(ToolError, match=problem):
            await call.call(ReadFile(), path=path)
    with pytest.raises(FileMissing, match=r"There is no file .*/gone"):
        await call.call(ReadFile(), path="gone")


async def test_an_image_comes_as_an_image(call: FakeCall, root: Path) -> None:
    (root / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    output = await call.call(ReadFile(), path="a.png")
    image = output.content[1]
    assert isinstance(image, ContentItem)
    assert isinstance(image.content, ImageContent)
    assert base64.b64decode(image.content.data) == b"\x89PNG\r\n\x1a\n\0"
    assert image.content.mime_type == "image/png"


async def test_reading_inside_needs_no_question_and_outside_and_secrets_do(call: FakeCall, root: Path) -> None:
    (root / ".env").write_text("KEY=1")
    (root.parent / "other.txt").write_text("other")
    (root / "link.txt").symlink_to(root.parent / "other.txt")
    (root / "notes.txt").symlink_to(root / ".env")
    inside = await call.propose(ReadFile(), path="a.txt")
    assert (inside.permission, inside.outside, inside.sensitive, inside.read_only) == ("allow", False, False, True)
    for path in ("../other.txt", "link.txt", str(root.parent / "other.txt"), "/etc/passwd"):
        assert (await call.propose(ReadFile(), path=path)).outside
    for path in (".env", "notes.txt", "x/id_rsa"):
        proposal = await call.propose(ReadFile(), path=path)
        assert (proposal.permission, proposal.sensitive) == ("ask", True)
    assert not (await call.propose(ReadFile(), path=".env.example")).sensitive
    linked = await call.propose(ReadFile(), path="link.txt")
    assert linked.title == f"Read link.txt (which is {root.parent}/other.txt)"


async def test_a_folder_replaced_by_a_symlink_after_it_was_judged_is_not_followed(call: FakeCall, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("inside")
    (root.parent / "a.txt").write_text("outside")
    proposal = await call.propose(ReadFile(), path="sub/a.txt")
    (root / "sub").rename(root / "was")
    (root / "sub").symlink_to(root.parent)
    with pytest.raises(ToolError, match="outside the session's folders"):
        await ReadFile().run(proposal, call)


async def test_a_folder_is_listed_with_folders_first(call: FakeCall, root: Path) -> None:
    (root / "b.txt").touch()
    (root / ".hidden").touch()
    (root / "src").mkdir()
    output = await call.call(ListDirectory())
    assert told(output) == "src/\n.hidden\nb.txt"
    assert (await call.propose(ListDirectory())).title == "List the working directory"
    assert told(await call.call(ListDirectory(), path="src")) == "[the folder is empty]"
    with pytest.raises(ToolError, match="not a folder"):
        await call.call(ListDirectory(), path="b.txt")


async def test_what_the_list_shows_can_be_read_whatever_its_bytes(call: FakeCall, root: Path) -> None:
    names = [b"caf\xe9.txt", b"lit\\xe9.txt", b"both\\x5c\xff.txt", "汉.txt".encode(), b"new\nline"]
    for name in names:
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(name)
    listed = told(await call.call(ListDirectory())).replace("new\nline", "NEWLINE").split("\n")
    assert len(listed) == len(names)
    for shown_as in listed:
        shown_as.encode()
        if shown_as != "NEWLINE":
            await call.call(ReadFile(), path=shown_as)
    assert told(await call.call(ReadFile(), path="caf\\xe9.txt")) == "café.txt\n"


async def test_bad_arguments_say_what_and_where(call: FakeCall) -> None:
    with pytest.raises(ToolError, match=r"missing required field `path`"):
        await call.call(ReadFile())
    with pytest.raises(ToolError, match=r"\$\.line"):
        await call.call(ReadFile(), path="a", line=0)
    with pytest.raises(ToolError, match=r"unknown field `file`"):
        await call.call(ReadFile(), path="a", file="b")


def test_schemas_name_their_arguments_and_hold_no_reference() -> None:
    schema = ReadFile().input_schema
    assert schema["type"] == "object"
    assert list(schema["properties"]) == ["path", "line", "limit"]
    assert schema["required"] == ["path"]
    assert "$ref" not in str(schema)

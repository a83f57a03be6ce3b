from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.content import ContentItem, Diff, Location, TextContent
from acp_agent.errors import FileMissing, ToolError
from acp_agent.tools.move import DeleteFile, MoveFile
from tests.tools.fakes import FakeCall, shown, told

pytestmark = pytest.mark.anyio


async def test_a_delete_shows_what_goes(call: FakeCall, root: Path) -> None:
    (root / "a.txt").write_text("text")
    proposal = await call.propose(DeleteFile(), path="a.txt")
    assert (proposal.title, proposal.kind, proposal.permission) == ("Delete a.txt", "delete", "ask")
    assert proposal.content == [Diff(str(root / "a.txt"), "", "text")]
    assert proposal.locations == [Location(str(root / "a.txt"))]
    output = await DeleteFile().run(proposal, call)
    assert not (root / "a.txt").exists()
    assert output.content == [Diff(str(root / "a.txt"), "", "text"), ContentItem(TextContent("Deleted a.txt."))]


async def test_a_link_is_deleted_and_not_where_it_leads(call: FakeCall, root: Path) -> None:
    (root.parent / "other.txt").write_text("text")
    (root / "link").symlink_to(root.parent / "other.txt")
    proposal = await call.propose(DeleteFile(), path="link")
    assert not proposal.outside
    assert proposal.content == [ContentItem(TextContent("link is a symbolic link."))]
    await DeleteFile().run(proposal, call)
    assert not (root / "link").is_symlink()
    assert (root.parent / "other.txt").exists()


async def test_folders_missing_files_and_changed_ones_are_not_deleted(call: FakeCall, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "a.txt").write_text("one")
    with pytest.raises(ToolError, match="sub is a folder"):
        await call.propose(DeleteFile(), path="sub")
    with pytest.raises(FileMissing):
        await call.propose(DeleteFile(), path="gone")
    proposal = await call.propose(DeleteFile(), path="a.txt")
    (root / "a.txt").write_text("one, two")
    with pytest.raises(ToolError, match="changed while the question was open"):
        await DeleteFile().run(proposal, call)
    assert (root / "a.txt").exists()


async def test_a_folder_that_became_a_link_is_not_deleted_through(call: FakeCall, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("in")
    (root.parent / "a.txt").write_text("out")
    proposal = await call.propose(DeleteFile(), path="sub/a.txt")
    (root / "sub").rename(root / "was")
    (root / "sub").symlink_to(root.parent)
    with pytest.raises(ToolError, match="changed"):
        await DeleteFile().run(proposal, call)
    assert (root.parent / "a.txt").exists()


async def test_a_move_shows_both_ends_and_makes_folders(call: FakeCall, root: Path) -> None:
    (root / "a.txt").write_text("text")
    proposal = await call.propose(MoveFile(), source="a.txt", destination="b/c.txt")
    assert (proposal.title, proposal.kind) == ("Move a.txt to b/c.txt", "move")
    assert proposal.content == [Diff(str(root / "a.txt"), "", "text"), Diff(str(root / "b/c.txt"), "text")]
    assert proposal.locations == [Location(str(root / "a.txt")), Location(str(root / "b/c.txt"))]
    output = await MoveFile().run(proposal, call)
    assert told(output) == "Moved a.txt to b/c.txt."
    assert (root / "b/c.txt").read_text() == "text"
    assert not (root / "a.txt").exists()


async def test_a_move_replaces_nothing(call: FakeCall, root: Path) -> None:
    (root / "a.txt").write_text("a")
    proposal = await call.propose(MoveFile(), source="a.txt", destination="b.txt")
    (root / "b.txt").write_text("b")
    with pytest.raises(ToolError, match=r"b\.txt: File exists"):
        await MoveFile().run(proposal, call)
    with pytest.raises(ToolError, match=r"something at b\.txt already"):
        await call.propose(MoveFile(), source="a.txt", destination="b.txt")
    with pytest.raises(ToolError, match="the same"):
        await call.propose(MoveFile(), source="a.txt", destination="./a.txt")
    assert ((root / "a.txt").read_text(), (root / "b.txt").read_text()) == ("a", "b")


async def test_a_folder_moves_with_what_is_in_it(call: FakeCall, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a.bin").write_bytes(b"\0")
    await call.call(MoveFile(), source="sub", destination="new/sub")
    assert (root / "new" / "sub" / "a.bin").read_bytes() == b"\0"


async def test_outside_and_secrets_are_asked_for_and_not_read_before(call: FakeCall, root: Path) -> None:
    (root.parent / "other.txt").write_text("text")
    (root / ".env").write_text("KEY=1")
    outside = await call.propose(MoveFile(), source="../other.txt", destination="in.txt")
    secret = await call.propose(DeleteFile(), path=".env")
    assert (outside.outside, secret.sensitive) == (True, True)
    assert shown(outside) == f"{root.parent}/other.txt is outside the folders of this session."
    assert shown(secret) == ".env may hold secrets."
    await MoveFile().run(outside, call)
    await DeleteFile().run(secret, call)
    assert (root / "in.txt").read_text() == "text"
    assert not (root / ".env").exists()
    with pytest.raises(FileMissing):
        await call.call(DeleteFile(), path="../gone.txt")

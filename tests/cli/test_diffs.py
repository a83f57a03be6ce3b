"""Diffs as lines, and what they say of a workspace."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acp_agent.cli.diffs import count_changes, diff_lines
from acp_agent.cli.scratch import scratch_workspace

lines = st.lists(st.sampled_from(["a", "b", "", "  c"]), max_size=30)


def spelled(old: str | None, new: str) -> list[str]:
    return [f"{line.sign}{line.number}:{line.text}" for line in diff_lines(old, new)]


def test_lines_that_stay_are_left_out_but_for_a_few() -> None:
    old = "".join(f"{number}\n" for number in range(1, 21))
    assert spelled(old, old.replace("10\n", "ten\n")) == [
        "@7:",
        " 7:7",
        " 8:8",
        " 9:9",
        "-10:10",
        "+10:ten",
        " 11:11",
        " 12:12",
        " 13:13",
    ]


def test_a_new_file_is_all_new_and_an_unchanged_one_nothing() -> None:
    assert spelled(None, "one\ntwo\n") == ["+1:one", "+2:two"]
    assert spelled("one\n", "one\n") == []


@given(lines, lines)
def test_what_goes_and_what_comes_adds_up(before: list[str], after: list[str]) -> None:
    found = diff_lines("\n".join(before), "\n".join(after))
    old, new = "\n".join(before).splitlines(), "\n".join(after).splitlines()
    assert all(old[line.number - 1] == line.text for line in found if line.sign == "-")
    assert all(new[line.number - 1] == line.text for line in found if line.sign in "+ ")
    come, gone = (int(part[1:]) for part in count_changes(found).split())
    assert come - gone == len(new) - len(old)


def test_a_workspace_tells_what_was_changed_made_and_deleted_in_it() -> None:
    with scratch_workspace() as scratch:
        assert scratch.changes() == []
        (scratch.project / "README.md").unlink()
        (scratch.project / "new").mkdir()
        (scratch.project / "new" / "file.txt").write_text("one\ntwo\n")
        greeting = scratch.project / "greeting.py"
        greeting.write_text(greeting.read_text().replace("Hello", "Bye"))
        assert scratch.changes() == ["README.md (deleted)", "greeting.py (+1 -1)", "new/file.txt (new, +2)"]
    assert not scratch.root.exists()

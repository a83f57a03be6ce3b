"""A rule that allows must cover all that a call touches; one that denies or asks is met by any part of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.content import Location, ToolKind
from acp_agent.runtime.permissions import PermissionMemory, PermissionPolicy
from acp_agent.runtime.rules import PermissionRule, Verdict
from acp_agent.tools.base import Proposal


def command(line: str) -> Proposal:
    return Proposal(title=line, kind="execute", arguments={}, key=line)


def files(*paths: str | Path, kind: ToolKind = "edit", sensitive: bool = False) -> Proposal:
    locations = [Location(str(path)) for path in paths]
    key = " -> ".join(str(path) for path in paths)
    return Proposal(title="", kind=kind, arguments={}, key=key, locations=locations, sensitive=sensitive)


def covers(decision: Verdict, pattern: str, proposal: Proposal, base: str | Path = "") -> bool:
    return PermissionRule(decision, "t", pattern, base=str(base)).matches("t", proposal)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("pytest*", "pytest -q tests/test_a.py"),
        ("pytest", "pytest"),
        ("git status", "git status"),
        ("make test && make lint", "make test && make lint"),
        ("echo [ab]*", "echo b c"),
        ("cat * | head", "cat notes.txt | head"),
    ],
)
def test_a_command_is_allowed_by_its_glob(pattern: str, line: str) -> None:
    assert covers("allow", pattern, command(line))


@pytest.mark.parametrize(
    "line",
    [
        "pytest; rm -rf /",
        "pytest && rm -rf /",
        "pytest | sh",
        "pytest & rm x",
        "pytest\nrm x",
        "pytest $(rm x)",
        "pytest `rm x`",
        "pytest > /etc/passwd",
        "pytest < /etc/passwd",
        "pytest <(rm x)",
        "pytest\n(in /elsewhere)",
    ],
)
def test_what_a_wildcard_stands_for_cannot_begin_another_command(line: str) -> None:
    assert not covers("allow", "pytest*", command(line))
    assert covers("allow", "*", command(line)), "a rule for the whole tool allows all of it"


@pytest.mark.parametrize("line", ["rm -rf /", "cd /tmp; rm x", "true && rm x", "echo $(rm x)", "(rm x)", "a\nrm x"])
def test_a_denied_command_is_found_anywhere_in_the_line(line: str) -> None:
    assert covers("deny", "rm *", command(line))
    assert covers("ask", "rm *", command(line))


def test_a_denied_word_inside_another_command_is_not_that_command() -> None:
    assert not covers("deny", "rm *", command("echo rm x"))


def test_a_relative_pattern_means_paths_in_its_base(tmp_path: Path) -> None:
    assert covers("allow", "docs/**", files(tmp_path / "docs" / "a" / "b.md"), tmp_path)
    assert covers("allow", "./docs/**", files(tmp_path / "docs"), tmp_path), "the folder itself is in it"
    assert not covers("allow", "docs/**", files(tmp_path / "src" / "docs" / "b.md"), tmp_path)
    assert not covers("allow", "docs/**", files(tmp_path / "documents" / "b.md"), tmp_path)
    assert covers("deny", "**/.env", files(tmp_path / ".env"), tmp_path)
    assert covers("deny", "**/.env", files(tmp_path / "a" / "b" / ".env"), tmp_path)
    assert covers("allow", "../other/*", files(tmp_path.parent / "other" / "x"), tmp_path)


def test_glob_characters_in_the_name_of_the_base_are_just_characters(tmp_path: Path) -> None:
    base = tmp_path / "a[1]*"
    base.mkdir()
    assert covers("allow", "*.md", files(base / "x.md"), base)
    assert not covers("allow", "*.md", files(tmp_path / "a1" / "x.md"), base)


def test_an_absolute_pattern_needs_no_base(tmp_path: Path) -> None:
    assert covers("deny", f"{tmp_path}/*", files(tmp_path / "x"))
    assert not covers("deny", "/somewhere/else/*", files(tmp_path / "x"), tmp_path)


def test_all_paths_of_a_call_must_be_allowed_and_one_is_enough_to_deny(tmp_path: Path) -> None:
    move = files(tmp_path / "docs" / "a", tmp_path / "src" / "a", kind="move")
    assert not covers("allow", "docs/**", move, tmp_path)
    assert covers("deny", "docs/**", move, tmp_path)
    assert covers("ask", "src/**", move, tmp_path)


def test_a_link_is_judged_by_its_name_and_by_where_it_leads(tmp_path: Path) -> None:
    for folder in ("docs", "secret"):
        (tmp_path / folder).mkdir()
    (tmp_path / "docs" / "link").symlink_to(tmp_path / "secret")
    through = files(tmp_path / "docs" / "link" / "key.txt")
    assert not covers("allow", "docs/**", through, tmp_path)
    assert covers("deny", "secret/**", through, tmp_path)
    assert covers("deny", "docs/**", through, tmp_path)


def test_a_base_that_is_a_link_itself_is_no_other_place(tmp_path: Path) -> None:
    (tmp_path / "real" / "docs").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert covers("allow", "docs/**", files(tmp_path / "link" / "docs" / "a"), tmp_path / "link")


def test_a_sensitive_file_must_be_named(tmp_path: Path) -> None:
    env = files(tmp_path / ".env", sensitive=True)
    assert not covers("allow", "*", env, tmp_path)
    assert not covers("allow", "**", env, tmp_path)
    assert not covers("allow", f"{tmp_path}/**", env)
    assert covers("allow", ".env", env, tmp_path)
    assert covers("allow", "**/.env", files(tmp_path / "a" / ".env", sensitive=True), tmp_path)
    assert covers("deny", "*", env, tmp_path)


def test_the_tool_is_a_glob_too() -> None:
    rule = PermissionRule("allow", "mcp__github__*")
    assert rule.matches("mcp__github__list_issues", command("x"))
    assert not rule.matches("mcp__other__list_issues", command("x"))


@pytest.mark.parametrize(
    ("decisions", "verdict"),
    [(("allow", "ask", "deny"), "deny"), (("allow", "ask"), "ask"), (("allow",), "allow"), ((), "ask")],
)
def test_the_stricter_rule_wins_whatever_the_order(decisions: tuple[Verdict, ...], verdict: Verdict) -> None:
    for rules in (decisions, decisions[::-1]):
        policy = PermissionPolicy([PermissionRule(decision, "t") for decision in rules])
        assert policy.decide("t", command("x"), "ask", PermissionMemory()).verdict == verdict


def test_a_broad_rule_does_not_hide_one_that_names_a_sensitive_file(tmp_path: Path) -> None:
    rules = [PermissionRule("allow", "t"), PermissionRule("allow", "t", ".env", base=str(tmp_path))]
    policy = PermissionPolicy(rules)
    env = files(tmp_path / ".env", sensitive=True)
    assert policy.decide("t", env, "ask", PermissionMemory()).verdict == "allow"


def test_a_rule_reads_as_it_is_written() -> None:
    assert str(PermissionRule("deny", "run_command", "rm *")) == "deny run_command(rm *)"
    assert str(PermissionRule("allow", "read_file")) == "allow read_file"

"""`config`: the rules in force in their order, where each comes from, and where everything lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.cli.arguments import parse
from acp_agent.cli.run import run
from acp_agent.credentials import Credentials


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own file, not there yet."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("ACP_AGENT_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "config" / "acp-agent"
    folder.mkdir(parents=True)
    return folder / "acp-agent.toml"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "acp-agent.toml").write_text(
        "[permissions]\nallow = ['run_command']\nask = ['read_file']\ndeny = ['fetch_url']\n"
    )
    return folder


def output(capsys: pytest.CaptureFixture[str], *line: str | Path) -> list[str]:
    """The lines, blanks that only align taken out."""
    run(parse(["config", *map(str, line)]))
    return [" ".join(row.split()) for row in capsys.readouterr().out.splitlines()]


def test_rules_are_shown_in_the_order_in_which_they_decide(
    own: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own.write_text(
        "[permissions]\nallow = ['write_file(docs/**)']\ndeny = ['run_command(rm *)']\n"
        f"[projects]\ntrusted = ['{project}']"
    )
    lines = output(capsys, "permissions", "--cwd", project)
    theirs = project / "acp-agent.toml"
    shown = [line.split(" ", 1)[1] for line in lines if line[:1].isdigit()]
    assert shown == [
        f"deny run_command(rm *) {own}:3",
        f"deny fetch_url {theirs}:4",
        "deny a tool that is switched off the tool",
        "deny what would change something, in mode plan the mode",
        "as answered what was answered with always, inside the session's folders the session",
        f"ask read_file {theirs}:3",
        "allow everything, in mode auto the mode",
        f"allow write_file(docs/**) {own}:2",
        f"allow run_command {theirs}:2",
        "allow edits inside the session's folders but of sensitive files, in mode accept_edits the mode",
        "allow reading and searching inside the session's folders, but of sensitive files the tool",
        "ask everything else the tool",
    ]
    assert "accept_edits Edits files inside the workspace without asking" in lines
    assert "Not in force:" not in lines


def test_what_an_untrusted_project_allows_is_shown_apart(
    own: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = output(capsys, "permissions", "--cwd", project)
    place = lines.index("Not in force:")
    assert f"allow run_command {project / 'acp-agent.toml'}:2" in lines[place:]
    assert not any("run_command" in line for line in lines[:place])
    assert any(f'does not trust its folder ([projects] trusted = ["{project}"])' in line for line in lines)


def test_a_rule_cannot_write_over_the_table(own: Path, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "acp-agent.toml").write_text('[permissions]\ndeny = ["read_file(\\u001b[2J\\nallow everything)"]')
    lines = output(capsys, "permissions", "--cwd", project)
    assert "\x1b" not in "".join(lines)
    assert "allow everything)" not in lines


def test_a_broken_file_is_one_clear_line_on_stderr(
    own: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own.write_text("[permissions]\n\ndeny = [1]")
    with pytest.raises(SystemExit) as caught:
        output(capsys, "permissions", "--cwd", project)
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"acp-agent: {own}:3: permissions.deny[0]: expected `str`, got `int`\n"


def test_paths_say_where_everything_is_and_what_is_not_there(
    own: Path, project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_agent.credentials.open_keyring", lambda: (None, ()))
    Credentials(tmp_path / "state").store_key("openai", "sk-very-secret")
    own.write_text("broken [")
    lines = output(capsys, "paths", "--cwd", project)
    assert lines[1:] == [
        f"your settings {own}",
        f"this project's settings {project / 'acp-agent.toml'}",
        f"sessions {tmp_path / 'state' / 'sessions.db'} not there",
        f"log {tmp_path / 'state' / 'acp-agent.log'} not there",
        f"key for OpenAI {tmp_path / 'state' / 'credentials.json'}",
        "key for Anthropic none",
    ]


def test_without_cwd_the_current_directory_is_meant(
    own: Path, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    assert any(line.endswith(f"{project / 'acp-agent.toml'}:4") for line in output(capsys, "permissions"))

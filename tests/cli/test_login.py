"""`login` and `logout`: keys come from a terminal or a pipe, and are never shown."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from acp_agent.cli.arguments import parse
from acp_agent.cli.run import run
from acp_agent.credentials import Credentials
from tests.requirements import requirement

KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no settings and no keyring of whoever runs the tests."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ACP_AGENT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("ACP_AGENT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setitem(sys.modules, "keyring", None)


@pytest.fixture
def kept(tmp_path: Path) -> Credentials:
    return Credentials(tmp_path / "state")


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


# what the command line means ----------------------------------------------------------------------------------------


@requirement("auth-terminal-flow")
@pytest.mark.parametrize(
    "line",
    [
        "login",
        "serve login",
        "--model openai:x login",
        "serve --model openai:x --state-dir /s login",
        "my_agent:agent login",
        "my_agent:agent --mode=plan login",
        "--scenario=login login",
    ],
)
def test_login_behind_any_command_line_that_serves_is_the_command_login(line: str) -> None:
    assert parse(line.split()).command == "login"


@pytest.mark.parametrize("line", ["--scenario login", "--model login", "serve --state-dir login", "login:agent", ""])
def test_login_as_a_value_is_a_value(line: str) -> None:
    assert parse(line.split()).command == "serve"


def test_what_served_says_which_state_and_which_models() -> None:
    parsed = parse(["--model", "openai:x", "--state-dir", "/s", "login"])
    assert (parsed.model, parsed.state_dir, parsed.provider) == (["openai:x"], Path("/s"), None)


# login --------------------------------------------------------------------------------------------------------------


def test_a_key_is_read_from_a_pipe_and_never_shown(
    kept: Credentials, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in(monkeypatch, f"  {KEY}\nmore")
    run(parse(["login", "openai"]))
    assert kept.find_key("openai") == KEY
    out, err = capsys.readouterr()
    assert out == ""
    assert KEY not in err
    assert f"The key for OpenAI is kept in {kept.path}." in err


@pytest.mark.parametrize("text", ["", "\n", "   \n"])
def test_an_empty_key_is_refused_and_the_old_one_stays(
    kept: Credentials, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    kept.store_key("openai", KEY)
    type_in(monkeypatch, text)
    with pytest.raises(SystemExit) as caught:
        run(parse(["login", "openai"]))
    assert caught.value.code == 2
    assert "No key was given" in capsys.readouterr().err
    assert kept.find_key("openai") == KEY


@pytest.mark.parametrize("key", ["sk one", "sk-\u00e9", "sk-\x1b[0m"])
def test_what_can_be_no_key_is_refused_without_showing_it(
    kept: Credentials, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    type_in(monkeypatch, key + "\n")
    with pytest.raises(SystemExit):
        run(parse(["login", "openai"]))
    assert not kept.is_stored("openai")
    assert key not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "provider"),
    [
        ("--model anthropic:claude login", "anthropic"),
        ("--model openai-responses:x login", "openai"),
        ("--model http://127.0.0.1:1/v1#m --model anthropic:claude login", "anthropic"),
    ],
)
def test_the_provider_is_the_one_that_the_served_models_need(
    kept: Credentials, monkeypatch: pytest.MonkeyPatch, line: str, provider: str
) -> None:
    type_in(monkeypatch, KEY)
    run(parse(line.split()))
    assert kept.find_key(provider) == KEY


def test_the_provider_of_the_default_model_in_the_settings_is_meant(
    tmp_path: Path, kept: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "config" / "acp-agent"
    folder.mkdir(parents=True)
    (folder / "acp-agent.toml").write_text("[models]\ndefault = 'anthropic:claude'")
    type_in(monkeypatch, KEY)
    run(parse(["login"]))
    assert kept.is_stored("anthropic")


def test_without_a_model_a_pipe_must_name_the_provider(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in(monkeypatch, KEY)
    with pytest.raises(SystemExit):
        run(parse(["login"]))
    assert "acp-agent login openai|anthropic" in capsys.readouterr().err


def test_a_key_in_the_environment_that_hides_the_stored_one_is_mentioned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    type_in(monkeypatch, KEY)
    run(parse(["login", "openai"]))
    err = capsys.readouterr().err
    assert "OPENAI_API_KEY is set here" in err
    assert "another" not in err


@requirement("auth-terminal-flow")
@pytest.mark.slow
def test_at_a_terminal_the_key_is_not_echoed(tmp_path: Path, kept: Credentials) -> None:
    ours, theirs = pty.openpty()
    blocked = "import sys; sys.modules['keyring'] = None; from acp_agent.__main__ import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", blocked, "--model", "openai:gpt-5", "login"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(theirs), os.O_RDWR)),
    ) as process:
        os.close(theirs)
        shown = b""
        while b"not shown" not in shown:
            shown += os.read(ours, 1024)
        os.write(ours, f"{KEY}\n".encode())
        while True:
            try:
                data = os.read(ours, 1024)
            except OSError:  # the program has ended
                break
            if not data:
                break
            shown += data
        assert process.wait(10) == 0
    os.close(ours)
    assert KEY.encode() not in shown
    assert kept.find_key("openai") == KEY


# logout -------------------------------------------------------------------------------------------------------------


def test_logout_forgets_one_provider_or_all(kept: Credentials, capsys: pytest.CaptureFixture[str]) -> None:
    for provider in ("openai", "anthropic"):
        kept.store_key(provider, KEY)
    run(parse(["logout", "openai"]))
    assert (kept.is_stored("openai"), kept.is_stored("anthropic")) == (False, True)
    run(parse(["logout"]))
    assert not kept.is_stored("anthropic")
    run(parse(["logout"]))
    assert capsys.readouterr().err.splitlines() == [
        "Forgotten: the key for OpenAI.",
        "Forgotten: the key for Anthropic.",
        "There was no key to forget.",
    ]


def test_logout_says_what_it_cannot_forget(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    run(parse(["logout", "openai"]))
    err = capsys.readouterr().err
    assert "OpenAI still has credentials in the environment (OPENAI_API_KEY)." in err
    assert KEY not in err

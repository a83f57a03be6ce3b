"""Keys: where they are looked for, how they are kept, and that nobody sees them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from acp_agent.credentials import Credentials
from acp_agent.errors import AcpAgentError

KEY = "sk-very-secret"


class KeyringError(Exception):
    pass


class FakeKeyring(ModuleType):
    """The `keyring` package, with a backend that may be broken or forgetful."""

    def __init__(self) -> None:
        super().__init__("keyring")
        self.kept: dict[tuple[str, str], str] = {}
        self.is_broken = False
        self.is_forgetful = False
        self.calls = 0

    def get_password(self, service: str, user: str) -> str | None:
        self._work()
        return self.kept.get((service, user))

    def set_password(self, service: str, user: str, key: str) -> None:
        self._work()
        if not self.is_forgetful:
            self.kept[service, user] = key

    def delete_password(self, service: str, user: str) -> None:
        self._work()
        if self.kept.pop((service, user), None) is None:
            raise KeyringError("nothing there")

    def _work(self) -> None:
        self.calls += 1
        if self.is_broken:
            raise KeyringError("no backend")


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> FakeKeyring:
    """An installed keyring."""
    fake, errors = FakeKeyring(), ModuleType("keyring.errors")
    errors.__dict__["KeyringError"] = KeyringError
    monkeypatch.setitem(sys.modules, "keyring", fake)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    return fake


@pytest.fixture
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_the_environment_comes_first(tmp_path: Path, no_keyring: None) -> None:
    credentials = Credentials(tmp_path, {"OPENAI_API_KEY": "from-environment"})
    credentials.store_key("openai", KEY)
    assert credentials.find_key("openai") == "from-environment"
    assert credentials.where("openai") == "the environment (OPENAI_API_KEY)"
    assert Credentials(tmp_path, {}).find_key("openai") == KEY


def test_a_way_of_the_sdks_own_is_left_to_it(tmp_path: Path, no_keyring: None) -> None:
    credentials = Credentials(tmp_path, {"ANTHROPIC_AUTH_TOKEN": "token"})
    credentials.store_key("anthropic", KEY)
    assert credentials.has_key("anthropic")
    assert credentials.find_key("anthropic") is None


def test_profiles_of_the_sdks_own_count_when_nothing_else_is_there(tmp_path: Path, no_keyring: None) -> None:
    credentials = Credentials(tmp_path, {})
    assert not credentials.has_key("anthropic")
    (tmp_path / "home" / ".config" / "anthropic" / "configs").mkdir(parents=True)
    assert credentials.has_key("anthropic")
    assert credentials.find_key("anthropic") is None
    credentials.store_key("anthropic", KEY)
    assert credentials.find_key("anthropic") == KEY


def test_a_key_is_kept_in_a_file_for_its_owner_alone(tmp_path: Path, no_keyring: None) -> None:
    credentials = Credentials(tmp_path / "state", {})
    assert credentials.store_key("openai", KEY) == str(tmp_path / "state" / "credentials.json")
    assert credentials.path.stat().st_mode & 0o777 == 0o600
    assert credentials.path.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in credentials.path.parent.iterdir()] == ["credentials.json"]
    assert Credentials(tmp_path / "state", {}).find_key("openai") == KEY


def test_a_file_that_others_could_read_is_replaced_by_one_that_they_cannot(tmp_path: Path, no_keyring: None) -> None:
    credentials = Credentials(tmp_path, {})
    credentials.path.write_text("{}")
    credentials.path.chmod(0o644)
    credentials.store_key("openai", KEY)
    assert credentials.path.stat().st_mode & 0o777 == 0o600


def test_keys_of_several_providers_live_side_by_side(tmp_path: Path, no_keyring: None) -> None:
    credentials = Credentials(tmp_path, {})
    credentials.store_key("openai", "one")
    credentials.store_key("anthropic", "two")
    assert credentials.forget_key("openai")
    assert not credentials.forget_key("openai")
    assert (credentials.find_key("openai"), credentials.find_key("anthropic")) == (None, "two")


def test_a_key_that_appears_is_seen_at_once(tmp_path: Path, no_keyring: None) -> None:
    mine, others = Credentials(tmp_path, {}), Credentials(tmp_path, {})
    assert not mine.has_key("openai")
    others.store_key("openai", KEY)
    assert mine.has_key("openai")
    others.forget_key("openai")
    assert not mine.has_key("openai")


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path, no_keyring: None) -> None:
    (tmp_path / "state").write_text("a file")
    credentials = Credentials(tmp_path / "state", {})
    assert credentials.find_key("openai") is None
    with pytest.raises(AcpAgentError, match="cannot be written"):
        credentials.store_key("openai", KEY)


@pytest.mark.parametrize("text", ["", "{", '{"openai": 3}', '["sk-very-secret"]'])
def test_a_damaged_file_holds_no_key_and_can_be_written_anew(tmp_path: Path, no_keyring: None, text: str) -> None:
    credentials = Credentials(tmp_path, {})
    credentials.path.write_text(text)
    assert credentials.find_key("openai") is None
    credentials.store_key("openai", KEY)
    assert credentials.find_key("openai") == KEY


def test_with_a_keyring_the_file_has_no_key(tmp_path: Path, keyring: FakeKeyring) -> None:
    credentials = Credentials(tmp_path, {})
    assert credentials.store_key("openai", KEY) == "the keyring"
    assert keyring.kept == {("acp-agent", "openai"): KEY}
    assert KEY not in credentials.path.read_text()
    assert credentials.find_key("openai") == KEY
    assert credentials.forget_key("openai")
    assert (keyring.kept, credentials.find_key("openai")) == ({}, None)


def test_the_keyring_is_not_asked_whether_there_is_a_key(tmp_path: Path, keyring: FakeKeyring) -> None:
    credentials = Credentials(tmp_path, {})
    assert credentials.find_key("openai") is None
    assert not credentials.has_key("openai")
    assert keyring.calls == 0
    credentials.store_key("openai", KEY)
    calls = keyring.calls
    assert credentials.has_key("openai")
    assert keyring.calls == calls


@pytest.mark.parametrize("weakness", ["is_broken", "is_forgetful"])
def test_a_keyring_that_does_not_keep_is_not_relied_on(tmp_path: Path, keyring: FakeKeyring, weakness: str) -> None:
    setattr(keyring, weakness, True)
    credentials = Credentials(tmp_path, {})
    assert credentials.store_key("openai", KEY) == str(credentials.path)
    assert credentials.find_key("openai") == KEY


def test_a_keyring_that_is_locked_later_gives_no_key_and_no_error(tmp_path: Path, keyring: FakeKeyring) -> None:
    credentials = Credentials(tmp_path, {})
    credentials.store_key("openai", KEY)
    keyring.is_broken = True
    assert credentials.find_key("openai") is None
    assert credentials.forget_key("openai"), "what is written of it can still go"


def test_a_key_is_in_no_log_and_no_repr(
    tmp_path: Path, keyring: FakeKeyring, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    credentials = Credentials(tmp_path, {})
    credentials.store_key("openai", KEY)
    keyring.is_broken = True
    credentials.find_key("openai")
    credentials.store_key("anthropic", KEY)
    credentials.path.write_text(credentials.path.read_text()[:-1])
    credentials.find_key("anthropic")
    out, err = capfd.readouterr()
    assert KEY not in out + err + caplog.text + repr(credentials) + repr(vars(credentials))

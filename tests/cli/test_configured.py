"""The coding agent as flags, the environment and settings make it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acp_agent.agent import Agent
from acp_agent.cli.arguments import parse
from acp_agent.cli.configured import Configuration
from acp_agent.credentials import Credentials
from acp_agent.errors import RequestError
from acp_agent.testing import TestClient
from acp_agent.tools.command import RunCommand
from acp_agent.tools.fetch import FetchUrl


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own file, not there yet."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ACP_AGENT_MODEL", "ACP_AGENT_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("acp_agent.credentials.open_keyring", lambda: (None, ()))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "acp-agent"
    folder.mkdir(parents=True)
    return folder / "acp-agent.toml"


@pytest.fixture
def make(own: Path, tmp_path: Path) -> Callable[..., Agent]:
    def make_agent(*line: str) -> Agent:
        state = tmp_path / "state"
        return Configuration(parse(["--state-dir", str(state), *line]), state).make_agent()

    return make_agent


def tool(agent: Agent, kind: type[Any]) -> Any:
    return next(tool for tool in agent.definition.tools if isinstance(tool, kind))


def test_a_flag_goes_before_the_environment_and_that_before_the_settings(
    own: Path, make: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(make().definition.models) != ["openai:from-file"], "a scenario, when nothing is said"
    own.write_text("[models]\navailable = ['openai:other']\ndefault = 'openai:from-file'")
    assert list(make().definition.models) == ["openai:from-file", "openai:other"]
    monkeypatch.setenv("ACP_AGENT_MODEL", "openai:from-environment")
    assert list(make().definition.models) == ["openai:from-environment"]
    assert list(make("--model", "openai:from-flag").definition.models) == ["openai:from-flag"]


def test_tools_are_as_the_settings_say_unless_a_flag_says_otherwise(own: Path, make: Callable[..., Agent]) -> None:
    assert tool(make(), RunCommand).terminal == "auto"
    own.write_text("[tools]\nterminal = 'local'\nfetch_allow_private = true")
    assert tool(make(), RunCommand).terminal == "local"
    assert tool(make("--terminal", "client"), RunCommand).terminal == "client"
    assert tool(make(), FetchUrl).allow_private


def test_a_stored_key_is_for_the_provider_and_not_for_a_server_named_by_its_url(
    own: Path, make: Callable[..., Agent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def note(spec: str, api_key: Any) -> object:
        given[spec] = api_key
        return object()

    monkeypatch.setattr("acp_agent.models.spec.model_from_spec", note)
    specs = ["openai:gpt-5", "openai:http://127.0.0.1:1/v1#m", "http://127.0.0.1:1/v1#m"]
    agent = make(*(word for spec in specs for word in ("--model", spec)))
    agent.definition.models.clear()
    Credentials(tmp_path / "state").store_key("openai", "sk")
    assert given.pop("openai:gpt-5")() == "sk", "a key that was stored later is found, too"
    assert list(given.values()) == [None, None]


@pytest.mark.anyio
async def test_a_file_that_is_broken_at_the_start_refuses_sessions_until_it_is_mended(
    own: Path, make: Callable[..., Agent], tmp_path: Path
) -> None:
    own.write_text("[models]\ndefault = 3")
    agent = make()
    async with TestClient(agent, cwd=tmp_path).connect() as client:
        with pytest.raises(RequestError, match="A settings file is broken") as caught:
            await client.new_session()
        assert caught.value.data["details"].startswith(f"{own}:2: models.default: ")
        one, other = "http://127.0.0.1:1/v1#one", "http://127.0.0.1:1/v1#other"
        own.write_text(f"[models]\ndefault = '{one}'\navailable = ['{other}']\n[tools]\nterminal = 'local'")
        response = await client.new_session()
        values = {option.id: option.current_value for option in response.config_options or []}
        assert values["model"] == one
        assert tool(agent, RunCommand).terminal == "local"
    await agent.aclose()


@pytest.mark.anyio
async def test_servers_of_the_settings_are_started_and_those_of_an_untrusted_project_are_not(
    own: Path, make: Callable[..., Agent], tmp_path: Path
) -> None:
    own.write_text("[mcp.servers.mine]\ncommand = 'no-such-command-of-mine'")
    (tmp_path / "acp-agent.toml").write_text("[mcp.servers.theirs]\ncommand = 'no-such-command-of-theirs'")
    agent = make()
    async with TestClient(agent, cwd=tmp_path).connect() as client:
        text = (await client.prompt("hello")).text
        assert "mine cannot be used" in text
        assert "theirs cannot be used" not in text
        assert "does not trust its folder" in text
    await agent.aclose()

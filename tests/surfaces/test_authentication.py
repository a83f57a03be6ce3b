"""Sign-in is asked for when it is really needed, and a key that appears counts at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from acp_agent.agent import Agent
from acp_agent.cli.signin import ModelSignIn
from acp_agent.credentials import Credentials
from acp_agent.errors import RequestError
from acp_agent.models.scenario import Scenario
from acp_agent.models.scripted import ScriptedModel
from acp_agent.testing import ConnectedClient, TestClient
from tests.requirements import requirement

pytestmark = pytest.mark.anyio

SCRIPT = """
[[turns]]
when = "refuse"
replies = [{ steps = [{ type = "error", message = "The key is refused.", kind = "auth", status = 401 }] }]
[[turns]]
when = "keyless"
replies = [{ steps = [{ type = "error", message = "There is no key.", kind = "auth" }] }]
[[turns]]
when = "forbid"
replies = [{ steps = [{ type = "error", message = "Not your model.", kind = "auth", status = 403 }] }]
[[turns]]
when = "busy"
replies = [{ steps = [{ type = "error", message = "Too many requests.", kind = "rate_limit", status = 429 }] }]
[[turns]]
when = "hello"
replies = [{ steps = [{ type = "text", text = "hello" }] }]
"""
TERMINAL = {"auth": {"terminal": True}}
AUTH_REQUIRED = -32000


@pytest.fixture
def environment() -> dict[str, str]:
    return {}


@pytest.fixture
def credentials(tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Credentials:
    """No key anywhere, and no keyring."""
    monkeypatch.setattr("acp_agent.credentials.open_keyring", lambda: (None, ()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    return Credentials(tmp_path / "state", environment)


@pytest.fixture
def agent(credentials: Credentials) -> Callable[..., Agent]:
    def make(*specs: str) -> Agent:
        agent = Agent("test", model=ScriptedModel(Scenario.parse(SCRIPT)))
        agent.definition.auth = ModelSignIn(lambda: specs, credentials, None)
        return agent

    return make


def ids(methods: Sequence[Any]) -> list[str]:
    return [method["id"] if isinstance(method, dict) else method.id for method in methods]


async def refusal(client: ConnectedClient, method: str, params: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        await client.request(method, params)
    return caught.value


async def listed(client: ConnectedClient) -> list[str]:
    assert client.initialize_result is not None
    return ids(client.initialize_result.auth_methods)


async def test_nothing_is_listed_where_no_model_needs_a_key(agent: Callable[..., Agent]) -> None:
    for specs in ((), ("http://127.0.0.1:1/v1#m",), ("openai:http://127.0.0.1:1/v1#m", "openai:gpt-5")):
        async with TestClient(agent(*specs), capabilities=TERMINAL).connect() as client:
            assert await listed(client) == []
            await client.new_session()


async def test_an_agent_without_sign_in_lists_nothing_and_knows_no_logout() -> None:
    async with TestClient(Agent("test", model=ScriptedModel(Scenario.parse(SCRIPT)))).connect() as client:
        assert await listed(client) == []
        assert (await refusal(client, "authenticate", {"methodId": "x"})).code == -32602
        assert (await refusal(client, "logout", {})).code == -32601


async def test_another_server_by_the_environment_needs_no_key(
    agent: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    async with TestClient(agent("openai:gpt-5")).connect() as client:
        assert await listed(client) == []


async def test_nothing_is_listed_when_the_key_is_there(
    agent: Callable[..., Agent], environment: dict[str, str], credentials: Credentials
) -> None:
    environment["OPENAI_API_KEY"] = "sk"
    credentials.store_key("anthropic", "sk")
    for spec in ("openai:gpt-5", "openai-responses:gpt-5", "anthropic:claude"):
        async with TestClient(agent(spec), capabilities=TERMINAL).connect() as client:
            assert await listed(client) == []
            await client.new_session()


async def test_a_missing_key_is_listed_first_with_a_method_that_needs_no_terminal(
    agent: Callable[..., Agent],
) -> None:
    async with TestClient(agent("openai:gpt-5", "anthropic:claude"), capabilities=TERMINAL).connect() as client:
        assert client.initialize_result is not None
        methods = client.transcript.response_to(client.transcript.sent("initialize")[0])
        assert methods is not None
        wire = methods.message["result"]["authMethods"]
        assert ids(wire) == ["openai-api-key", "anthropic-api-key", "openai-login"]
        assert [method.get("type") for method in wire] == [None, None, "terminal"]
        assert wire[2]["args"] == ["login"]
        assert "login openai" in wire[0]["description"]


@requirement("auth-terminal-gated")
async def test_a_client_without_a_terminal_is_offered_no_terminal_method(agent: Callable[..., Agent]) -> None:
    async with TestClient(agent("openai:gpt-5"), capabilities={"terminal": True}).connect() as client:
        assert await listed(client) == ["openai-api-key"]
        error = await refusal(client, "session/new", {"cwd": client.cwd, "mcpServers": []})
        assert ids(error.data["authMethods"]) == ["openai-api-key"]


@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume"])
async def test_a_session_without_a_key_is_refused_with_the_methods_and_the_command_to_run(
    agent: Callable[..., Agent], method: str
) -> None:
    async with TestClient(agent("openai:gpt-5"), capabilities=TERMINAL).connect() as client:
        error = await refusal(client, method, {"cwd": client.cwd, "mcpServers": [], "sessionId": "sess_x"})
        assert (error.code, error.message) == (AUTH_REQUIRED, "Authentication required")
        assert ids(error.data["authMethods"]) == ["openai-api-key", "openai-login"]
        assert "login openai" in error.data["details"]
        assert "OPENAI_API_KEY" in error.data["details"]
        assert (await client.list_sessions()).sessions == [], "looking at what is kept needs no key"


@requirement("auth-opens-sessions")
async def test_authenticate_says_what_to_do_until_there_is_a_key_and_then_sessions_begin(
    agent: Callable[..., Agent], credentials: Credentials
) -> None:
    async with TestClient(agent("openai:gpt-5")).connect() as client:
        place = {"cwd": client.cwd, "mcpServers": []}
        assert (await refusal(client, "session/new", place)).code == AUTH_REQUIRED
        error = await refusal(client, "authenticate", {"methodId": "openai-api-key"})
        assert error.code == AUTH_REQUIRED
        assert "login openai" in error.data["details"]
        credentials.store_key("openai", "sk")
        assert await client.request("authenticate", {"methodId": "openai-api-key"}) == {}
        await client.new_session()
        assert (await client.prompt("hello")).text == "hello"


async def test_a_key_that_appears_counts_without_authenticate(
    agent: Callable[..., Agent], environment: dict[str, str]
) -> None:
    async with TestClient(agent("anthropic:claude")).connect() as client:
        error = await refusal(client, "session/new", {"cwd": client.cwd, "mcpServers": []})
        assert error.code == AUTH_REQUIRED
        environment["ANTHROPIC_API_KEY"] = "sk"
        await client.new_session()


async def test_a_key_that_the_keyring_does_not_give_is_no_key_to_authenticate_with(
    agent: Callable[..., Agent], credentials: Credentials
) -> None:
    credentials.path.parent.mkdir()
    credentials.path.write_text('{"openai": {"in_keyring": true}}')
    async with TestClient(agent("openai:gpt-5")).connect() as client:
        assert (await refusal(client, "authenticate", {"methodId": "openai-api-key"})).code == AUTH_REQUIRED


@pytest.mark.parametrize("method_id", ["", "openai-login", "anthropic-api-key", "x"])
async def test_a_method_that_is_not_the_agents_own_is_named(agent: Callable[..., Agent], method_id: str) -> None:
    async with TestClient(agent("openai:gpt-5"), capabilities=TERMINAL).connect() as client:
        error = await refusal(client, "authenticate", {"methodId": method_id})
        assert (error.code, error.data["path"]) == (-32602, "$.methodId")


async def test_logout_is_offered_only_for_a_stored_key_and_drops_it(
    agent: Callable[..., Agent], credentials: Credentials, environment: dict[str, str]
) -> None:
    environment["OPENAI_API_KEY"] = "sk"
    async with TestClient(agent("openai:gpt-5")).connect() as client:
        assert client.initialize_result is not None
        assert client.initialize_result.agent_capabilities.auth.logout is None
    del environment["OPENAI_API_KEY"]
    credentials.store_key("openai", "sk")
    async with TestClient(agent("openai:gpt-5")).connect() as client:
        assert client.initialize_result is not None
        assert client.initialize_result.agent_capabilities.auth.logout is not None
        await client.new_session()
        assert await client.request("logout", {}) == {}
        error = await refusal(client, "session/new", {"cwd": client.cwd, "mcpServers": []})
        assert error.code == AUTH_REQUIRED
        assert not credentials.has_key("openai")
        assert (await client.prompt("hello")).text == "hello", "an open session goes on"


@pytest.mark.parametrize("prompt", ["refuse", "keyless"])
async def test_a_key_that_is_missing_or_refused_in_a_turn_is_answered_with_the_methods(
    agent: Callable[..., Agent], environment: dict[str, str], prompt: str
) -> None:
    environment["OPENAI_API_KEY"] = "sk"
    async with TestClient(agent("openai:gpt-5"), capabilities=TERMINAL).connect() as client:
        error = (await client.prompt(prompt)).error
        assert error is not None
        assert error.code == AUTH_REQUIRED
        assert ids(error.data["authMethods"]) == ["openai-api-key", "openai-login"]
        assert error.data["details"].startswith("The key is refused." if prompt == "refuse" else "There is no key.")
        assert "login openai" in error.data["details"]
        assert (await client.prompt("hello")).text == "hello", "the session goes on"


@pytest.mark.parametrize("prompt", ["forbid", "busy"])
async def test_no_other_failure_is_authentication_required(
    agent: Callable[..., Agent], environment: dict[str, str], prompt: str
) -> None:
    environment["OPENAI_API_KEY"] = "sk"
    async with TestClient(agent("openai:gpt-5")).connect() as client:
        error = (await client.prompt(prompt)).error
        assert error is not None
        assert error.code == -32603
        assert "authMethods" not in error.data

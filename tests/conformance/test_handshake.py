"""Rows about the transport, JSON-RPC, `initialize` and signing in."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conformance.kit import AGENT, QUIET, MinimalClient, plain_environment, row
from tests.requirements import requirement

TOO_NEW = 65535


@requirement("stdout-only-messages", "line-per-message")
@row("ACP-TRANSPORT-001", "MANDATORY")
def test_each_line_is_one_json_rpc_message(client: MinimalClient) -> None:
    client.prompt(client.open(), text="hello é中文 😀")
    client.process.stdin.close()  # type: ignore[union-attr]
    while client.hear() is not None:
        pass
    assert client.lines
    assert all(msgspec.json.decode(line)["jsonrpc"] == "2.0" for line in client.lines)


@requirement("stdout-utf8")
@row("ACP-TRANSPORT-002", "MANDATORY")
def test_stdout_is_utf8(client: MinimalClient) -> None:
    client.prompt(client.open(), text="hello é中文 😀")
    assert all(line.decode("utf-8") for line in client.lines)


@requirement("jsonrpc-id")
@row("ACP-JSONRPC-001", "MANDATORY")
def test_a_response_repeats_the_id_number_or_string(client: MinimalClient) -> None:
    assert client.ask("initialize", {"protocolVersion": 1}, id=424242)["id"] == 424242
    place = {"cwd": str(client.cwd), "mcpServers": []}
    assert client.ask("session/new", place, id="tck-string-id")["id"] == "tck-string-id"


@requirement("jsonrpc-one-answer")
@row("ACP-JSONRPC-002", "MANDATORY")
def test_a_response_has_exactly_one_of_result_and_error(shared: MinimalClient) -> None:
    good, bad = shared.ask("session/list", {}), shared.ask("session/new", {"mcpServers": []})
    assert ("result" in good, "error" in good) == (True, False)
    assert ("result" in bad, "error" in bad) == (False, True)
    assert isinstance(bad["error"]["code"], int)
    assert isinstance(bad["error"]["message"], str)


@requirement("jsonrpc-notification")
@row("ACP-JSONRPC-003", "MANDATORY")
def test_a_notification_is_never_answered(client: MinimalClient) -> None:
    session_id = client.open()
    client.listen(0.2)
    client.send(method="session/cancel", params={"sessionId": session_id})
    assert not [message for message in client.listen(QUIET) if "method" not in message]
    assert client.process.poll() is None


@requirement("extension-answered")
@row("ACP-JSONRPC-004", "ADVISORY")
def test_an_unknown_method_is_not_found(shared: MinimalClient) -> None:
    assert shared.ask("_tck/does_not_exist")["error"]["code"] == -32601


@row("ACP-JSONRPC-005", "ADVISORY")
def test_the_connection_stays_usable_after_an_error(shared: MinimalClient) -> None:
    shared.ask("_tck/does_not_exist")
    assert shared.new_session()["sessionId"]


@requirement("extension-answered")
@row("ACP-EXT-001", "MANDATORY")
def test_an_extension_nobody_knows_is_answered(shared: MinimalClient) -> None:
    assert "error" in shared.ask("_tck/unknown")


@row("ACP-ERROR-001", "ADVISORY")
def test_an_error_is_one_line_of_text(shared: MinimalClient) -> None:
    asked: dict[str, Any] = {"_tck/does_not_exist": {}, "session/new": {"mcpServers": []}}
    for method, params in asked.items():
        text = shared.ask(method, params)["error"]["message"]
        assert text.strip()
        assert "\n" not in text


@row("ACP-INFO-INVALIDREQ-001", "INFORMATIONAL")
def test_an_object_that_is_no_message_is_an_invalid_request(client: MinimalClient) -> None:
    client.initialize()
    client.send_line(b'{"foo": "bar"}')
    assert client.answer(None)["error"]["code"] == -32600
    assert client.new_session()["sessionId"]


@row("ACP-INFO-PARSE-001", "INFORMATIONAL")
def test_a_line_that_is_not_json_is_a_parse_error(client: MinimalClient) -> None:
    client.initialize()
    client.send_line(b"{not valid json at all")
    assert client.answer(None)["error"]["code"] == -32700
    assert client.new_session()["sessionId"]


@row("ACP-INIT-001", "MANDATORY")
def test_initialize_succeeds_with_a_whole_number_for_its_version(advertised: dict[str, Any]) -> None:
    assert type(advertised["protocolVersion"]) is int


@requirement("initialize-version")
@row("ACP-INIT-002", "MANDATORY")
def test_who_asks_for_version_one_gets_it(advertised: dict[str, Any]) -> None:
    assert advertised["protocolVersion"] == 1


@requirement("initialize-version")
@row("ACP-INIT-003", "MANDATORY")
def test_a_version_of_the_future_is_answered_with_the_latest_of_ours(
    client: MinimalClient, advertised: dict[str, Any]
) -> None:
    params = {"protocolVersion": TOO_NEW, "info": {"name": "tck", "version": "1"}}
    version = client.result("initialize", params)["protocolVersion"]
    assert type(version) is int
    assert advertised["protocolVersion"] <= version < TOO_NEW


@requirement("initialize-agent-info")
@row("ACP-INIT-004", "ADVISORY")
def test_the_agent_names_itself_and_its_version(advertised: dict[str, Any]) -> None:
    assert advertised["agentInfo"]["name"]
    assert advertised["agentInfo"]["version"]


@row("ACP-AUTH-001", "ADVISORY")
def test_the_ways_to_sign_in_have_ids_of_their_own(advertised: dict[str, Any]) -> None:
    ids = [method["id"] for method in advertised.get("authMethods", [])]
    assert len(ids) == len(set(ids))


@requirement("auth-terminal-gated")
@row("ACP-AUTH-002", "MANDATORY")
def test_nobody_is_sent_to_a_terminal_that_did_not_say_it_has_one(advertised: dict[str, Any]) -> None:
    assert "terminal" not in [method.get("type") for method in advertised.get("authMethods", [])]


def sign_in(state: Path) -> None:
    """As the user does it, in a terminal of their own."""
    command = [*AGENT, "login", "openai", "--state-dir", str(state)]
    subprocess.run(command, input=b"sk-not-a-real-key\n", check=True, capture_output=True, env=plain_environment(state))


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[MinimalClient]:
    """The agent with a model that needs a key, and no key."""
    client = MinimalClient(tmp_path, "--model", "openai:gpt-5")
    yield client
    client.close()


@row("ACP-AUTH-003", "CAPABILITY")
def test_a_session_can_be_opened_after_signing_in(asking: MinimalClient) -> None:
    methods = asking.initialize()["authMethods"]
    place = {"cwd": str(asking.cwd), "mcpServers": []}
    assert asking.ask("session/new", place)["error"]["code"] == -32000
    sign_in(asking.state)
    assert asking.result("authenticate", {"methodId": methods[0]["id"]}) == {}
    assert "result" in asking.ask("session/new", place)


@row("ACP-AUTH-004", "CAPABILITY")
def test_signing_out_succeeds_with_an_object(asking: MinimalClient) -> None:
    sign_in(asking.state)
    assert asking.initialize()["agentCapabilities"]["auth"]["logout"] == {}
    assert asking.result("logout", {}) == {}


@row("ACP-AUTH-005", "ADVISORY")
def test_without_ways_to_sign_in_no_session_asks_for_it(shared: MinimalClient, advertised: dict[str, Any]) -> None:
    if advertised.get("authMethods"):
        pytest.skip("ways to sign in are advertised")
    assert shared.new_session()["sessionId"]


@row("ACP-SHUTDOWN-001", "ADVISORY")
def test_it_leaves_by_itself_when_its_input_ends(client: MinimalClient) -> None:
    client.open()
    client.process.stdin.close()  # type: ignore[union-attr]
    assert client.process.wait(2) == 0


@row("ACP-STDERR-001", "INFORMATIONAL")
def test_a_handshake_says_nothing_on_stderr(client: MinimalClient, tmp_path: Path) -> None:
    client.open()
    client.process.stdin.close()  # type: ignore[union-attr]
    client.process.wait(2)
    assert client.process.stderr is not None
    assert client.process.stderr.read() == b""

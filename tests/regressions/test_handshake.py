"""What broke agents in the handshake: versions, signing in, capabilities that were not true, the shape of answers.

Proved whole by other tests:

    `protocolVersion` or all params are missing (openclaw/acpx#67)
        runtime/test_sessions.py::test_an_initialize_without_a_version_is_refused_and_may_be_tried_again
    a version that the client does not speak (openonion/connectonion#979)
        runtime/test_sessions.py::test_other_versions_are_answered_with_ours
    an answer without its required members (xinbo-tech/thincoder#9)
        conformance/test_sessions.py::test_setting_an_option_answers_with_all_of_them
    members that the schema does not have (anomalyco/opencode#14746, zed-industries/codex-acp#230)
        conformance/test_turns.py::test_no_message_has_a_member_that_its_type_has_not
    signing in succeeds, and sessions are refused all the same (github/copilot-cli#3902)
        surfaces/test_authentication.py::test_authenticate_says_what_to_do_until_there_is_a_key_and_then_sessions_begin
    a way to sign in that this client cannot go (nexu-io/open-design#4192)
        surfaces/test_authentication.py::test_a_missing_key_is_listed_first_with_a_method_that_needs_no_terminal
    a refusal that does not say what to run (getpaseo/paseo#4775)
        surfaces/test_authentication.py::test_a_session_without_a_key_is_refused_with_the_methods_and_the_command_to_run
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_agent.agent import Agent
from acp_agent.errors import ModelError, RequestError, ToolError
from acp_agent.models.base import TextDelta, ThoughtDelta, ToolUse, UsageDelta
from acp_agent.testing import ConnectedClient, TestClient
from acp_agent.tools.coding import coding_tools
from tests.requirements import requirement
from tests.runtime.support import PlayedModel, make_agent

pytestmark = pytest.mark.anyio


def failing(error: Exception) -> Any:
    async def fail() -> None:
        raise error

    return fail


# pingdotgg/t3code#9335, mrmans0n/alas#419, block/buzz#2577
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ModelError("wrong key", kind="auth", status=401), -32000),
        (ModelError("not for you", kind="auth", status=403), -32603),
        (ModelError("slow down", kind="rate_limit", status=429, retryable=True), -32603),
        (ModelError("it broke", kind="overloaded", status=500, retryable=True), -32603),
        (ModelError("unauthorized, it says", kind="other"), -32603),
    ],
    ids=["401", "403", "429", "500", "words"],
)
async def test_only_a_401_asks_the_user_to_sign_in(error: ModelError, code: int) -> None:
    agent, _, _ = make_agent([failing(error)])
    async with TestClient(agent).connect() as client:
        result = await client.prompt("hello")
        assert result.error is not None
        assert result.error.code == code
        assert ("authMethods" in result.error.data) == (code == -32000)
        assert result.error.data["details"] == error.message
        assert (await client.prompt("again")).text == "Done."


# block/buzz#2577
async def test_a_tool_that_is_unauthorized_is_a_failed_call_and_nothing_else() -> None:
    agent = Agent("tested", model=PlayedModel([ToolUse("call")]))

    @agent.tool(permission="allow")
    async def call() -> str:
        """Call somebody."""
        raise ToolError("401 unauthorized")

    async with TestClient(agent).connect() as client:
        result = await client.prompt("hello")
        assert (result.stop_reason, result.tool_call.status) == ("end_turn", "failed")


def nulls(value: Any, path: str = "") -> list[str]:
    """Where in a JSON value a null is."""
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in nulls(item, f"{path}.{key}")]
    if isinstance(value, list):
        return [found for item in value for found in nulls(item, path)]
    return [path] if value is None else []


# get-bb/bb#1044, agentclientprotocol/typescript-sdk#91
async def test_nothing_is_null_where_it_can_be_left_out(tmp_path: Path) -> None:
    model = PlayedModel(
        [ThoughtDelta("Hm."), TextDelta("So."), UsageDelta(10, 5, 1000)],
        [
            ToolUse("write_file", {"path": "new.txt", "content": "new\n"}),
            ToolUse("read_file", {"path": "new.txt"}),
            ToolUse("run_command", {"command": "true"}),
            ToolUse("update_plan", {"entries": [{"content": "one", "status": "pending"}]}),
        ],
    )
    async with TestClient(Agent("full", model=model, tools=coding_tools()), cwd=tmp_path).connect() as client:
        await client.prompt("talk")
        await client.prompt("work")
        await client.set_mode("plan")
        await client.list_sessions()
        await client.load_session(str(client.session_id))
        found = {path for frame in client.transcript.received() for path in nulls(frame.message)}
        # what a command's end was is raw data of the tool's own
        assert {path for path in found if ".rawOutput." not in path} == set()


BLOCKS: dict[str, dict[str, Any]] = {
    "image": {"type": "image", "mimeType": "image/png", "data": "aGk="},
    "audio": {"type": "audio", "mimeType": "audio/wav", "data": "aGk="},
    "embeddedContext": {"type": "resource", "resource": {"uri": "file:///a", "text": "a"}},
}


# PrimeIntellect-ai/prime-agent#613, aaif-goose/goose#7984
@requirement("error-unadvertised")
@pytest.mark.parametrize("accepts", [(), ("image", "audio", "resource")], ids=["nothing", "everything"])
async def test_what_is_advertised_works_and_what_is_not_is_refused(accepts: tuple[Any, ...]) -> None:
    agent = Agent("tested", model=PlayedModel(), accepts=accepts)
    async with TestClient(agent).connect() as client:
        assert client.initialize_result is not None
        said = client.transcript.received()[0].message["result"]["agentCapabilities"]
        for name, block in BLOCKS.items():
            result = await client.prompt([{"type": "text", "text": "see"}, block])
            if said.get("promptCapabilities", {}).get(name):
                assert result.stop_reason == "end_turn"
            else:
                assert result.error is not None
                assert (result.error.code, result.error.data["path"]) == (-32602, "$.prompt[1]")
        await call_each_method(client, said)


async def call_each_method(client: ConnectedClient, said: dict[str, Any]) -> None:
    """Every session method that is advertised, and none that is not."""
    session_id = str(client.session_id)
    offered = said["sessionCapabilities"]
    assert (await client.list_sessions()).sessions
    await client.load_session(session_id)
    await client.resume_session(session_id, additional_directories=[client.cwd])
    await client.close_session(session_id)
    await client.delete_session(session_id)
    assert set(offered) == {"list", "resume", "close", "delete", "additionalDirectories"}
    assert all(value == {} for value in offered.values())
    assert said["loadSession"] is True
    if "auth" not in said:
        with pytest.raises(RequestError) as refused:
            await client.request("logout", {})
        assert refused.value.code == -32601

"""Rows about prompts, what may be in them, what may be asked of a client that can nothing, and cancelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acp_agent.protocol.base import Payload
from tests.conformance.kit import LONG, QUIET, MinimalClient, row
from tests.official import payload_of
from tests.protocol.inventory import fields
from tests.requirements import requirement

BLOCKS = "agentCapabilities.promptCapabilities"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
SILENCE = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA=="
END = ("end_turn", "max_tokens", "max_turn_requests", "refusal")


@requirement("prompt-text", "turn-stop-reason", "baseline-methods")
@row("ACP-PROMPT-001", "MANDATORY")
def test_a_prompt_of_text_ends_with_a_stop_reason(shared: MinimalClient) -> None:
    assert shared.prompt(shared.new_session()["sessionId"])["stopReason"] in END


@row("ACP-PROMPT-002", "MANDATORY")
def test_each_update_of_a_turn_names_its_session(shared: MinimalClient) -> None:
    session_id = shared.new_session()["sessionId"]
    shared.listen(0.1)
    before = len(shared.heard("session/update"))
    shared.prompt(session_id)
    updates = shared.heard("session/update")[before:]
    assert updates
    assert {update["params"]["sessionId"] for update in updates} == {session_id}


@requirement("prompt-resource-link")
@row("ACP-PROMPT-003", "ADVISORY")
def test_a_link_to_a_file_that_need_not_exist_is_taken(shared: MinimalClient) -> None:
    link = {"type": "resource_link", "uri": (shared.cwd / "tck-example.txt").as_uri(), "name": "tck-example.txt"}
    shared.prompt(shared.new_session()["sessionId"], link)


@row("ACP-PROMPTCAP-001", "CAPABILITY", f"{BLOCKS}.image")
def test_an_image_is_taken(shared: MinimalClient) -> None:
    shared.prompt(shared.new_session()["sessionId"], {"type": "image", "mimeType": "image/png", "data": PIXEL})


@row("ACP-PROMPTCAP-002", "CAPABILITY", f"{BLOCKS}.audio")
def test_a_sound_is_taken(shared: MinimalClient) -> None:
    shared.prompt(shared.new_session()["sessionId"], {"type": "audio", "mimeType": "audio/wav", "data": SILENCE})


@row("ACP-PROMPTCAP-003", "CAPABILITY", f"{BLOCKS}.embeddedContext")
def test_an_embedded_file_is_taken(shared: MinimalClient) -> None:
    resource = {"uri": "file:///tck/embedded.txt", "text": "some text", "mimeType": "text/plain"}
    shared.prompt(shared.new_session()["sessionId"], {"type": "resource", "resource": resource})


@requirement("meta-unknown")
@row("ACP-META-001", "ADVISORY")
def test_a_prompt_may_carry_meta(shared: MinimalClient) -> None:
    meta = {"traceparent": "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01", "tck": True}
    shared.prompt(shared.new_session()["sessionId"], _meta=meta)


@row("ACP-SCHEMA-001", "MANDATORY")
def test_every_message_is_valid_by_the_schema(client: MinimalClient) -> None:
    """Closing the client holds every frame against the official models and schema; so it does in every other row."""
    client.prompt(client.open())
    assert len(client.frames) > 5


@requirement("extension-root")
@row("ACP-SCHEMA-002", "ADVISORY")
def test_no_message_has_a_member_that_its_type_has_not(client: MinimalClient) -> None:
    client.prompt(client.open())
    asked = {frame.id: frame.method for frame in client.frames if frame.direction == "to_agent"}
    for frame in client.frames:
        if frame.direction == "from_agent" and (found := payload_of(frame, asked.get(frame.id))):
            struct, payload = found
            assert issubclass(struct, Payload)
            assert set(payload) <= set(fields(struct))


@requirement("error-unknown-session")
@row("ACP-INFO-UNKNOWNSESSION-001", "INFORMATIONAL")
def test_a_prompt_for_a_session_that_is_not_there_is_told_so(shared: MinimalClient) -> None:
    params = {"sessionId": "tck-does-not-exist", "prompt": [{"type": "text", "text": "hello"}]}
    error = shared.ask("session/prompt", params)["error"]
    assert (error["code"], error["data"]["sessionId"]) == (-32002, "tck-does-not-exist")


# what a client that can nothing is not asked --------------------------------------------------------------------------


@requirement("fs-gated", "initialize-omitted-capability")
@row("ACP-CLIENTCAP-001", "MANDATORY")
def test_a_client_without_files_is_asked_for_none(client: MinimalClient) -> None:
    session_id = client.open()
    (client.cwd / "README.md").write_text("Read me.\n")
    client.prompt(session_id, text="Read the file README.md in the working directory and summarize it.")
    assert any("tool_call" in str(update) for update in client.heard("session/update"))
    assert not client.heard("fs/read_text_file")
    assert not client.heard("fs/write_text_file")


@requirement("terminal-gated", "initialize-omitted-capability")
@row("ACP-CLIENTCAP-002", "MANDATORY")
def test_a_client_without_terminals_is_asked_for_none(client: MinimalClient) -> None:
    client.prompt(client.open(), text="Run `ls -la` in a shell and tell me what it prints.")
    assert client.heard("session/request_permission")
    assert not client.heard("terminal/create")


@requirement("elicitation-gated", "initialize-omitted-capability")
@row("ACP-CLIENTCAP-003", "MANDATORY")
def test_a_client_without_forms_is_asked_for_none(shared: MinimalClient) -> None:
    text = "Before you continue, ask me which of two options I prefer."
    shared.prompt(shared.new_session()["sessionId"], text=text)
    assert not shared.heard("elicitation/create")


# cancelling ---------------------------------------------------------------------------------------------------------


def interrupt(client: MinimalClient, end: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
    """A long turn, interrupted by `end` as the kit does it: after the first update and a look for one more line."""
    session_id = client.open()
    client.listen(0.2)
    request_id = client.start_prompt(session_id, text=LONG)
    client.first_update()
    line = client.hear(0.5)
    assert line is None or "method" in line, "the turn was over before it could be cancelled"
    client.has_cancelled = True
    end(session_id)
    return session_id, client.answer(request_id)


@requirement("cancel-answer", "baseline-methods")
@row("ACP-CANCEL-001", "MANDATORY")
def test_a_cancelled_turn_ends_with_a_result_that_says_so(client: MinimalClient) -> None:
    _, response = interrupt(client, lambda session_id: cancel(client, session_id))
    assert response.get("result") == {"stopReason": "cancelled"}


@requirement("cancel-updates-first")
@row("ACP-CANCEL-002", "MANDATORY")
def test_after_a_cancelled_turn_nothing_more_is_said(client: MinimalClient) -> None:
    session_id, _ = interrupt(client, lambda session_id: cancel(client, session_id))
    late = client.listen(2 * QUIET)
    assert not [message for message in late if message.get("params", {}).get("sessionId") == session_id]


@requirement("close-cancels")
@row("ACP-CLOSE-002", "CAPABILITY", "agentCapabilities.sessionCapabilities.close")
def test_closing_a_session_cancels_its_turn(client: MinimalClient) -> None:
    closing = []
    _, response = interrupt(
        client, lambda session_id: closing.append(client.start("session/close", {"sessionId": session_id}))
    )
    assert response.get("result") == {"stopReason": "cancelled"}
    following = client.hear(0.5)
    assert following is not None
    assert (following["id"], following["result"]) == (closing[0], {})


def cancel(client: MinimalClient, session_id: str) -> None:
    client.send(method="session/cancel", params={"sessionId": session_id})

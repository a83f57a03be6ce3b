"""What is forgiven in a message, and what is not."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from acp_agent.errors import DecodeError
from acp_agent.protocol.base import OneOf, Payload
from acp_agent.protocol.codec import decode, encode
from acp_agent.protocol.v1 import (
    authentication,
    content,
    elicitation,
    initialization,
    prompt_turn,
    session_config_options,
    session_list,
    session_setup,
    terminals,
    tool_calls,
)


def wire(value: Any) -> bytes:
    return json.dumps(value).encode()


def read(type_: type[Payload | OneOf], value: Any) -> tuple[Any, list[str]]:
    """`value` as the type, and what was repaired on the way."""
    repairs: list[str] = []
    return decode(wire(value), type_, repairs.append), repairs


STDIO = {"name": "git", "command": "/bin/git-mcp", "args": [], "env": []}
TEXT = {"type": "text", "text": "hello"}
STDIO_READ = session_setup.McpServerStdio(name="git", command="/bin/git-mcp", args=[], env=[])
HELLO = content.TextContent(text="hello")


def new_session(**members: Any) -> tuple[session_setup.NewSessionRequest, list[str]]:
    request, repairs = read(session_setup.NewSessionRequest, {"cwd": "/w"} | members)
    return request, repairs


def update(**members: Any) -> Any:
    notification, _ = read(prompt_turn.SessionNotification, {"sessionId": "s", "update": members})
    return notification.update


# What `initialize` forgives.


@pytest.mark.parametrize("capabilities", [False, None, 3, "all", [], {"fs": 3}, {"fs": None}, {"terminal": None}])
def test_capabilities_that_make_no_sense_are_none(capabilities: Any) -> None:
    request, _ = read(initialization.InitializeRequest, {"protocolVersion": 1, "clientCapabilities": capabilities})
    assert request.client_capabilities == initialization.ClientCapabilities()


def test_capabilities_that_are_left_out_are_none_and_that_is_no_repair() -> None:
    request, repairs = read(initialization.InitializeRequest, {"protocolVersion": 1})
    assert request.client_capabilities == initialization.ClientCapabilities()
    assert repairs == []


def test_one_bad_capability_leaves_the_others() -> None:
    capabilities = {"fs": {"readTextFile": "yes", "writeTextFile": True}, "terminal": 1, "elicitation": {"form": {}}}
    request, repairs = read(
        initialization.InitializeRequest, {"protocolVersion": 1, "clientCapabilities": capabilities}
    )
    assert not request.client_capabilities.fs.read_text_file
    assert request.client_capabilities.fs.write_text_file
    assert not request.client_capabilities.terminal
    assert request.client_capabilities.elicitation.form is not None
    assert repairs == [
        "$.clientCapabilities.fs.readTextFile: Expected `bool`, got `str`; ignored",
        "$.clientCapabilities.terminal: Expected `bool`, got `int`; ignored",
    ]


def test_a_client_without_a_usable_name_has_none() -> None:
    request, _ = read(initialization.InitializeRequest, {"protocolVersion": 1, "clientInfo": {"name": "zed"}})
    assert request.client_info is None


@pytest.mark.parametrize("version", ["1", 1.0, 1.5, True, None, -1, 65536, [1], {}])
def test_a_protocol_version_is_a_whole_number_of_16_bits(version: Any) -> None:
    with pytest.raises(DecodeError) as caught:
        read(initialization.InitializeRequest, {"protocolVersion": version})
    assert caught.value.path == "$.protocolVersion"


@pytest.mark.parametrize("version", [0, 1, 2, 65535])
def test_any_whole_number_of_16_bits_is_a_protocol_version(version: int) -> None:
    request, repairs = read(initialization.InitializeRequest, {"protocolVersion": version})
    assert (request.protocol_version, repairs) == (version, [])


# What loose clients leave out.


def test_mcp_servers_that_are_left_out_or_null_are_none() -> None:
    assert new_session()[0].mcp_servers == []
    assert new_session(mcpServers=None)[0].mcp_servers == []


def test_what_was_left_out_is_reported() -> None:
    assert new_session()[1] == ["$.mcpServers: missing; taken as empty"]
    assert new_session(mcpServers=None)[1] == ["$.mcpServers: null; taken as empty"]
    assert new_session(mcpServers=[], additionalDirectories=None)[1] == []


@pytest.mark.parametrize("member", ["args", "env"])
def test_a_command_without_arguments_or_variables_has_none(member: str) -> None:
    without = {key: value for key, value in STDIO.items() if key != member}
    assert new_session(mcpServers=[without])[0].mcp_servers == [STDIO_READ]
    assert new_session(mcpServers=[STDIO | {member: None}])[0].mcp_servers == [STDIO_READ]


def test_variables_may_be_an_object() -> None:
    request, repairs = new_session(mcpServers=[STDIO | {"env": {"TOKEN": "x"}}])
    (server,) = request.mcp_servers
    assert isinstance(server, session_setup.McpServerStdio)
    assert server.env == [session_setup.EnvVariable(name="TOKEN", value="x")]
    assert repairs == ["$.mcpServers[0].env: an object was taken for a list"]


@pytest.mark.parametrize("headers", [None, {}, []])
@pytest.mark.parametrize("kind", ["http", "sse"])
def test_a_server_without_headers_has_none(kind: str, headers: Any) -> None:
    request, _ = new_session(mcpServers=[{"type": kind, "name": "n", "url": "http://x", "headers": headers}])
    (server,) = request.mcp_servers
    assert isinstance(server, session_setup.McpServerHttp | session_setup.McpServerSse)
    assert server.headers == []


def test_headers_may_be_an_object() -> None:
    server = {"type": "http", "name": "n", "url": "http://x", "headers": {"Authorization": "secret"}}
    request, repairs = new_session(mcpServers=[server])
    (read_server,) = request.mcp_servers
    assert isinstance(read_server, session_setup.McpServerHttp)
    assert read_server.headers == [session_setup.HttpHeader(name="Authorization", value="secret")]
    assert not any("secret" in repair for repair in repairs)


@pytest.mark.parametrize("kind", ["stdio", "future", 3, None])
def test_a_server_of_another_type_is_read_as_a_command(kind: Any) -> None:
    assert new_session(mcpServers=[STDIO | {"type": kind}])[0].mcp_servers == [STDIO_READ]


def test_a_server_of_stdio_in_so_many_words_is_no_repair() -> None:
    assert new_session(mcpServers=[STDIO | {"type": "stdio"}])[1] == []


@pytest.mark.parametrize(
    ("server", "path"),
    [
        ({"name": "n", "args": [], "env": []}, "$.mcpServers[1].command"),
        ({"type": "future", "name": "n", "url": "x"}, "$.mcpServers[1]"),
        ({"type": "http", "name": "n", "headers": []}, "$.mcpServers[1].url"),
        (STDIO | {"command": 3}, "$.mcpServers[1].command"),
        (STDIO | {"args": "-v"}, "$.mcpServers[1].args"),
        (STDIO | {"args": ["-v", 3]}, "$.mcpServers[1].args[1]"),
        (STDIO | {"env": [{"name": "A"}]}, "$.mcpServers[1].env[0].value"),
        ("git", "$.mcpServers[1]"),
    ],
)
def test_a_malformed_server_fails_the_request_and_is_named(server: Any, path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        new_session(mcpServers=[STDIO, server])
    assert caught.value.path == path


# What cannot be guessed.


@pytest.mark.parametrize(
    ("type_", "value", "path"),
    [
        (session_setup.NewSessionRequest, {"mcpServers": []}, "$.cwd"),
        (session_setup.NewSessionRequest, {"cwd": None, "mcpServers": []}, "$.cwd"),
        (
            session_setup.NewSessionRequest,
            {"cwd": "/w", "additionalDirectories": ["/a", 1]},
            "$.additionalDirectories[1]",
        ),
        (session_setup.LoadSessionRequest, {"cwd": "/w", "mcpServers": []}, "$.sessionId"),
        (session_setup.CloseSessionRequest, {"sessionId": 3}, "$.sessionId"),
        (session_list.ListSessionsRequest, {"cwd": 3}, "$.cwd"),
        (session_list.ListSessionsRequest, {"cursor": 3}, "$.cursor"),
        (prompt_turn.PromptRequest, {"sessionId": "s"}, "$.prompt"),
        (prompt_turn.PromptRequest, {"sessionId": "s", "prompt": None}, "$.prompt"),
        (prompt_turn.PromptRequest, {"sessionId": "s", "prompt": "hello"}, "$.prompt"),
        (prompt_turn.PromptRequest, {"sessionId": "s", "prompt": [TEXT, {"type": "video"}]}, "$.prompt[1].type"),
        (prompt_turn.PromptRequest, {"sessionId": "s", "prompt": [{"text": "hello"}]}, "$.prompt[0].type"),
        (prompt_turn.PromptRequest, {"sessionId": "s", "prompt": [{"type": "text", "text": 3}]}, "$.prompt[0].text"),
        (prompt_turn.PromptRequest, [], "$"),
        (tool_calls.RequestPermissionResponse, {"outcome": {"outcome": "maybe"}}, "$.outcome.outcome"),
        (tool_calls.RequestPermissionResponse, {"outcome": {"outcome": "selected"}}, "$.outcome.optionId"),
        (tool_calls.RequestPermissionResponse, {"outcome": "selected"}, "$.outcome"),
        (
            terminals.CreateTerminalRequest,
            {"sessionId": "s", "command": "ls", "outputByteLimit": -1},
            "$.outputByteLimit",
        ),
    ],
)
def test_what_cannot_be_guessed_fails_and_is_named(type_: type[Payload], value: Any, path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read(type_, value)
    assert caught.value.path == path


def test_an_embedded_resource_is_text_or_a_blob_and_a_bad_one_fails() -> None:
    text = {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}}
    blob = {"type": "resource", "resource": {"uri": "file:///a", "blob": "eA=="}}
    request, _ = read(prompt_turn.PromptRequest, {"sessionId": "s", "prompt": [text, blob]})
    assert [type(block.resource) for block in request.prompt] == [
        content.TextResourceContents,
        content.BlobResourceContents,
    ]
    with pytest.raises(DecodeError, match=r"prompt\[0\]\.resource\.text"):
        read(
            prompt_turn.PromptRequest,
            {"sessionId": "s", "prompt": [{"type": "resource", "resource": {"uri": "u", "text": 3, "blob": "eA=="}}]},
        )


# Labels and decorations.


def test_a_wrong_label_is_no_label() -> None:
    block = {"type": "resource_link", "name": "a", "uri": "file:///a", "title": 3, "size": "big", "annotations": []}
    request, repairs = read(prompt_turn.PromptRequest, {"sessionId": "s", "prompt": [block]})
    assert request.prompt == [content.ResourceLink(name="a", uri="file:///a")]
    assert len(repairs) == 3


def test_an_annotation_keeps_the_roles_it_knows() -> None:
    block = TEXT | {"annotations": {"audience": ["user", "robot"], "priority": 1}}
    request, _ = read(prompt_turn.PromptRequest, {"sessionId": "s", "prompt": [block]})
    assert request.prompt[0].annotations == content.Annotations(audience=["user"], priority=1.0)


@pytest.mark.parametrize("meta", [3, [], "x", None])
def test_meta_that_is_no_object_is_ignored(meta: Any) -> None:
    request, _ = read(session_setup.CloseSessionRequest, {"sessionId": "s", "_meta": meta})
    assert request.meta is None


def test_meta_is_kept_as_it_came() -> None:
    meta = {"zed.dev/debugMode": True, "traceparent": "00-1", "deep": [{"x": None}]}
    request, repairs = read(session_setup.CloseSessionRequest, {"sessionId": "s", "_meta": meta})
    assert (request.meta, repairs) == (meta, [])


def test_unknown_members_are_ignored() -> None:
    request, repairs = read(prompt_turn.PromptRequest, {"sessionId": "s", "prompt": [TEXT | {"x": 1}], "mode": "x"})
    assert (request.prompt, repairs) == ([HELLO], [])


# Tool calls, as a client reads them.


def test_an_unknown_kind_reads_as_other() -> None:
    assert update(sessionUpdate="tool_call", toolCallId="t", title="x", kind="dance").kind == "other"
    assert update(sessionUpdate="tool_call_update", toolCallId="t", kind="dance").kind == "other"


def test_an_unknown_status_reads_as_pending_in_a_new_call_and_as_absent_in_an_update() -> None:
    assert update(sessionUpdate="tool_call", toolCallId="t", title="x", status="paused").status == "pending"
    assert update(sessionUpdate="tool_call_update", toolCallId="t", status="paused").status is msgspec.UNSET


def test_null_in_an_update_of_a_call_is_absent() -> None:
    read_update = update(sessionUpdate="tool_call_update", toolCallId="t", title=None, content=None, locations=None)
    assert read_update == tool_calls.ToolCallUpdate(tool_call_id="t")


def test_bad_items_of_a_tool_call_are_dropped() -> None:
    items = [{"type": "hologram"}, {"type": "content", "content": TEXT}, {"type": "diff", "path": "/a"}, 3]
    read_update = update(
        sessionUpdate="tool_call_update", toolCallId="t", content=items, locations=[{"path": "/a", "line": -1}, {}]
    )
    assert read_update.content == [tool_calls.Content(content=HELLO)]
    assert read_update.locations == [tool_calls.ToolCallLocation(path="/a")]


def test_bad_entries_of_a_plan_are_dropped() -> None:
    good = {"content": "a", "priority": "low", "status": "pending"}
    assert len(update(sessionUpdate="plan", entries=[good, good | {"status": "stuck"}, good]).entries) == 2
    assert update(sessionUpdate="plan", entries=None).entries == []


def test_an_unknown_update_fails() -> None:
    with pytest.raises(DecodeError) as caught:
        update(sessionUpdate="dance", toolCallId="t")
    assert caught.value.path == "$.update.sessionUpdate"


def test_a_known_update_with_a_bad_payload_fails() -> None:
    with pytest.raises(DecodeError) as caught:
        update(sessionUpdate="tool_call", title="x")
    assert caught.value.path == "$.update.toolCallId"


def test_title_and_time_of_a_session_tell_absent_from_null() -> None:
    assert update(sessionUpdate="session_info_update").title is msgspec.UNSET
    assert update(sessionUpdate="session_info_update", title=None).title is None


# Options and ways to sign in.


def set_option(**members: Any) -> session_config_options.SetSessionConfigOptionRequest:
    request, _ = read(
        session_config_options.SetSessionConfigOptionRequest, {"sessionId": "s", "configId": "c"} | members
    )
    assert isinstance(request, session_config_options.SetSessionConfigOptionRequest)
    return request


def test_an_option_is_set_to_a_word_or_in_so_many_words_to_a_boolean() -> None:
    assert set_option(value="ask").value == "ask"
    assert set_option(value="ask", type="future").value == "ask"
    assert set_option(value="ask", type=None).value == "ask"
    assert set_option(value=False, type="boolean").value is False


@pytest.mark.parametrize(
    "members", [{"value": True}, {"value": "x", "type": "boolean"}, {"value": 3}, {"value": True, "type": "x"}, {}]
)
def test_a_value_that_does_not_go_with_its_type_fails(members: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        set_option(**members)


@pytest.mark.parametrize("kind", [None, "agent", "env_var", 3])
def test_a_way_to_sign_in_of_another_type_is_the_agents_own(kind: Any) -> None:
    method, _ = read(authentication.AuthMethod, {"id": "a", "name": "A", "type": kind, "vars": 3})
    assert method == authentication.AuthMethodAgent(id="a", name="A")


def test_a_malformed_way_to_sign_in_by_terminal_is_dropped_from_the_list() -> None:
    methods = [{"type": "terminal", "id": "t", "name": "T", "args": "x"}, {"id": "a", "name": "A"}]
    response, _ = read(initialization.InitializeResponse, {"protocolVersion": 1, "authMethods": methods})
    assert response.auth_methods == [authentication.AuthMethodAgent(id="a", name="A")]


# Elicitation.


def test_an_unknown_action_is_kept_as_it_came() -> None:
    answer = {"action": "postpone", "until": "tomorrow"}
    read_answer, _ = read(elicitation.CreateElicitationResponse, answer)
    assert isinstance(read_answer, elicitation.UnknownElicitationAction)
    assert read_answer == answer


@pytest.mark.parametrize("answer", [{}, {"action": 3}, {"action": "accept", "content": {"a": {"nested": 1}}}, []])
def test_an_answer_that_is_none_fails(answer: Any) -> None:
    with pytest.raises(DecodeError):
        read(elicitation.CreateElicitationResponse, answer)


def test_what_comes_with_a_decline_is_not_looked_at() -> None:
    answer, _ = read(elicitation.CreateElicitationResponse, {"action": "decline", "content": [3]})
    assert answer == elicitation.ElicitationDeclineAction()


def test_what_is_accepted_keeps_its_types() -> None:
    values = {"text": "1", "whole": 1, "part": 1.5, "tick": True, "some": ["a", "b"]}
    answer, _ = read(elicitation.CreateElicitationResponse, {"action": "accept", "content": values})
    assert answer.content == values
    assert [type(value) for value in answer.content.values()] == [str, int, float, bool, list]


def form(**properties: Any) -> Any:
    question = {"mode": "form", "message": "m", "sessionId": "s", "requestedSchema": {"properties": properties}}
    return read(elicitation.CreateElicitationRequest, question)[0]


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "string", "minLength": -1}, ".minLength"),
        ({"type": "string", "format": "phone"}, ".format"),
        ({"type": "string", "enum": "a"}, ".enum"),
        ({"type": "integer", "minimum": 1.5}, ".minimum"),
        ({"type": "array", "items": {"type": "string"}}, ".items.enum"),
        ({"type": "array"}, ".items"),
        ({"type": 3}, ""),
    ],
)
def test_a_wrong_constraint_fails_the_form(schema: Any, path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        form(field=schema)
    assert caught.value.path == f"$.requestedSchema.properties.field{path}"


def test_a_wrong_label_in_a_form_is_no_label() -> None:
    question = form(name={"type": "string", "title": 3, "default": [], "maxLength": 5})
    assert question.requested_schema.properties == {"name": elicitation.StringPropertySchema(max_length=5)}


def test_a_field_of_an_unknown_type_is_kept_as_it_came() -> None:
    question = form(day={"type": "calendar", "weeks": 2})
    assert question.requested_schema.properties == {"day": {"type": "calendar", "weeks": 2}}
    assert json.loads(encode(question))["requestedSchema"]["properties"]["day"] == {"type": "calendar", "weeks": 2}


def test_a_question_that_belongs_nowhere_fails() -> None:
    with pytest.raises(DecodeError, match="sessionId"):
        read(elicitation.CreateElicitationRequest, {"mode": "url", "message": "m", "elicitationId": "e", "url": "u"})

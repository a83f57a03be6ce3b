"""What ACP version 1 demands of an agent, and the mark that binds a test to a demand.

`@requirement("initialize-version")` above a test says that it proves this entry; `test_requirements.py` checks that
each entry has a test, and each mark an entry. The words are ours, the source is the page of the specification.

Not in the list is what no test of an agent can show (a client's duties), and what this agent never does: elicitation
by URL, batches, methods and notifications of its own.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import pytest

__all__ = ["MUST", "REQUIREMENTS", "SHOULD", "Requirement", "requirement"]

MUST: Final = "MUST"
SHOULD: Final = "SHOULD"
PAGES = "https://agentclientprotocol.com/protocol/"


class Requirement(NamedTuple):
    """One demand. `source` is the page it stands on."""

    id: str
    level: Literal["MUST", "SHOULD"]
    text: str
    source: str


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Bind a test to the entries that it proves."""
    return pytest.mark.requirement(*ids)


REQUIREMENTS: Final = (
    # transport
    Requirement("stdout-only-messages", MUST, "Nothing but messages is written to stdout.", PAGES + "transports"),
    Requirement("stdout-utf8", MUST, "Messages are UTF-8.", PAGES + "transports"),
    Requirement("line-per-message", MUST, "Each message is one line, with no newline inside.", PAGES + "transports"),
    # JSON-RPC
    Requirement("jsonrpc-id", MUST, "A response has the id of its request, in its type and value.", PAGES + "overview"),
    Requirement("jsonrpc-one-answer", MUST, "Each request is answered by a result or an error.", PAGES + "overview"),
    Requirement("jsonrpc-notification", MUST, "A notification is never answered.", PAGES + "overview"),
    Requirement("paths-absolute", MUST, "Every path in a message is absolute.", PAGES + "overview"),
    Requirement("lines-from-one", MUST, "Lines of files are counted from 1.", PAGES + "overview"),
    Requirement("baseline-methods", MUST, "Sessions are opened, prompted, cancelled and told of.", PAGES + "overview"),
    # the handshake
    Requirement(
        "initialize-version",
        MUST,
        "The version asked for is answered if it is spoken here, else the latest that is.",
        PAGES + "initialization",
    ),
    Requirement(
        "initialize-omitted-capability",
        MUST,
        "What the client does not say it can, it cannot.",
        PAGES + "initialization",
    ),
    Requirement(
        "initialize-any-capabilities",
        SHOULD,
        "Every combination of the client's capabilities is worked with.",
        PAGES + "initialization",
    ),
    Requirement("initialize-agent-info", SHOULD, "The agent says its name and version.", PAGES + "initialization"),
    # signing in
    Requirement(
        "auth-terminal-gated",
        MUST,
        "Signing in by terminal is offered only to a client that has one for it.",
        PAGES + "authentication",
    ),
    Requirement(
        "auth-terminal-flow",
        SHOULD,
        "The arguments of a terminal method start a program that only signs in, and exits with 0 when it did.",
        PAGES + "authentication",
    ),
    Requirement(
        "auth-opens-sessions",
        SHOULD,
        "After signing in, a session is not refused for want of it.",
        PAGES + "authentication",
    ),
    # sessions
    Requirement("session-unique-id", MUST, "Each session has an id of its own.", PAGES + "session-setup"),
    Requirement(
        "session-cwd",
        MUST,
        "A session works in its cwd, wherever the process was started.",
        PAGES + "session-setup",
    ),
    Requirement(
        "session-roots",
        SHOULD,
        "The cwd and the additional directories bound what file tools reach.",
        PAGES + "session-setup",
    ),
    Requirement("session-roots-absolute", MUST, "Additional directories are absolute.", PAGES + "session-setup"),
    Requirement(
        "session-roots-complete",
        MUST,
        "Each set-up names all additional directories; those of before do not come back.",
        PAGES + "session-setup",
    ),
    Requirement("mcp-stdio", MUST, "MCP servers over stdio are connected.", PAGES + "session-setup"),
    Requirement("mcp-http", SHOULD, "MCP servers over HTTP are connected.", PAGES + "session-setup"),
    Requirement("mcp-all", SHOULD, "Every MCP server that the client names is connected.", PAGES + "session-setup"),
    Requirement("load-replays-all", MUST, "Loading replays the whole conversation.", PAGES + "session-setup"),
    Requirement("load-then-answers", MUST, "The answer of a load follows its replay.", PAGES + "session-setup"),
    Requirement("resume-no-replay", MUST, "Resuming replays nothing.", PAGES + "session-setup"),
    Requirement("close-cancels", MUST, "Closing a session cancels what it is at.", PAGES + "session-setup"),
    Requirement("close-frees", MUST, "Closing a session frees what it held.", PAGES + "session-setup"),
    Requirement("list-empty", MUST, "With no session to list, the list is empty.", PAGES + "session-list"),
    Requirement("list-bad-cursor", SHOULD, "A cursor that is not the agent's is an error.", PAGES + "session-list"),
    Requirement("list-bounded", SHOULD, "A page of the list is bounded.", PAGES + "session-list"),
    Requirement("delete-missing", SHOULD, "Deleting what is not there succeeds.", PAGES + "session-delete"),
    # modes and options
    Requirement("config-default", MUST, "Each option has a value, and can have it.", PAGES + "session-config-options"),
    Requirement(
        "config-complete", MUST, "Setting an option is answered with all of them.", PAGES + "session-config-options"
    ),
    Requirement("config-order", SHOULD, "The most important option comes first.", PAGES + "session-config-options"),
    Requirement(
        "config-no-boolean",
        MUST,
        "No boolean option is sent to a client that does not have them.",
        PAGES + "session-config-options",
    ),
    Requirement(
        "config-modes-too",
        SHOULD,
        "Modes are told as modes too, and both always agree.",
        PAGES + "session-config-options",
    ),
    # prompts and turns
    Requirement("prompt-text", MUST, "Text in a prompt is taken.", PAGES + "content"),
    Requirement("prompt-resource-link", MUST, "Links in a prompt are taken.", PAGES + "content"),
    Requirement("turn-stop-reason", MUST, "A turn is answered with the reason for its end.", PAGES + "prompt-turn"),
    Requirement("turn-no-open-call", MUST, "No call is pending when a turn is answered.", PAGES + "prompt-turn"),
    Requirement("update-gated", MUST, "Updates are of kinds that the client knows or asked for.", PAGES + "schema"),
    Requirement("cancel-stops", SHOULD, "A cancel soon stops the model and the tools.", PAGES + "prompt-turn"),
    Requirement("cancel-updates-first", MUST, "All updates come before the cancelled answer.", PAGES + "prompt-turn"),
    Requirement("cancel-answer", MUST, "A cancelled turn is answered `cancelled`.", PAGES + "prompt-turn"),
    Requirement("cancel-no-error", MUST, "What a cancel makes fail does not become an error.", PAGES + "prompt-turn"),
    Requirement("plan-reported", SHOULD, "A plan is shown to the client.", PAGES + "agent-plan"),
    Requirement("plan-complete", MUST, "A plan is sent whole each time.", PAGES + "agent-plan"),
    # tool calls
    Requirement("tool-call-reported", SHOULD, "Every call of a tool is told to the client.", PAGES + "tool-calls"),
    Requirement("tool-call-in-progress", SHOULD, "A permitted call is told to be in progress.", PAGES + "tool-calls"),
    Requirement("tool-call-name", SHOULD, "A call's first report names its tool, for good.", PAGES + "tool-calls"),
    # the client's side
    Requirement("fs-gated", MUST, "Files are asked of the client method by method, as it can.", PAGES + "file-system"),
    Requirement("terminal-gated", MUST, "Terminals are asked only of a client that has them.", PAGES + "terminals"),
    Requirement("terminal-released", MUST, "Every terminal is released, also a killed one.", PAGES + "terminals"),
    Requirement("elicitation-gated", MUST, "Only advertised modes of elicitation are used.", PAGES + "elicitation"),
    Requirement("elicitation-fallback", SHOULD, "Without elicitation there is another way.", PAGES + "elicitation"),
    Requirement("elicitation-no-secrets", MUST, "No form asks for a secret.", PAGES + "elicitation"),
    Requirement("elicitation-endings", MUST, "Decline, cancel and failure are handled.", PAGES + "elicitation"),
    Requirement("elicitation-checked", SHOULD, "What a form brings back is checked again.", PAGES + "elicitation"),
    # single requests
    Requirement(
        "cancel-request-answered",
        MUST,
        "A request that is cancelled on its own is answered, by a result or -32800.",
        PAGES + "cancellation",
    ),
    Requirement(
        "cancel-request-internal",
        SHOULD,
        "A request that the agent gives up itself is answered -32800 too.",
        PAGES + "cancellation",
    ),
    # extensions and errors
    Requirement("extension-answered", MUST, "An unknown request is answered -32601.", PAGES + "extensibility"),
    Requirement("extension-ignored", SHOULD, "An unknown notification is ignored.", PAGES + "extensibility"),
    Requirement("extension-root", MUST, "No type of the protocol gets members of one's own.", PAGES + "extensibility"),
    Requirement("extension-names", MUST, "Methods of one's own begin with `_`.", PAGES + "extensibility"),
    Requirement("meta-unknown", MUST, "Nothing is read into unknown keys of `_meta`.", PAGES + "extensibility"),
    Requirement("error-unadvertised", SHOULD, "What is not advertised is refused, not half done.", PAGES + "error"),
    Requirement("error-unknown-session", SHOULD, "An unknown session is -32002, with its id.", PAGES + "error"),
    Requirement("error-unknown-code", MUST, "An unknown error code is a failure like others.", PAGES + "error"),
)

"""`initialize`: who both sides are and what they can.

Source: https://agentclientprotocol.com/protocol/initialization. A capability that is left out is not there; a marker
object `{}` says that it is.
"""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from acp_agent.protocol.base import Lenient, Payload, Sifted, UInt16
from acp_agent.protocol.v1.authentication import AgentAuthCapabilities, AuthCapabilities, AuthMethod
from acp_agent.protocol.v1.elicitation import ElicitationCapabilities
from acp_agent.protocol.v1.session_fork import SessionForkCapabilities

__all__ = [
    "AgentCapabilities",
    "BooleanConfigOptionCapabilities",
    "ClientCapabilities",
    "ClientSessionCapabilities",
    "CompactionCapabilities",
    "FileSystemCapabilities",
    "Implementation",
    "InitializeRequest",
    "InitializeResponse",
    "McpCapabilities",
    "NoticeCapabilities",
    "PromptCapabilities",
    "SessionAdditionalDirectoriesCapabilities",
    "SessionCapabilities",
    "SessionCloseCapabilities",
    "SessionConfigOptionsCapabilities",
    "SessionDeleteCapabilities",
    "SessionListCapabilities",
    "SessionResumeCapabilities",
]


class Implementation(Payload, kw_only=True):
    """A program: `name` for machines, `title` for people."""

    name: str
    version: str
    title: Lenient[str | None] = None


class FileSystemCapabilities(Payload, kw_only=True):
    """Which `fs/*` methods the client answers."""

    read_text_file: Lenient[bool] = False
    write_text_file: Lenient[bool] = False


class BooleanConfigOptionCapabilities(Payload, kw_only=True):
    """The client shows boolean options."""


class SessionConfigOptionsCapabilities(Payload, kw_only=True):
    """Kinds of config option that the client shows, besides select."""

    boolean: Lenient[BooleanConfigOptionCapabilities | None] = None


class NoticeCapabilities(Payload, kw_only=True):
    """The client shows `notice` updates."""


class CompactionCapabilities(Payload, kw_only=True):
    """The client shows `compaction_update` and `compaction_summary_chunk`."""


class ClientSessionCapabilities(Payload, kw_only=True):
    """What of a session the client shows, besides the baseline."""

    compaction: Lenient[CompactionCapabilities | None] = None
    config_options: Lenient[SessionConfigOptionsCapabilities | None] = None
    notices: Lenient[NoticeCapabilities | None] = None


class ClientCapabilities(Payload, kw_only=True):
    """What the client can. `terminal` stands for all five `terminal/*` methods."""

    fs: Lenient[FileSystemCapabilities] = field(default_factory=FileSystemCapabilities)
    terminal: Lenient[bool] = False
    session: Lenient[ClientSessionCapabilities | None] = None
    auth: Lenient[AuthCapabilities] = field(default_factory=AuthCapabilities)
    elicitation: Lenient[ElicitationCapabilities | None] = None


class PromptCapabilities(Payload, kw_only=True):
    """Blocks that prompts may have, besides text and resource links."""

    image: Lenient[bool] = False
    audio: Lenient[bool] = False
    embedded_context: Lenient[bool] = False


class McpCapabilities(Payload, kw_only=True):
    """Transports of MCP servers that the agent connects to, besides stdio."""

    http: Lenient[bool] = False
    sse: Lenient[bool] = False


class SessionListCapabilities(Payload, kw_only=True):
    """`session/list` is answered."""


class SessionDeleteCapabilities(Payload, kw_only=True):
    """`session/delete` is answered."""


class SessionAdditionalDirectoriesCapabilities(Payload, kw_only=True):
    """`additionalDirectories` is understood where a session is set up."""


class SessionResumeCapabilities(Payload, kw_only=True):
    """`session/resume` is answered."""


class SessionCloseCapabilities(Payload, kw_only=True):
    """`session/close` is answered."""


class SessionCapabilities(Payload, kw_only=True):
    """Session methods and fields beyond the baseline. `fork` is unstable: never sent unless a flag asks for it."""

    list: Lenient[SessionListCapabilities | None] = None
    delete: Lenient[SessionDeleteCapabilities | None] = None
    additional_directories: Lenient[SessionAdditionalDirectoriesCapabilities | None] = None
    fork: Lenient[SessionForkCapabilities | None] = None
    resume: Lenient[SessionResumeCapabilities | None] = None
    close: Lenient[SessionCloseCapabilities | None] = None


class AgentCapabilities(Payload, kw_only=True):
    """What the agent can. `load_session` stands apart from the other session methods for historical reasons."""

    load_session: Lenient[bool] = False
    prompt_capabilities: Lenient[PromptCapabilities] = field(default_factory=PromptCapabilities)
    mcp_capabilities: Lenient[McpCapabilities] = field(default_factory=McpCapabilities)
    session_capabilities: Lenient[SessionCapabilities] = field(default_factory=SessionCapabilities)
    auth: Lenient[AgentAuthCapabilities] = field(default_factory=AgentAuthCapabilities)


class InitializeRequest(Payload, kw_only=True):
    """The first request. `protocol_version` is the newest that the client speaks."""

    protocol_version: UInt16
    client_capabilities: Lenient[ClientCapabilities] = field(default_factory=ClientCapabilities)
    client_info: Lenient[Implementation | None] = None


class InitializeResponse(Payload, kw_only=True):
    """`protocol_version` is the one asked for when the agent speaks it, else the newest that it does.

    `auth_methods` that are set are sent, also when there are none: some clients look at the first one unasked.
    """

    protocol_version: UInt16
    agent_capabilities: Lenient[AgentCapabilities] = field(default_factory=AgentCapabilities)
    auth_methods: Sifted[list[AuthMethod] | UnsetType] = UNSET
    agent_info: Lenient[Implementation | None] = None

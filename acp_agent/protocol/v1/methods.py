"""Every method of protocol version 1: its name, who calls it, its params and its result.

Source: https://agentclientprotocol.com/protocol/overview
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from acp_agent.protocol.base import OneOf, Payload
from acp_agent.protocol.v1 import (
    authentication,
    cancellation,
    elicitation,
    file_system,
    initialization,
    prompt_turn,
    session_config_options,
    session_fork,
    session_list,
    session_modes,
    session_setup,
    terminals,
    tool_calls,
)

__all__ = ["AGENT_METHODS", "CANCEL_REQUEST", "CLIENT_METHODS", "UNSTABLE_AGENT_METHODS", "Method"]


class Method(Struct, frozen=True):
    """A method; one without a `result` is a notification."""

    name: str
    params: type[Payload | OneOf]
    result: type[Payload | OneOf] | None = None


AGENT_METHODS: Final = (
    Method("initialize", initialization.InitializeRequest, initialization.InitializeResponse),
    Method("authenticate", authentication.AuthenticateRequest, authentication.AuthenticateResponse),
    Method("logout", authentication.LogoutRequest, authentication.LogoutResponse),
    Method("session/new", session_setup.NewSessionRequest, session_setup.NewSessionResponse),
    Method("session/load", session_setup.LoadSessionRequest, session_setup.LoadSessionResponse),
    Method("session/resume", session_setup.ResumeSessionRequest, session_setup.ResumeSessionResponse),
    Method("session/close", session_setup.CloseSessionRequest, session_setup.CloseSessionResponse),
    Method("session/list", session_list.ListSessionsRequest, session_list.ListSessionsResponse),
    Method("session/delete", session_list.DeleteSessionRequest, session_list.DeleteSessionResponse),
    Method("session/prompt", prompt_turn.PromptRequest, prompt_turn.PromptResponse),
    Method("session/cancel", prompt_turn.CancelNotification),
    Method("session/set_mode", session_modes.SetSessionModeRequest, session_modes.SetSessionModeResponse),
    Method(
        "session/set_config_option",
        session_config_options.SetSessionConfigOptionRequest,
        session_config_options.SetSessionConfigOptionResponse,
    ),
)
"""What the client calls."""

UNSTABLE_AGENT_METHODS: Final = (
    Method("session/fork", session_fork.ForkSessionRequest, session_fork.ForkSessionResponse),
)
"""What the client calls only when a flag is on and the capability was advertised."""

CLIENT_METHODS: Final = (
    Method("session/update", prompt_turn.SessionNotification),
    Method("session/request_permission", tool_calls.RequestPermissionRequest, tool_calls.RequestPermissionResponse),
    Method("fs/read_text_file", file_system.ReadTextFileRequest, file_system.ReadTextFileResponse),
    Method("fs/write_text_file", file_system.WriteTextFileRequest, file_system.WriteTextFileResponse),
    Method("terminal/create", terminals.CreateTerminalRequest, terminals.CreateTerminalResponse),
    Method("terminal/output", terminals.TerminalOutputRequest, terminals.TerminalOutputResponse),
    Method("terminal/wait_for_exit", terminals.WaitForTerminalExitRequest, terminals.WaitForTerminalExitResponse),
    Method("terminal/kill", terminals.KillTerminalRequest, terminals.KillTerminalResponse),
    Method("terminal/release", terminals.ReleaseTerminalRequest, terminals.ReleaseTerminalResponse),
    Method("elicitation/create", elicitation.CreateElicitationRequest, elicitation.CreateElicitationResponse),
    Method("elicitation/complete", elicitation.CompleteElicitationNotification),
)
"""What the agent calls."""

CANCEL_REQUEST: Final = Method("$/cancel_request", cancellation.CancelRequestNotification)
"""What both call."""

"""The client's files, unsaved changes and all: `fs/read_text_file`, `fs/write_text_file`.

Source: https://agentclientprotocol.com/protocol/file-system. Paths are absolute.
"""

from __future__ import annotations

from acp_agent.protocol.base import Payload, UInt32

__all__ = ["ReadTextFileRequest", "ReadTextFileResponse", "WriteTextFileRequest", "WriteTextFileResponse"]


class ReadTextFileRequest(Payload, kw_only=True):
    """From the 1-based `line` on, at most `limit` lines."""

    session_id: str
    path: str
    line: UInt32 | None = None
    limit: UInt32 | None = None


class ReadTextFileResponse(Payload, kw_only=True):
    """What the editor shows."""

    content: str


class WriteTextFileRequest(Payload, kw_only=True):
    """Make the file's text this; a missing file is created."""

    session_id: str
    path: str
    content: str


class WriteTextFileResponse(Payload, kw_only=True):
    """Written."""

"""`$/cancel_request`, in both directions.

Source: https://agentclientprotocol.com/protocol/cancellation
"""

from __future__ import annotations

from typing import TypeAlias

from acp_agent.protocol.base import Payload

__all__ = ["CancelRequestNotification", "RequestId"]

RequestId: TypeAlias = int | str | None


class CancelRequestNotification(Payload, kw_only=True):
    """The sender no longer needs the answer to its own request of this id."""

    request_id: RequestId

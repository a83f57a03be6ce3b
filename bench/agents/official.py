"""The benchmark's agent on the official SDK, written as its documentation shows."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import acp
from acp import schema


class BenchAgent(acp.Agent):
    def __init__(self) -> None:
        self._cancelled: set[str] = set()

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, mcp_servers: Any = None, **kwargs: Any) -> acp.NewSessionResponse:
        return acp.NewSessionResponse(session_id=uuid4().hex)

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        self._cancelled.add(session_id)

    async def prompt(self, session_id: str, prompt: Any, **kwargs: Any) -> acp.PromptResponse:
        verb, _, count = prompt[0].text.partition(" ")
        if verb == "tools":
            for index in range(int(count)):
                await self._call(session_id, f"call-{index}")
            return acp.PromptResponse(stop_reason="end_turn")
        number = 0
        while verb == "forever" or number < int(count):
            if session_id in self._cancelled:
                self._cancelled.discard(session_id)
                return acp.PromptResponse(stop_reason="cancelled")
            await self._client.session_update(session_id, acp.update_agent_message_text("a few words of the answer "))
            number += 1
        return acp.PromptResponse(stop_reason="end_turn")

    async def _call(self, session_id: str, call_id: str) -> None:
        start = acp.start_tool_call(call_id, "Do a piece of work", kind="execute", status="pending")
        await self._client.session_update(session_id, start)
        options = [
            schema.PermissionOption(option_id="allow_once", name="Allow", kind="allow_once"),
            schema.PermissionOption(option_id="reject_once", name="Reject", kind="reject_once"),
        ]
        question = schema.ToolCallUpdate(tool_call_id=call_id, title="Do a piece of work", status="pending")
        await self._client.request_permission(session_id=session_id, tool_call=question, options=options)
        await self._client.session_update(session_id, acp.update_tool_call(call_id, status="in_progress"))
        done = [acp.tool_content(acp.text_block("done"))]
        await self._client.session_update(session_id, acp.update_tool_call(call_id, status="completed", content=done))


if __name__ == "__main__":
    asyncio.run(acp.run_agent(BenchAgent()))

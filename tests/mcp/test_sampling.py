"""What a server asks of the session's model, and what it gets."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from acp_agent.content import ImageContent, TextContent
from acp_agent.errors import ModelError
from acp_agent.history import AssistantMessage, UserMessage
from acp_agent.mcp.sampling import Sampler
from acp_agent.models.base import Finish, Model, ModelEvent, ModelRequest, TextDelta

pytestmark = pytest.mark.anyio


class Echo(Model):
    name = "echo"

    def __init__(self, *events: ModelEvent) -> None:
        self.events = events
        self.request: ModelRequest | None = None
        self.forgotten: list[str] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.request = request
        for event in self.events:
            yield event

    def forget(self, session_id: str) -> None:
        self.forgotten.append(session_id)


def text(value: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": value}}


async def test_the_model_answers_what_the_server_says_and_nothing_of_the_session() -> None:
    model = Echo(TextDelta("Hel"), TextDelta("lo."), Finish())
    image = {"role": "user", "content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}
    params = {"messages": [text("Hi"), text("Yes?", "assistant"), image], "systemPrompt": "Be brief.", "maxTokens": 9}
    answer = await Sampler("s", lambda: model)("server", params)
    assert answer == {
        "role": "assistant",
        "content": {"type": "text", "text": "Hello."},
        "model": "echo",
        "stopReason": "endTurn",
    }
    assert model.request is not None
    assert (model.request.system, model.request.tools) == ("Be brief.", [])
    assert model.request.messages == [
        UserMessage("sampling-0", [TextContent("Hi")]),
        AssistantMessage("sampling-1", "Yes?"),
        UserMessage("sampling-2", [ImageContent("aGk=", "image/png")]),
    ]
    assert model.forgotten == ["s/sampling/server"]


async def test_a_long_answer_is_cut_where_the_server_wants_no_more() -> None:
    model = Echo(*[TextDelta("x" * 10)] * 100)
    answer = await Sampler("s", lambda: model)("server", {"messages": [text("Hi")], "maxTokens": 5})
    assert (answer["content"]["text"], answer["stopReason"]) == ("x" * 20, "maxTokens")


async def test_without_a_model_and_with_sounds_there_is_no_answer() -> None:
    with pytest.raises(ModelError, match="no model"):
        await Sampler("s", lambda: None)("server", {"messages": [text("Hi")], "maxTokens": 5})
    sound = {"role": "user", "content": {"type": "audio", "data": "", "mimeType": "audio/wav"}}
    with pytest.raises(ModelError, match="Only texts and images"):
        await Sampler("s", Echo)("server", {"messages": [sound], "maxTokens": 5})

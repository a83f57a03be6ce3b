"""A pydantic-ai agent in an editor: its text streams, its tools are on show, and what needs approval asks the user.

    pip install acp-agent 'pydantic-ai-slim[openai]'
    PYDANTIC_AI_MODEL=openai:gpt-5.2 python examples/pydantic_ai_agent.py

Without a model in the environment a scripted one plays, so that the example runs anywhere. The framework owns the loop
and runs its tools. Each call of a tool is opened here when it is announced, asked for when it needs approval, and
completed with its result. The framework is asyncio's, as `agent.run()` is unless told otherwise.
"""

import os
from collections.abc import AsyncIterator

from pydantic_ai import Agent as Assistant
from pydantic_ai import (
    AgentRunResultEvent,
    DeferredToolRequests,
    DeferredToolResults,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    PartDeltaEvent,
    PartStartEvent,
    RunContext,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    Tool,
    ToolCallPart,
    ToolDenied,
)
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from acp_agent import Agent, ShownCall, Turn

# The assistant: nothing here knows of editors -------------------------------------------------------------------------


def deploy(environment: str) -> str:
    """Deploy the current branch."""
    return f"{environment} runs the new release"


async def play(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
    """A model that asks for a deployment, and says what came of it."""
    results = [part for part in messages[-1].parts if part.part_kind == "tool-return"]
    if results:
        yield f"Result: {results[0].content}"
    else:
        yield "I will "
        yield "deploy."
        yield {1: DeltaToolCall("deploy", '{"environment": "staging"}', tool_call_id="call-1")}


assistant = Assistant(
    os.environ.get("PYDANTIC_AI_MODEL") or FunctionModel(stream_function=play),
    tools=[Tool(deploy, requires_approval=True)],
)

# The bridge -----------------------------------------------------------------------------------------------------------

agent = Agent("pydantic-ai", version="0.1.0")
histories: dict[str, list[ModelMessage]] = {}


@agent.on_prompt
async def answer(turn: Turn) -> None:
    calls: dict[str, ShownCall] = {}

    def shown(part: ToolCallPart) -> ShownCall:
        if part.tool_call_id not in calls:
            arguments = part.args_as_dict()
            title = f"{part.tool_name} {arguments}"
            calls[part.tool_call_id] = turn.open_tool_call(part.tool_name, arguments, title=title, key=title)
        return calls[part.tool_call_id]

    async def approve(_: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        allowed = {part.tool_call_id: await shown(part).ask_permission() for part in requests.approvals}
        denied = ToolDenied("Denied by the user.")
        return requests.build_results(approvals={name: allow or denied for name, allow in allowed.items()})

    run = assistant.run_stream_events(
        turn.text,
        message_history=histories.get(turn.session_id),
        capabilities=[HandleDeferredToolCalls(approve)],
    )
    async with run as events:
        async for event in events:
            match event:
                case PartStartEvent(part=TextPart(content=text)):
                    await turn.send_text(text)
                case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                    await turn.send_text(text)
                case PartStartEvent(part=ThinkingPart(content=text)):
                    await turn.send_thought(text)
                case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
                    await turn.send_thought(text)
                case FunctionToolCallEvent(part=part):
                    shown(part)
                case FunctionToolResultEvent(part=returned):
                    call, text = calls[returned.tool_call_id], str(returned.content)
                    call.complete(text=text) if returned.outcome == "success" else call.fail(text)
                case AgentRunResultEvent(result=result):
                    histories[turn.session_id] = result.all_messages()


if __name__ == "__main__":
    agent.run()

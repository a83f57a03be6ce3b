"""The public API as a typed program uses it. Not run: `mypy --strict` reads it, in `tests/test_public_api.py`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Literal, assert_type

from anyio.abc import ByteStream

from acp_agent import (
    AcpAgentError,
    Agent,
    AgentServer,
    AssistantMessage,
    Connection,
    ConnectionClosed,
    ContentBlock,
    Diff,
    Finish,
    ImageContent,
    Location,
    McpServer,
    MemoryStore,
    Model,
    ModelError,
    ModelEvent,
    ModelRequest,
    PermissionPolicy,
    PermissionRule,
    PlanEntry,
    Proposal,
    RequestError,
    Scenario,
    ScenarioError,
    ScriptedModel,
    Session,
    SessionStore,
    ShownCall,
    SqliteStore,
    StopReason,
    StoreError,
    TestClient,
    TextContent,
    TextDelta,
    ThoughtDelta,
    Tool,
    ToolContext,
    ToolError,
    ToolOutput,
    ToolResult,
    Toolset,
    ToolUse,
    Transcript,
    Turn,
    UsageDelta,
    UserMessage,
    Wire,
    Workspace,
    __version__,
    check_model,
    check_session_store,
    coding_tools,
    memory_pair,
    spawn_agent,
    stdio_stream,
)
from acp_agent.testing import ConnectedClient, FakeEditor, PromptResult, check_transcript

assert_type(__version__, str)


# A model, a tool, a toolset, a store ----------------------------------------------------------------------------------


class HouseModel(Model):
    name = "house"
    context_window = 32_000
    thought_levels = ("low", "high")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        match request.messages[-1]:
            case UserMessage(content=content):
                assert_type(content, list[ContentBlock])
                yield ThoughtDelta("hm")
                yield ToolUse("deploy", {"environment": "staging"})
            case ToolResult(failed=failed):
                assert_type(failed, bool)
                yield TextDelta("done")
            case AssistantMessage():
                raise ModelError("out of order", kind="protocol", retryable=False)
        yield UsageDelta(10, 2, context_window=32_000, cost=0.01)
        yield Finish("max_tokens")


class Lookup(Tool):
    name = "lookup"
    description = "Look it up."
    kind = "search"
    permission = "allow"

    def __init__(self) -> None:
        self.input_schema = {"type": "object", "properties": {"path": {"type": "string"}}}

    def describe(self, arguments: dict[str, object], context: ToolContext) -> Proposal:
        path = context.workspace.resolve(str(arguments["path"]))
        return Proposal(title="Look", kind="search", arguments=arguments, locations=[Location(path, 1)])

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        if context.cancelled:
            raise ToolError("Too late.")
        context.report("half way")
        text = await context.workspace.read_text(proposal.locations[0].path)
        return ToolOutput.of_text(text.text, raw_output={"length": len(text.text)})


class Lookups:
    async def tools(self) -> Sequence[Tool]:
        return [Lookup()]


toolset: Toolset = Lookups()
store: SessionStore = SqliteStore(Path("/tmp/state"))

# The agent ------------------------------------------------------------------------------------------------------------

agent = Agent(
    "typed",
    version="1.0.0",
    title="Typed",
    models={"house": HouseModel(), "scripted": ScriptedModel(Scenario.builtin(), pace=0)},
    tools=[Lookup(), *coding_tools(terminal="local", command_timeout=10)],
    toolsets=[toolset],
    rules=[PermissionRule("deny", "run_command", "rm *"), PermissionRule("allow", "mcp__*")],
    mode="plan",
    store=MemoryStore,
    mcp_servers=[McpServer(name="time", command="mcp-server-time", args=["--local-timezone", "UTC"])],
    system_prompt=lambda session: f"You work in {session.cwd}.",
    accepts=("image", "audio", "resource"),
    max_steps=10,
    permission_timeout=60.0,
)
assert_type(agent.name, str)


@agent.on_prompt
async def answer(turn: Turn) -> StopReason | None:
    assert_type(turn.text, str)
    assert_type(turn.content, list[ContentBlock])
    assert_type(turn.session, Session)
    await turn.send_text("text")
    await turn.send_thought("thought")
    await turn.send_content(ImageContent("", "image/png"))
    turn.send_plan([PlanEntry("step", priority="high", status="in_progress")])
    turn.send_usage(1, 2, 0.1)
    turn.send_notice("warning", "Careful")
    turn.set_title("title")
    output = await turn.call_tool("deploy", {"environment": "staging"})
    assert_type(output, ToolOutput)
    call = turn.open_tool_call("own", {"n": 1}, title="Own", kind="execute", key="own")
    assert_type(call, ShownCall)
    if await call.ask_permission():
        call.report("running")
        call.complete(text="done")
    else:
        call.fail("no")
    if output.failed:
        raise RequestError(-32603, "Failed", {"details": "because"})
    return "end_turn"


def preview(environment: str) -> Diff:
    return Diff("/etc/environment", environment)


@agent.tool(kind="execute", permission="ask", preview=preview, title="Deploy", key=lambda environment: str(environment))
async def deploy(context: ToolContext, environment: Literal["staging", "production"]) -> str:
    """Deploy the current branch."""
    assert_type(context.workspace, Workspace)
    return environment


@agent.tool
def ping(host: str, count: int = 3) -> list[str]:
    """Ping a host."""
    return [host] * count


assert_type(ping("localhost"), list[str])


@agent.command("hello", hint="name")
async def hello(turn: Turn, arguments: str) -> StopReason | None:
    """Say hello."""
    await turn.send_text(f"Hello {arguments}")
    return None


agent.add_tool(
    Lookup(),
)


async def serve(stream: ByteStream) -> None:
    await agent.serve(stream)
    ours, theirs = memory_pair()
    await agent.serve(theirs)
    wire: Wire = stdio_stream()
    assert_type(agent.make_server(drain=1.0), AgentServer)
    await agent.make_server().serve(wire)
    await ours.aclose()
    await agent.aclose()


def main() -> None:
    agent.run()
    agent.run(backend="trio", drain=5.0)


# Its tests ------------------------------------------------------------------------------------------------------------


async def test() -> None:
    async with TestClient(agent, permission="reject_once", editor=FakeEditor(form="accept")).connect() as client:
        assert_type(client, ConnectedClient)
        client.permission = lambda request: "allow_once" if request.tool_call.title else None
        result = await client.prompt("ship it")
        assert_type(result, PromptResult)
        assert_type(result.tool_statuses, list[str])
        assert_type(result.text, str)
        assert_type(client.transcript, Transcript)
        check_transcript(client.transcript)
    async with spawn_agent(["acp-agent"]) as process:
        assert_type(await process.wait(), int)
    await check_model(HouseModel)
    await check_session_store(MemoryStore)


def errors() -> None:
    try:
        Scenario.load("scenario.toml")
    except ScenarioError as error:
        assert_type(error.line, int | None)
    except (StoreError, ConnectionClosed, AcpAgentError):
        raise


policy = PermissionPolicy([PermissionRule("ask", "*")])
block: ContentBlock = TextContent("text")


async def ask(connection: Connection) -> bytes:
    return bytes(await connection.request("session/new", {}))

"""The whole program against a real model, over stdio, with the official SDK as the client.

Prompts are pinned: a model this small goes on with the pattern that the template shows it, so each one is a tool's
name and one argument.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import anyio
import anyio.to_thread
import pytest
from acp import schema

from tests.llm.conftest import LocalModel

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
PATIENCE = 240  # seconds: the first prompt of the agent is read slowly, and the machine may be busy

LONG = " ".join(f"Giraffe number {number} is blue and eats leaves of tree {number + 7}." for number in range(12))


@pytest.fixture
def anyio_backend() -> str:
    """The official client knows asyncio only."""
    return "asyncio"


class Editor(acp.Client):
    """A client that answers each permission request with an option of kind `answer`, and keeps what it is shown."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[schema.ToolCallUpdate] = []
        self.updates: list[Any] = []
        self.spoken_to = anyio.Event()

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **more: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append(tool_call)
        (chosen,) = [option for option in options if option.kind == self.answer]
        outcome = schema.AllowedOutcome(option_id=chosen.option_id, outcome="selected")
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append(update)
        if isinstance(update, schema.AgentMessageChunk):
            self.spoken_to.set()

    @property
    def text(self) -> str:
        chunks = [update for update in self.updates if isinstance(update, schema.AgentMessageChunk)]
        return "".join(chunk.content.text for chunk in chunks if isinstance(chunk.content, schema.TextContentBlock))

    @property
    def statuses(self) -> list[Any]:
        kinds = (schema.ToolCallStart, schema.ToolCallProgress)
        return [update.status for update in self.updates if isinstance(update, kinds)]

    @property
    def raw_input(self) -> Any:
        (call,) = [update for update in self.updates if isinstance(update, schema.ToolCallStart)]
        return call.raw_input


@pytest.fixture(params=["openai", "openai-responses", "anthropic"])
def spec(request: pytest.FixtureRequest, local_model: LocalModel) -> str:
    """`--model` for each adapter."""
    match request.param:
        case "openai":
            return f"{local_model.url}/v1#local"
        case "openai-responses":
            return f"openai-responses:{local_model.url}/v1#local"
        case _:
            return f"anthropic:{local_model.url}#local"


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One place for all: its path is in the agent's prompt, and a prompt that is the same is read only once."""
    return tmp_path_factory.mktemp("agent")


@pytest.fixture
def workspace(place: Path) -> Path:
    folder = place / "project"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "README.md").write_text("blue giraffe\n")
    return folder


@asynccontextmanager
async def session_of(editor: Editor, spec: str, workspace: Path) -> AsyncGenerator[tuple[Any, str], None]:
    """The agent as a process, with one session in `workspace`."""
    arguments = ("-m", "acp_agent", "serve", "--model", spec, "--state-dir", str(workspace.parent / "state"))
    async with acp.spawn_agent_process(editor, sys.executable, *arguments, env=dict(os.environ)) as (agent, _):
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd=str(workspace), mcp_servers=[])
        yield agent, session.session_id


async def prompt(agent: Any, session_id: str, text: str) -> str:
    response = await agent.prompt(session_id=session_id, prompt=[acp.text_block(text)])
    reason: str = response.stop_reason
    return reason


async def test_it_reads_the_file_and_tells_what_it_says(spec: str, workspace: Path) -> None:
    editor = Editor("allow_once")
    with anyio.fail_after(PATIENCE):
        async with session_of(editor, spec, workspace) as (agent, session_id):
            assert await prompt(agent, session_id, "read file README.md") == "end_turn"
    assert Path(editor.raw_input["path"]).name == "README.md"
    assert (editor.statuses[0], editor.statuses[-1]) == ("pending", "completed")
    assert "giraffe" in editor.text
    assert editor.asked == [], "reading inside the workspace needs no question"


async def test_what_is_allowed_is_done(spec: str, workspace: Path) -> None:
    editor = Editor("allow_once")
    with anyio.fail_after(PATIENCE):
        async with session_of(editor, spec, workspace) as (agent, session_id):
            assert await prompt(agent, session_id, "run command touch made.txt") == "end_turn"
    assert editor.raw_input["command"] == "touch made.txt"
    assert len(editor.asked) == 1
    assert editor.statuses[-1] == "completed"
    assert (workspace / "made.txt").exists()


async def test_what_is_rejected_is_not_done(spec: str, workspace: Path) -> None:
    editor = Editor("reject_once")
    with anyio.fail_after(PATIENCE):
        async with session_of(editor, spec, workspace) as (agent, session_id):
            assert await prompt(agent, session_id, "run command touch made.txt") in ("end_turn", "max_turn_requests")
    assert editor.asked
    assert "completed" not in editor.statuses
    assert not (workspace / "made.txt").exists()


async def test_a_cancel_ends_the_turn_and_the_model(spec: str, workspace: Path, local_model: LocalModel) -> None:
    (workspace / "README.md").write_text(LONG)  # the model quotes it, which takes long enough to be stopped in it
    editor = Editor("reject_once")
    reasons: list[str] = []
    with anyio.fail_after(PATIENCE):
        async with session_of(editor, spec, workspace) as (agent, session_id), anyio.create_task_group() as tasks:

            async def tell() -> None:
                reasons.append(await prompt(agent, session_id, "read file README.md"))

            tasks.start_soon(tell)
            await editor.spoken_to.wait()
            await agent.cancel(session_id=session_id)
        assert reasons == ["cancelled"]
        assert await anyio.to_thread.run_sync(local_model.becomes_idle)
    assert len(editor.text) < len(LONG)

"""An editor for tests: it connects to an agent, in memory or in a process of its own, and plays the user.

async with TestClient(agent, permission="reject_once").connect() as client:
    result = await client.prompt("ship it")
    assert result.tool_statuses == ["pending", "failed"]
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import anyio

from acp_agent.testing.connected import ConnectedClient
from acp_agent.testing.link import Link
from acp_agent.testing.policies import AnswerPolicy
from acp_agent.testing.reach import Reached, serve_in_memory, start_process
from acp_agent.testing.rules import check_transcript
from acp_agent.testing.transcript import Transcript

if TYPE_CHECKING:
    from acp_agent.agent import Agent
    from acp_agent.testing.editor import FakeEditor

__all__ = ["TestClient", "TranscriptCheck"]

TranscriptCheck: TypeAlias = Callable[[Transcript], None]

END_SECONDS = 5.0  # beyond what the agent is given to drain


class TestClient:
    """How to connect to an agent, and how the user behaves. `connect` may be called any number of times.

    `agent` is an `Agent`, served in memory, or a command, started as a process with `env` (None: ours) and its stderr
    dropped unless `stderr` is given. `permission` says how permission requests are answered (see `policies`).
    `editor` answers for files, terminals and forms; `capabilities` are sent as they are instead of the editor's.
    `cwd` is where sessions work, a fresh folder if it is None. `timeout` bounds each wait, in seconds; `drain` is what
    an agent in memory gets for owed answers when the client has gone. When the connection ends without an exception,
    each of `checks` is called with the transcript, and raises `AssertionError` if it finds fault; with `record` off
    nothing is kept and nothing checked.
    """

    __test__ = False  # it is not a test case, for pytest
    default_checks: ClassVar[tuple[TranscriptCheck, ...]] = (check_transcript,)

    def __init__(
        self,
        agent: Agent | Sequence[str],
        *,
        permission: AnswerPolicy = "allow_once",
        editor: FakeEditor | None = None,
        capabilities: Mapping[str, Any] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout: float = 10.0,
        drain: float = 2.0,
        env: Mapping[str, str] | None = None,
        stderr: int | None = None,
        record: bool = True,
        checks: Sequence[TranscriptCheck] | None = None,
    ) -> None:
        self.agent = agent
        self.permission = permission
        self.editor = editor
        self.capabilities = capabilities
        self.cwd = cwd
        self.timeout = timeout
        self.drain = drain
        self.env = env
        self.stderr = stderr
        self.record = record
        self.checks = self.default_checks if checks is None else tuple(checks)

    @asynccontextmanager
    async def connect(self, *, initialize: bool = True) -> AsyncIterator[ConnectedClient]:
        """Start or serve the agent, say `initialize`, and be its client until the block is left.

        Leaving it closes the agent's input and waits for its end. Without `initialize` the test says everything.
        """
        with _single_errors():
            async with AsyncExitStack() as stack:
                cwd = os.fspath(self.cwd) if self.cwd is not None else stack.enter_context(_scratch_folder())
                agent = await stack.enter_async_context(self._reach(cwd))
                transcript = Transcript(keep=self.record)
                async with self._client(agent, transcript, cwd) as client:
                    if initialize:
                        await client.initialize()
                    yield client
                    await self._part(client, agent)
        if self.record:
            for check in self.checks:
                check(transcript)

    def _reach(self, cwd: str) -> AbstractAsyncContextManager[Reached]:
        if isinstance(self.agent, Sequence):
            return start_process(self.agent, cwd=cwd, env=self.env, stderr=self.stderr)
        return serve_in_memory(self.agent, drain=self.drain)

    @asynccontextmanager
    async def _client(self, agent: Reached, transcript: Transcript, cwd: str) -> AsyncIterator[ConnectedClient]:
        link = Link(agent.wire, transcript)
        async with anyio.create_task_group() as tasks:
            client = ConnectedClient(
                link,
                transcript,
                tasks,
                cwd=cwd,
                permission=self.permission,
                editor=self.editor,
                capabilities=self._capabilities(),
                timeout=self.timeout,
                process=agent.process,
            )
            tasks.start_soon(link.run, client)
            if self.editor is not None:
                self.editor.attach(tasks)
            try:
                yield client
            finally:
                if self.editor is not None:
                    await self.editor.aclose()
            tasks.cancel_scope.cancel()

    async def _part(self, client: ConnectedClient, agent: Reached) -> None:
        """The client goes first, and the agent has to follow."""
        client.close()
        seconds = self.drain + END_SECONDS
        with anyio.move_on_after(seconds):
            await agent.wait_ended()
            await client.wait_closed()
            return
        raise AssertionError(f"The agent did not end within {seconds:g} s after its input had ended.")

    def _capabilities(self) -> Mapping[str, Any]:
        if self.capabilities is not None:
            return self.capabilities
        return self.editor.capabilities() if self.editor is not None else {}


@contextmanager
def _scratch_folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="acp-agent-test-") as path:
        yield os.path.realpath(path)


@contextmanager
def _single_errors() -> Iterator[None]:
    """What fails a test is raised as it is, whatever task groups it came through."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from error.__cause__

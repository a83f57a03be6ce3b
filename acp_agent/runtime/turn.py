"""One prompt being worked on. The rule it owns: a turn that ends leaves nothing open.

A turn has its own cancel scope and its own flag. However it ends, `close` runs first and the answer goes out last: each
announced call gets a final status, the model's history is made whole, title and usage are told. What an abandoned turn
says after that is dropped, because it `is_over`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

import anyio
from anyio.lowlevel import EventLoopToken, checkpoint, current_token

from acp_agent.content import ContentBlock, Location, PlanEntry, StopReason, ToolKind, text_of
from acp_agent.errors import ConnectionClosed, ModelError, RequestError
from acp_agent.events import Event, MessageChunk, NoticeRaised, PlanChanged, TurnEnded
from acp_agent.history import AssistantMessage, HistoryMessage, ToolUse, missing_results
from acp_agent.log import get_logger
from acp_agent.runtime.calls import Call
from acp_agent.runtime.client import PermissionAnswer, PermissionQuestion
from acp_agent.runtime.context import CallContext
from acp_agent.runtime.executor import ToolExecutor, run_quietly
from acp_agent.runtime.failures import error_of_model
from acp_agent.runtime.permissions import Decision, Verdict
from acp_agent.runtime.session import Session, new_id
from acp_agent.runtime.tickets import Outcome, Ticket
from acp_agent.tools.base import Proposal, Tool, ToolOutput

__all__ = ["ShownCall", "Turn"]

logger = get_logger("acp_agent.turn")

BREATH = 32  # chunks between two checkpoints: fewer cost speed, none would starve a cancel
TIDY_SECONDS = 5.0


class Turn:
    """What `@agent.on_prompt` is given: the prompt, and the ways to answer it.

    `content` are the prompt's blocks in order, `text` all of them as one text, `meta` the request's `_meta`.
    """

    def __init__(self, session: Session, ticket: Ticket) -> None:
        self.session = session
        self.ticket = ticket
        self.content: list[ContentBlock] = ticket.content
        self.meta = ticket.meta
        self.cancelled = False
        self.is_over = False
        self.is_command = False  # which says nothing of what the session is about
        self.running = 0
        self.outcome: Outcome | None = None
        self.timers = session.timers
        self.questions = session.questions
        self.executor = ToolExecutor(self)
        self.scope = anyio.CancelScope()
        self.said: list[str] | None = []  # for the history, unless a model loop keeps it
        self.on_cancelled: Callable[[], None] | None = None
        self._calls: dict[str, Call] = {}
        self._port = session.port
        self._loop: EventLoopToken | None = None
        self._unbroken = 0  # pieces of a message since the last checkpoint

    # the prompt -----------------------------------------------------------------------------------------------------

    @property
    def session_id(self) -> str:
        return self.session.id

    @property
    def message_id(self) -> str:
        return self.ticket.message_id

    @property
    def cwd(self) -> str:
        return self.session.cwd

    @property
    def text(self) -> str:
        return text_of(self.content)

    @property
    def history(self) -> list[HistoryMessage]:
        """What the model said and was told before and in this turn; this prompt is in it."""
        return self.session.history

    # what is said ---------------------------------------------------------------------------------------------------

    async def send_text(self, text: str) -> None:
        """Stream a piece of the answer. Waits only when the client has too much to read, never for an answer."""
        if text and not self.is_over:
            self.session.say("agent", text)
            if self.said is not None:
                self.said.append(text)
            self._unbroken += 1
            if self._unbroken >= BREATH or self._port.full:
                await self.breathe()

    async def send_thought(self, text: str) -> None:
        """Stream a piece of what the agent thinks aloud."""
        if text and not self.is_over:
            self.session.say("thought", text)
            self._unbroken += 1
            if self._unbroken >= BREATH or self._port.full:
                await self.breathe()

    async def send_content(self, block: ContentBlock) -> None:
        """Send a block that is not text, as part of the answer."""
        message_id = self.session.message_id or new_id("msg")
        self.show(MessageChunk("agent", message_id, block))
        await self.breathe()

    def send_plan(self, entries: Sequence[PlanEntry]) -> None:
        """Show the plan, whole."""
        self.show(PlanChanged(list(entries)))

    def send_notice(
        self, severity: Literal["info", "warning", "error"], title: str, description: str | None = None
    ) -> None:
        """Tell the user something that the agent did not say. To a client without notices it is a message."""
        if self._port.abilities.notices:
            self.show(NoticeRaised(severity, title, description))
        elif not self.is_over:
            self.session.end_message()
            self.session.say("agent", notice_text(severity, title, description))
            self.session.end_message()

    def send_usage(self, used: int, size: int, cost: float | None = None) -> None:
        """Tell how full the context is: tokens `used` by the last request, of `size`; its cost in USD if known."""
        if not self.is_over:
            self.session.set_usage(used, size, cost)

    def set_title(self, title: str) -> None:
        """Name the session."""
        if not self.is_over:
            self.session.set_title(title)

    def show(self, event: Event, *, kept: Event | None = None) -> None:
        """Emit an event of this turn (see `Session.emit`); what comes after its end is dropped."""
        if not self.is_over:
            self.session.emit(event, kept=kept)

    async def breathe(self) -> None:
        """Let others run, and wait while the client has too much to read."""
        self._unbroken = 0
        if self._port.full:
            await self._port.wait_for_room()
        else:
            await checkpoint()

    @property
    def heartbeat(self) -> float | None:
        return self.session.definition.heartbeat

    @property
    def full(self) -> bool:
        return self._port.full

    # tools ----------------------------------------------------------------------------------------------------------

    async def call_tool(self, tool: str | Tool, arguments: dict[str, Any] | None = None) -> ToolOutput:
        """Run a tool of the session by name, or any tool object: announced, judged, asked for, shown.

        A denied or failed call is an output with `failed` set, never an exception.
        """
        name = tool if isinstance(tool, str) else tool.name
        found = (await self.session.tools()).get(name) if isinstance(tool, str) else tool
        use = ToolUse(name, arguments or {}, call_id=new_id("call"))
        return await self.executor.run_one(found, use)

    def open_tool_call(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        title: str | None = None,
        kind: ToolKind = "other",
        locations: Sequence[Location] = (),
        key: str = "",
    ) -> ShownCall:
        """Announce a call that the agent's own code (a framework) runs itself; see `ShownCall`."""
        proposal = Proposal(
            title=title or name, kind=kind, arguments=arguments or {}, key=key, locations=list(locations)
        )
        call = Call(self, new_id("call"), name, proposal, arguments or {})
        self.add_call(call)
        call.open()
        return ShownCall(self, call)

    def make_context(self, call_id: str) -> CallContext:
        if self._loop is None:
            self._loop = current_token()
        return CallContext(self, call_id, self._loop)

    def add_call(self, call: Call) -> None:
        self._calls[call.id] = call

    def find_call(self, call_id: str) -> Call | None:
        return self._calls.get(call_id)

    def judge(self, call: Call) -> Decision:
        session = self.session
        return session.policy.decide(call.name, call.proposal, session.mode, session.memory)

    def remember(self, call: Call, verdict: Verdict) -> None:
        self.session.memory.remember(call.name, call.proposal, verdict)

    def add_history(self, message: HistoryMessage) -> None:
        if not self.is_over:
            self.session.add_history(message)

    async def request_permission(self, question: PermissionQuestion) -> PermissionAnswer:
        await self.session.wait_released()
        port, seconds = self.session.port, self.session.definition.permission_timeout
        if seconds is None:
            return await port.request_permission(self.session.id, question)
        with anyio.move_on_after(seconds):
            return await port.request_permission(self.session.id, question)
        return PermissionAnswer("unusable")

    async def tidy(self, call: Call) -> None:
        """What a tool wanted done after its final update, bounded and on every path."""
        callbacks, call.on_finished = call.on_finished, []
        for callback in callbacks:
            with anyio.move_on_after(TIDY_SECONDS, shield=True):
                await run_quietly(callback)

    # life -----------------------------------------------------------------------------------------------------------

    @property
    def waits_for_client(self) -> bool:
        """Whether it is inside a tool or a question, which no client can help with once it is gone."""
        return self.running > 0

    def cancel(self) -> None:
        """Stop the work: model stream, tools, sleeps, questions, nested agents. Twice is once."""
        if not self.cancelled and not self.is_over:
            self.cancelled = True
            self.scope.cancel()
            if self.on_cancelled is not None:
                self.on_cancelled()

    def insert(self) -> None:
        """The prompt gets its message id and its place in the history."""
        self.ticket.insert(new_id("msg"))
        self.session.add_prompt(self.message_id, self.content)

    async def run(self, work: Callable[[Turn], Awaitable[StopReason | None]]) -> None:
        """Do the work, and note how it ended. An exception that is a bug is raised, for the log."""
        try:
            with self.scope:
                if not self.cancelled:  # else it never begins
                    self.outcome = Outcome(await work(self) or "end_turn")
        except ModelError as error:
            self.outcome = Outcome(error=error_of_model(error))
        except RequestError as error:
            self.outcome = Outcome(error=error)
        except (ConnectionClosed, anyio.get_cancelled_exc_class()) as stop:
            self.cancelled = True
            if not isinstance(stop, ConnectionClosed):
                raise

    def close(self) -> list[Call]:
        """End everything that is open, and be over. The calls that still have something to tidy."""
        stopped = "Cancelled." if self.cancelled else "The turn ended before this finished."
        for call in self._calls.values():
            call.fail(stopped)
        self.session.end_message()
        if self.outcome is None or self.cancelled:
            self.outcome = Outcome("cancelled") if self.cancelled else Outcome(error=RequestError.internal())
        if self.said:
            self.session.add_history(AssistantMessage(new_id("msg"), "".join(self.said)))
        for result in missing_results(self.session.history):
            self.session.add_history(result)
        if self.session.header.title is None and not self.is_command:
            self.session.set_title(self.text)
        error = self.outcome.error.message if self.outcome.error else None
        self.show(TurnEnded(self.outcome.stop_reason, error))
        self.is_over = True
        return [call for call in self._calls.values() if call.on_finished]

    async def settle(self) -> None:
        """Close, keep, and only then answer. Shielded: a cancel cannot cut it short, a deadline bounds it."""
        try:
            with anyio.CancelScope(shield=True):
                for call in self.close():
                    await self.tidy(call)
                if self.session.store.durable:
                    await self.session.store.commit()
        finally:
            self.is_over = True
            self.answer()

    def answer(self) -> None:
        outcome = self.outcome or Outcome("cancelled")
        self.session.after_held(lambda: self.ticket.finish(outcome))


def notice_text(severity: str, title: str, description: str | None) -> str:
    details = f"\n{description}" if description else ""
    return f"{severity.capitalize()}: {title}{details}\n\n"


class ShownCall:
    """A call that a framework runs itself, on show in the editor: ask, report, then `complete` or `fail`.

        call = turn.open_tool_call("deploy", {"environment": "staging"}, title="Deploy to staging", kind="execute")
        if await call.ask_permission():
            call.complete(text="deployed")

    A call left open is failed when the turn ends.
    """

    def __init__(self, turn: Turn, call: Call) -> None:
        self._turn = turn
        self._call = call

    @property
    def tool_call_id(self) -> str:
        return self._call.id

    async def ask_permission(self) -> bool:
        """Whether it may run: by the policy, or by the user. A refused call is failed here."""
        self._turn.running += 1
        try:
            decision = await self._turn.executor.decide(self._call)
        finally:
            self._turn.running -= 1
        if decision.verdict == "allow":
            self._call.start()
            return True
        self._call.fail(decision.reason)
        return False

    def report(self, text: str) -> None:
        """Show what there is so far."""
        self._call.start()
        self._call.report(text)

    def complete(self, output: ToolOutput | None = None, *, text: str = "") -> None:
        self._call.start()
        self._call.finish(output or ToolOutput.of_text(text))

    def fail(self, text: str) -> None:
        self._call.fail(text)

"""Running tools for one turn. The rule it owns: no gated tool runs without a decision that says `allow`.

For each call, in this order, whatever happens:

    validate    the tool exists, its arguments fit; else the call is announced and failed, for the model to read
    announce    `Call.open`, once; the calls of one model step are announced together, in order
    decide      the policy, at the moment that counts: again after waiting for an earlier question
    ask         one question at a time in a session; the answer is judged by the options of this very question
    run         `in_progress`, progress, the tool's own `run`
    finish      `completed` | `failed`, and the result for the model

Tools of a step run in order; neighbours that declare themselves read-only run at the same time. A cancel arrives as
cancellation of the turn's scope; calls that it leaves open are closed by the turn, not here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import Protocol

import anyio
from anyio.lowlevel import checkpoint
from msgspec import Struct

from acp_agent.content import ContentBlock, ContentItem, Diff, TextContent, clean_json
from acp_agent.errors import ConnectionClosed, ToolError
from acp_agent.history import ToolResult, ToolUse
from acp_agent.log import get_logger
from acp_agent.runtime.calls import Call, CallHost, text_content
from acp_agent.runtime.client import PermissionAnswer, PermissionQuestion
from acp_agent.runtime.permissions import DENIED, Decision, Verdict, judge_answer, offer_options
from acp_agent.tools.base import Proposal, Tool, ToolContext, ToolOutput

__all__ = ["ExecutorHost", "ToolExecutor", "run_quietly"]

logger = get_logger("acp_agent.executor")

CRASHED = "The tool failed unexpectedly; the log says why."


class ExecutorHost(CallHost, Protocol):
    """The turn that calls are made in, as the executor sees it."""

    cancelled: bool
    questions: anyio.Lock
    running: int

    @property
    def session_id(self) -> str: ...

    def make_context(self, call_id: str) -> ToolContext: ...

    def add_call(self, call: Call) -> None: ...

    def judge(self, call: Call) -> Decision: ...

    def remember(self, call: Call, verdict: Verdict) -> None: ...

    def add_history(self, message: ToolResult) -> None: ...

    def cancel(self) -> None: ...

    async def request_permission(self, question: PermissionQuestion) -> PermissionAnswer: ...

    async def tidy(self, call: Call) -> None: ...


class Job(Struct):
    """A use on its way: announced, with what is needed to run it; without a tool it is over already."""

    use: ToolUse
    call: Call
    context: ToolContext
    tool: Tool | None = None
    result: ToolResult | None = None
    is_models: bool = True

    @property
    def may_run_beside_others(self) -> bool:
        return self.tool is not None and self.tool.read_only and self.call.proposal.read_only


class ToolExecutor:
    """Runs the tool uses of one turn. `ends_turn` is set when a tool wants the user to speak next."""

    def __init__(self, turn: ExecutorHost) -> None:
        self.turn = turn
        self.ends_turn = False

    async def run_step(self, uses: Sequence[ToolUse], tools: dict[str, Tool]) -> list[ToolResult]:
        """Run the uses of one model step; a result for each, in order. `ToolUse.call_id` is already minted."""
        jobs = [self._announce(use, tools.get(use.name)) for use in uses]
        for beside, group in groupby(jobs, lambda job: job.may_run_beside_others):
            together = list(group)
            if beside and len(together) > 1:
                async with anyio.create_task_group() as tasks:
                    for job in together:
                        tasks.start_soon(self._run_job, job)
            else:
                for job in together:
                    await self._run_job(job)
        return [job.result for job in jobs if job.result is not None]

    async def run_one(self, tool: Tool | None, use: ToolUse) -> ToolOutput:
        """Run one call for the agent's own code, whose history is its own business; the output itself."""
        job = self._announce(use, tool, is_models=False)
        return await self._run_job(job)

    def _announce(self, use: ToolUse, tool: Tool | None, *, is_models: bool = True) -> Job:
        """Validate and announce: never raises, whatever the model wrote."""
        arguments = clean_json(use.arguments)
        context = self.turn.make_context(use.call_id)
        problem = use.problem
        proposal = Proposal(title=f"Call {use.name}", kind=tool.kind if tool else "other", arguments=arguments)
        if tool is None:
            problem = problem or f"There is no tool named {use.name!r}."
        elif not problem:
            try:
                proposal = tool.describe(arguments, context)
            except ToolError as error:
                problem = str(error)
            except Exception:
                logger.exception("a tool failed in describe", tool=use.name)
                problem = CRASHED
        call = Call(self.turn, use.call_id, use.name, proposal, arguments)
        self.turn.add_call(call)
        call.open()
        job = Job(use, call, context, tool, is_models=is_models)
        if problem:
            call.fail(problem)
            job.tool = None
            job.result = self._keep(job, ToolOutput(content=text_content(problem), failed=True))
        return job

    async def _run_job(self, job: Job) -> ToolOutput:
        tool, call = job.tool, job.call
        if tool is None:  # it failed validation, and has said so
            return ToolOutput(failed=True, told=job.result.content if job.result else None)
        self.turn.running += 1
        try:
            output = await self._prepare_and_run(tool, call, job.context)
        except ToolError as error:
            call.fail(str(error))
            output = ToolOutput(content=text_content(str(error)), failed=True)
        except Exception:
            logger.exception("a tool crashed", tool=call.name, call=call.id, session=self.turn.session_id)
            call.fail(CRASHED)
            output = ToolOutput(content=text_content(CRASHED), failed=True)
        finally:
            self.turn.running -= 1
        await self.turn.tidy(call)
        job.result = self._keep(job, output)
        if output.ends_turn:
            self.ends_turn = True
        return output

    async def _prepare_and_run(self, tool: Tool, call: Call, context: ToolContext) -> ToolOutput:
        await tool.prepare(call.proposal, context)
        return await self._run(tool, call, context, await self.decide(call))

    async def _run(self, tool: Tool, call: Call, context: ToolContext, decision: Decision) -> ToolOutput:
        """The only place that calls `Tool.run`."""
        if decision.verdict != "allow":
            raise ToolError(decision.reason)
        call.start()
        output = await tool.run(call.proposal, context)
        call.finish(output)
        return output

    async def decide(self, call: Call) -> Decision:
        """Policy, then the user. A turn that was stopped meanwhile never gets an `allow` out of here."""
        decision = self.turn.judge(call)
        if decision.verdict == "ask":
            decision = await self._ask_in_turn(call, decision)
        if decision.stops_turn:
            self.turn.cancel()
        if self.turn.cancelled:
            await checkpoint()  # the scope is cancelled: this raises, unless somebody shields us
            return Decision("deny", DENIED)
        return decision

    async def _ask_in_turn(self, call: Call, decision: Decision) -> Decision:
        waited = await self._take_turn()
        try:
            if waited:
                decision = self.turn.judge(call)  # an "always" given meanwhile settles it
            if decision.verdict == "ask" and not self.turn.cancelled:
                decision = await self._ask(call)
            return decision
        finally:
            self.turn.questions.release()

    async def _take_turn(self) -> bool:
        """Take the lock of the questions; whether somebody else's had to be waited for."""
        try:
            self.turn.questions.acquire_nowait()
        except anyio.WouldBlock:
            await self.turn.questions.acquire()
            return True
        return False

    async def _ask(self, call: Call) -> Decision:
        options = offer_options(call.proposal)
        try:
            answer = await self.turn.request_permission(call.ask(options))
        except ConnectionClosed:
            return Decision("deny", "The editor is gone; nobody could be asked.", stops_turn=True)
        finally:
            call.answered()
        decision, kind = judge_answer(options, answer)
        if kind in ("allow_always", "reject_always"):
            self.turn.remember(call, "allow" if kind == "allow_always" else "deny")
        return decision

    def _keep(self, job: Job, output: ToolOutput) -> ToolResult:
        """The result joins the history as soon as it is there, so that a cancel loses nothing that was done."""
        result = ToolResult(job.use.call_id, job.use.name, told_by(output), failed=output.failed)
        if job.is_models:
            self.turn.add_history(result)
        return result


def told_by(output: ToolOutput) -> list[ContentBlock]:
    """What the model reads of an output: what the tool says it should, else what was shown, never nothing."""
    if output.told is not None:
        return output.told
    told: list[ContentBlock] = []
    for item in output.content:
        match item:
            case ContentItem(content=block):
                told.append(block)
            case Diff(path=path):
                told.append(TextContent(f"Wrote {path}."))
    return told or [TextContent("Done.")]


async def run_quietly(callback: Callable[[], Awaitable[None]]) -> None:
    """Await what a tool wanted done after its end; a bug in it is logged, and harms nobody else."""
    try:
        await callback()
    except Exception:
        logger.exception("tidying after a tool failed")

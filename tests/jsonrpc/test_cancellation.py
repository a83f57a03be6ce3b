"""Cancelling, in both directions, at every moment."""

from __future__ import annotations

import anyio
import pytest
from msgspec import Raw

from acp_agent.errors import ConnectionClosed, RequestError
from acp_agent.jsonrpc.connection import IncomingRequest, Work
from tests.jsonrpc.support import Functions, connected, logged, work
from tests.requirements import requirement

pytestmark = pytest.mark.anyio


def cancel(id: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}}


@requirement("cancel-request-answered")
async def test_a_cancelled_request_is_answered_as_cancelled() -> None:
    async with connected(Functions(slow=work(anyio.sleep_forever))) as (_, far):
        await far.send({"id": "a", "method": "slow"})
        await anyio.wait_all_tasks_blocked()
        await far.send(cancel("a"))
        assert (await far.receive())["error"] == {"code": -32800, "message": "Request cancelled"}


async def test_a_cancellation_in_the_same_read_meets_its_request() -> None:
    async with connected(Functions(slow=work(anyio.sleep_forever))) as (_, far):
        await far.send({"id": 1, "method": "slow"}, cancel(1), {"id": 2, "method": "ping"})
        answers = {message["id"]: message for message in [await far.receive(), await far.receive()]}
        assert answers[1]["error"]["code"] == -32800
        assert "result" in answers[2]


async def test_only_the_request_that_is_named_is_cancelled() -> None:
    go_on = anyio.Event()
    async with connected(Functions(slow=work(go_on.wait))) as (_, far):
        await far.send({"id": 3, "method": "slow"}, {"id": "3", "method": "slow"}, cancel("3"), cancel(4))
        assert (await far.receive())["id"] == "3"
        go_on.set()
        answer = await far.receive()
        assert answer["id"] == 3
        assert "result" in answer


async def test_a_handler_may_answer_a_cancellation_in_its_own_way() -> None:
    def begin(request: IncomingRequest) -> Work:
        cancelled = anyio.Event()
        request.on_cancel = cancelled.set

        async def run() -> dict[str, str]:
            await cancelled.wait()
            return {"stopReason": "cancelled"}

        return run

    async with connected(Functions(prompt=begin)) as (_, far):
        await far.send({"id": 1, "method": "prompt"}, cancel(1), cancel(1))
        assert (await far.receive())["result"] == {"stopReason": "cancelled"}


async def test_a_request_that_is_answered_by_others_may_be_cancelled_by_its_own_means() -> None:
    held: list[IncomingRequest] = []

    def begin(request: IncomingRequest) -> None:
        held.append(request)
        if request.id == b"2":
            request.on_cancel = lambda: request.fail(RequestError.cancelled())

    async with connected(Functions(later=begin)) as (_, far):
        await far.send({"id": 1, "method": "later"}, {"id": 2, "method": "later"}, cancel(1), cancel(2))
        assert (await far.receive())["id"] == 2
        held[0].respond("in its own time")
        assert (await far.receive())["result"] == "in its own time"


async def test_a_cancellation_that_fails_is_logged_and_the_reader_lives() -> None:
    def begin(request: IncomingRequest) -> None:
        request.on_cancel = lambda: [][0]

    with logged() as events:
        async with connected(Functions(later=begin)) as (_, far):
            await far.send({"id": 1, "method": "later"}, cancel(1), {"id": 2, "method": "ping"})
            assert (await far.receive())["id"] == 2
    assert [event["event"] for event in events] == ["cancellation failed"]


async def test_work_that_finishes_in_spite_of_it_is_answered_with_its_result() -> None:
    async def stubborn() -> str:
        with anyio.CancelScope(shield=True):
            await anyio.wait_all_tasks_blocked()
        return "done"

    async with connected(Functions(slow=work(stubborn))) as (_, far):
        await far.send({"id": 1, "method": "slow"}, cancel(1))
        assert (await far.receive()).get("result") == "done"


async def test_a_cancellation_is_read_though_the_client_does_not_read() -> None:
    ended = anyio.Event()

    async with connected(reading=False, high_water=50_000) as (connection, far):

        async def stream() -> None:
            try:
                while True:
                    connection.notify("update", {"text": "x" * 1000})
                    if connection.full:
                        await connection.wait_for_room()
            finally:
                ended.set()

        connection.handler.requests["prompt"] = work(stream)  # type: ignore[attr-defined]
        await far.send({"id": 1, "method": "prompt"})
        await anyio.wait_all_tasks_blocked()
        assert not ended.is_set()
        await far.send(cancel(1))
        await ended.wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(far.read)
            last = await far.receive()
            while "method" in last:
                last = await far.receive()
            tasks.cancel_scope.cancel()
        assert last["error"]["code"] == -32800


async def test_a_wait_of_ours_that_is_cancelled_tells_the_peer() -> None:
    async with connected() as (connection, far):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(connection.request, "permission", {})
                asked = await far.receive()
                scope.cancel()
        assert await far.receive() == cancel(asked["id"])
        assert connection._peer.asked == {}


@pytest.mark.parametrize("late", [{"result": "allow"}, {"error": {"code": -32800, "message": "Cancelled"}}])
async def test_a_late_answer_is_dropped_and_wakes_nobody(late: dict[str, object]) -> None:
    async with connected() as (connection, far):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(connection.request, "permission", {})
                asked = await far.receive()
                scope.cancel()
        assert (await far.receive())["method"] == "$/cancel_request"
        await far.send({"id": asked["id"], **late}, {"id": 1, "method": "ping"})
        assert (await far.receive())["id"] == 1


async def test_an_answer_in_the_same_moment_as_the_cancellation_is_not_cancelled_again() -> None:
    async with connected() as (connection, far):
        results: list[Raw] = []

        async def ask() -> None:
            results.append(await connection.request("permission", {}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            asked = await far.receive()
            connection._receive(b'{"id":%d,"result":1}' % asked["id"])
            tasks.cancel_scope.cancel()
        connection.notify("next", {})
        assert (await far.receive())["method"] == "next"


async def test_closing_while_a_wait_is_cancelled_says_nothing_twice() -> None:
    async with connected() as (connection, far), anyio.create_task_group() as tasks:
        tasks.start_soon(connection.request, "permission", {})
        asked = await far.receive()
        tasks.cancel_scope.cancel()
        connection.close()
        with anyio.CancelScope(shield=True):
            await anyio.wait_all_tasks_blocked()
        assert asked["method"] == "permission"
        assert far.lines == []


async def test_a_deadline_around_a_request_is_a_cancellation_like_any_other() -> None:
    async with connected() as (connection, far):
        with pytest.raises(TimeoutError), anyio.fail_after(0.01):
            await connection.request("terminal/wait_for_exit", {})
        assert [(await far.receive())["method"] for _ in range(2)] == ["terminal/wait_for_exit", "$/cancel_request"]


async def test_the_end_of_the_input_ends_the_question_of_a_running_request() -> None:
    outcomes: list[str] = []

    async with connected() as (connection, far):

        async def ask() -> str:
            try:
                await connection.request("permission", {})
            except ConnectionClosed:
                outcomes.append("closed")
            return "over"

        connection.handler.requests["prompt"] = work(ask)  # type: ignore[attr-defined]
        await far.send({"id": 1, "method": "prompt"})
        await far.receive()
        far.wire.send_eof()
        assert (await far.receive())["result"] == "over"
    assert outcomes == ["closed"]

"""One conversation over one wire: order, tasks, answers, the end. Cancellation has a file of its own."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from msgspec import Raw, Struct

from acp_agent.errors import ConnectionClosed, DecodeError, RequestError
from acp_agent.jsonrpc.connection import Connection, IncomingRequest, Work
from acp_agent.transports.memory import memory_pair
from tests.jsonrpc.support import Far, Functions, connected, logged, work
from tests.requirements import requirement

pytestmark = pytest.mark.anyio


class Update(Struct):
    session: str
    number: int


@pytest.mark.parametrize("piece", [None, 1], ids=["whole", "byte by byte"])
async def test_a_request_answered_in_its_first_half_needs_no_work(piece: int | None) -> None:
    async with connected(piece=piece) as (_, far):
        await far.send({"jsonrpc": "2.0", "id": "a", "method": "ping", "params": [1]})
        assert await far.receive() == {"jsonrpc": "2.0", "id": "a", "result": {"pong": [1]}}


async def test_work_answers_with_what_it_returns() -> None:
    async def wait_a_little() -> dict[str, int]:
        await checkpoint()
        return {"done": 1}

    async with connected(Functions(slow=work(wait_a_little))) as (_, far):
        await far.send({"id": 1, "method": "slow"})
        assert (await far.receive())["result"] == {"done": 1}


async def test_requests_begin_in_wire_order_and_work_runs_side_by_side() -> None:
    begun: list[Any] = []
    first_may_end = anyio.Event()

    def begin(request: IncomingRequest) -> Work:
        begun.append(request.id)

        async def run() -> None:
            if request.id == b"1":
                await first_may_end.wait()

        return run

    async with connected(Functions(turn=begin)) as (_, far):
        await far.send(*({"id": number, "method": "turn"} for number in (1, 2, 3)))
        assert {(await far.receive())["id"] for _ in range(2)} == {2, 3}
        assert begun == [b"1", b"2", b"3"]
        first_may_end.set()
        assert (await far.receive())["id"] == 1


async def test_notifications_are_handled_in_line_with_requests() -> None:
    seen: list[list[Any]] = []
    handler = Functions(look=lambda request: seen.append(list(handler.notifications)) or request.respond({}))
    async with connected(handler) as (_, far):
        await far.send({"method": "a"}, {"id": 1, "method": "look"}, {"method": "b", "params": {"x": 1}})
        await far.send({"id": 2, "method": "look"})
        await far.receive()
        await far.receive()
        assert seen == [[("a", None)], [("a", None), ("b", {"x": 1})]]


async def test_the_order_of_saying_is_the_order_on_the_wire_answers_among_it() -> None:
    handler = Functions()
    async with connected(handler) as (connection, far):

        def begin(request: IncomingRequest) -> Work:
            connection.notify("before", {})

            async def run() -> None:
                connection.notify("working", {})
                request.respond({"n": 1})
                connection.notify("after", {})

            return run

        handler.requests["turn"] = begin
        await far.send({"id": 1, "method": "turn"})
        said = [await far.receive() for _ in range(4)]
        assert [message.get("method", "answer") for message in said] == ["before", "working", "answer", "after"]


async def test_twenty_thousand_notifications_arrive_in_order() -> None:
    async with connected() as (connection, far):
        for number in range(20_000):
            connection.notify("session/update", Update("s", number))
            if connection.full:
                await connection.wait_for_room()
        await connection.drain()
        numbers = [(await far.receive())["params"]["number"] for _ in range(20_000)]
        assert numbers == list(range(20_000))


async def test_a_prepared_frame_goes_the_same_way() -> None:
    async with connected() as (connection, far):
        connection.notify("one", {})
        connection.send_prepared(b'{"jsonrpc":"2.0","method":"two","params":{"text":', 'say "hi"\n', b"}}\n")
        connection.notify("three", None)
        assert [(await far.receive()).get("params") for _ in range(3)] == [{}, {"text": 'say "hi"\n'}, None]


async def test_what_has_no_json_raises_where_it_was_said_and_nothing_else_suffers() -> None:
    async with connected() as (connection, far):
        connection.notify("one", {})
        with pytest.raises(TypeError):
            connection.notify("bad", object())
        with pytest.raises(ValueError, match="surrogates"):
            await connection.request("bad", {"text": "\udcff"})
        connection.notify("two", {})
        assert [(await far.receive())["method"] for _ in range(2)] == ["one", "two"]


async def test_a_request_of_ours_returns_the_result() -> None:
    async with connected() as (connection, far), anyio.create_task_group() as tasks:

        async def answer() -> None:
            asked = await far.receive()
            assert (asked["method"], asked["params"]) == ("fs/read", {"path": "/x"})
            await far.send({"id": asked["id"], "result": {"content": ""}})

        tasks.start_soon(answer)
        assert await connection.request("fs/read", {"path": "/x"}) == Raw(b'{"content": ""}')


@requirement("error-unknown-code")
async def test_a_request_of_ours_raises_the_peers_error() -> None:
    async with connected() as (connection, far), anyio.create_task_group() as tasks:

        async def answer() -> None:
            await far.send({"id": (await far.receive())["id"], "error": {"code": -32601, "message": "Unknown"}})

        tasks.start_soon(answer)
        with pytest.raises(RequestError, match="Unknown") as raised:
            await connection.request("terminal/create", {})
        assert raised.value.code == -32601


async def test_a_request_within_the_work_of_a_request_does_not_deadlock() -> None:
    handler = Functions()
    async with connected(handler) as (connection, far):

        async def ask_back() -> Any:
            return {"answer": await connection.request("permission", {"q": 1})}

        handler.requests["turn"] = work(ask_back)
        await far.send({"id": 1, "method": "turn"})
        asked = await far.receive()
        await far.send({"id": 2, "method": "ping"}, {"id": asked["id"], "result": "yes"})
        assert (await far.receive())["id"] == 2
        assert await far.receive() == {"jsonrpc": "2.0", "id": 1, "result": {"answer": "yes"}}


async def test_many_requests_of_ours_are_in_flight_at_once() -> None:
    results: dict[int, Raw] = {}
    async with connected() as (connection, far), anyio.create_task_group() as tasks:

        async def ask(number: int) -> None:
            results[number] = await connection.request("m", number)

        for number in range(50):
            tasks.start_soon(ask, number)
        asked = [await far.receive() for _ in range(50)]
        await far.send(*({"id": message["id"], "result": message["params"]} for message in reversed(asked)))
    assert {number: int(bytes(raw)) for number, raw in results.items()} == {number: number for number in range(50)}


class TestErrors:
    """Whose fault it is."""

    async def test_an_unknown_method_is_refused_by_the_handler(self) -> None:
        async with connected() as (_, far):
            await far.send({"id": 9, "method": "server/discover"})
            assert (await far.receive())["error"]["code"] == -32601

    async def test_params_that_do_not_fit_say_where(self) -> None:
        def begin(_request: IncomingRequest) -> None:
            raise DecodeError("Expected `str`, got `int`", "$.cwd")

        async with connected(Functions(new=begin)) as (_, far):
            await far.send({"id": 1, "method": "new"})
            error = (await far.receive())["error"]
            assert error["code"] == -32602
            assert error["data"] == {"details": "Expected `str`, got `int`", "path": "$.cwd"}

    async def test_the_work_answers_with_its_own_error(self) -> None:
        async def fail() -> None:
            raise RequestError(-32000, "Sign in first", {"details": "x"})

        async with connected(Functions(new=work(fail))) as (_, far):
            await far.send({"id": 1, "method": "new"})
            assert (await far.receive())["error"] == {
                "code": -32000,
                "message": "Sign in first",
                "data": {"details": "x"},
            }

    @pytest.mark.parametrize("stage", ["begin", "work"])
    async def test_what_is_unexpected_is_ours_and_leaks_no_text(self, stage: str) -> None:
        async def fail() -> None:
            raise DecodeError("secret")

        def begin(_request: IncomingRequest) -> Work:
            if stage == "begin":
                raise KeyError("secret")
            return fail

        with logged() as events:
            async with connected(Functions(new=begin)) as (_, far):
                await far.send({"id": 1, "method": "new"}, {"id": 2, "method": "ping"})
                answers = {message["id"]: message for message in [await far.receive(), await far.receive()]}
        assert answers[1]["error"] == {"code": -32603, "message": "Internal error"}
        assert "result" in answers[2]
        assert [(event["event"], event["exc_info"]) for event in events] == [("request failed", True)]

    async def test_a_failure_after_the_answer_is_only_logged(self) -> None:
        def begin(request: IncomingRequest) -> Work:
            async def run() -> None:
                request.respond({"first": 1})
                raise ValueError

            return run

        with logged() as events:
            async with connected(Functions(new=begin)) as (_, far):
                await far.send({"id": 1, "method": "new"})
                assert "result" in await far.receive()
                await far.send({"id": 2, "method": "ping"})
                assert (await far.receive())["id"] == 2
        assert "request failed" in [event["event"] for event in events]

    async def test_a_result_with_no_json_is_answered_with_an_internal_error(self) -> None:
        async def unspeakable() -> object:
            return object()

        with logged():
            async with connected(Functions(new=work(unspeakable))) as (_, far):
                await far.send({"id": 1, "method": "new"})
                assert (await far.receive())["error"]["code"] == -32603

    @pytest.mark.parametrize("method", ["explode", "$/unknown", "_vendor.x/changed"])
    async def test_a_notification_is_never_answered(self, method: str) -> None:
        with logged() as events:
            async with connected() as (_, far):
                await far.send({"method": method, "params": {}}, {"id": 1, "method": "ping"})
                assert (await far.receive())["id"] == 1
        assert [event["event"] for event in events] == (["notification failed"] if method == "explode" else [])

    async def test_a_line_over_the_cap_is_answered_and_the_next_line_is_served(self) -> None:
        async with connected(max_line=1000) as (_, far):
            await far.send({"id": 1, "method": "ping", "params": "x" * 5000}, {"id": 2, "method": "ping"})
            error = await far.receive()
            assert (error["id"], error["error"]["code"]) == (None, -32600)
            assert "at most 1000" in error["error"]["data"]["details"]
            assert (await far.receive())["id"] == 2

    @pytest.mark.parametrize(
        "line", [b"{not json\n", b"42\n", b"[]\n", b'{"method":1}\n', b"\n\r\n{}\n", b"\xff\xfe\n"]
    )
    async def test_a_bad_line_is_answered_once_and_the_next_line_is_served(self, line: bytes) -> None:
        async with connected() as (_, far):
            await far.write(line)
            await far.send({"id": 2, "method": "ping"})
            error = await far.receive()
            assert error["id"] is None
            assert error["error"]["code"] in (-32700, -32600)
            assert (await far.receive())["id"] == 2

    async def test_a_line_that_fails_us_is_lost_and_the_next_is_served(self) -> None:
        def trace(direction: str, frame: bytes) -> None:
            if b'"bad"' in frame and direction == "in":
                raise OSError("No space left")

        with logged() as events:
            async with connected(trace=trace) as (_, far):
                await far.send({"id": "bad", "method": "ping"}, {"id": 2, "method": "ping"})
                assert (await far.receive())["id"] == 2
        assert [event["event"] for event in events] == ["line failed"]

    async def test_a_duplicate_id_is_refused_and_the_first_request_lives_on(self) -> None:
        go_on = anyio.Event()
        async with connected(Functions(slow=work(go_on.wait))) as (_, far):
            await far.send({"id": 1, "method": "slow"}, {"id": 1, "method": "slow"})
            assert (await far.receive())["error"]["code"] == -32600
            go_on.set()
            assert "result" in await far.receive()


class TestTheReaderThatDoesNotRead:
    """Back-pressure, and what goes on under it."""

    async def test_the_buffer_stays_bounded_and_a_request_is_still_served(self) -> None:
        produced = 0
        heard: list[str] = []

        def note(request: IncomingRequest) -> None:
            heard.append(request.method)
            request.respond({})

        async with connected(Functions(hello=note), reading=False, high_water=100_000) as (connection, far):

            async def produce() -> None:
                nonlocal produced
                while True:
                    connection.notify("update", {"text": "x" * 1000})
                    produced += 1
                    if connection.full:
                        await connection.wait_for_room()

            connection.start(produce, "producer")
            await anyio.wait_all_tasks_blocked()
            assert connection.full
            assert produced < 250
            assert len(connection._outbox._buffer) < 110_000
            stalled_at = produced
            await far.send({"id": 1, "method": "hello"}, {"method": "note"})
            await anyio.wait_all_tasks_blocked()
            assert heard == ["hello"]
            assert produced == stalled_at

    async def test_reading_on_lets_the_producer_go_on_and_nothing_is_lost(self) -> None:
        async with connected(reading=False, high_water=100_000) as (connection, far):

            async def produce() -> None:
                for number in range(2000):
                    connection.notify("update", Update("x" * 500, number))
                    if connection.full:
                        await connection.wait_for_room()
                await connection.drain()

            connection.start(produce, "producer")
            await anyio.wait_all_tasks_blocked()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(far.read)
                numbers = [(await far.receive())["params"]["number"] for _ in range(2000)]
                tasks.cancel_scope.cancel()
            assert numbers == list(range(2000))
            assert not connection.full

    async def test_an_answer_does_not_wait_for_room(self) -> None:
        async with connected(reading=False, capacity=100, high_water=1000) as (connection, far):
            connection.notify("update", {"text": "x" * 50_000})
            assert connection.full
            await far.send({"id": 1, "method": "ping"})
            await anyio.wait_all_tasks_blocked()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(far.read)
                assert (await far.receive())["method"] == "update"
                assert (await far.receive())["id"] == 1
                tasks.cancel_scope.cancel()


class TestTheEnd:
    """EOF, a client that is gone, `close`, and leaving."""

    async def test_run_returns_at_eof_and_the_last_line_needs_no_newline(self) -> None:
        near, far_wire = memory_pair()
        far = Far(far_wire)
        await far.write(b'{"id":1,"method":"ping"}')
        far_wire.send_eof()
        with anyio.fail_after(5):
            async with Connection(near, Functions()) as connection:
                await connection.run()
                assert connection.closed
                await connection.drain()
            await far.read()
        assert json.loads(far.lines[0])["id"] == 1

    async def test_what_is_owed_at_eof_is_still_answered(self) -> None:
        go_on = anyio.Event()
        near, far_wire = memory_pair()
        far = Far(far_wire)
        await far.send({"id": 1, "method": "slow"}, {"id": 2, "method": "slow"})
        far_wire.send_eof()
        with anyio.fail_after(5):
            async with Connection(near, Functions(slow=work(go_on.wait))) as connection:
                await connection.run()
                connection.notify("still here", {})
                go_on.set()
                await connection.wait_until_answered()
                await connection.drain()
                await connection.wait_until_answered()
            await far.read()
        first, *answers = [json.loads(line) for line in far.lines]
        assert first["method"] == "still here"
        assert {answer["id"] for answer in answers} == {1, 2}

    @requirement("cancel-request-internal")
    async def test_leaving_answers_what_is_owed_as_cancelled(self) -> None:
        near, far_wire = memory_pair()
        far = Far(far_wire)
        await far.send({"id": 1, "method": "slow"}, {"id": 2, "method": "never"})
        far_wire.send_eof()
        with anyio.fail_after(5):
            handler = Functions(slow=work(anyio.sleep_forever), never=lambda _request: None)
            async with Connection(near, handler) as connection:
                await connection.run()
            await far.read()
        assert [(json.loads(line)["id"], json.loads(line)["error"]["code"]) for line in far.lines] == [(1, -32800)]

    @pytest.mark.parametrize("end", ["eof", "gone", "close"])
    async def test_a_request_in_flight_fails_at_once_and_so_does_a_later_one(self, end: str) -> None:
        async with connected() as (connection, far), anyio.create_task_group() as tasks:
            raised: list[str] = []

            async def ask() -> None:
                try:
                    await connection.request("permission", {})
                except ConnectionClosed:
                    raised.append(end)

            tasks.start_soon(ask)
            await far.receive()
            if end == "eof":
                far.wire.send_eof()
            elif end == "gone":
                await far.wire.aclose()
                connection.notify("anybody", {})
            else:
                connection.close()
                connection.close()
            await anyio.wait_all_tasks_blocked()
            assert raised == [end]
            assert connection.closed
            with pytest.raises(ConnectionClosed):
                await connection.request("permission", {})

    async def test_run_returns_when_the_writer_finds_the_client_gone(self) -> None:
        class HalfDeaf:
            """Never sees the end of the input; its writes break."""

            def __init__(self) -> None:
                self.wire = memory_pair()[0]
                self.call_soon = self.wire.call_soon
                self.aclose = self.wire.aclose
                self.wait_writable = self.wire.wait_writable

            async def pump(self, feed: Any) -> None:
                await anyio.sleep_forever()

            def write(self, data: memoryview) -> int:
                raise ConnectionClosed

        with anyio.fail_after(5):
            async with Connection(HalfDeaf(), Functions()) as connection, anyio.create_task_group() as tasks:
                tasks.start_soon(connection.run)
                await anyio.wait_all_tasks_blocked()
                connection.notify("hello", {})
            for _ in range(100):
                connection.notify("more", {"text": "x" * 10_000})
            assert not connection.full

    async def test_a_wire_that_breaks_while_it_reads_is_an_end_like_any_other(self) -> None:
        class Reset:
            def __init__(self) -> None:
                self.wire = memory_pair()[0]
                self.write = self.wire.write
                self.call_soon = self.wire.call_soon
                self.aclose = self.wire.aclose
                self.wait_writable = self.wire.wait_writable

            async def pump(self, feed: Any) -> None:
                raise ConnectionClosed

        with anyio.fail_after(5):
            async with Connection(Reset(), Functions()) as connection:
                await connection.run()
                assert connection.closed

    async def test_closing_in_a_handler_drops_the_rest_of_the_block(self) -> None:
        handler = Functions()
        async with connected(handler) as (connection, far):

            def bye(request: IncomingRequest) -> None:
                request.respond("bye")
                connection.close()

            handler.requests["bye"] = bye
            await far.send({"id": 1, "method": "bye"}, {"id": 2, "method": "ping"})
            assert (await far.receive())["result"] == "bye"
            await anyio.wait_all_tasks_blocked()
            assert far.lines == []

    async def test_a_connection_closed_before_it_runs_returns_at_once(self) -> None:
        near, _ = memory_pair()
        with anyio.fail_after(5):
            async with Connection(near, Functions()) as connection:
                connection.close()
                await connection.run()

    async def test_leaving_with_an_error_lets_the_error_through_as_it_is(self) -> None:
        near, _ = memory_pair()

        async def fail_inside() -> None:
            async with Connection(near, Functions()) as connection:
                connection.start(anyio.sleep_forever, "sleeper")
                raise LookupError("mine")

        with pytest.raises(LookupError, match="mine"):
            await fail_inside()

    async def test_leaving_because_of_a_cancellation_closes_the_wire(self) -> None:
        near, far_wire = memory_pair()
        with anyio.CancelScope() as scope:
            async with Connection(near, Functions()):
                scope.cancel()
                await anyio.sleep_forever()
        assert scope.cancelled_caught
        with pytest.raises(ConnectionClosed):
            far_wire.write(memoryview(b"x"))

    async def test_a_connection_that_is_not_entered_says_so(self) -> None:
        near, _ = memory_pair()
        with pytest.raises(RuntimeError, match="async with"):
            Connection(near, Functions()).start(anyio.sleep_forever, "x")


async def test_background_work_that_fails_is_logged_and_the_connection_lives() -> None:
    async def fail() -> None:
        raise ValueError("oops")

    with logged() as events:
        async with connected() as (connection, far):
            connection.start(fail, "housekeeping")
            await far.send({"id": 1, "method": "ping"})
            assert (await far.receive())["id"] == 1
    assert [(event["event"], event["task"]) for event in events] == [("background task failed", "housekeeping")]


async def test_the_handler_can_be_replaced_between_two_lines_of_a_block() -> None:
    first = Functions()
    async with connected(first) as (connection, far):

        def upgrade(request: IncomingRequest) -> None:
            connection.handler = Functions(ping=lambda request: request.respond("new"))
            request.respond("old")

        first.requests["upgrade"] = upgrade
        await far.send({"id": 1, "method": "upgrade"}, {"id": 2, "method": "ping"})
        assert [(await far.receive())["result"] for _ in range(2)] == ["old", "new"]


async def test_the_trace_sees_every_frame_of_both_directions() -> None:
    seen: list[tuple[str, Any]] = []
    async with connected(trace=lambda way, frame: seen.append((way, json.loads(frame)))) as (connection, far):
        connection.notify("hello", {})
        await far.receive()
        await far.send({"id": 1, "method": "ping"})
        await far.receive()
    assert [way for way, _ in seen] == ["out", "in", "out"]
    assert [frame.get("method") for _, frame in seen] == ["hello", "ping", None]


async def test_a_line_of_sixteen_mebibytes_goes_through_both_ways() -> None:
    text = "x" * (16 * 1024 * 1024)
    async with connected() as (_, far):
        await far.write(b'{"id":1,"method":"ping","params":["' + text.encode() + b'"]}\n')
        assert (await far.receive())["result"]["pong"] == [text]

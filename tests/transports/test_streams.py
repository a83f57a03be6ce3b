"""A wire over a stream whose `send` takes its time, or fails."""

from __future__ import annotations

import anyio
import pytest
from anyio.abc import ByteStream

from acp_agent.errors import ConnectionClosed
from acp_agent.transports import streams
from acp_agent.transports.streams import StreamWire

pytestmark = pytest.mark.anyio


class SlowStream(ByteStream):
    """Sends when it is let; ends its reading with the error it is given."""

    def __init__(self, ending: Exception | None = None, breaks: bool = False) -> None:
        self.sent: list[bytes] = []
        self.may_send = anyio.Event()
        self.breaks = breaks
        self.ending = ending or anyio.EndOfStream()
        self.closed = False

    async def receive(self, max_bytes: int = 65536) -> bytes:
        raise self.ending

    async def send(self, item: bytes) -> None:
        await self.may_send.wait()
        if self.breaks:
            raise anyio.BrokenResourceError
        self.sent.append(item)

    async def send_eof(self) -> None: ...

    async def aclose(self) -> None:
        self.closed = True


async def test_it_takes_so_much_and_then_waits_for_the_stream() -> None:
    stream = SlowStream()
    with anyio.fail_after(5):
        async with StreamWire(stream) as wire:
            taken = wire.write(memoryview(b"x" * 100_000))
            assert taken == 64 * 1024
            assert wire.write(memoryview(b"y")) == 0
            with anyio.move_on_after(0.01) as waiting:
                await wire.wait_writable()
            assert waiting.cancelled_caught
            stream.may_send.set()
            await wire.wait_writable()
            assert wire.write(memoryview(b"y")) == 1
    assert b"".join(stream.sent) == b"x" * taken + b"y"
    assert stream.closed


@pytest.mark.parametrize("error", [anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError])
async def test_however_a_stream_ends_it_is_the_end(error: type[Exception]) -> None:
    with anyio.fail_after(5):
        async with StreamWire(SlowStream(error())) as wire:
            await wire.pump(lambda _block: None)


async def test_a_stream_that_breaks_tells_who_writes_and_who_waits() -> None:
    stream = SlowStream(breaks=True)
    with anyio.fail_after(5):
        async with StreamWire(stream) as wire:
            wire.write(memoryview(b"x" * 100_000))
            stream.may_send.set()
            with pytest.raises(ConnectionClosed):
                await wire.wait_writable()
            with pytest.raises(ConnectionClosed):
                wire.write(memoryview(b"x"))


async def test_a_stream_that_never_sends_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_PATIENCE", 0.01)
    stream = SlowStream()
    with anyio.fail_after(5):
        async with StreamWire(stream) as wire:
            wire.write(memoryview(b"x"))
    assert stream.closed
    assert stream.sent == []


async def test_an_error_inside_comes_out_as_it_is() -> None:
    async def fail_inside() -> None:
        async with StreamWire(SlowStream()):
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await fail_inside()

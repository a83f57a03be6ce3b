from __future__ import annotations

import gzip
import sys
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import httpx2
import pytest
from anyio.abc import SocketAttribute, SocketStream

from acp_agent.errors import ToolError
from acp_agent.tools.addresses import is_public, resolve_host
from acp_agent.tools.fetch import MAX_BYTES, FetchUrl
from tests.tools.fakes import FakeCall, told

pytestmark = pytest.mark.anyio

PUBLIC = "93.184.216.34"


def fetching(
    handler: Callable[[httpx2.Request], httpx2.Response], addresses: dict[str, str] | None = None, **settings: bool
) -> FetchUrl:
    async def resolve(host: str, port: int) -> list[str]:
        return [(addresses or {}).get(host, PUBLIC)]

    return FetchUrl(transport=httpx2.MockTransport(handler), resolve=resolve, **settings)


async def test_a_page_comes_as_markdown_without_its_scripts(call: FakeCall) -> None:
    html = "<html><head><script>evil()</script></head><body><h1>Titel é</h1><p>See <a href='/x'>this</a></p></body>"
    tool = fetching(lambda request: httpx2.Response(200, html=html))
    proposal = await call.propose(tool, url="https://Example.com/page?q=1")
    assert proposal.title == "Fetch https://Example.com/page?q=1"
    assert (proposal.kind, proposal.permission, proposal.key) == ("fetch", "ask", "example.com")
    output = await tool.run(proposal, call)
    assert told(output) == "# Titel é\n\nSee [this](https://Example.com/x)"
    assert output.raw_output["status"] == 200


async def test_the_request_goes_to_the_address_that_was_checked_in_the_hosts_name(call: FakeCall) -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, text="ok")

    await call.call(fetching(answer), url="https://example.com:8443/a?b=c")
    (request,) = seen
    assert request.url.host == PUBLIC
    assert request.url.port == 8443
    assert request.headers["Host"] == "example.com:8443"
    assert request.extensions["sni_hostname"] == "example.com"
    assert request.headers.get_list("Host") == ["example.com:8443"]


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fe80::1%eth0", "::ffff:127.0.0.1", "64:ff9b::7f00:1"),
        *("100.64.0.1", "0.0.0.0", "224.0.0.1", "fd00::1", "2002:7f00:1::", "192.168.1.1", "255.255.255.255"),
    ],
)
async def test_addresses_of_this_machine_and_its_network_are_refused(call: FakeCall, address: str) -> None:
    def never(request: httpx2.Request) -> httpx2.Response:
        raise AssertionError("nothing may be sent")

    assert not is_public(address)
    with pytest.raises(ToolError, match="an address of this machine or a private network"):
        await call.call(fetching(never, {"inside.example": address}), url="http://inside.example/")


def test_addresses_of_the_internet_are_taken() -> None:
    assert all(map(is_public, [PUBLIC, "2606:4700::1111", "::ffff:8.8.8.8", "1.1.1.1"]))


async def test_each_redirect_is_checked_and_another_host_is_left_to_the_user(call: FakeCall) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        match request.headers["Host"], request.url.path:
            case "a.example", "/start":
                return httpx2.Response(301, headers={"Location": "https://www.a.example/next"})
            case "www.a.example", "/next":
                return httpx2.Response(200, text="arrived")
            case "a.example", "/away":
                return httpx2.Response(302, headers={"Location": "//b.example/"})
            case "a.example", "/loop":
                return httpx2.Response(302, headers={"Location": "/loop"})
            case "a.example", "/inside":
                return httpx2.Response(302, headers={"Location": "http://www.a.example:80/"})
            case "a.example", "/file":
                return httpx2.Response(302, headers={"Location": "file:///etc/passwd"})
        raise AssertionError(str(request.url))

    tool = fetching(answer)
    assert told(await call.call(tool, url="http://a.example/start")) == "arrived"
    away = told(await call.call(tool, url="http://a.example/away"))
    assert away == "http://a.example/away redirects to http://b.example/, another host. Fetch that if you want it."
    with pytest.raises(ToolError, match="More than 5 redirects"):
        await call.call(tool, url="http://a.example/loop")
    with pytest.raises(ToolError, match="no http or https URL"):
        await call.call(tool, url="http://a.example/file")
    with pytest.raises(ToolError, match=r"at 10\.0\.0\.1"):
        await call.call(fetching(answer, {"www.a.example": "10.0.0.1"}), url="http://a.example/inside")


@pytest.mark.parametrize(
    "url", ["ftp://a/", "file:///etc/passwd", "example.com", "http://", "http://u:p@a/", "http://a:x/", "http://[::1"]
)
async def test_what_is_no_usable_url_is_refused(call: FakeCall, url: str) -> None:
    with pytest.raises(ToolError, match="URL"):
        await call.propose(FetchUrl(), url=url)


async def test_size_type_and_status_are_said(call: FakeCall) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536

    big = httpx2.Response(200, headers={"Content-Type": "text/plain"}, content=endless())
    output = await call.call(fetching(lambda request: big), url="http://a.example/")
    assert output.raw_output["bytes"] == MAX_BYTES
    assert "only the first 4 MiB were read" in told(output)
    pdf = httpx2.Response(200, headers={"Content-Type": "application/pdf"}, content=b"%PDF")
    with pytest.raises(ToolError, match="is application/pdf, not text"):
        await call.call(fetching(lambda request: pdf), url="http://a.example/")
    missing = await call.call(fetching(lambda request: httpx2.Response(404, text="gone")), url="http://a.example/")
    assert missing.failed
    assert told(missing) == "HTTP status 404\n\ngone"


async def test_a_network_error_is_a_sentence(call: FakeCall) -> None:
    def fail(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    with pytest.raises(ToolError, match=r"http://a\.example/ could not be fetched: refused"):
        await call.call(fetching(fail), url="http://a.example/")
    with pytest.raises(ToolError, match="There is no host"):
        await resolve_host("no-such-host.invalid", 80)


async def test_a_host_that_says_nothing_is_given_up(call: FakeCall) -> None:
    async def silent(stream: SocketStream) -> None:
        async with stream:
            await anyio.sleep_forever()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
            tasks.start_soon(listener.serve, silent)
            port = listener.extra(SocketAttribute.local_port)
            with pytest.raises(ToolError, match=r"within 0\.2 s|could not be fetched"):
                await call.call(FetchUrl(allow_private=True, timeout=0.2), url=f"http://127.0.0.1:{port}/")
            tasks.cancel_scope.cancel()
        await listener.aclose()


async def test_a_real_connection_goes_to_the_resolved_address(call: FakeCall) -> None:
    requests: list[bytes] = []

    async def serve(stream: SocketStream) -> None:
        async with stream:
            requests.append(await stream.receive())
            await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
            tasks.start_soon(listener.serve, serve)
            port = listener.extra(SocketAttribute.local_port)
            tool = FetchUrl(allow_private=True, resolve=resolve)
            assert told(await call.call(tool, url=f"http://some.example:{port}/x")) == "ok"
            tasks.cancel_scope.cancel()
        await listener.aclose()
    assert b"GET /x HTTP/1.1\r\n" in requests[0]
    assert f"Host: some.example:{port}\r\n".encode() in requests[0]


@asynccontextmanager
async def serving(handler: Callable[[SocketStream], Awaitable[None]], host: str = "127.0.0.1") -> AsyncIterator[int]:
    """The port of a server that leaves each connection to `handler`."""

    async def serve(stream: SocketStream) -> None:
        with suppress(anyio.BrokenResourceError):
            async with stream:
                await handler(stream)

    async with await anyio.create_tcp_listener(local_host=host) as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield listener.extra(SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def listening(answer: bytes, host: str = "127.0.0.1") -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that says `answer` to each request and hangs up: its port, and what it was asked."""
    requests: list[bytes] = []

    async def respond(stream: SocketStream) -> None:
        requests.append(await stream.receive())
        await stream.send(answer)

    async with serving(respond, host) as port:
        yield port, requests


OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "LOCALHOST.", "127.1", "0", "0.0.0.0", "2130706433", "0177.0.0.1", "017700000001"),
        *("0x7f.0.0.1", "0x7f000001", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]"),
        *("127.0.0.1%2e", "\uff11\uff12\uff17.0.0.1", "127\u30020.0.1", "\u2460\u2461\u2466.0.0.1"),
    ],
)
async def test_this_machine_is_refused_by_whatever_name_it_is_called(call: FakeCall, host: str) -> None:
    with anyio.fail_after(5):
        async with listening(OK) as (port, requests):
            with pytest.raises(ToolError):
                await call.call(FetchUrl(timeout=3), url=f"http://{host}:{port}/")
    assert requests == []


async def test_an_address_of_this_machine_is_refused_before_anybody_is_asked(call: FakeCall) -> None:
    for host in ("127.0.0.1", "2130706433", "[::ffff:10.0.0.1]", "0x7f.1"):
        with pytest.raises(ToolError, match="an address of this machine or a private network"):
            await call.propose(FetchUrl(), url=f"http://{host}/")
        await call.propose(FetchUrl(allow_private=True), url=f"http://{host}/")
    await call.propose(FetchUrl(), url="http://localhost/")  # a name says nothing until it is looked up


async def test_a_redirect_to_this_machine_is_refused(call: FakeCall) -> None:
    """The page is at a public address as far as the tool can see; where it sends us is not."""
    with anyio.fail_after(5):
        async with listening(OK) as (inner, seen):
            for location in (
                f"http://127.0.0.1:{inner}/",
                f"//[::ffff:127.0.0.1]:{inner}/",
                f"http://localhost:{inner}/",
            ):
                redirect = httpx2.Response(302, headers={"Location": location})
                tool = FetchUrl(transport=httpx2.MockTransport(lambda request, answer=redirect: answer))
                output = await call.call(tool, url="http://93.184.216.34/")
                assert "redirects to" in told(output)
                with pytest.raises(ToolError, match="an address of this machine or a private network"):
                    await call.call(tool, url=told(output).partition("redirects to ")[2].partition(", another")[0])
    assert seen == []


async def test_what_is_allowed_by_setting_is_fetched_on_this_machine_also_by_its_sixth_protocol(call: FakeCall) -> None:
    with anyio.fail_after(5):
        async with listening(OK, "::1") as (port, _):
            assert told(await call.call(FetchUrl(allow_private=True), url=f"http://[::1]:{port}/")) == "ok"


async def test_a_page_that_drips_is_given_up_in_time(call: FakeCall) -> None:
    """No single read takes long; all of them together do."""

    async def drip(stream: SocketStream) -> None:
        await stream.receive()
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n")
        while True:
            await stream.send(b".")
            await anyio.sleep(0.01)

    with anyio.fail_after(5):
        async with serving(drip) as port:
            with pytest.raises(ToolError, match=r"did not come within 0\.3 s"):
                await call.call(FetchUrl(allow_private=True, timeout=0.3), url=f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
async def test_a_compressed_page_is_not_blown_up(call: FakeCall, pack: Callable[[bytes], bytes]) -> None:
    """What is asked for is not compressed; who compresses all the same is read up to the cap, in little memory."""
    name = pack.__module__.replace("zlib", "deflate").encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: " + name + b"\r\n"
    with anyio.fail_after(10):
        async with listening(head + b"Connection: close\r\n\r\n" + pack(b"x" * 2**26)) as (port, requests):
            tracemalloc.start()
            try:
                output = await call.call(FetchUrl(allow_private=True), url=f"http://127.0.0.1:{port}/")
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
    assert b"accept-encoding: identity" in requests[0].lower()
    assert output.raw_output["bytes"] == MAX_BYTES
    assert peak < 8 * MAX_BYTES


@pytest.mark.parametrize(("name", "body"), [("br", b"..."), ("gzip", b"no gzip"), ("gzip, gzip", b"...")])
async def test_what_cannot_be_unpacked_is_an_error_that_says_so(call: FakeCall, name: str, body: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {name}\r\nConnection: close\r\n\r\n".encode()
    with anyio.fail_after(5):
        async with listening(head + body) as (port, _):
            with pytest.raises(ToolError, match=rf"compressed as {name}"):
                await call.call(FetchUrl(allow_private=True), url=f"http://127.0.0.1:{port}/")


async def test_a_missing_extra_names_the_pip_line(call: FakeCall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "html2text", None)
    with pytest.raises(ToolError, match=r"pip install 'acp-agent\[fetch\]'"):
        await call.propose(FetchUrl(), url="https://example.com/")

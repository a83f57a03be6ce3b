"""fetch_url: a page of the public internet as text.

The rule it owns: the address that was checked is the address that is connected to. A host is resolved once for each
request, and the request goes to that very address (with the host's name for TLS and in the header); redirects are
followed by hand, each checked like the first, and only within the host that the user allowed.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import SplitResult, urljoin, urlsplit

import anyio
import anyio.to_thread
from msgspec import Meta, Struct

from acp_agent.content import ContentItem, TextContent
from acp_agent.errors import ToolError
from acp_agent.tools.addresses import is_public, literal_address, resolve_host
from acp_agent.tools.arguments import ArgumentTool, decode_arguments
from acp_agent.tools.base import Proposal, ToolContext, ToolOutput
from acp_agent.tools.text import DISPLAY_LIMIT, MODEL_LIMIT, cut_text, visible

if TYPE_CHECKING:
    import httpx2

__all__ = ["FetchUrl"]

MAX_BYTES = 4 * 1024 * 1024
TIMEOUT_SECONDS = 30.0
MAX_REDIRECTS = 5
PORTS = {"http": 80, "https": 443}
MISSING_EXTRA = "fetch_url needs an extra that is not installed: pip install 'acp-agent[fetch]'"
TEXT_TYPES = ("text/", "application/json", "application/xml", "application/javascript", "application/yaml")
HTML_TYPES = ("text/html", "application/xhtml+xml")


class FetchArguments(Struct, forbid_unknown_fields=True):
    url: Annotated[str, Meta(description="An http or https URL.", min_length=1)]


class Page(Struct):
    """What came back: `elsewhere` is set when the host sends us to another one, which is not followed."""

    url: str
    status: int
    media_type: str
    data: bytes
    encoding: str
    is_cut: bool = False
    elsewhere: str = ""


class FetchUrl(ArgumentTool):
    """A page as text, HTML as Markdown.

    `allow_private` lets it reach this machine and the local network. `timeout` is in seconds for all of it.
    `transport` and `resolve` replace the network, for tests.
    """

    name = "fetch_url"
    description = "Fetch a web page or a text file from the internet; HTML comes as Markdown."
    kind = "fetch"
    arguments = FetchArguments

    def __init__(
        self,
        *,
        allow_private: bool = False,
        timeout: float = TIMEOUT_SECONDS,
        display_limit: int = DISPLAY_LIMIT,
        model_limit: int = 2 * MODEL_LIMIT,
        transport: httpx2.AsyncBaseTransport | None = None,
        resolve: Callable[[str, int], Awaitable[list[str]]] = resolve_host,
    ) -> None:
        self.allow_private = allow_private
        self.timeout = timeout
        self.display_limit = display_limit
        self.model_limit = model_limit
        self._transport = transport
        self._resolve = resolve

    def describe(self, arguments: dict[str, Any], context: ToolContext) -> Proposal:
        url = decode_arguments(FetchArguments, arguments).url
        host = check_url(url).netloc.lower()
        return Proposal(
            title=f"Fetch {visible(url, 200)}",
            kind=self.kind,
            arguments=arguments,
            key=host,
            scope=f"fetching any page of {host}",
        )

    async def prepare(self, proposal: Proposal, context: ToolContext) -> None:
        """Nobody is asked for what is refused anyway; a name is looked up only when the user agreed."""
        host = check_url(decode_arguments(FetchArguments, proposal.arguments).url).hostname or ""
        if address := literal_address(host):
            self._check_addresses(host, [address])
        await anyio.to_thread.run_sync(_import_extra)

    async def run(self, proposal: Proposal, context: ToolContext) -> ToolOutput:
        import httpx2

        url = decode_arguments(FetchArguments, proposal.arguments).url
        try:
            with anyio.fail_after(self.timeout):
                page = await self._fetch(url)
        except TimeoutError as error:
            raise ToolError(f"{url} did not come within {self.timeout:g} s.") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise ToolError(f"{url} could not be fetched: {error or type(error).__name__}.") from error
        return await self._answer(page)

    async def _fetch(self, url: str) -> Page:
        """The page at `url`, redirects within its host followed."""
        first = check_url(url)
        async with await anyio.to_thread.run_sync(self._make_client) as client:
            for _ in range(MAX_REDIRECTS + 1):
                page = await self._fetch_one(client, url)
                if not page.elsewhere:
                    return page
                url = page.elsewhere
                if not _same_site(first, check_url(url)):
                    return page
        raise ToolError(f"More than {MAX_REDIRECTS} redirects, the last one to {url}.")

    def _make_client(self) -> httpx2.AsyncClient:
        """Called in a thread: reading the certificates takes a tenth of a second, the first time half a second."""
        import httpx2

        return httpx2.AsyncClient(transport=self._transport, trust_env=False, timeout=self.timeout)

    async def _fetch_one(self, client: httpx2.AsyncClient, url: str) -> Page:
        parts = check_url(url)
        target = client.build_request("GET", url)
        host = target.url.raw_host.decode("ascii")
        address = await self._address_of(host, port_of(parts))
        headers = {"Host": target.headers["Host"], "Accept-Encoding": "identity", "User-Agent": "acp-agent"}
        request = client.build_request(
            "GET",
            target.url.copy_with(host=address),
            headers=headers,
            extensions={"sni_hostname": host},
        )
        response = await client.send(request, stream=True, follow_redirects=False)
        try:
            location = response.headers.get("location", "") if response.is_redirect else ""
            data, is_cut = (b"", False) if location else await _read_capped(response)
            return Page(
                url=url,
                status=response.status_code,
                media_type=response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower(),
                data=data,
                encoding=response.charset_encoding or "utf-8",
                is_cut=is_cut,
                elsewhere=urljoin(url, location) if location else "",
            )
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                await response.aclose()

    async def _address_of(self, host: str, port: int) -> str:
        """The one address to connect to. One that is not public among them makes the whole host unfit."""
        addresses = await self._resolve(host, port)
        self._check_addresses(host, addresses)
        return addresses[0].partition("%")[0]

    def _check_addresses(self, host: str, addresses: Sequence[str]) -> None:
        private = [address for address in addresses if not is_public(address)]
        if private and not self.allow_private:
            raise ToolError(f"{host} is at {private[0]}, an address of this machine or a private network.")

    async def _answer(self, page: Page) -> ToolOutput:
        if page.elsewhere:
            text = f"{page.url} redirects to {page.elsewhere}, another host. Fetch that if you want it."
            return ToolOutput.of_text(text, raw_output={"status": page.status})
        if not page.media_type.startswith(TEXT_TYPES) and not page.media_type.endswith(("+json", "+xml")):
            raise ToolError(f"{page.url} is {page.media_type or 'of unknown type'}, not text.")
        text = await anyio.to_thread.run_sync(_text_of, page, abandon_on_cancel=True)
        if page.is_cut:
            text += f"\n[… only the first {MAX_BYTES // 1024 // 1024} MiB were read …]"
        if page.status >= 400:
            text = f"HTTP status {page.status}\n\n{text}"
        return ToolOutput(
            content=[ContentItem(TextContent(cut_text(text, self.display_limit)))],
            told=[TextContent(cut_text(text, self.model_limit))],
            raw_output={"status": page.status, "url": page.url, "mimeType": page.media_type, "bytes": len(page.data)},
            failed=page.status >= 400,
        )


def check_url(url: str) -> SplitResult:
    """The parts of a URL that may be fetched. Raises `ToolError`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ToolError(f"{url!r} is no URL: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ToolError(f"{url!r} is no http or https URL.")
    if parts.username is not None or parts.password is not None:
        raise ToolError("A URL with a user name or password in it is not fetched.")
    return parts


def _same_site(first: SplitResult, other: SplitResult) -> bool:
    """Whether a redirect stays with what the user allowed: the host, with or without `www.`, and never to less TLS."""
    names = {(parts.hostname or "").removeprefix("www.") for parts in (first, other)}
    downgrade = first.scheme == "https" and other.scheme == "http"
    usual = all(port_of(parts) == PORTS[parts.scheme] for parts in (first, other))
    return len(names) == 1 and not downgrade and (usual or first.port == other.port)


def port_of(parts: SplitResult) -> int:
    return parts.port or PORTS[parts.scheme]


async def _read_capped(response: httpx2.Response) -> tuple[bytes, bool]:
    """The first `MAX_BYTES` of the page, and whether there are more. Nothing is unpacked beyond them."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    body = Body(encoding)
    with anyio.CancelScope() as reading:  # cancelled, the client cleans up behind itself; left alone, it does not
        async with aclosing(response.aiter_bytes() if encoding == "identity" else response.aiter_raw()) as blocks:
            async for block in blocks:
                if not body.take(block):
                    if reading.cancel_called:
                        break
                    reading.cancel()
    if body.is_broken:
        raise ToolError(f"The page is compressed as {encoding}, which cannot be read.")
    return bytes(body.data[:MAX_BYTES]), len(body.data) > MAX_BYTES


class Body:
    """What came of a page so far, unpacked. We ask for pages as they are; some servers pack them still."""

    def __init__(self, encoding: str) -> None:
        self.data = bytearray()
        self.is_broken = encoding not in ("identity", "gzip", "x-gzip", "deflate")
        self._unpack = None if encoding == "identity" else zlib.decompressobj(zlib.MAX_WBITS | 32).decompress

    def take(self, block: bytes) -> bool:
        """Add a block; whether another one is wanted."""
        room = MAX_BYTES + 1 - len(self.data)
        if room <= 0 or self.is_broken:
            return False
        try:
            self.data += self._unpack(block, room) if self._unpack else block
        except zlib.error:
            self.is_broken = True
        return not self.is_broken and len(self.data) <= MAX_BYTES


def _import_extra() -> None:
    try:
        import html2text
        import httpx2
    except ImportError as error:
        raise ToolError(MISSING_EXTRA) from error
    del html2text, httpx2


def _text_of(page: Page) -> str:
    """The page as text; called in a thread, a large one takes a while."""
    import html2text

    try:
        text = page.data.decode(page.encoding, errors="replace")
    except LookupError:
        text = page.data.decode(errors="replace")
    if page.media_type not in HTML_TYPES:
        return text
    converter = html2text.HTML2Text(baseurl=page.url, bodywidth=0)
    converter.ignore_images = True
    return converter.handle(text).strip()

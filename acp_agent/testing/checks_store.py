"""Does a `SessionStore` keep the contract that sessions rely on? Run this on your own.

    @pytest.mark.anyio
    async def test_my_store_keeps_the_contract(tmp_path: Path) -> None:
        await check_session_store(lambda: MyStore(tmp_path))

What is checked:

- **headers**: given back as they were put, the last one stands, and nobody else's changes show in them;
- **journals**: every kind of event comes back equal and in order; sessions do not mix; a reading has all that was
  appended before the call and nothing that came after; it can be left early;
- **lists**: the newest first, ties by id, by `cwd`, in pages that show each session exactly once while others come;
  a cursor that the store did not give is a `ValueError`;
- **deletion**: header and journal are gone, and a turn that ends later brings nothing back;
- **what is not there**: reads as nothing, takes no events, and can be deleted;
- **ids**: paths, quotes, other alphabets, long ones, are just ids;
- **side by side**: many tasks that append and commit at once;
- **claims**: taken twice by one process, given back twice, all the same;
- **the end**: closing twice is fine, and writing afterwards raises nothing;
- **durability** (when `durable`): the next store has all that was kept, and nothing that was deleted.

A broken rule is an `AssertionError` with a sentence that says which. Any other exception is the store's own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from secrets import token_hex

import anyio
from anyio.lowlevel import checkpoint
from msgspec import structs

from acp_agent.content import (
    ContentBlock,
    ContentItem,
    Diff,
    EmbeddedResource,
    ImageContent,
    Location,
    PlanEntry,
    ResourceLink,
    TerminalItem,
    TextContent,
)
from acp_agent.events import (
    Choice,
    Command,
    CommandsChanged,
    CompactionChanged,
    ConfigOption,
    Event,
    HistoryAdded,
    MessageChunk,
    ModeChanged,
    NoticeRaised,
    OptionsChanged,
    PlanChanged,
    PromptInserted,
    SessionInfoChanged,
    ToolCallChanged,
    ToolCallOpened,
    TurnEnded,
    UsageChanged,
)
from acp_agent.history import AssistantMessage, ToolResult, ToolUse, UserMessage
from acp_agent.store.base import SessionHeader, SessionStore

__all__ = ["check_session_store", "sample_events"]

LONG_AGO = "2026-01-01T00:00:00Z"


async def check_session_store(make_store: Callable[[], SessionStore], *, timeout: float = 10.0) -> None:
    """Raise `AssertionError` if a store of `make_store` breaks the contract of `SessionStore`.

    `make_store` makes a store on the same place each time; it need not be empty, and keeps what the checks leave in
    it. `timeout` is how many seconds each check may take; `TimeoutError` says that one took longer.
    """
    for check in _CHECKS:
        store = make_store()
        with anyio.fail_after(timeout):
            try:
                await check(store, f"{check.__name__}-{token_hex(8)}")
            finally:
                await store.aclose()
    store = make_store()
    with anyio.fail_after(timeout):
        await _check_the_end(store, token_hex(8))
    if store.durable:
        with anyio.fail_after(timeout):
            await _check_durability(make_store, token_hex(8))


def sample_events() -> list[Event]:
    """One event of each kind that is kept, and of each shape that is easily lost on the way."""
    text = TextContent("Zwölf Boxkämpfer, 十二, 🥊\x00\n")
    blocks: list[ContentBlock] = [text, ImageContent("aGk=", "image/png"), ResourceLink("a.py", "file:///a.py")]
    use = ToolUse("edit_file", {"path": "/w/a.py", "lines": [1, 2.5, None, True], "": {}}, id="1", call_id="call-1")
    return [
        PromptInserted("m1", [*blocks, EmbeddedResource("file:///b", text="b")]),
        HistoryAdded(UserMessage("m1", [text])),
        MessageChunk("thought", "m2", TextContent("hm")),
        MessageChunk("agent", "m3", text),
        ToolCallOpened("call-1", "Edit a.py", "edit_file", "edit", locations=[Location("/w/a.py", 3)]),
        ToolCallChanged("call-1", "in_progress"),
        ToolCallChanged(
            "call-1", "completed", content=[Diff("/w/a.py", "new", "old"), ContentItem(text)], raw_output={"n": None}
        ),
        ToolCallChanged("call-2", "failed", title="", content=[TerminalItem("t1")], locations=[], raw_output=None),
        PlanChanged([PlanEntry("look", "high", "completed"), PlanEntry("leap")]),
        ModeChanged("plan"),
        OptionsChanged([ConfigOption("mode", "Mode", "ask", [Choice("ask", "Ask")]), ConfigOption("web", "Web", True)]),
        CommandsChanged([Command("plan", "Make a plan", "what for")]),
        SessionInfoChanged(title=None),
        SessionInfoChanged(updated_at=LONG_AGO),
        UsageChanged(10, 200_000, cost=0.25),
        NoticeRaised("warning", "Mind the gap"),
        CompactionChanged("c1", "completed", summary="It was long."),
        HistoryAdded(AssistantMessage("m3", "text", "hm", [use], native={"openai": [{"id": "x"}]})),
        HistoryAdded(ToolResult("call-1", "edit_file", [text], failed=True)),
        HistoryAdded(None, replaces=True),
        TurnEnded("end_turn"),
        TurnEnded(error="The provider is overloaded."),
    ]


def _header(session_id: str, *, cwd: str = "/w", updated_at: str = LONG_AGO) -> SessionHeader:
    return SessionHeader(session_id=session_id, cwd=cwd, created_at=LONG_AGO, updated_at=updated_at)


def _chunk(text: str) -> Event:
    return MessageChunk("agent", "m", TextContent(text))


async def _journal(store: SessionStore, session_id: str) -> list[Event]:
    async with aclosing(store.read_journal(session_id)) as events:
        return [event async for event in events]


async def _list(store: SessionStore, cwd: str | None, limit: int) -> list[str]:
    """The ids of all sessions, page by page."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.list_headers(cwd=cwd, cursor=cursor, limit=limit)
        assert len(page.headers) <= limit, f"A page of {limit} headers was asked for, and has {len(page.headers)}"
        found += [header.session_id for header in page.headers]
        cursor = page.next_cursor
        if cursor is None:
            return found


async def _check_headers(store: SessionStore, name: str) -> None:
    header = SessionHeader(
        session_id=name,
        cwd="/w",
        created_at=LONG_AGO,
        updated_at=LONG_AGO,
        roots=["/w", "/lib"],
        title="Zwölf 🥊",
        mode="plan",
        options={"web": True, "model": "big"},
        used=1,
        size=2,
        cost=0.5,
    )
    kept = structs.replace(header, roots=["/w", "/lib"], options=dict(header.options))
    store.put_header(header)
    header.roots.append("/later")
    header.options["later"] = True
    got = await store.get_header(name)
    assert got == kept, "A header comes back as it was when it was put"
    got.title = "changed by its reader"
    got.options.clear()
    assert await store.get_header(name) == kept, "What a reader does to its header is nobody else's business"
    store.put_header(_header(name, cwd="/other"))
    await store.commit()
    assert await store.get_header(name) == _header(name, cwd="/other"), "A header takes the place of the one before"


async def _check_journals(store: SessionStore, name: str) -> None:
    events = sample_events()
    one, other = f"{name}-one", f"{name}-other"
    store.put_header(_header(one))
    store.put_header(_header(other))
    for event in events:
        store.append(one, [event])
    store.append(other, list(reversed(events)))
    store.append(one, [])
    store.append(one, events)
    store.put_header(_header(one, cwd="/moved"))
    assert await _journal(store, one) == events * 2, "A journal has all that was appended, equal and in order"
    assert await _journal(store, other) == list(reversed(events)), "A journal has its own session's events only"


async def _check_readings(store: SessionStore, name: str) -> None:
    store.put_header(_header(name))
    texts = [_chunk(str(number)) for number in range(2000)]
    store.append(name, texts)
    reading = store.read_journal(name)
    store.append(name, [_chunk("said after the call")])
    seen = [event async for event in reading]
    assert seen == texts, "A reading has what was appended before the call, and nothing that came after"
    async with aclosing(store.read_journal(name)) as left:
        async for event in left:
            assert event == texts[0]
            break
    assert len(await _journal(store, name)) == 2001, "A reading that was left early does no harm"


async def _check_lists(store: SessionStore, name: str) -> None:
    times = ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"]
    for number, updated_at in enumerate(times):
        store.put_header(_header(f"{name}-{number}", cwd=name, updated_at=updated_at))
        store.put_header(_header(f"{name}-elsewhere-{number}", cwd=f"{name}/sub", updated_at=updated_at))
    order = [f"{name}-{number}" for number in (1, 0, 2, 3)]
    for limit in (1, 2, 3, 4, 100):
        assert await _list(store, name, limit) == order, (
            "A list is by `updated_at`, newest first, ties by id, of one cwd"
        )
    store.put_header(_header(f"{name}-slash", cwd=f"/{name}/"))
    for written in (f"/{name}", f"/{name}/", f"/{name}/./"):
        assert await _list(store, written, 10) == [f"{name}-slash"], "A folder is the same however its path is written"
    everywhere = [session_id for session_id in await _list(store, None, 1000) if session_id.startswith(name)]
    assert len(everywhere) == 9, "Without a cwd, sessions of every cwd are listed"
    await _check_list_while_it_changes(store, name, order)
    for cursor in ("", "no cursor", "====", "bm8=", "🙂"):
        try:
            await store.list_headers(cursor=cursor)
        except ValueError:
            continue
        raise AssertionError(f"The cursor {cursor!r} was not given by the store, and must be a ValueError")


async def _check_list_while_it_changes(store: SessionStore, name: str, order: list[str]) -> None:
    first = await store.list_headers(cwd=name, limit=2)
    assert first.next_cursor is not None, "A page that is not the last says where the next begins"
    store.put_header(_header(f"{name}-new", cwd=name, updated_at="2026-01-09T00:00:00Z"))
    await store.delete(order[1])
    second = await store.list_headers(cwd=name, cursor=first.next_cursor, limit=2)
    shown = [header.session_id for header in (*first.headers, *second.headers)]
    assert shown == order, "A session that comes or goes between two pages moves no other"


async def _check_deletion(store: SessionStore, name: str) -> None:
    store.put_header(_header(name, cwd=name))
    store.append(name, [_chunk("before")])
    await store.delete(name)
    store.append(name, [_chunk("a turn that ends later")])
    store.put_header(_header(name, cwd=name))
    store.append(name, [_chunk("and its end")])
    await store.commit()
    await _check_absent(store, name)
    await store.delete(name)


async def _check_absent(store: SessionStore, name: str) -> None:
    assert await store.get_header(name) is None, "A deleted session has no header"
    assert await _journal(store, name) == [], "A deleted session has no journal"
    assert await _list(store, name, 10) == [], "A deleted session is not listed"


async def _check_what_is_not_there(store: SessionStore, name: str) -> None:
    await store.commit()
    assert await store.get_header(name) is None, "A session that is not there has no header"
    assert await _journal(store, name) == [], "A session that is not there has no journal"
    store.append(name, [_chunk("to nobody")])
    await store.commit()
    store.put_header(_header(name))
    assert await _journal(store, name) == [], "A session takes no events before its header is put"
    await store.delete(f"{name}-never")


async def _check_ids(store: SessionStore, name: str) -> None:
    ids = ["../../../escape", "/etc/passwd", "'; DROP TABLE sessions; --", "ü 十 🥊", "x" * 4000, "%", "_", "a\nb", "A"]
    names = [f"{name}{session_id}" for session_id in ids] + [f"../{name}", name]
    for number, session_id in enumerate(names):
        store.claim(session_id)
        store.put_header(_header(session_id, cwd=name))
        store.append(session_id, [_chunk(str(number))])
        store.release(session_id)
    for number, session_id in enumerate(names):
        header = await store.get_header(session_id)
        assert header is not None, f"The id {session_id[:40]!r} is an id like others"
        assert await _journal(store, session_id) == [_chunk(str(number))], f"So it has its own journal: {session_id!r}"
    assert await _list(store, name, 2) == sorted(names), "Ids are listed in the order of their characters"


async def _check_side_by_side(store: SessionStore, name: str) -> None:
    async def talk(session_id: str) -> None:
        store.put_header(_header(session_id))
        for number in range(40):
            store.append(session_id, [_chunk(f"{session_id} {number}")])
            if number % 8 == 0:
                await store.commit()
            else:
                await checkpoint()
        await store.commit()

    names = [f"{name}-{number}" for number in range(10)]
    async with anyio.create_task_group() as tasks:
        for session_id in names:
            tasks.start_soon(talk, session_id)
    for session_id in names:
        expected = [_chunk(f"{session_id} {number}") for number in range(40)]
        assert await _journal(store, session_id) == expected, "Sessions that are written side by side keep their order"


async def _check_claims(store: SessionStore, name: str) -> None:
    store.claim(name)
    store.claim(name)
    store.put_header(_header(name))
    store.release(name)
    store.release(name)
    assert await store.get_header(name) is not None, "What was said of a session that was given back is kept"
    store.claim(name)


async def _check_the_end(store: SessionStore, name: str) -> None:
    store.put_header(_header(name))
    await store.aclose()
    await store.aclose()
    store.put_header(_header(name))
    store.append(name, [_chunk("too late")])
    store.release(name)
    await store.commit()


async def _check_durability(make_store: Callable[[], SessionStore], name: str) -> None:
    first = make_store()
    first.put_header(_header(name, cwd=name))
    first.put_header(_header(f"{name}-deleted", cwd=f"{name}-deleted"))
    first.append(name, sample_events())
    await first.delete(f"{name}-deleted")
    await first.aclose()  # keeps what is not kept yet
    second = make_store()
    try:
        assert await second.get_header(name) == _header(name, cwd=name), "A durable store keeps headers"
        assert await _journal(second, name) == sample_events(), "A durable store keeps journals"
        assert await _list(second, name, 10) == [name], "A durable store lists what it kept"
        await _check_absent(second, f"{name}-deleted")
    finally:
        await second.aclose()


_CHECKS: tuple[Callable[[SessionStore, str], Awaitable[None]], ...] = (
    _check_headers,
    _check_journals,
    _check_readings,
    _check_lists,
    _check_deletion,
    _check_what_is_not_there,
    _check_ids,
    _check_side_by_side,
    _check_claims,
)

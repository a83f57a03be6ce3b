"""The store in memory does not grow with sessions that are over."""

from __future__ import annotations

import pytest

from acp_agent.store.memory import MemoryStore
from tests.store.tools import chunk, header, ids, texts

pytestmark = pytest.mark.anyio


async def test_the_sessions_that_were_given_back_first_are_forgotten_first() -> None:
    store = MemoryStore(closed=2)
    for name in ("open", "a", "b", "c"):
        store.claim(name)
        store.put_header(header(name))
        store.append(name, [chunk(name)])
    for name in ("b", "a"):
        store.release(name)
    store.claim("b")
    store.release("b")
    store.release("c")
    assert sorted(await ids(store)) == ["b", "c", "open"]
    assert (await texts(store, "a"), await texts(store, "b")) == ([], ["b"])

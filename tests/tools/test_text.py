from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_agent.tools.text import DISPLAY_LIMIT, MARKER_BYTES, cut_text


@given(st.text(), st.integers(20, 400), st.integers(1, 40))
def test_a_cut_text_has_its_size_as_json_and_keeps_both_ends(text: str, limit: int, times: int) -> None:
    text *= times
    cut = cut_text(text, limit)
    assert len(msgspec.json.encode(cut)) <= limit + MARKER_BYTES + 2
    if cut != text:
        head, _, rest = cut.partition("\n[… ")
        missing, _, tail = rest.partition(" bytes left out …]\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len((head + tail).encode()) + int(missing.replace(",", "")) == len(text.encode())


@pytest.mark.parametrize("text", ["y\n" * 100_000, '"' * 100_000, "汉字" * 50_000, "\x01" * 100_000])
def test_no_output_makes_a_line_that_an_old_client_cannot_read(text: str) -> None:
    assert DISPLAY_LIMIT - 1024 < len(msgspec.json.encode(cut_text(text, DISPLAY_LIMIT))) < 60 * 1024

"""The whole of the kit's version 1 is here: each row once, in its tier."""

from __future__ import annotations

from collections import Counter
from types import ModuleType

from tests.conformance import test_handshake, test_sessions, test_turns
from tests.conformance.kit import Row


def rows_of(module: ModuleType) -> list[Row]:
    marks = [mark for test in vars(module).values() for mark in getattr(test, "pytestmark", [])]
    return [param.values[0] for mark in marks if mark.name == "parametrize" for param in mark.args[1]]


def test_every_row_of_version_1_is_one_test() -> None:
    rows = [row for module in (test_handshake, test_sessions, test_turns) for row in rows_of(module)]
    assert len({row.id for row in rows}) == len(rows) == 56
    tiers = Counter(row.tier for row in rows)
    assert tiers == {"MANDATORY": 21, "CAPABILITY": 19, "ADVISORY": 12, "INFORMATIONAL": 4}

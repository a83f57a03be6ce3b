"""Each demand of the protocol is proved by a test, and each mark on a test names a demand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).parent


def marks() -> Iterator[tuple[str, str]]:
    """The id of each mark, and the test that bears it."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for each in node.decorator_list:
                    if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "requirement":
                        assert each.args, f"{path}: {node.name} is bound to nothing"
                        yield from ((ast.literal_eval(argument), f"{path.name}::{node.name}") for argument in each.args)


def test_every_requirement_has_a_test() -> None:
    proved = {requirement_id for requirement_id, _ in marks()}
    assert [entry.id for entry in REQUIREMENTS if entry.id not in proved] == []


def test_every_mark_names_a_requirement() -> None:
    known = {entry.id for entry in REQUIREMENTS}
    assert [f"{test}: {requirement_id}" for requirement_id, test in marks() if requirement_id not in known] == []


def test_an_entry_is_there_once_and_says_where_it_comes_from() -> None:
    ids = [entry.id for entry in REQUIREMENTS]
    assert len(set(ids)) == len(ids)
    assert all(entry.source.startswith("https://agentclientprotocol.com/protocol/") for entry in REQUIREMENTS)
    assert all(entry.text.endswith(".") for entry in REQUIREMENTS)

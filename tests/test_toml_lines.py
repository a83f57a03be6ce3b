"""Where each key of a TOML text stands."""

from __future__ import annotations

import tomllib

import pytest

from acp_agent.toml_lines import KeyPath, line_of, lines_of_keys

TEXT = r'''
# [[turns]] in a comment
title = "x"          # = [ {
"quoted.key" = 'it # is [ { "'
dotted.a . "b c" = 1979-05-27 07:32:00
nested = [[1, 2], [
  3, [4],
]]
long = """
[[turns]]
a = 1 \""" ]
"""

[[turns]]
  [[turns.replies]]
  steps = [
    { type = "text", text = """two
lines""" },
    # { }
    { type = "sleep", arguments = { deep = [ { a = 1 },
      { b = -inf } ] } },
  ]
  [[turns.replies]]
  after = "failed"
[[turns]]
replies = [{ after = "x" },
           { after = "y" }]
  [turns.table]
  key = true

[plain . "dotted.header"]
last = 0x1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 'title = "x"'),
        (("quoted.key",), '"quoted.key"'),
        (("dotted",), "dotted.a"),
        (("dotted", "a", "b c"), "dotted.a"),
        (("nested", 0, 1), "nested ="),
        (("nested", 1), "nested ="),
        (("nested", 1, 0), "3, [4],"),
        (("nested", 1, 1, 0), "3, [4],"),
        (("long",), "long ="),
        (("turns", 0, "replies", 0, "steps"), "steps = ["),
        (("turns", 0, "replies", 0, "steps", 0, "text"), '{ type = "text"'),
        (("turns", 0, "replies", 0, "steps", 1), '{ type = "sleep"'),
        (("turns", 0, "replies", 0, "steps", 1, "arguments", "deep", 0, "a"), '{ type = "sleep"'),
        (("turns", 0, "replies", 0, "steps", 1, "arguments", "deep", 1, "b"), "{ b = -inf"),
        (("turns", 0, "replies", 1, "after"), 'after = "failed"'),
        (("turns", 1, "replies", 0, "after"), 'replies = [{ after = "x"'),
        (("turns", 1, "replies", 1, "after"), '{ after = "y"'),
        (("turns", 1, "table", "key"), "key = true"),
        (("plain", "dotted.header", "last"), "last = 0x1"),
    ],
)
def test_a_key_is_found_on_its_line(path: KeyPath, line: str) -> None:
    assert TEXT.splitlines()[lines_of_keys(TEXT)[path] - 1].strip().startswith(line)


def test_a_table_is_found_on_the_line_of_its_header() -> None:
    numbers = [number for number, line in enumerate(TEXT.splitlines(), 1) if line == "[[turns]]"]
    lines = lines_of_keys(TEXT)
    assert [lines["turns", 0], lines["turns", 1]] == numbers[1:]  # the first is inside a string
    assert lines["turns", 0, "replies", 0] == numbers[1] + 1


def test_every_value_that_tomllib_reads_has_a_line_and_nothing_else_has() -> None:
    def paths(value: object, path: KeyPath) -> set[KeyPath]:
        found = {path} if path else set()
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            found |= paths(item, (*path, key))
        return found

    assert set(lines_of_keys(TEXT)) == paths(tomllib.loads(TEXT), ())


def test_a_key_that_is_missing_is_on_the_line_of_what_it_is_missing_from() -> None:
    lines = lines_of_keys(TEXT)
    step: KeyPath = ("turns", 0, "replies", 0, "steps", 1)
    assert line_of((*step, "seconds"), lines) == line_of(step, lines) == lines[step]
    assert line_of(("missing",), lines) is None


def test_windows_line_ends_do_not_move_a_line() -> None:
    assert lines_of_keys("a = 1\r\n\r\n[b]\r\nc = 2\r\n")["b", "c"] == 4


@pytest.mark.parametrize("quotes", ['"', "'", '"""', "'''"])
def test_what_is_in_a_string_is_no_structure(quotes: str) -> None:
    inside = "[x] { # = [" + ("\n[[turns]]\ny = 1\n" if len(quotes) == 3 else "")
    text = f"a = {quotes}{inside}{quotes} # end\nb = [ {quotes}]{quotes} ]"
    assert set(lines_of_keys(text)) == {("a",), ("b",), ("b", 0)}
    assert lines_of_keys(text)["b", 0] == text.count("\n") + 1

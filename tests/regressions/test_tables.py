"""The docstrings here name tests elsewhere that prove a kind of failure already: they are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REFERENCE = re.compile(r"^ +(\S+\.py)::(test_\w+)$", re.MULTILINE)
MODULES = sorted(path for path in HERE.glob("test_*.py") if path.name != Path(__file__).name)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_what_a_docstring_names_is_a_test(module: Path) -> None:
    for path, name in REFERENCE.findall(ast.get_docstring(ast.parse(module.read_text()), clean=False) or ""):
        tree = ast.parse((HERE.parent / path).read_text())
        assert name in {
            node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }

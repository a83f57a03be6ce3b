"""The shape of the code: imports go down only, in no ring; modules and functions stay small."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "acp_agent"

# From the top to the bottom. A unit may import units of lower layers, and nothing of its own layer but itself.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("testing",),
    ("agent",),
    ("program",),
    ("server",),
    ("surfaces", "settings"),
    ("mcp", "runtime"),
    ("protocol", "jsonrpc", "tools", "models", "store"),
    ("transports", "events", "credentials"),
    ("history",),
    ("content", "toml_text"),
    ("errors", "json_schema", "log", "version", "paths", "toml_lines"),
)
# Below the layers' order, what a layer must not know although it could see it.
STRANGERS = {
    "jsonrpc": {"protocol", "content", "events", "history"},
    "protocol": {"jsonrpc", "events", "history"},
    "runtime": {"protocol", "jsonrpc", "transports"},
    "tools": {"protocol", "jsonrpc", "transports", "models", "store"},
    "models": {"protocol", "jsonrpc", "transports", "store"},
    "mcp": {"protocol", "jsonrpc", "runtime"},
}
RANK = {unit: rank for rank, units in enumerate(reversed(LAYERS)) for unit in units}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        yield name, ast.parse(path.read_text())


def imports(tree: ast.Module) -> Iterator[str]:
    """The modules of this package that `tree` imports, at any depth, but for those named only for type checkers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("acp_agent"):
            base = node.module.removeprefix("acp_agent").removeprefix(".")
            for alias in node.names:
                candidate = f"{base}.{alias.name}".strip(".")
                yield candidate if is_module(candidate) else base
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("acp_agent."):
                    yield alias.name.removeprefix("acp_agent.")


def is_module(name: str) -> bool:
    path = PACKAGE.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def unit(module: str) -> str:
    return module.split(".")[0]


def type_only(tree: ast.Module) -> set[str]:
    """What is imported under `if TYPE_CHECKING:` is never loaded."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            found.update(imports(ast.Module(node.body, [])))
    return found


def edges() -> dict[str, set[str]]:
    return {
        name: set(imports(tree)) - type_only(tree)
        for name, tree in modules()
        if name  # the package itself only names what others import from it
    }


def test_every_unit_has_a_layer() -> None:
    assert {unit(name) for name, _ in modules() if name} == set(RANK) & {unit(name) for name, _ in modules() if name}


def test_imports_go_down_only() -> None:
    upward = [
        f"{module} imports {imported}"
        for module, targets in edges().items()
        for imported in targets
        if imported and unit(imported) != unit(module) and RANK[unit(imported)] >= RANK[unit(module)]
    ]
    assert upward == []


def test_layers_that_must_not_know_each_other_do_not() -> None:
    known = [
        f"{module} imports {imported}"
        for module, targets in edges().items()
        for imported in targets
        if unit(imported) in STRANGERS.get(unit(module), set())
    ]
    assert known == []


def test_the_connection_sees_of_a_transport_only_the_seam() -> None:
    seen = {
        imported
        for module, targets in edges().items()
        for imported in targets
        if unit(module) == "jsonrpc" and unit(imported) == "transports"
    }
    assert seen <= {"transports.base"}


def test_no_modules_import_each_other_in_a_ring() -> None:
    graph = edges()
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module in done:
            return
        for target in sorted(graph.get(module, ())):
            visit(target, (*path, module))
        done.add(module)

    for module in sorted(graph):
        visit(module, ())


def test_no_module_is_over_450_lines() -> None:
    sizes = {path.name: len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {name: size for name, size in sizes.items() if size > 450} == {}


def test_no_function_is_over_50_lines() -> None:
    long = [
        f"{name}.{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= 50
    ]
    assert long == []


def test_folders_are_two_levels_deep_and_hold_at_least_three_files() -> None:
    folders = [path for path in PACKAGE.rglob("*") if path.is_dir() and path.name != "__pycache__"]
    deep = [path for path in folders if len(path.relative_to(PACKAGE).parts) > 1 and path.parent.name != "protocol"]
    small = [path for path in folders if len([file for file in path.iterdir() if file.is_file()]) < 3]
    assert (deep, [path for path in small if path.name != "__pycache__"]) == ([], [])

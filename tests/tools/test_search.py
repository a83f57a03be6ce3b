from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from acp_agent.content import Location
from acp_agent.errors import ToolError
from acp_agent.runtime.workspace import DiskWorkspace
from acp_agent.tools.expressions import compile_expression, may_explode
from acp_agent.tools.search import FindFiles, SearchText, run_in_slices
from tests.tools.fakes import FakeCall, shown, told

pytestmark = pytest.mark.anyio


def make(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


async def find(call: FakeCall, pattern: str) -> list[str]:
    return told(await call.call(FindFiles(), pattern=pattern)).split("\n")


async def test_files_are_found_by_name_at_any_depth_and_by_path(call: FakeCall, root: Path) -> None:
    make(root, {"a.py": "", "src/b.py": "", "src/c.ts": "", "src/deep/d.tsx": "", ".github/e.yml": ""})
    assert await find(call, "*.py") == ["a.py", "src/b.py"]
    assert await find(call, "src/**/*.{ts,tsx}") == ["src/c.ts", "src/deep/d.tsx"]
    assert await find(call, "/*.py") == ["a.py"]
    assert await find(call, f"{root}/src/*.py") == ["src/b.py"]
    assert await find(call, "*.yml") == [".github/e.yml"]
    assert await find(call, "*.rs") == ["No file matches *.rs."]


async def test_ignore_files_count_also_nested_ones(call: FakeCall, root: Path) -> None:
    make(
        root,
        {
            ".gitignore": "*.log\n/build/\n!keep.log\n[\n",
            "a.log": "x",
            "keep.log": "x",
            "build/out.txt": "x",
            "sub/build/in.txt": "x",
            "sub/.gitignore": "*.txt\n!sub.txt\n",
            "sub/sub.txt": "x",
            "sub/b.log": "x",
            ".git/config": "x",
            "node_modules/x/index.js": "x",
            ".ignore": "big.dat",
            "big.dat": "x",
            ".git/info/exclude": "mine.md",
            "mine.md": "x",
        },
    )
    assert await find(call, "*") == [".gitignore", ".ignore", "keep.log", "sub/.gitignore", "sub/sub.txt"]
    inside = told(await call.call(SearchText(), pattern="^x", path="sub"))
    assert inside == "sub/sub.txt:1: x"


async def test_who_names_an_ignored_folder_means_it(call: FakeCall, root: Path) -> None:
    make(root, {".gitignore": "build/\n*.o\n", "build/a.txt": "x", "build/b.o": "x", "src/c.o": "x", "src/d.txt": "x"})
    assert told(await call.call(SearchText(), pattern="x", path="build")) == "build/a.txt:1: x\nbuild/b.o:1: x"
    assert told(await call.call(SearchText(), pattern="x", path="src")) == "src/d.txt:1: x"
    assert told(await call.call(SearchText(), pattern="x", path="src/c.o")) == "src/c.o:1: x"


async def test_lines_that_match_come_with_path_number_and_place(call: FakeCall, root: Path) -> None:
    make(root, {"a.py": "def one():\n    pass\r\n", "b/c.py": "x = one()\n", "d.txt": "one"})
    output = await call.call(SearchText(), pattern=r"one\(\)", glob="*.py")
    assert told(output) == "a.py:1: def one():\nb/c.py:1: x = one()"
    assert output.locations == [Location(str(root / "a.py"), 1), Location(str(root / "b/c.py"), 1)]
    assert output.raw_output == {"matches": 2, "files": 2, "truncated": False}
    assert shown(output).startswith("```\na.py:1:")
    assert told(await call.call(SearchText(), pattern="pass$")) == "a.py:2: pass"
    assert told(await call.call(SearchText(), pattern="one", path="b/c.py")) == "b/c.py:1: x = one()"
    assert told(await call.call(SearchText(), pattern="nothing here")) == "Nothing matches."
    proposal = await call.propose(SearchText(), pattern="one", path="b", glob="*.py")
    assert (proposal.title, proposal.permission) == ("Search for `one` in b (*.py)", "allow")


async def test_binary_and_secret_files_are_left_out_and_links_not_followed(call: FakeCall, root: Path) -> None:
    make(root, {".env": "TOKEN=1", "a.txt": "TOKEN"})
    (root / "b.bin").write_bytes(b"TOKEN\0")
    make(root.parent, {"other/x.txt": "TOKEN", "y.txt": "TOKEN"})
    (root / "link").symlink_to(root.parent / "other")
    (root / "y.txt").symlink_to(root.parent / "y.txt")
    output = told(await call.call(SearchText(), pattern="TOKEN"))
    assert output == "a.txt:1: TOKEN\n[1 files that may hold secrets were not searched]"
    assert (await call.propose(SearchText(), pattern="TOKEN", path=".env")).sensitive
    assert told(await call.call(SearchText(), pattern="TOKEN", path=".env")) == ".env:1: TOKEN=1"


async def test_outside_is_asked_for_and_then_searched(call: FakeCall, root: Path) -> None:
    make(root.parent, {"other/x.txt": "TOKEN"})
    for path in ("../other", "../other/x.txt"):
        proposal = await call.propose(SearchText(), pattern="TOKEN", path=path)
        assert proposal.outside
        assert "x.txt:1: TOKEN" in told(await SearchText().run(proposal, call))
    with pytest.raises(ToolError, match="There is no file"):
        await call.call(SearchText(), pattern="x", path="gone")


async def test_all_roots_are_searched_once(root: Path) -> None:
    make(root, {"a.txt": "x", "sub/b.txt": "x"})
    make(root.parent, {"second/c.txt": "x"})
    call = FakeCall(DiskWorkspace(str(root), [str(root / "sub"), str(root.parent / "second")]))
    lines = told(await call.call(SearchText(), pattern="x")).split("\n")
    assert lines == ["a.txt:1: x", "sub/b.txt:1: x", f"{root.parent}/second/c.txt:1: x"]


async def test_many_matches_stop_at_a_cap_and_say_so(call: FakeCall, root: Path) -> None:
    make(root, {f"{number:02}.txt": "x\n" * 100 for number in range(10)})
    output = await call.call(SearchText(), pattern="x")
    assert "[stopped after 300 matches; there are more: narrow it down]" in told(output)
    assert output.raw_output["truncated"]


@pytest.mark.parametrize("pattern", ["(a+)+", "(a*)*$", r"(\w+\s*)+x", "(.*,)*", "((a+))+", "(a+|b){2,}"])
def test_an_expression_that_could_run_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(ToolError, match="can take for ever"):
        compile_expression(pattern)


@pytest.mark.parametrize("pattern", [r"(\w+\.)+\w+", "(a|b)+", r"\(a+\)+", "[(a+)]+", "a+b+", "(a+)?", "x{2,3}"])
def test_an_expression_that_is_only_long_is_taken(pattern: str) -> None:
    assert not may_explode(pattern)


async def test_what_is_no_expression_is_refused_with_the_reason(call: FakeCall) -> None:
    with pytest.raises(ToolError, match="no regular expression"):
        await call.propose(SearchText(), pattern="(")


async def test_a_cancel_stops_the_walk_and_the_loop_stays_free_meanwhile() -> None:
    steps = 0
    running = threading.Event()
    release = threading.Event()

    def endless() -> Iterator[None]:
        nonlocal steps
        while True:
            steps += 1
            running.set()
            release.wait(0.001)
            yield

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_in_slices, endless())
            while not running.is_set():
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    release.set()
    before = steps
    assert before >= 1


async def test_thousands_of_files_take_a_moment(call: FakeCall, root: Path) -> None:
    for folder in range(20):
        inside = root / f"{folder // 10}" / f"{folder}"
        inside.mkdir(parents=True)
        for number in range(100):
            (inside / f"{number}.txt").write_text("line\n")
    make(root, {".gitignore": "*.log\n*.tmp\n/build/\ndist/\n*.py[cod]\n", "1/13/needle.txt": "needle"})
    with anyio.fail_after(20):
        assert told(await call.call(SearchText(), pattern="ne+dle")) == "1/13/needle.txt:1: needle"
        assert await find(call, "needle.*") == ["1/13/needle.txt"]

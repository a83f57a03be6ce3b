"""Every built-in tool, in the installed program, with every kind of editor and user; the disk is compared by bytes."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, get_args

import acp
import pytest
from msgspec import Struct, field

from acp_agent.content import ToolKind
from tests.e2e.workshop import Visit, Workshop, working

pytestmark = pytest.mark.anyio

Tree = Mapping[str, bytes | None]

CODE = b"import sys\n\nneedle = 1\nprint(sys.path)\n"
WINDOWS = b"one\r\ntwo\r\nthree"
LATIN = "caf\xe9 au lait\n".encode("latin-1")
IMAGE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

TREE: Tree = {
    "src/app.py": CODE,
    "windows.txt": WINDOWS,
    "latin.txt": LATIN,
    "bom.txt": b"\xef\xbb\xbfmarked\n",
    "logo.png": IMAGE,
    ".env": b"KEY=1\n",
    "old.txt": b"moved as it is\r\n",
    "gone.txt": b"deleted\n",
}


class Step(Struct, frozen=True):
    """One tool use: whether the user is asked, and what is on the disk afterwards that was not before; None: gone."""

    name: str
    arguments: dict[str, Any]
    asks: bool = True
    changes: Tree = field(default_factory=dict)


def steps(url: str = "http://127.0.0.1:1/") -> list[Step]:
    """Every tool, one after the other."""
    plan = {"content": "Try everything", "status": "in_progress", "priority": "high"}
    return [
        Step("update_plan", {"entries": [plan]}, asks=False),
        Step("list_directory", {"path": "."}, asks=False),
        Step("find_files", {"pattern": "*.py"}, asks=False),
        Step("search_text", {"pattern": "needle"}, asks=False),
        Step("read_file", {"path": "src/app.py", "line": 3, "limit": 1}, asks=False),
        Step("read_file", {"path": "logo.png"}, asks=False),
        Step("read_file", {"path": ".env"}),
        Step("read_file", {"path": "../outside.txt"}),
        Step(
            "edit_file",
            {"path": "windows.txt", "old_text": "one\ntwo", "new_text": "1\n2"},
            changes={"windows.txt": b"1\r\n2\r\nthree"},
        ),
        Step(
            "edit_file",
            {"path": "latin.txt", "old_text": "lait", "new_text": "cr\xe8me"},
            changes={"latin.txt": "caf\xe9 au cr\xe8me\n".encode("latin-1")},
        ),
        Step(
            "write_file",
            {"path": "new/made.txt", "content": "made \N{SNOWMAN}"},
            changes={"new/made.txt": "made ☃".encode()},
        ),
        Step("write_file", {"path": "bom.txt", "content": "still\n"}, changes={"bom.txt": b"\xef\xbb\xbfstill\n"}),
        Step(
            "move_file",
            {"source": "old.txt", "destination": "moved/new.txt"},
            changes={"old.txt": None, "moved/new.txt": b"moved as it is\r\n"},
        ),
        Step("delete_file", {"path": "gone.txt"}, changes={"gone.txt": None}),
        Step("run_command", {"command": "ln src/app.py ran.py; echo out; exit 3"}, changes={"ran.py": CODE}),
        Step("fetch_url", {"url": url}),
        Step("switch_mode", {"mode": "accept_edits"}),
        Step("ask_user", {"question": "Which colour?", "options": ["red", "blue"]}, asks=False),
    ]


STEPS = steps()
ASKED = [number for number, step in enumerate(STEPS, 1) if step.asks]
STATES = list(accumulate((step.changes for step in STEPS), lambda tree, changes: {**tree, **changes}, initial=TREE))
EVERYTHING = ("read", "write", "terminal", "form")
EDITORS = {"everything": EVERYTHING, "nothing": (), "reads": ("read",), "writes": ("write",), "runs": ("terminal",)}


def files_of(tree: Tree) -> dict[str, bytes]:
    return {name: data for name, data in tree.items() if data is not None}


def on_disk(folder: Path) -> dict[str, bytes]:
    """Every file in `folder`, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def scenario_text(url: str) -> str:
    """One turn that uses every tool, and one whose command does not end."""
    waiting = Step("run_command", {"command": "echo $$; sleep 300 & sleep 300"})
    lines = ['name = "all"']
    for prompt, played in (("everything", steps(url)), ("wait", [waiting])):
        lines += ["[[turns]]", f'when = "{prompt}"']
        for step in played:
            use = {"type": "tool_use", "name": step.name, "arguments": step.arguments}
            lines += ["[[turns.replies]]", f"steps = [{inline_toml(use)}]"]
        lines += ["[[turns.replies]]", 'steps = [{ type = "text", text = "All done." }]']
    return "\n".join(lines)


def inline_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {inline_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline_toml, value)) + "]"
    return json.dumps(value)


@asynccontextmanager
async def serving_a_page() -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<h1>Fetched</h1>")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/page"


class Site:
    """The program at work on scratch folders, one for each session."""

    def __init__(self, agent: Any, workshop: Workshop, home: Path) -> None:
        self.agent = agent
        self.workshop = workshop
        self.home = home

    async def visit(self, visit: Visit, prompt: str = "everything") -> tuple[str, Path]:
        """A session of its own for `visit`: the stop reason, and the folder it worked in."""
        folder = self.home / f"visit-{len(self.workshop.visits)}" / "project"
        for name, data in files_of(TREE).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        (folder.parent / "outside.txt").write_text("from outside\n")
        session_id = f"not opened yet {len(self.workshop.visits)}"
        self.workshop.visits[session_id] = visit  # so that the next one gets a folder of its own
        session_id = (await self.agent.new_session(cwd=str(folder), mcp_servers=[])).session_id
        self.workshop.visits[session_id] = visit
        try:
            async with asyncio.timeout(20):
                answer = await self.agent.prompt(session_id=session_id, prompt=[acp.text_block(prompt)])
        except TimeoutError:
            raise AssertionError(f"The turn did not end:\n{self.workshop.last_frames(session_id)}") from None
        assert (folder.parent / "outside.txt").read_text() == "from outside\n"
        return answer.stop_reason, folder


@asynccontextmanager
async def at_work(kind: str, home: Path, *arguments: str) -> AsyncIterator[Site]:
    workshop = Workshop(EDITORS[kind])
    (home / "acp-agent").mkdir()
    (home / "acp-agent" / "acp-agent.toml").write_text("[tools]\nfetch_allow_private = true\n")
    async with serving_a_page() as url:
        (home / "scenario.toml").write_text(scenario_text(url))
        async with working(workshop, "--scenario", str(home / "scenario.toml"), *arguments, home=home) as agent:
            yield Site(agent, workshop, home)


@pytest.mark.parametrize("kind", EDITORS)
async def test_what_is_allowed_is_done_and_what_is_rejected_or_stopped_is_not(kind: str, tmp_path: Path) -> None:
    """At the same time: a user who allows all, one who rejects all, and for each question one who stops there."""
    allowing, rejecting = Visit(), Visit("reject_once")
    stopping = {number: Visit(stop_at_question=number, polite=number % 2 > 0) for number in range(1, len(ASKED) + 1)}
    async with at_work(kind, tmp_path) as site, asyncio.TaskGroup() as tasks:
        allowed = tasks.create_task(site.visit(allowing))
        rejected = tasks.create_task(site.visit(rejecting))
        stopped = {number: tasks.create_task(site.visit(visit)) for number, visit in stopping.items()}
    assert {name for name in EVERYTHING if site.workshop.served[name]} == set(EDITORS[kind])

    reason, folder = allowed.result()
    assert reason == "end_turn"
    assert on_disk(folder) == files_of(STATES[-1])
    assert allowing.statuses() == ["completed"] * len(STEPS)
    assert len(allowing.questions) == len(ASKED)

    reason, folder = rejected.result()
    assert reason == "end_turn"
    assert on_disk(folder) == files_of(TREE)
    assert rejecting.statuses() == ["failed" if step.asks else "completed" for step in STEPS]

    for number, visit in stopping.items():
        reason, folder = stopped[number].result()
        done = ASKED[number - 1] - 1
        assert reason == "cancelled"
        assert on_disk(folder) == files_of(STATES[done])
        assert visit.statuses() == ["completed"] * done + ["failed"]
        assert visit.said == ""


@pytest.mark.parametrize("kind", ["everything", "nothing"])
async def test_a_call_that_is_stopped_while_it_runs_has_done_all_or_nothing(kind: str, tmp_path: Path) -> None:
    """A user who stops as soon as a call runs, at each of the calls; what comes behind it is not done."""
    async with at_work(kind, tmp_path) as site:
        visits = {number: Visit(stop_at_call=number) for number in range(1, len(STEPS) + 1)}
        async with asyncio.TaskGroup() as tasks:
            stopped = {number: tasks.create_task(site.visit(visit)) for number, visit in visits.items()}
    for number, visit in visits.items():
        reason, folder = stopped[number].result()
        assert reason == "cancelled" or number > ASKED[-1] - 1  # nothing holds up what comes behind the last question
        assert on_disk(folder) in (files_of(STATES[number - 1]), files_of(STATES[number]))
        assert set(visit.statuses()) <= {"completed", "failed"}
        assert len(visit.questions) <= sum(step <= number for step in ASKED) + 1


@pytest.mark.parametrize("kind", ["everything", "nothing"])
async def test_a_command_that_is_stopped_leaves_no_process(kind: str, tmp_path: Path) -> None:
    async with at_work(kind, tmp_path) as site:
        visit = Visit(stop_at_call=1)
        reason, _ = await site.visit(visit, "wait")
        assert reason == "cancelled"
        assert visit.statuses() == ["failed"]


async def test_each_kind_of_call_is_shown_as_an_editor_wants_it(tmp_path: Path) -> None:
    async with at_work("nothing", tmp_path) as site:
        visit = Visit()
        _, folder = await site.visit(visit)
    rows = [visit.rows[call] for call in visit.calls]
    assert {row["kind"] for row in rows} == set(get_args(ToolKind))
    url = rows[15]["rawInput"]["url"]
    assert [row["title"] for row in rows] == [title.format(url=url, home=folder.parent) for title in TITLES]
    for row, step in zip(rows, steps(url), strict=True):
        assert row["rawInput"] == step.arguments
        assert all(isinstance(row["rawInput"].get(name, ""), str) for name in ("command", "description"))
    shown = dict(zip(TITLES, rows, strict=True))
    reading = shown["Read src/app.py (line 3)"]
    assert reading["locations"] == [{"path": f"{folder}/src/app.py", "line": 3}]
    assert shown["Search for `needle`"]["locations"] == reading["locations"]
    assert [item["content"]["type"] for item in shown["Read logo.png"]["content"]] == ["text", "image"]
    for title, path, old, new in (
        ("Edit windows.txt", "windows.txt", "one\r\ntwo\r\nthree", "1\r\n2\r\nthree"),
        ("Write new/made.txt", "new/made.txt", None, "made ☃"),
        ("Move old.txt to moved/new.txt", "moved/new.txt", None, "moved as it is\r\n"),
        ("Delete gone.txt", "gone.txt", "deleted\n", ""),
    ):
        diff = shown[title]["content"][0]
        assert diff["type"] == "diff"
        assert (diff["path"], diff.get("oldText"), diff["newText"]) == (f"{folder}/{path}", old, new)
        assert shown[title]["locations"][0]["path"] == diff["path"]


TITLES = [
    "Update the plan (0 of 1 done)",
    "List the working directory",
    "Find files `*.py`",
    "Search for `needle`",
    "Read src/app.py (line 3)",
    "Read logo.png",
    "Read .env",
    "Read {home}/outside.txt",
    "Edit windows.txt",
    "Edit latin.txt",
    "Write new/made.txt",
    "Write bom.txt",
    "Move old.txt to moved/new.txt",
    "Delete gone.txt",
    "Run `ln src/app.py ran.py; echo out; exit 3`",
    "Fetch {url}",
    "Switch to mode `accept_edits`",
    "Ask: Which colour?",
]


@pytest.mark.parametrize(
    ("choice", "kind", "terminals", "told"),
    [
        ("local", "runs", 0, "[exit code 3]"),
        ("client", "runs", 1, ""),
        ("client", "nothing", 0, "The editor runs no terminals, and this agent is set to use nothing else."),
        ("auto", "nothing", 0, "[exit code 3]"),
    ],
)
async def test_commands_run_where_the_user_wants_them(
    choice: str, kind: str, terminals: int, told: str, tmp_path: Path
) -> None:
    async with at_work(kind, tmp_path, "--terminal", choice) as site:
        visit = Visit()
        await site.visit(visit)
    (row,) = (row for row in visit.rows.values() if row["kind"] == "execute")
    assert len(site.workshop.shells) == terminals
    assert row["content"][-1]["type"] == ("terminal" if terminals else "content")
    assert told in str(row["content"][-1])
    assert row["status"] == ("failed" if "runs no terminals" in told else "completed")

"""What the documents say is true: Python runs, command lines parse, links lead somewhere, tables fit the code."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest
from msgspec import Struct

from acp_agent import Agent, Scenario, TestClient, coding_tools
from acp_agent.cli.arguments import parse
from acp_agent.models.scenario import ErrorKind, Step
from acp_agent.models.spec import model_from_spec
from acp_agent.runtime.permissions import MODES
from acp_agent.settings.file import read_settings

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])


class Block(Struct, frozen=True):
    """A fenced block: where it begins, its language, its text."""

    document: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.document.name}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    return [
        Block(document, text.count("\n", 0, match.start()) + 1, match[1], match[2])
        for document in DOCUMENTS
        for text in [document.read_text()]
        for match in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        if match[1] in languages
    ]


def shell_lines() -> list[tuple[Block, list[str]]]:
    lines = [(block, line) for block in blocks("sh") for line in block.text.splitlines()]
    return [(block, words) for block, line in lines if (words := shlex.split(line, comments=True))]


# Python ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def anyio_backend() -> str:
    """Documents are read by people who use asyncio, mostly."""
    return "asyncio"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Agent]:
    """The agents that a block runs, which serve nobody here. Blocks that name their file can be imported by others."""
    agents: list[Agent] = []
    monkeypatch.setattr(Agent, "run", lambda agent, **_: agents.append(agent))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for block in blocks("python"):
        if named := re.match(r"# (\w+\.py)\n", block.text):
            (tmp_path / named[1]).write_text(block.text)
            monkeypatch.delitem(sys.modules, named[1].removesuffix(".py"), raising=False)
    return agents


@pytest.mark.anyio
@pytest.mark.parametrize("block", blocks("python"), ids=str)
async def test_python_in_the_documents_runs(block: Block, ran: list[Agent], tmp_path: Path) -> None:
    (tmp_path / "block.py").write_text(block.text)
    names = runpy.run_path(str(tmp_path / "block.py"))
    agent = names.get("agent")
    tests = [value for name, value in names.items() if name.startswith("test_")]
    for test in tests:
        await test()
    assert ran == [agent] or "agent.run()" not in block.text
    if isinstance(agent, Agent) and "model_from_spec" not in block.text:
        async with TestClient(agent, cwd=tmp_path).connect() as client:
            result = await client.prompt("staging")
        assert result.error is None
        assert result.text


def test_the_examples_in_the_readme_are_the_files() -> None:
    readme = [block.text for block in blocks("python") if block.document.name == "README.md"]
    for name in ("echo.py", "permissioned_tool.py"):
        source = (ROOT / "examples" / name).read_text().split('"""\n\n', 1)[1]
        assert source in readme


# command lines --------------------------------------------------------------------------------------------------------


def program_lines() -> Iterator[list[str]]:
    """Command lines of the program: in shell blocks, in quotes, and as editors are told them."""
    for _, words in shell_lines():
        yield from (shlex.split(word) for word in words if word.startswith("acp-agent "))
        if words[0] == "acp-agent":
            yield words
    for block in blocks("json"):
        for server in json.loads(block.text)["agent_servers"].values():
            yield ["acp-agent", *server["args"]]
    for document in DOCUMENTS:
        yield from (shlex.split(line) for line in re.findall(r"`(acp-agent [^`\n]+)`", document.read_text()))


@pytest.mark.parametrize("words", list(program_lines()), ids=" ".join)
def test_command_lines_of_the_program_are_understood(words: list[str]) -> None:
    if words[-1] in ("--help", "--version"):
        with pytest.raises(SystemExit) as end:
            parse(words[1:])
        assert end.value.code == 0
        return
    arguments = parse(words[1:])
    for spec in getattr(arguments, "model", None) or ():
        model_from_spec(spec)
    for file in (getattr(arguments, "scenario", None), getattr(arguments, "file", None)):
        assert file is None or file.suffix != ".toml" or (ROOT / file).exists()
    assert find_spec(f"acp_agent.cli.{arguments.command.replace('logout', 'login')}")


def test_other_command_lines_name_what_is_there() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for block, words in shell_lines():
        match words:
            case ["make", target, *_]:
                assert target in targets, block
            case ["pip", "install", package]:
                wanted = re.fullmatch(r"acp-agent(?:\[([\w,]+)\])?", package)
                assert wanted, block
                assert set((wanted[1] or "all").split(",")) <= set(extras), block
            case ["python", file, *_]:
                assert (ROOT / file).exists(), block
            case [program, *_]:
                assert program in ("acp-agent", "toad"), block


def test_the_version_is_what_the_program_says() -> None:
    command = [sys.executable, "-m", "acp_agent", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"acp-agent \d+\.\d+\.\d+\S*\n", said)


def test_every_extra_is_named_in_the_readme() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    readme = (ROOT / "README.md").read_text()
    assert [extra for extra in extras if f"[{extra}]" not in readme] == []


# other languages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [block for block in blocks("toml") if "turns" in block.text], ids=str)
def test_scenarios_in_the_documents_are_playable(block: Block) -> None:
    known = {tool.name for tool in coding_tools()}
    scenario = Scenario.parse(block.text)
    used = {getattr(step, "name", None) for turn in scenario.turns for reply in turn.replies for step in reply.steps}
    assert used - {None} <= known


@pytest.mark.parametrize("block", [block for block in blocks("toml") if "turns" not in block.text], ids=str)
def test_settings_in_the_documents_are_readable(block: Block, tmp_path: Path) -> None:
    (tmp_path / "acp-agent.toml").write_text(block.text)
    settings = read_settings(tmp_path / "acp-agent.toml", base=str(tmp_path))
    assert len(settings.rules) == 4
    assert [model_from_spec(spec).name for spec in settings.models] == ["gpt-5", "claude-sonnet-4-5", "qwen3"]


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_editor_settings_in_the_documents_name_a_command(block: Block) -> None:
    for server in json.loads(block.text)["agent_servers"].values():
        assert server["command"].endswith("acp-agent")
        assert all(isinstance(value, str) for value in [*server["args"], *server["env"].values()])


# links and tables -----------------------------------------------------------------------------------------------------


def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings_that_are_there(document: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (document.parent / file).resolve() if file else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("name", ["README.md", "docs/tools-and-permissions.md"])
def test_the_table_of_tools_has_every_tool_with_its_kind_and_default(name: str) -> None:
    defaults = {("allow", True): "always", ("allow", False): "inside", ("ask", False): "never"}
    pathless = {"update_plan", "ask_user"}
    expected = {tool.name: (tool.kind, defaults[tool.permission, tool.name in pathless]) for tool in coding_tools()}
    told = {}
    for row in re.findall(
        r"^\| (`\w+`(?:, `\w+`)*) \| ([\w, ]+) \| (inside|never|always) \|", (ROOT / name).read_text(), re.M
    ):
        kinds = row[1].split(", ")
        for index, tool in enumerate(re.findall(r"\w+", row[0])):
            told[tool] = (kinds[min(index, len(kinds) - 1)], row[2])
    assert told == expected


def test_the_readme_has_every_mode() -> None:
    told = re.findall(r"^\| `(\w+)` \| (?:asks|edits|reads)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert told == [mode.value for mode in MODES]


def test_the_table_of_steps_has_every_step_with_its_keys() -> None:
    steps = {}
    for step in get_args(Step):
        names = step.__struct_fields__
        required = len(names) - len(step.__struct_defaults__)
        steps[step.__struct_config__.tag] = [*names[:required], *(f"{name}?" for name in names[required:])]
    text = (ROOT / "docs" / "scenario.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| [^|]+ \|$", text.partition("## Steps")[2], re.MULTILINE)
    assert {name: re.findall(r"`([\w?]+)`", keys) for name, keys in rows if name != "type"} == steps
    assert set(get_args(ErrorKind)) <= set(re.findall(r"`(\w+)`", text))


def test_the_map_names_the_files_of_the_path() -> None:
    readme = (ROOT / "README.md").read_text()
    for stop in ("stdio", "framing", "peer", "connection", "surface", "session", "turn", "executor", "tool", "event"):
        assert re.search(rf"^\| {stop} \| \[[\w/.]+\]\(acp_agent/[\w/.]+\) \|", readme, re.MULTILINE), stop

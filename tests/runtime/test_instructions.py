"""The system prompt of a session: what the model is told of the folder, the mode, the project and the servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.agent import Agent
from acp_agent.runtime.instructions import PROJECT_LIMIT, SystemPrompt, project_instructions
from acp_agent.testing import ConnectedClient, TestClient
from tests.mcp.support import plain_server
from tests.runtime.support import PlayedModel

pytestmark = pytest.mark.anyio


def prompted(template: str | None = None) -> tuple[Agent, PlayedModel]:
    model = PlayedModel()
    return Agent("prompted", model=model, system_prompt=SystemPrompt(template)), model


async def system_of(client: ConnectedClient, model: PlayedModel) -> str:
    await client.prompt("hello")
    return model.requests[-1].system


async def test_the_built_in_prompt_names_the_folders_and_leaves_no_gap(tmp_path: Path) -> None:
    work, more = tmp_path / "work", tmp_path / "more"
    for folder in (work, more):
        folder.mkdir()
    agent, model = prompted()
    async with TestClient(agent, cwd=work).connect() as client:
        alone = await system_of(client, model)
        await client.new_session(additional_directories=[str(more)])
        both = await system_of(client, model)
    assert f"You work in the folder {work}.\n" in alone
    assert f"You work in the folder {work}. These folders belong to it too: {more}.\n" in both
    for text in (alone, both):
        assert "{" not in text
        assert text == text.strip()
        assert "plan mode" not in text
        assert "MCP" not in text


async def test_the_mode_of_this_moment_is_told() -> None:
    agent, model = prompted()
    async with TestClient(agent).connect() as client:
        await client.new_session()
        for mode, words in (
            ("plan", "The session is in plan mode"),
            ("accept_edits", "Edits inside the folder are made without asking"),
            ("auto", "Nothing is asked before it is done"),
        ):
            await client.set_mode(mode)
            assert words in await system_of(client, model)
        await client.set_mode("ask")
        assert "Nothing is asked" not in await system_of(client, model)


async def test_a_text_of_the_user_s_own_is_filled_in_and_other_braces_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Say {cwd} if asked.\n")
    agent, model = prompted("In {cwd}{roots}: {mode}{project}{servers} {like this} {} {cwd}\n")
    async with TestClient(agent, cwd=tmp_path).connect() as client:
        told = await system_of(client, model)
    assert told.startswith(f"In {tmp_path}: \nInstructions of this project:\n\nSay ")
    assert told.endswith(f"{{like this}} {{}} {tmp_path}")


async def test_what_the_project_says_is_read_anew_for_each_request(tmp_path: Path) -> None:
    agent, model = prompted()
    async with TestClient(agent, cwd=tmp_path).connect() as client:
        assert "Instructions of this project" not in await system_of(client, model)
        (tmp_path / "AGENTS.md").write_text("Use tabs.")
        assert "Instructions of this project:\n\nUse tabs." in await system_of(client, model)


async def test_what_the_servers_say_of_themselves_is_told() -> None:
    model = PlayedModel()
    agent = Agent("prompted", model=model, system_prompt=SystemPrompt(), mcp_servers=[plain_server("good")])
    async with TestClient(agent).connect() as client:
        told = await system_of(client, model)
    assert "What the MCP servers say:\n\n" in told
    assert "Ask me about work." in told


def test_the_files_from_the_root_of_the_repository_down_are_joined_in_this_order(tmp_path: Path) -> None:
    folder = tmp_path / "repository" / "package" / "part"
    folder.mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("outside of the repository")
    (tmp_path / "repository" / ".git").mkdir()
    (tmp_path / "repository" / "AGENTS.md").write_text("the repository\n")
    (tmp_path / "repository" / "package" / "AGENTS.md").write_text("  \n")
    (folder / "AGENTS.md").write_text("the part\n")
    assert project_instructions(str(folder)) == "the repository\n\nthe part"
    assert project_instructions(str(tmp_path / "repository")) == "the repository"


def test_a_work_tree_has_a_file_where_a_repository_has_a_folder(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / ".git").write_text("gitdir: /elsewhere")
    (tmp_path / "AGENTS.md").write_text("the work tree")
    assert project_instructions(str(tmp_path / "part")) == "the work tree"


def test_outside_of_a_repository_only_the_folder_itself_is_read(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "AGENTS.md").write_text("above")
    assert project_instructions(str(tmp_path / "part")) == ""
    (tmp_path / "part" / "AGENTS.md").write_text("here")
    assert project_instructions(str(tmp_path / "part")) == "here"


def test_all_files_together_are_bounded_and_the_nearest_is_cut_last(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "part").mkdir()
    (tmp_path / "AGENTS.md").write_text("a" * PROJECT_LIMIT)
    (tmp_path / "part" / "AGENTS.md").write_text("b" * (PROJECT_LIMIT - 10))
    told = project_instructions(str(tmp_path / "part"))
    assert told == "a" * 10 + "\n\n" + "b" * (PROJECT_LIMIT - 10)
    (tmp_path / "part" / "AGENTS.md").write_text("c" * 2 * PROJECT_LIMIT)
    assert project_instructions(str(tmp_path / "part")) == "c" * PROJECT_LIMIT


async def test_a_file_that_is_no_text_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"caf\xe9 \xff and on")
    agent, model = prompted("{project}")
    async with TestClient(agent, cwd=tmp_path).connect() as client:
        assert (await system_of(client, model)).endswith("caf\ufffd \ufffd and on")
    (tmp_path / "AGENTS.md").unlink()
    (tmp_path / "AGENTS.md").mkdir()
    assert project_instructions(str(tmp_path)) == ""

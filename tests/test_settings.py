"""Settings: what a file may say, what a project's file may not, and what a session makes of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from acp_agent.agent import Agent
from acp_agent.errors import RequestError, SettingsError
from acp_agent.models.scenario import Scenario
from acp_agent.models.scripted import ScriptedModel
from acp_agent.runtime.rules import PermissionRule
from acp_agent.settings.file import read_settings
from acp_agent.settings.force import SettingsSource, load_settings, load_user_settings
from acp_agent.settings.places import project_file, user_file
from acp_agent.testing import TestClient
from acp_agent.tools.coding import coding_tools

SCRIPT = """
[[turns]]
when = "run"
  [[turns.replies]]
  steps = [{ type = "tool_use", name = "run_command", arguments = { command = "echo hello" } }]
  [[turns.replies]]
  steps = [{ type = "text", text = "over" }]

[[turns]]
when = "read"
  [[turns.replies]]
  steps = [{ type = "tool_use", name = "read_file", arguments = { path = "acp-agent.toml" } }]
  [[turns.replies]]
  steps = [{ type = "text", text = "over" }]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own file, not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    user_file().parent.mkdir(parents=True)
    return user_file()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def coding_agent() -> Agent:
    scenario = Scenario.parse(SCRIPT)
    agent = Agent("test", model=ScriptedModel(scenario), tools=coding_tools(terminal="local"))
    agent.definition.set_up = SettingsSource()
    return agent


# one file ---------------------------------------------------------------------------------------------------------


def test_everything_that_a_file_can_say_is_read(tmp_path: Path) -> None:
    path = tmp_path / "acp-agent.toml"
    path.write_text(
        """
[permissions]
allow = ["run_command(pytest*)", "read_file"]
ask = ["mcp__github__*"]
deny = [
    "write_file(docs/**)",
    "run_command(echo (a) *)",
]

[mcp.servers.github]
command = "github-mcp"
args = ["--stdio"]

[tools]
terminal = "local"
fetch_allow_private = true
secret_patterns = ["*.secret"]

[models]
available = ["anthropic:claude", "openai:gpt"]
default = "openai:gpt"

[projects]
trusted = ["~/code", "/srv/*"]
"""
    )
    read = read_settings(path, base="/base")
    assert read.rules == [
        PermissionRule("deny", "write_file", "docs/**", "/base", f"{path}:6"),
        PermissionRule("deny", "run_command", "echo (a) *", "/base", f"{path}:7"),
        PermissionRule("ask", "mcp__github__*", "*", "/base", f"{path}:4"),
        PermissionRule("allow", "run_command", "pytest*", "/base", f"{path}:3"),
        PermissionRule("allow", "read_file", "*", "/base", f"{path}:3"),
    ]
    assert [(server.name, server.command, server.args) for server in read.mcp_servers] == [
        ("github", "github-mcp", ["--stdio"])
    ]
    assert (read.tools.terminal, read.tools.fetch_allow_private, read.tools.secret_patterns) == (
        "local",
        True,
        ["*.secret"],
    )
    assert read.models == ["openai:gpt", "anthropic:claude"], "the default is first"
    assert read.trusted == [os.path.expanduser("~/code"), "/srv/*"]


@pytest.mark.parametrize(
    ("text", "line", "key", "problem"),
    [
        ("[permissions]\nalow = []", 2, "permissions.alow", "is not a key of this table"),
        ("\n[permission]\nallow = []", 2, "permission", "is not a key of this table"),
        ("[permissions]\nallow = 'read_file'", 2, "permissions.allow", "expected `array`, got `str`"),
        ("[permissions]\nallow = [\n  'a',\n  3,\n]", 4, "permissions.allow[1]", "expected `str`, got `int`"),
        ("[permissions]\ndeny = [\n  'run_command(rm'\n]", 3, "permissions.deny[0]", "is no rule"),
        ("[permissions]\ndeny = ['run command']", 2, "permissions.deny[0]", "is no rule"),
        ("[permissions]\ndeny = ['run_command()']", 2, "permissions.deny[0]", "is no rule"),
        ("[permissions]\ndeny = ['']", 2, "permissions.deny[0]", "is no rule"),
        ("[mcp.servers.a]\ncommand = 'x'\nurl = 'http://y'", 1, "mcp.servers.a", "exactly one of"),
        ("[mcp.servers.a]\n\ncommand = 3", 3, "mcp.servers.a.command", "Expected `str`, got `int`"),
        ("[mcp.servers.a]\ncommand = 'x'\nargs = [\n'b',\n1]", 5, "mcp.servers.a.args[1]", "Expected `str`"),
        ("[mcp.servers.'a.b']\ncommand = 'x'\nagrs = []", 3, 'mcp.servers."a.b".agrs', "unknown key"),
        ("[mcp.servers]\na = 3", 2, "mcp.servers.a", "Expected `object`"),
        ("[tools]\n\nterminal = 'here'", 3, "tools.terminal", "'here' is not one of auto, client, local"),
        ("[models]\ndefault = 'gpt'", 2, "models.default", "'gpt' is no model"),
        ("[models]\navailable = [\n'openai:x',\n'openai:']", 4, "models.available[1]", "names no model"),
        ("[projects]\ntrusted = ['work']", 2, "projects.trusted[0]", "is not an absolute path"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(
    tmp_path: Path, text: str, line: int, key: str, problem: str
) -> None:
    path = tmp_path / "acp-agent.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=r"acp-agent\.toml") as caught:
        read_settings(path, base="/")
    assert (caught.value.file, caught.value.line, caught.value.key) == (str(path), line, key)
    assert problem in caught.value.problem
    assert str(caught.value).startswith(f"{path}:{line}: {key}: ")


def test_an_error_never_shows_the_value_of_a_servers_secret(tmp_path: Path) -> None:
    path = tmp_path / "acp-agent.toml"
    path.write_text("[mcp.servers.a]\ncommand = 'x'\nenv = { TOKEN = 'hunter2', OTHER = 1 }")
    with pytest.raises(SettingsError) as caught:
        read_settings(path, base="/")
    assert caught.value.line == 3
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_no_toml_says_where(tmp_path: Path) -> None:
    path = tmp_path / "acp-agent.toml"
    path.write_text("[permissions]\nallow = [")
    with pytest.raises(SettingsError, match="is not TOML"):
        read_settings(path, base="/")


def test_a_pipe_in_place_of_a_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "acp-agent.toml")
    with pytest.raises(SettingsError, match="not a regular file"):
        read_settings(tmp_path / "acp-agent.toml", base="/")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "acp-agent.toml"
    with path.open("wb") as file:
        file.truncate(64 * 1024 * 1024)
    with pytest.raises(SettingsError, match="is larger than"):
        read_settings(path, base="/")


# where they are -----------------------------------------------------------------------------------------------------


def test_the_nearest_file_up_to_the_root_of_the_repository_is_the_projects(project: Path) -> None:
    deep = project / "a" / "b"
    deep.mkdir(parents=True)
    (project.parent / "acp-agent.toml").write_text("")
    assert project_file(str(deep)) is None, "what is outside the repository is somebody else's"
    (project / "acp-agent.toml").write_text("")
    assert project_file(str(deep)) == project / "acp-agent.toml"
    (project / "a" / "acp-agent.toml").write_text("")
    assert project_file(str(deep)) == project / "a" / "acp-agent.toml"


def test_outside_a_repository_only_the_folder_itself_is_looked_at(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (tmp_path / "acp-agent.toml").write_text("")
    assert project_file(str(folder)) is None
    (folder / "acp-agent.toml").write_text("")
    assert project_file(str(folder)) == folder / "acp-agent.toml"


def test_without_any_file_there_are_no_rules(own: Path, project: Path) -> None:
    settings = load_settings(str(project))
    assert (settings.rules, settings.mcp_servers, settings.notice) == ([], [], None)
    assert load_user_settings().models == []


def test_a_file_that_cannot_be_read_is_an_error_and_not_silence(own: Path, project: Path) -> None:
    own.mkdir()
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(str(project))


def test_a_session_in_the_folder_of_the_users_own_file_has_it_once(own: Path) -> None:
    own.write_text("[models]\ndefault = 'openai:x'\n[permissions]\nallow = ['read_file']")
    assert len(load_settings(str(own.parent)).rules) == 1


# trust --------------------------------------------------------------------------------------------------------------

PROJECT = """
[permissions]
allow = ["run_command"]
ask = ["read_file"]
deny = ["fetch_url"]
[mcp.servers.evil]
command = "evil"
[tools]
secret_patterns = ["*.private"]
"""


def test_a_project_that_is_not_trusted_can_only_make_things_stricter(own: Path, project: Path) -> None:
    (project / "acp-agent.toml").write_text(PROJECT)
    settings = load_settings(str(project))
    assert [str(rule) for rule in settings.rules] == ["deny fetch_url", "ask read_file"]
    assert [str(rule) for rule in settings.rules_without_trust] == ["allow run_command"]
    assert settings.mcp_servers == []
    assert "*.private" in settings.secret_patterns
    assert ".env" in settings.secret_patterns, "what is secret anyway stays so"
    assert settings.notice is not None
    assert str(project) in settings.notice


def test_a_trusted_project_may_allow_and_name_servers(own: Path, project: Path) -> None:
    own.write_text(f"[projects]\ntrusted = ['{project}']\n[mcp.servers.mine]\ncommand = 'mine'")
    (project / "acp-agent.toml").write_text(PROJECT + "[mcp.servers.mine]\ncommand = 'other'")
    settings = load_settings(str(project))
    assert "allow run_command" in [str(rule) for rule in settings.rules]
    assert [(server.name, server.command) for server in settings.mcp_servers] == [("mine", "mine"), ("evil", "evil")]
    assert settings.notice is None


def test_trust_is_for_the_folder_itself_by_where_it_really_is(own: Path, project: Path) -> None:
    inner = project / "vendor" / "clone"
    inner.mkdir(parents=True)
    link = project.parent / "link"
    link.symlink_to(inner)
    for folder in (project, inner):
        (folder / "acp-agent.toml").write_text(PROJECT)

    def trusts(glob: Path | str, cwd: Path) -> bool:
        own.write_text(f"[projects]\ntrusted = ['{glob}']")
        return load_settings(str(cwd)).is_trusted

    assert trusts(project, project)
    assert not trusts(project, inner), "a clone inside a trusted folder is somebody else's"
    assert not trusts(f"{project.parent}/*", inner)
    assert trusts(f"{project.parent}/*", project)
    assert not trusts(link.parent / "elsewhere", link)
    assert trusts(inner, link)
    assert trusts(link, inner)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[models]\ndefault = 'openai:x'", "models"),
        ("[projects]\ntrusted = ['/']", "projects"),
        ("[tools]\nterminal = 'local'", "tools.terminal"),
        ("[tools]\nfetch_allow_private = true", "tools.fetch_allow_private"),
    ],
)
def test_what_is_the_users_alone_is_refused_in_a_project(own: Path, project: Path, text: str, key: str) -> None:
    own.write_text(f"[projects]\ntrusted = ['{project}']")
    (project / "acp-agent.toml").write_text(text)
    with pytest.raises(SettingsError, match="your own settings file") as caught:
        load_settings(str(project))
    assert caught.value.key == key


def test_the_users_patterns_are_beneath_the_session_and_a_projects_beneath_its_file(own: Path, project: Path) -> None:
    deep = project / "a"
    deep.mkdir()
    own.write_text("[permissions]\nallow = ['write_file(docs/**)']")
    (project / "acp-agent.toml").write_text("[permissions]\ndeny = ['write_file(docs/**)']")
    assert [rule.base for rule in load_settings(str(deep)).rules] == [str(deep), str(project)]


def test_a_folder_is_named_to_the_user_once(own: Path, project: Path) -> None:
    (project / "acp-agent.toml").write_text(PROJECT)
    source = SettingsSource([PermissionRule("deny", "x")])
    first, second = source(str(project)), source(str(project))
    assert (len(first.notices), len(second.notices)) == (1, 0)
    assert [str(rule) for rule in second.policy.rules] == ["deny x", "deny fetch_url", "ask read_file"]


# in sessions --------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_broken_file_refuses_the_session_and_a_mended_one_lets_the_next_begin(own: Path, project: Path) -> None:
    async with TestClient(coding_agent(), cwd=project).connect() as client:
        own.write_text("[permissions]\ndeny = [3]")
        with pytest.raises(RequestError) as caught:
            await client.new_session()
        assert (caught.value.code, caught.value.message) == (-32603, "A settings file is broken")
        assert caught.value.data == {"details": f"{own}:2: permissions.deny[0]: expected `str`, got `int`"}
        assert (await client.list_sessions()).sessions == []
        own.write_text("")
        await client.new_session()


@pytest.mark.anyio
@pytest.mark.parametrize("method", ["load_session", "resume_session"])
async def test_a_broken_file_refuses_to_open_a_kept_session_until_it_is_mended(
    own: Path, project: Path, method: str
) -> None:
    async with TestClient(coding_agent(), cwd=project).connect() as client:
        session_id = (await client.new_session()).session_id
        await client.close_session()
        own.write_text("[")
        with pytest.raises(RequestError, match="A settings file is broken"):
            await getattr(client, method)(session_id)
        own.unlink()
        await getattr(client, method)(session_id)


@pytest.mark.anyio
async def test_an_allowed_command_is_not_asked_for_and_a_denied_one_does_not_run(own: Path, project: Path) -> None:
    own.write_text("[permissions]\nallow = ['run_command(echo *)']")
    async with TestClient(coding_agent(), cwd=project, permission="reject_once").connect() as client:
        result = await client.prompt("run")
        assert (client.questions, result.tool_statuses[-1]) == ([], "completed")
        (project / "acp-agent.toml").write_text("[permissions]\ndeny = ['run_command(echo*)']")
        assert (await client.prompt("run")).tool_statuses[-1] == "completed", "a session keeps what it began with"
        await client.new_session()
        assert (await client.prompt("run")).tool_statuses[-1] == "failed"
        assert client.questions == []


@pytest.mark.anyio
async def test_what_an_untrusted_project_allows_is_asked_and_the_user_is_told(own: Path, project: Path) -> None:
    (project / "acp-agent.toml").write_text("[permissions]\nallow = ['run_command']")
    async with TestClient(coding_agent(), cwd=project, permission="reject_once").connect() as client:
        result = await client.prompt("run")
        assert len(client.questions) == 1
        assert "does not trust its folder" in result.text


@pytest.mark.anyio
async def test_a_settings_file_is_sensitive_to_the_agent(own: Path, project: Path) -> None:
    (project / "acp-agent.toml").write_text("")
    own.write_text("[permissions]\nallow = ['*', 'read_file(*)']")
    async with TestClient(coding_agent(), cwd=project, permission="reject_once").connect() as client:
        await client.prompt("read")
        assert len(client.questions) == 1

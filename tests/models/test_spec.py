"""What `--model` takes, and what it says to what it does not take."""

from __future__ import annotations

import subprocess
import sys

import pytest

from acp_agent.errors import ModelError, SettingsError
from acp_agent.models.openai import OpenAIModel
from acp_agent.models.spec import ModelSpec, model_from_spec, parse_model_spec
from tests.models.asking import ask


@pytest.mark.parametrize(
    ("spec", "parsed"),
    [
        ("openai:gpt-4o", ModelSpec("openai", "gpt-4o")),
        ("openai:ft:gpt-4o:acme", ModelSpec("openai", "ft:gpt-4o:acme")),
        ("openai-responses:gpt-5", ModelSpec("openai-responses", "gpt-5")),
        (" anthropic:claude-sonnet-4-5 ", ModelSpec("anthropic", "claude-sonnet-4-5")),
        ("http://127.0.0.1:1234/v1#qwen", ModelSpec("openai", "qwen", "http://127.0.0.1:1234/v1")),
        ("HTTPS://[::1]:1/v1#a/b:c", ModelSpec("openai", "a/b:c", "HTTPS://[::1]:1/v1")),
        ("anthropic:http://127.0.0.1:1#x", ModelSpec("anthropic", "x", "http://127.0.0.1:1")),
    ],
)
def test_a_spec_is_a_provider_and_a_name_or_a_url_and_a_name(spec: str, parsed: ModelSpec) -> None:
    assert parse_model_spec(spec) == parsed
    assert model_from_spec(spec).name == parsed.name


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("", "openai:NAME"),
        ("gpt-4o", "anthropic:NAME"),
        ("gemini:pro", "'gemini:pro' is no model"),
        ("openai:", "write openai:NAME"),
        ("http://127.0.0.1:1234/v1", "#NAME"),
        ("http://127.0.0.1:1234/v1#", "#NAME"),
        ("http://#qwen", "names no host"),
        ("http://host:port/v1#qwen", "is no URL"),
    ],
)
def test_a_bad_spec_is_told_how_one_looks(spec: str, hint: str) -> None:
    with pytest.raises(SettingsError, match=hint.replace("[", r"\[")):
        parse_model_spec(spec)


def test_no_sdk_is_imported_before_the_first_request() -> None:
    code = (
        "import sys; from acp_agent.models.spec import model_from_spec\n"
        "for spec in ('openai:x', 'openai-responses:x', 'anthropic:x', 'http://h/v1#x'): model_from_spec(spec)\n"
        "print(sorted({'openai', 'anthropic', 'httpx2', 'pydantic'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.anyio
async def test_a_missing_extra_is_named_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ModelError, match=r"pip install 'acp-agent\[openai\]'") as caught:
        await ask(OpenAIModel("m", base_url="http://127.0.0.1:9/v1"))
    assert (caught.value.kind, caught.value.retryable) == ("other", False)

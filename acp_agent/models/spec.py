"""`--model SPEC`: which model is meant.

    openai:NAME              OpenAI's chat completions
    openai-responses:NAME    OpenAI's Responses API
    anthropic:NAME           Anthropic's messages
    BASE_URL#NAME            any server that speaks chat completions, as http://127.0.0.1:1234/v1#qwen
    PROVIDER:BASE_URL#NAME   another server that speaks the provider's language

Keys come from the environment (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`); a server given by its URL works without one.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct

from acp_agent.errors import SettingsError
from acp_agent.models.base import Model
from acp_agent.models.provider import ApiKey

__all__ = ["ModelSpec", "model_from_spec", "parse_model_spec"]

PROVIDERS = ("openai", "openai-responses", "anthropic")
SCHEMES = ("http", "https")


class ModelSpec(Struct, frozen=True):
    """A spec, taken apart. `base_url` is None for the provider's own address."""

    provider: str
    name: str
    base_url: str | None = None


def parse_model_spec(spec: str) -> ModelSpec:
    """Raises `SettingsError` that says what is wrong with `spec` and how one looks."""
    spec = spec.strip()
    head, _, rest = spec.partition(":")
    if head.lower() in SCHEMES:
        return _at_url("openai", spec)
    if head not in PROVIDERS:
        known = ", ".join(f"{provider}:NAME" for provider in PROVIDERS)
        raise SettingsError(f"{spec!r} is no model; use {known}, or a base URL with #NAME (http://HOST:PORT/v1#NAME)")
    if rest.partition(":")[0].lower() in SCHEMES:
        return _at_url(head, rest)
    if not rest:
        raise SettingsError(f"{spec!r} names no model; write {head}:NAME")
    return ModelSpec(head, rest)


def model_from_spec(spec: str, *, api_key: ApiKey = None) -> Model:
    """The model that `spec` means. Its SDK is imported at the first request. Raises `SettingsError` for a bad spec."""
    parsed = parse_model_spec(spec)
    match parsed.provider:
        case "anthropic":
            from acp_agent.models.anthropic import AnthropicModel

            return AnthropicModel(parsed.name, base_url=parsed.base_url, api_key=api_key)
        case "openai-responses":
            from acp_agent.models.openai_responses import OpenAIResponsesModel

            return OpenAIResponsesModel(parsed.name, base_url=parsed.base_url, api_key=api_key)
        case _:
            from acp_agent.models.openai import OpenAIModel

            return OpenAIModel(parsed.name, base_url=parsed.base_url, api_key=api_key)


def _at_url(provider: str, text: str) -> ModelSpec:
    url, _, name = text.partition("#")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # the port is checked when it is read
    except ValueError as error:
        raise SettingsError(f"{url!r} is no URL: {error}") from error
    if not host:
        raise SettingsError(f"{url!r} names no host; use http://HOST:PORT/v1#NAME")
    if not name:
        raise SettingsError(f"{url!r} needs the model's name behind #, as {url}#NAME")
    return ModelSpec(provider, name, url)

"""How many tokens a model can hold, as its server's list of models says. Each kind of server has its own word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["window_in"]

WORDS = (
    "n_ctx",  # llama.cpp, what it was started with
    "loaded_context_length",  # LM Studio
    "max_input_tokens",  # Anthropic
    "context_length",  # OpenRouter
    "context_window",  # Groq
    "max_model_len",  # vLLM
    "max_context_length",  # Mistral, LM Studio
)


def window_in(answer: Any, name: str) -> int | None:
    """The window of the model `name` in a list of models, or in the answer about one; None when it is not said.

    A server that has one model only serves it under any name.
    """
    models = [entry for entry in _entries(answer) if isinstance(entry, dict)]
    named = [entry for entry in models if entry.get("id") == name or name in (entry.get("aliases") or ())]
    for entry in named or (models if len(models) == 1 else []):
        meta = entry.get("meta")
        for place in (entry, meta if isinstance(meta, dict) else {}):
            found = next(_numbers(place), None)
            if found is not None:
                return found
    return None


def _entries(answer: Any) -> list[Any]:
    if not isinstance(answer, dict):
        return []
    listed = answer.get("data")
    return listed if isinstance(listed, list) else [answer]


def _numbers(place: Mapping[str, Any]) -> Iterator[int]:
    for word in WORDS:
        value = place.get(word)
        if isinstance(value, int) and value > 0:
            yield value

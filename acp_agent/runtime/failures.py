"""What a person reads when a model fails: a JSON-RPC error of the prompt, with all that can be acted on."""

from __future__ import annotations

from acp_agent.errors import AUTH_REQUIRED, INTERNAL_ERROR, ModelError, RequestError

__all__ = ["error_of_model"]


def error_of_model(error: ModelError) -> RequestError:
    """401 is "authentication required", so that an editor offers to sign in; nothing else is."""
    data = {"details": error.message, "kind": error.kind, "retryable": error.retryable}
    if error.status is not None:
        data["status"] = error.status
    if error.status == 401:
        return RequestError(AUTH_REQUIRED, "Authentication required", data | {"authMethods": []})
    return RequestError(INTERNAL_ERROR, _one_line(error.message), data)


def _one_line(message: str) -> str:
    return " ".join(message.split())[:300] or "The model failed"

"""What a person reads when a model fails: a JSON-RPC error of the prompt, with all that can be acted on."""

from __future__ import annotations

from acp_agent.errors import AUTH_REQUIRED, INTERNAL_ERROR, ModelError, RequestError

__all__ = ["error_of_model"]


def error_of_model(error: ModelError) -> RequestError:
    """A missing key, or one that is refused with 401, is "authentication required"; nothing else is.

    An editor then offers to sign in; the ways to do it are added where the protocol is spoken.
    """
    data = {"details": error.message, "kind": error.kind, "retryable": error.retryable}
    if error.status is not None:
        data["status"] = error.status
    if error.status == 401 or (error.kind == "auth" and error.status is None):
        return RequestError(AUTH_REQUIRED, "Authentication required", data | {"authMethods": []})
    return RequestError(INTERNAL_ERROR, _one_line(error.message), data)


def _one_line(message: str) -> str:
    return " ".join(message.split())[:300] or "The model failed"

"""Every exception that this package raises on purpose.

    AcpAgentError
    ├── RequestError        an answer of the JSON-RPC kind: a code, one sentence, optional data
    ├── DecodeError         a value does not fit its type; says where
    ├── ConnectionClosed    the peer is gone, or we closed; nothing more can be asked
    ├── ToolError           a tool could not do it; the model reads the text
    │   ├── FileMissing     there is no such file
    │   └── EditorRefused   the editor said no, and did nothing
    ├── ModelError          a provider failed; says what kind, and whether another try may help
    ├── ScenarioError       a scenario file is wrong; says file, line and key
    ├── SettingsError       a settings file is wrong; says file, line and key
    └── StoreError          a session cannot be kept or read; says which

Whose fault it is follows from the type: what the peer did wrong is answered with its own code, everything
unexpected is ours, answered `-32603 "Internal error"` and logged with its traceback, with no text leaked.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AcpAgentError",
    "ConnectionClosed",
    "DecodeError",
    "EditorRefused",
    "FileMissing",
    "ModelError",
    "RequestError",
    "ScenarioError",
    "SettingsError",
    "StoreError",
    "ToolError",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
AUTH_REQUIRED = -32000
RESOURCE_NOT_FOUND = -32002


class AcpAgentError(Exception):
    """The root of what this package raises on purpose."""


class RequestError(AcpAgentError):
    """A JSON-RPC error object, raised to answer with it, or received from the peer.

    `message` is one short sentence. `data` is any JSON value; what a person can act on goes to
    `data["details"]` as a string, because some editors show exactly that.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @classmethod
    def parse_error(cls, details: str) -> RequestError:
        return cls(PARSE_ERROR, "Parse error", {"details": details})

    @classmethod
    def invalid_request(cls, details: str) -> RequestError:
        return cls(INVALID_REQUEST, "Invalid request", {"details": details})

    @classmethod
    def method_not_found(cls, method: str) -> RequestError:
        return cls(METHOD_NOT_FOUND, "Method not found", {"method": method})

    @classmethod
    def invalid_params(cls, details: str, path: str | None = None) -> RequestError:
        """`path` is where in the params, in msgspec's spelling (`$.prompt[0].text`)."""
        return cls(INVALID_PARAMS, "Invalid params", {"details": details} | ({"path": path} if path else {}))

    @classmethod
    def internal(cls) -> RequestError:
        """What went wrong is in the log, never in the answer."""
        return cls(INTERNAL_ERROR, "Internal error")

    @classmethod
    def cancelled(cls) -> RequestError:
        return cls(REQUEST_CANCELLED, "Request cancelled")

    @classmethod
    def auth_required(cls, details: str, auth_methods: list[Any] | None = None) -> RequestError:
        return cls(AUTH_REQUIRED, "Authentication required", {"details": details, "authMethods": auth_methods or []})

    @classmethod
    def unknown_session(cls, session_id: str) -> RequestError:
        details = f"There is no session {session_id!r} here; it may be closed or deleted."
        return cls(RESOURCE_NOT_FOUND, "Session not found", {"sessionId": session_id, "details": details})


class DecodeError(AcpAgentError):
    """A value that does not fit its type. `path` is where (`$.cwd`), `problem` is what."""

    def __init__(self, problem: str, path: str = "$") -> None:
        super().__init__(f"{problem} (at {path})")
        self.problem = problem
        self.path = path


class ConnectionClosed(AcpAgentError):
    """The connection ended before the answer came, or was over when it was asked."""

    def __init__(self, message: str = "The connection is closed") -> None:
        super().__init__(message)


class ToolError(AcpAgentError):
    """A tool could not do what it was asked. The text is for the model and the user; no traceback is logged."""


class FileMissing(ToolError):
    """There is no such file: an error for a reader, a new file for a writer."""


class EditorRefused(ToolError):
    """The editor said no and did nothing, so the same may be tried another way."""


class ModelError(AcpAgentError):
    """A provider failed. The turn ends with a JSON-RPC error that carries this; the session goes on.

    `kind` is one of `auth`, `not_found`, `rate_limit`, `overloaded`, `timeout`, `connection`, `bad_request`,
    `context_overflow`, `protocol`, `other`; `status` is the provider's HTTP status, when there was one.
    """

    def __init__(
        self, message: str, *, kind: str = "other", status: int | None = None, retryable: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.status = status
        self.retryable = retryable


class _FileError(AcpAgentError):
    """A file that a person wrote is wrong: `file:line: key: problem`, with what is known of it."""

    def __init__(self, problem: str, *, file: str = "", line: int | None = None, key: str = "") -> None:
        place = f"{file}:{line}" if line else file
        super().__init__(": ".join(part for part in (place, key, problem) if part))
        self.problem = problem
        self.file = file
        self.line = line
        self.key = key


class ScenarioError(_FileError):
    """A scenario file is wrong. Raised before anything is served."""


class SettingsError(_FileError):
    """A settings file (`acp-agent.toml`) is wrong."""


class StoreError(AcpAgentError):
    """A session cannot be kept or read: the text says which, and where the store is."""

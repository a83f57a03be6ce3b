"""How the test client answers `session/request_permission`: as a user would, or as broken clients do.

"allow_once" "allow_always" "reject_once" "reject_always"    the option of that kind
"cancelled"      the dialog was dismissed
"manual"         it stays open until `answer_permission`, or until the client cancels the turn
"never"          it stays open whatever happens, as in editors that forget their dialogs; a late answer can be given
"error"          a JSON-RPC error
"malformed"      an outcome of a shape that the protocol does not have, with an allowing word in it
"unknown_option" the id of an option that was not offered
a function       of the request, plain or async: it returns the id or kind of an option, None for "cancelled", or
                 a result as JSON; what it raises is an error if it is a `RequestError`, else it fails the test
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

from acp_agent.errors import RequestError
from acp_agent.protocol.v1.tool_calls import RequestPermissionRequest

__all__ = ["AnswerPolicy", "PermissionAnswer", "PermissionFunction", "PolicyName", "answer_permission", "result_of"]

PolicyName: TypeAlias = Literal[
    "allow_once",
    "allow_always",
    "reject_once",
    "reject_always",
    "cancelled",
    "manual",
    "never",
    "error",
    "malformed",
    "unknown_option",
]
PermissionAnswer: TypeAlias = str | dict[str, Any] | None
PermissionFunction: TypeAlias = Callable[[RequestPermissionRequest], PermissionAnswer | Awaitable[PermissionAnswer]]
AnswerPolicy: TypeAlias = PolicyName | PermissionFunction

HELD = ("manual", "never")


async def answer_permission(policy: AnswerPolicy, request: RequestPermissionRequest) -> dict[str, Any]:
    """The result that `policy` gives; raises the `RequestError` that it answers with. Not for those that wait."""
    match policy:
        case "error":
            raise RequestError(-32603, "The dialog could not be shown")
        case "malformed":
            return {"outcome": "allow_once"}
        case "unknown_option":
            return result_of("an-option-nobody-offered", request)
        case "cancelled":
            return result_of(None, request)
        case str():
            return result_of(policy, request)
    answer = policy(request)
    return result_of(await answer if inspect.isawaitable(answer) else answer, request)


def result_of(answer: PermissionAnswer, request: RequestPermissionRequest) -> dict[str, Any]:
    """`answer` as the protocol says it: an option by its id, else by its kind."""
    if answer is None:
        return {"outcome": {"outcome": "cancelled"}}
    if isinstance(answer, dict):
        return answer
    by_kind = {option.kind: option.option_id for option in reversed(request.options)}
    ids = {option.option_id for option in request.options}
    option_id = answer if answer in ids else find_option(answer, by_kind)
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


def find_option(kind: str, by_kind: dict[Any, str]) -> str:
    """The option of a kind; where "always" is not offered, "once". A word that is no kind is sent as it is."""
    once = kind.replace("_always", "_once")
    return by_kind.get(kind) or by_kind.get(once) or kind

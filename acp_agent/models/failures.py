"""What went wrong at a provider, as a `ModelError` with one clear sentence and no secrets.

Works on what the SDKs' errors have in common (a response, a body, a cause), so that it imports neither SDK.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

from acp_agent.content import clean_text
from acp_agent.errors import ModelError

__all__ = ["ProviderError", "broken_off", "of_error_object", "of_exception", "unreadable"]

LONGEST_TEXT = 300

_OVERFLOW = re.compile(
    r"context[ _]?(length|window|size)|context_length_exceeded|exceed(s|ed)?[_ ](the )?context|maximum context"
    r"|(prompt|input|request) is too long|exceed context limit|too many (input )?tokens",
    re.IGNORECASE,
)
_KEY = re.compile(r"\b(?:sk|pk|rk|xai|gsk|key|bearer)[-_ ][\w.*~+/=-]{6,}", re.IGNORECASE)
_URL_LOGIN = re.compile(r"(?<=://)[^/\s@]+@")
_SPENT = re.compile(r"insufficient_quota|exceeded your current quota|billing|credit balance", re.IGNORECASE)

_KIND_OF_STATUS = {401: "auth", 403: "auth", 404: "not_found", 408: "timeout", 429: "rate_limit"}
_KIND_OF_CODE = (
    (re.compile(r"authentication|invalid_api_key|permission", re.IGNORECASE), "auth"),
    (re.compile(r"rate_?limit|insufficient_quota", re.IGNORECASE), "rate_limit"),
    (re.compile(r"overloaded|server_error|api_error|internal|unavailable", re.IGNORECASE), "overloaded"),
    (re.compile(r"timeout", re.IGNORECASE), "timeout"),
    (re.compile(r"not_found", re.IGNORECASE), "not_found"),
    (re.compile(r"invalid|unsupported|bad_request|too_large", re.IGNORECASE), "bad_request"),
)
_SENTENCES = {
    "auth": "{label} refused access",
    "not_found": "{label} does not know this model or address",
    "rate_limit": "{label} limits how much may be asked",
    "overloaded": "{label} is overloaded or failing",
    "timeout": "{label} took too long",
    "context_overflow": "The conversation is longer than {label} can take",
    "bad_request": "{label} refused the request",
    "other": "{label} failed",
}
_RETRYABLE = {"rate_limit", "overloaded", "timeout"}


class ProviderError(ModelError):
    """A `ModelError` that may carry how many seconds the provider asks to wait before another try."""

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message[:1].upper() + message[1:], kind=kind, status=status, retryable=retryable)
        self.retry_after = retry_after


def of_exception(error: Exception, label: str, *, secret: str | None = None) -> ProviderError:
    """An SDK's or the HTTP client's exception. `label` names the provider; `secret` is blotted out."""
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None)
    if response is not None and isinstance(status, int) and status >= 400:
        code, text = _read_body(getattr(error, "body", None))
        text = text or response.text
        wait = _retry_after(response.headers)
        return _refusal(label, code, text, status=status, secret=secret, retry_after=wait)
    return _of_connection(error, label, secret)


def of_error_object(body: Any, label: str, *, secret: str | None = None) -> ProviderError:
    """An error event inside a stream that had begun well."""
    code, text = _read_body(body)
    status = int(code) if code.isdigit() and 400 <= int(code) <= 599 else None
    return _refusal(label, code, text, status=status, secret=secret)


def unreadable(label: str, problem: str) -> ProviderError:
    """The provider answered with something that cannot be read."""
    return ProviderError(f"{label} sent an answer that cannot be read: {problem}.", kind="protocol", retryable=True)


def broken_off(label: str) -> ProviderError:
    """The stream ended before the reply did."""
    return ProviderError(f"The reply of {label} broke off before its end.", kind="connection", retryable=True)


def _refusal(
    label: str,
    code: str,
    text: str,
    *,
    status: int | None,
    secret: str | None,
    retry_after: float | None = None,
) -> ProviderError:
    kind = _kind(status, code, text)
    spent = kind == "rate_limit" and _SPENT.search(f"{code} {text}") is not None
    sentence = _SENTENCES[kind].format(label=label) + (f" ({status})" if status else "")
    detail = _tidy(text, secret)
    return ProviderError(
        f"{sentence}: {detail}" if detail else f"{sentence}.",
        kind=kind,
        status=status,
        retryable=kind in _RETRYABLE and not spent,
        retry_after=retry_after,
    )


def _kind(status: int | None, code: str, text: str) -> str:
    if status in (None, 400, 413, 422) and _OVERFLOW.search(f"{code} {text}"):
        return "context_overflow"
    if status is not None:
        return _KIND_OF_STATUS.get(status) or ("overloaded" if status >= 500 else "bad_request")
    return next((kind for pattern, kind in _KIND_OF_CODE if pattern.search(code)), "other")


def _of_connection(error: Exception, label: str, secret: str | None) -> ProviderError:
    chain = list(_causes(error))
    names = {type(cause).__name__ for cause in chain}
    detail = _tidy(str(chain[-1]) or type(chain[-1]).__name__, secret)
    if any(isinstance(cause, ssl.SSLError) for cause in chain) or "SSL:" in detail:
        return ProviderError(f"No secure connection to {label}: {detail}", kind="connection")
    if names & {"UnsupportedProtocol", "LocalProtocolError"}:
        return ProviderError(f"{label} cannot be asked: {detail}", kind="connection")
    if names & {"ConnectError", "ConnectTimeout"}:
        return ProviderError(f"{label} cannot be reached: {detail}", kind="connection", retryable=True)
    if any("Timeout" in name for name in names):
        return ProviderError(f"{label} did not answer in time.", kind="timeout", retryable=True)
    if "SSEError" in names:
        return unreadable(label, detail.rstrip("."))
    if names & {"JSONDecodeError", "DecodingError", "APIResponseValidationError"}:
        return unreadable(label, "it is not what was asked for")
    return ProviderError(f"The connection to {label} broke: {detail}", kind="connection", retryable=True)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _read_body(body: Any) -> tuple[str, str]:
    """The error's code and text, from the shapes that providers use."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            code = " ".join(str(inner[key]) for key in ("type", "code") if inner.get(key) not in (None, "", "error"))
            text = inner.get("message") or inner.get("detail") or ""
            return code, text if isinstance(text, str) else str(text)
        return "", str(inner)
    return "", body if isinstance(body, str) else ""


def _tidy(text: str, secret: str | None) -> str:
    """One line of bounded length, without keys."""
    if text.lstrip().startswith("<"):
        return ""  # a proxy's page, not a sentence
    if secret and len(secret) >= 6:
        text = text.replace(secret, "[key]")
    text = _URL_LOGIN.sub("", _KEY.sub("[key]", clean_text(" ".join(text.split()))))
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT].rstrip() + "…"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from milliseconds, seconds or a date."""
    milliseconds, after = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds:
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(after)) if after else None
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(after).timestamp() - time()) if after else None
    except ValueError:
        return None

"""The one error of this package."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional, TypedDict

_CODES: Mapping[int, str] = {
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    412: "precondition_failed",
    413: "too_large",
    429: "rate_limited",
}


class FieldProblem(TypedDict):
    """Error of one field. `code` is the server's, such as `required` or `not_unique`."""

    code: str
    message: str


class PlatformError(Exception):
    """Error of a request.

    `status` is the HTTP status, 0 where no answer came. `fields` has the fields at fault by path, `inserts.1.title` in a batch.
    `code` is `network`, `timeout`, `unauthenticated`, `forbidden`, `not_found`, `conflict`, `precondition_failed`, `invalid`,
    `too_large`, `rate_limited`, `unavailable` or `internal`. `request_id` identifies the cause in the server's log.
    `retry_after` is the number of seconds that the server asks to wait.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: Optional[str] = None,
        fields: Optional[Mapping[str, FieldProblem]] = None,
        request_id: Optional[str] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code or code_of(status)
        self.fields: dict[str, FieldProblem] = dict(fields or {})
        self.request_id = request_id
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.status} {self.code}: {self.message}"

    def __reduce__(self) -> Any:
        # Exceptions of worker processes are pickled, which by default would call the constructor with the message alone.
        facts = {"code": self.code, "fields": self.fields, "request_id": self.request_id, "retry_after": self.retry_after}
        return (_restored, (self.status, self.message, facts))


def _restored(status: int, message: str, facts: Mapping[str, Any]) -> PlatformError:
    return PlatformError(status, message, **facts)


def code_of(status: int) -> str:
    """Returns the code of a status of 400 or more."""
    known = _CODES.get(status)
    if known is not None:
        return known
    return "invalid" if status < 500 else "internal" if status < 502 else "unavailable"


def network_error(url: str, cause: BaseException) -> PlatformError:
    """Returns the error of a request without an answer."""
    return PlatformError(0, f"Cannot reach {url}: {cause}", code="network")


def error_of(status: int, content: bytes, headers: Mapping[str, str]) -> PlatformError:
    """Returns the error of an answer of 400 or more. A foreign body, such as a proxy's page, is left out."""
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {}
    data = body.get("data")
    try:
        retry_after: Optional[float] = float(headers["retry-after"])
    except (KeyError, ValueError):
        retry_after = None
    return PlatformError(
        status,
        str(body.get("message", f"HTTP {status}")),
        fields=data if isinstance(data, dict) else None,
        request_id=headers.get("x-request-id"),
        retry_after=retry_after,
    )

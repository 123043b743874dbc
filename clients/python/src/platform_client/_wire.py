"""The pure part of the protocol: addresses, JSON, forms, retries and lifetimes of tokens."""

from __future__ import annotations

import base64
import datetime
import json
import random
import re
import secrets
import uuid
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple
from urllib.parse import quote, urlsplit

from ._errors import PlatformError
from ._types import Params, User

#: Time that the server has for an answer; it ends its own longest queries after 30 s.
TIMEOUT_SECONDS = 40.0
RETRIES_MAX = 3
RETRY_BACKOFF_SECONDS = 0.3
RETRY_AFTER_MAX_SECONDS = 20.0
#: Access tokens are refreshed when less than this, or than a fifth of their lifetime, is left.
REFRESH_MARGIN_SECONDS = 60.0
RECONNECT_FIRST_SECONDS = 0.4
RECONNECT_MAX_SECONDS = 15.0
#: Size from which a file is sent in parts, and that of a part.
PARTS_MIN_BYTES = 8 * 1024 * 1024
PART_BYTES = 4 * 1024 * 1024
PARTS_MAX = 10_000

_RETRIED = frozenset([0, 429, 502, 503])


def base_of(url: str) -> str:
    """Returns an address without a trailing slash. Errors: `ValueError` for one without http or https."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"The url must begin with http:// or https://, got {url!r}")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def path_of(*segments: str) -> str:
    """Returns a path of encoded segments. Errors: 404 for one that is empty, `.` or `..`, which would lead elsewhere."""
    for segment in segments:
        if segment in ("", ".", ".."):
            raise PlatformError(404, f"There is nothing named {segment!r}")
    return "/" + "/".join(quote(segment, safe="") for segment in segments)


def params_of(params: Optional[Params]) -> Dict[str, str]:
    """Returns the parameters that are set, as text."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (params or {}).items()
        if value is not None
    }


def json_of(value: Any) -> bytes:
    """Returns JSON in UTF-8. Errors: 400 for what JSON does not have, before anything is sent."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_plain)
        return text.encode()
    except (ValueError, TypeError) as problem:
        raise PlatformError(400, f"It cannot be sent as JSON: {problem}") from problem


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise ValueError("a datetime needs a time zone, as in datetime.now(timezone.utc)")
        return value.isoformat()
    if isinstance(value, (datetime.date, uuid.UUID)):
        return str(value)
    # Numbers of numpy and pandas give their Python value.
    item = getattr(value, "item", None)
    if callable(item):
        return item()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def form_of(parts: Sequence[Tuple[str, Optional[str], str, bytes]]) -> Tuple[str, bytes]:
    """Returns content type and body of a form, whose bytes are the same in each try.

    A part is its name, the name of a file or None, its content type and its bytes.
    """
    boundary = secrets.token_hex(16)
    body = bytearray()
    for name, filename, content_type, content in parts:
        named = "" if filename is None else f'; filename="{_quoted(filename)}"'
        head = f'Content-Disposition: form-data; name="{_quoted(name)}"{named}\r\nContent-Type: {content_type}'
        body += f"--{boundary}\r\n{head}\r\n\r\n".encode() + content + b"\r\n"
    body += f"--{boundary}--\r\n".encode()
    return f"multipart/form-data; boundary={boundary}", bytes(body)


def _quoted(text: str) -> str:
    return text.replace("\r", "%0D").replace("\n", "%0A").replace("\\", "\\\\").replace('"', '\\"')


def new_key() -> str:
    """Returns an idempotency key for one write and its retries."""
    return str(uuid.uuid4())


def wait_before(attempt: int, error: PlatformError) -> Optional[float]:
    """Returns the seconds before the next try of a request, None where there is none."""
    passing = error.status in _RETRIED and error.code != "timeout"
    under_way = any(problem.get("code") == "idempotency_in_progress" for problem in error.fields.values())
    asked = error.retry_after or 0.0
    if not (passing or under_way) or attempt >= RETRIES_MAX or asked > RETRY_AFTER_MAX_SECONDS:
        return None
    return asked + jittered(RETRY_BACKOFF_SECONDS * 2**attempt)


def reconnect_wait(failures: int) -> float:
    """Returns the seconds before the next connection, after so many failures in a row."""
    return jittered(min(RECONNECT_MAX_SECONDS, RECONNECT_FIRST_SECONDS * 2 ** min(failures, 10)))


def jittered(seconds: float) -> float:
    """Returns a time around this one, so that clients do not come back together."""
    return seconds * random.uniform(0.7, 1.3)


@dataclass
class Session:
    """Tokens of a user. Times count from their arrival on a clock that nobody sets, never from timestamps in the tokens."""

    user: User
    access_token: str
    refresh_token: str
    taken_at: float
    lifetime: float

    def left(self, now: float) -> float:
        """Returns the seconds for which the access token is good."""
        return self.taken_at + self.lifetime - now

    def is_due(self, now: float) -> bool:
        """Returns whether the access token is to be replaced."""
        return self.left(now) <= min(REFRESH_MARGIN_SECONDS, self.lifetime / 5)


def session_of(tokens: Mapping[str, Any], now: float) -> Session:
    """Returns the session of an answer with tokens."""
    access_token = tokens["accessToken"]
    return Session(tokens["user"], access_token, tokens["refreshToken"], now, _lifetime_of(access_token))


def _lifetime_of(access_token: str) -> float:
    """Returns the lifetime that a token states; 0 for an unreadable one, which is then replaced at each use."""
    try:
        payload = access_token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"] - claims["iat"])
    except (IndexError, KeyError, TypeError, ValueError):
        return 0.0


def records_path(namespace: str, instance: Optional[str], *more: str) -> str:
    """Returns a path below a namespace, or below one instance of it."""
    middle = [namespace] if instance is None else [namespace, instance]
    return "/api/db" + path_of(*middle, *more)


def file_key_path(key: str) -> str:
    """Returns the path of a key, whose slashes stay."""
    if re.search(r"(^|/)\.{0,2}(/|$)", key):
        raise PlatformError(404, f"There is no file {key!r}")
    return quote(key, safe="/")


def changed_by(state: Mapping[str, Any], delta: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the state after a delta, whose paths lead to new values, or to null where something goes. The one before stays as it is."""
    changed = dict(state)
    for path, value in delta.items():
        *parents, last = path.split(".")
        target = changed
        for name in parents:
            inner = target.get(name)
            target[name] = dict(inner) if isinstance(inner, Mapping) else {}
            target = target[name]
        if value is None:
            target.pop(last, None)
        else:
            target[last] = value
    return changed

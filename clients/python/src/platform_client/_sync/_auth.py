# Made by scripts/generate_sync.py of the module of the same name in _async.
"""Signing in and out."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from .._errors import PlatformError
from .._types import User
from ._transport import Transport


class Auth:
    """Session of a client: its access tokens are replaced by themselves."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def user(self) -> Optional[User]:
        """The signed-in user, or None."""
        session = self._transport.session
        return None if session is None else session.user

    def sign_up(
        self,
        email: str,
        password: str,
        *,
        display_name: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
    ) -> User:
        """Makes an account and signs in. Where addresses must be verified first, `user` stays None."""
        body: Dict[str, Any] = {"email": email, "password": password}
        if display_name is not None:
            body["displayName"] = display_name
        if metadata is not None:
            body["metadata"] = dict(metadata)
        return self._begin("/api/auth/signup", body)

    def sign_in(self, email: str, password: str, *, code: Optional[str] = None) -> User:
        """Signs in. `code` is that of the second factor. Errors: 401; with the field `code` where it is needed."""
        body = {"email": email, "password": password}
        answer = self._post("/api/auth/signin", body)
        if answer.get("mfaRequired"):
            if code is None:
                problem = "A second factor is required: pass its code"
                raise PlatformError(401, problem, fields={"code": {"code": "required", "message": problem}})
            ticket = {"mfaTicket": answer["mfaTicket"], "code": code}
            answer = self._post("/api/auth/mfa/verify", ticket)
        return self._transport.adopt(answer).user

    def sign_in_anonymously(self) -> User:
        """Signs in as a new user without an address."""
        return self._begin("/api/auth/signin/anonymous", None)

    def sign_out(self) -> None:
        """Ends the session, here at once and then at the server."""
        session = self._transport.session
        self._transport.session = None
        if session is None:
            return
        try:
            self._post("/api/auth/signout", {"refreshToken": session.refresh_token})
        except PlatformError as error:
            # It has ended already.
            if error.status not in (400, 401, 403):
                raise

    def _begin(self, path: str, body: Optional[Mapping[str, Any]]) -> User:
        answer = self._post(path, body)
        if "accessToken" in answer:
            self._transport.adopt(answer)
        user: User = answer["user"]
        return user

    def _post(self, path: str, body: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
        answer: Dict[str, Any] = self._transport.request("POST", path, json=body, authenticated=False)
        return answer

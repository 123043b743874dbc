"""Requests: credentials, retries, and the session of the signed-in user."""

from __future__ import annotations

import time
from typing import Any, Dict, Mapping, Optional

import httpx

from .._errors import PlatformError, error_of, network_error
from .._types import Params
from .._wire import Session, base_of, json_of, new_key, params_of, session_of, wait_before
from ._io import Lock, http_client, sleep


class AsyncTransport:
    """Sends requests as the signed-in user, with a service key, or as nobody."""

    def __init__(self, url: str, service_key: Optional[str]) -> None:
        self.base = base_of(url)
        self.service_key = service_key
        self.session: Optional[Session] = None
        self._http = http_client()
        self._refreshing = Lock()

    async def close(self) -> None:
        """Closes all connections."""
        await self._http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Optional[Params] = None,
        json: Any = None,
        body: Optional[bytes] = None,
        content_type: str = "application/json",
        idempotent: bool = False,
        retried: bool = False,
        authenticated: bool = True,
    ) -> Any:
        """Sends a request and returns the JSON of its answer, None for an empty one. Errors: `PlatformError`."""
        response = await self.response(
            method,
            path,
            params=params,
            json=json,
            body=body,
            content_type=content_type,
            idempotent=idempotent,
            retried=retried,
            authenticated=authenticated,
        )
        return response.json() if response.content else None

    async def response(
        self,
        method: str,
        path: str,
        *,
        params: Optional[Params] = None,
        json: Any = None,
        body: Optional[bytes] = None,
        content_type: str = "application/json",
        idempotent: bool = False,
        retried: bool = False,
        authenticated: bool = True,
    ) -> httpx.Response:
        """Sends a request and returns its answer. Reads, and idempotent writes of a caller with credentials, are tried again."""
        content = json_of(json) if json is not None else body
        headers: Dict[str, str] = {} if content is None else {"content-type": content_type}
        has_caller = self.service_key is not None or self.session is not None
        if idempotent and has_caller:
            headers["idempotency-key"] = new_key()
        is_retried = retried or method == "GET" or "idempotency-key" in headers
        user = self.user_id() if authenticated else None
        attempt = 0
        while True:
            try:
                return await self._as_caller(method, path, params_of(params), content, headers, authenticated, user)
            except PlatformError as error:
                wait = wait_before(attempt, error) if is_retried else None
                if wait is None:
                    raise
            attempt += 1
            await sleep(wait)

    def user_id(self) -> Optional[str]:
        """Returns the id of the signed-in user."""
        return None if self.session is None else self.session.user["id"]

    async def _as_caller(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        content: Optional[bytes],
        headers: Mapping[str, str],
        authenticated: bool,
        user: Optional[str],
    ) -> httpx.Response:
        """Sends a request once, and once more where its token was refused and there is another one."""
        if not authenticated:
            return await self._once(method, path, params, content, headers)
        if self.service_key is not None:
            return await self._once(
                method, path, params, content, {**headers, "x-platform-service-key": self.service_key}
            )
        token = await self.token()
        if self.user_id() != user:
            raise PlatformError(401, "Another user has signed in, or nobody is signed in any more")
        if token is None:
            return await self._once(method, path, params, content, headers)
        try:
            return await self._once(method, path, params, content, {**headers, "authorization": f"Bearer {token}"})
        except PlatformError as error:
            if error.status != 401 or not await self.replace_refused(token) or self.session is None:
                raise
            if self.user_id() != user:
                raise
            token = self.session.access_token
        return await self._once(method, path, params, content, {**headers, "authorization": f"Bearer {token}"})

    async def _once(
        self, method: str, path: str, params: Mapping[str, str], content: Optional[bytes], headers: Mapping[str, str]
    ) -> httpx.Response:
        url = self.base + path
        try:
            response = await self._http.request(method, url, params=params or None, content=content, headers=headers)
        except httpx.TimeoutException as problem:
            raise PlatformError(0, f"{url} did not answer in time", code="timeout") from problem
        except httpx.TransportError as problem:
            raise network_error(url, problem) from problem
        if response.status_code >= 300:
            raise error_of(response.status_code, response.content, response.headers)
        return response

    def adopt(self, tokens: Mapping[str, Any]) -> Session:
        """Begins a session, or goes on with its next tokens."""
        self.session = session_of(tokens, time.monotonic())
        return self.session

    async def token(self) -> Optional[str]:
        """Returns an access token that is good, None without a user. A refresh that fails leaves the present one while it is good."""
        session = self.session
        if session is None or not session.is_due(time.monotonic()):
            return None if session is None else session.access_token
        try:
            await self._refresh(session)
        except PlatformError:
            if session is not self.session or session.left(time.monotonic()) <= 0:
                raise
        return None if self.session is None else self.session.access_token

    async def replace_refused(self, token: str) -> bool:
        """Replaces an access token that the server has refused. Returns whether there is another one."""
        session = self.session
        if session is not None and session.access_token == token:
            await self._refresh(session)
        return self.session is not None and self.session.access_token != token

    async def _refresh(self, stale: Session) -> None:
        """Replaces the tokens, once for all that wait. A session that the server has ended is forgotten."""
        async with self._refreshing:
            if self.session is not stale:
                return
            attempt = 0
            while True:
                try:
                    content = json_of({"refreshToken": stale.refresh_token})
                    headers = {"content-type": "application/json"}
                    response = await self._once("POST", "/api/auth/refresh", {}, content, headers)
                    break
                except PlatformError as error:
                    if error.status in (400, 401, 403):
                        if self.session is stale:
                            self.session = None
                        return
                    # A replaced refresh token gives the same tokens again for 30 s, so a lost answer loses nothing.
                    wait = wait_before(attempt, error)
                    if wait is None:
                        raise
                attempt += 1
                await sleep(wait)
            if self.session is stale:
                self.adopt(response.json())

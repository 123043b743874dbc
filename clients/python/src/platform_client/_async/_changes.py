"""Changes of records, over a WebSocket that is made again when it is lost."""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Awaitable, Callable, Deque, Dict, Generic, List, Mapping, Optional, cast

from .._errors import PlatformError
from .._mirror import KNOWN_MAX, Mirror
from .._query import QueryState
from .._types import Change, R
from .._wire import RETRIES_MAX, json_of, reconnect_wait
from ._io import Closed, Socket, sleep
from ._transport import AsyncTransport

#: Time after which an answer to a message is given up, and the connection with it.
ANSWER_SECONDS = 15.0
#: Pause after which an idle iterator looks whether its access token is to be replaced.
IDLE_SECONDS = 1.0
SUBSCRIPTION = "changes"
_DENIALS = {"SUBSCRIBE_DENIED": 403, "ACCESS_DENIED": 403, "INVALID_CHANNEL": 404}


class AsyncChanges(Generic[R]):
    """Iterator of the changes of a query. Errors: 401 and 403 where the rights end, and what the first connection meets."""

    def __init__(
        self,
        transport: AsyncTransport,
        listed: Callable[[int], Awaitable[Optional[List[Mapping[str, Any]]]]],
        one: Callable[[str], Awaitable[Optional[Mapping[str, Any]]]],
        channel: str,
        state: QueryState,
    ) -> None:
        self._transport = transport
        self._listed = listed
        self._one = one
        self._subscription: Dict[str, Any] = {"id": SUBSCRIPTION, "channel": channel, **state.subscription()}
        self._mirror = Mirror()
        self._waiting: Deque[Change[Any]] = deque()
        self._socket: Optional[Socket] = None
        self._feed: Optional[str] = None
        self._token: Optional[str] = None
        self._needs_list = True
        self._is_closed = False

    async def __aenter__(self) -> AsyncChanges[R]:
        """Subscribes: what is committed from now on is among the changes."""
        await self._connected()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncChanges[R]:
        return self

    async def aclose(self) -> None:
        """Ends the subscription and its connection."""
        self._is_closed = True
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    async def __anext__(self) -> Change[R]:
        """Returns the next change, however long it takes."""
        while not self._is_closed:
            if self._waiting:
                return cast("Change[R]", self._waiting.popleft())
            socket = await self._connected()
            if socket is None:
                break
            try:
                message = await socket.receive(IDLE_SECONDS)
                if message is None:
                    await self._send_fresh_token(socket)
                else:
                    await self._take(message)
            except Closed as end:
                await self._lose(end)
            except PlatformError as problem:
                if not _is_passing(problem):
                    raise
                await self._lose(Closed(1006))
        raise StopAsyncIteration

    async def _connected(self) -> Optional[Socket]:
        """Returns the connection, made again where it was lost: for ever once it has been there. None after `aclose`."""
        failures = 0
        while self._socket is None and not self._is_closed:
            try:
                await self._connect()
            except (PlatformError, Closed) as problem:
                is_new = not self._mirror.is_loaded and failures >= RETRIES_MAX
                if isinstance(problem, PlatformError):
                    if is_new or not _is_passing(problem):
                        raise
                elif is_new:
                    raise PlatformError(0, str(problem), code="network") from problem
                await sleep(reconnect_wait(failures))
                failures += 1
        return self._socket

    async def _connect(self) -> None:
        socket = await Socket.open("ws" + self._transport.base[len("http") :] + "/api/realtime")
        try:
            await self._authenticate(socket)
            since = {} if self._mirror.seq is None else {"since": self._mirror.seq}
            # The filters are sent as the list sends them, so that dates have their form.
            await socket.send(json.loads(json_of({"type": "subscribe", **self._subscription, **since})))
            while self._feed is None or self._needs_list:
                await self._take(await self._answer(socket), is_first=True)
        except BaseException:
            self._feed = None
            await socket.close()
            raise
        self._socket = socket

    async def _authenticate(self, socket: Socket) -> None:
        for _ in range(2):
            self._token = await self._credentials()
            anonymous: Dict[str, Any] = {"type": "auth", "anonymous": True}
            await socket.send(anonymous if self._token is None else {"type": "auth", "token": self._token})
            answer = await self._answer(socket)
            if answer.get("type") == "auth_success":
                return
            if self._token is None or not await self._transport.replace_refused(self._token):
                break
        raise PlatformError(401, "The server refused the access token")

    async def _credentials(self) -> Optional[str]:
        """Returns an access token, for a service key a ticket that is good once, None for nobody."""
        if self._transport.service_key is None:
            return await self._transport.token()
        return str((await self._transport.request("POST", "/api/admin/socket-ticket"))["ticket"])

    async def _answer(self, socket: Socket) -> Dict[str, Any]:
        message = await socket.receive(ANSWER_SECONDS)
        if message is None:
            raise Closed(1006)
        return message

    async def _send_fresh_token(self, socket: Socket) -> None:
        """Sends the access token when it has been replaced, so that the connection goes on by the rights of now."""
        if self._transport.service_key is not None:
            return
        token = await self._transport.token()
        if token is None and self._token is not None:
            raise PlatformError(401, "The session has ended")
        if token is not None and token != self._token:
            self._token = token
            await socket.send({"type": "auth", "token": token})

    async def _lose(self, end: Closed) -> None:
        """Forgets a connection that has ended; one whose session has ended is tried with other tokens first."""
        socket, self._socket, self._feed = self._socket, None, None
        if socket is not None:
            await socket.close()
        if end.code == 4003 and self._token is not None and not await self._transport.replace_refused(self._token):
            raise PlatformError(401, "The session has ended")

    async def _take(self, message: Mapping[str, Any], is_first: bool = False) -> None:
        """Takes a message of the server."""
        type = message.get("type")
        if type == "subscribed" and message.get("id") == SUBSCRIPTION:
            self._feed = message["feed"]
            self._mirror.seq = max(self._mirror.seq or 0, message.get("seq") or 0) or None
            # Stays true until the list has been read, whatever happens to the connection meanwhile.
            self._needs_list = self._needs_list or bool(message.get("resync"))
            if self._needs_list:
                self._waiting.extend(self._mirror.load(await self._listed(KNOWN_MAX)))
                self._needs_list = False
        elif type == "db_change" and message.get("feed") == self._feed:
            await self._change(message)
        elif type == "batch_changes" and message.get("feed") == self._feed:
            for change in message["changes"]:
                await self._change(change)
        elif type == "auth_refreshed" and SUBSCRIPTION in message.get("revokedIds", []):
            raise PlatformError(403, "The rights to these records have ended")
        elif type == "error" and (message.get("id") == SUBSCRIPTION or is_first):
            self._refused(message)

    async def _change(self, change: Mapping[str, Any]) -> None:
        id = str(change["docId"])
        record = change.get("data")
        if change.get("truncated"):
            record = await self._one(id)
        self._waiting.extend(self._mirror.take(change["changeType"], id, record))
        self._mirror.seq = max(self._mirror.seq or 0, change.get("seq") or 0)

    def _refused(self, message: Mapping[str, Any]) -> None:
        code = str(message.get("code"))
        if code == "RATE_LIMITED":
            raise Closed(1013)
        status = _DENIALS.get(code, 400)
        is_visitor = self._token is None and self._transport.service_key is None
        raise PlatformError(401 if status == 403 and is_visitor else status, str(message.get("message", code)))


def _is_passing(problem: PlatformError) -> bool:
    return problem.status in (0, 429, 502, 503)

# Made by scripts/generate_sync.py of the module of the same name in _async.
"""Changes of records, over a WebSocket that is made again when it is lost."""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Callable, Deque, Dict, Generic, List, Mapping, Optional, cast

from .._errors import PlatformError
from .._mirror import KNOWN_MAX, Mirror
from .._query import QueryState
from .._types import Change, R
from .._wire import RETRIES_MAX, json_of, reconnect_wait
from ._io import Closed, Socket, sleep
from ._login import Login, answer_of
from ._transport import Transport

#: Pause after which an idle iterator looks whether its access token is to be replaced.
IDLE_SECONDS = 1.0
SUBSCRIPTION = "changes"
_DENIALS = {"SUBSCRIBE_DENIED": 403, "ACCESS_DENIED": 403, "INVALID_CHANNEL": 404}


class Changes(Generic[R]):
    """Iterator of the changes of a query. Errors: 401 and 403 where the rights end, and what the first connection meets."""

    def __init__(
        self,
        transport: Transport,
        listed: Callable[[int], Optional[List[Mapping[str, Any]]]],
        one: Callable[[str], Optional[Mapping[str, Any]]],
        channel: str,
        state: QueryState,
    ) -> None:
        self._login = Login(transport)
        self._listed = listed
        self._one = one
        self._subscription: Dict[str, Any] = {"id": SUBSCRIPTION, "channel": channel, **state.subscription()}
        self._mirror = Mirror()
        self._waiting: Deque[Change[Any]] = deque()
        self._socket: Optional[Socket] = None
        self._feed: Optional[str] = None
        self._needs_list = True
        self._is_closed = False

    def __enter__(self) -> Changes[R]:
        """Subscribes: what is committed from now on is among the changes."""
        self._connected()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __iter__(self) -> Changes[R]:
        return self

    def close(self) -> None:
        """Ends the subscription and its connection."""
        self._is_closed = True
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()

    def __next__(self) -> Change[R]:
        """Returns the next change, however long it takes."""
        while not self._is_closed:
            if self._waiting:
                return cast("Change[R]", self._waiting.popleft())
            socket = self._connected()
            if socket is None:
                break
            try:
                message = socket.receive(IDLE_SECONDS)
                if message is None:
                    self._login.send_fresh(socket)
                else:
                    self._take(message)
            except Closed as end:
                self._lose(end)
            except PlatformError as problem:
                if not _is_passing(problem):
                    raise
                self._lose(Closed(1006))
        raise StopIteration

    def _connected(self) -> Optional[Socket]:
        """Returns the connection, made again where it was lost: for ever once it has been there. None after `close`."""
        failures = 0
        while self._socket is None and not self._is_closed:
            try:
                self._connect()
            except (PlatformError, Closed) as problem:
                is_new = not self._mirror.is_loaded and failures >= RETRIES_MAX
                if isinstance(problem, PlatformError):
                    if is_new or not _is_passing(problem):
                        raise
                elif is_new:
                    raise PlatformError(0, str(problem), code="network") from problem
                sleep(reconnect_wait(failures))
                failures += 1
        return self._socket

    def _connect(self) -> None:
        socket = self._login.open("/api/realtime")
        try:
            since = {} if self._mirror.seq is None else {"since": self._mirror.seq}
            # The filters are sent as the list sends them, so that dates have their form.
            socket.send(json.loads(json_of({"type": "subscribe", **self._subscription, **since})))
            while self._feed is None or self._needs_list:
                self._take(answer_of(socket), is_first=True)
        except BaseException:
            self._feed = None
            socket.close()
            raise
        self._socket = socket

    def _lose(self, end: Closed) -> None:
        """Forgets a connection that has ended; one whose session has ended is tried with other tokens first."""
        socket, self._socket, self._feed = self._socket, None, None
        if socket is not None:
            socket.close()
        self._login.lost(end)

    def _take(self, message: Mapping[str, Any], is_first: bool = False) -> None:
        """Takes a message of the server."""
        type = message.get("type")
        if type == "subscribed" and message.get("id") == SUBSCRIPTION:
            self._feed = message["feed"]
            self._mirror.seq = max(self._mirror.seq or 0, message.get("seq") or 0) or None
            # Stays true until the list has been read, whatever happens to the connection meanwhile.
            self._needs_list = self._needs_list or bool(message.get("resync"))
            if self._needs_list:
                self._waiting.extend(self._mirror.load(self._listed(KNOWN_MAX)))
                self._needs_list = False
        elif type == "db_change" and message.get("feed") == self._feed:
            self._change(message)
        elif type == "batch_changes" and message.get("feed") == self._feed:
            for change in message["changes"]:
                self._change(change)
        elif type == "auth_refreshed" and SUBSCRIPTION in message.get("revokedIds", []):
            raise PlatformError(403, "The rights to these records have ended")
        elif type == "error" and (message.get("id") == SUBSCRIPTION or is_first):
            self._refused(message)

    def _change(self, change: Mapping[str, Any]) -> None:
        id = str(change["docId"])
        record = change.get("data")
        if change.get("truncated"):
            record = self._one(id)
        self._waiting.extend(self._mirror.take(change["changeType"], id, record))
        self._mirror.seq = max(self._mirror.seq or 0, change.get("seq") or 0)

    def _refused(self, message: Mapping[str, Any]) -> None:
        code = str(message.get("code"))
        if code == "RATE_LIMITED":
            raise Closed(1013)
        status = _DENIALS.get(code, 400)
        raise PlatformError(401 if status == 403 and self._login.is_nobody else status, str(message.get("message", code)))


def _is_passing(problem: PlatformError) -> bool:
    return problem.status in (0, 429, 502, 503)

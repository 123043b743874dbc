"""Presence, broadcasts and rooms: each has a connection of its own, which is made again when it is lost."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Mapping, Optional, cast
from urllib.parse import quote

from .._errors import PlatformError
from .._types import BroadcastEvent, PresenceEntry, RoomEvent
from .._wire import RETRIES_MAX, changed_by, new_key, reconnect_wait
from ._io import Background, Closed, Mailbox, Socket, sleep
from ._login import ANSWER_SECONDS, AsyncLogin
from ._transport import AsyncTransport

#: Pause after which a silent connection looks whether its token is to be replaced.
IDLE_SECONDS = 1.0
#: Time between two pings, without which the server forgets an entry of presence after 60 s.
PING_SECONDS = 20.0
#: Events that wait for a slow iterator; with more of them, the oldest are dropped.
EVENTS_MAX = 1_000
_END: Any = object()
_STATUSES = (
    ("AUTHENTICATED", 401),
    ("REVOKED", 401),
    ("DENIED", 403),
    ("NO_HANDLER", 404),
    ("CHANNEL", 404),
    ("FULL", 409),
    ("TOO_LARGE", 413),
    ("LIMITED", 429),
)


class AsyncLink:
    """Connection of one channel or room, kept up in the background until its `with` block ends."""

    def __init__(self, transport: AsyncTransport, path: str, events_max: int) -> None:
        self._login = AsyncLogin(transport)
        self._path = path
        self._events = Mailbox(events_max)
        self._started = Mailbox(1)
        self._answers: Dict[str, Mailbox] = {}
        self._socket: Optional[Socket] = None
        self._problem: Optional[PlatformError] = None
        self._work: Optional[Background] = None
        self._is_ready = False
        self._is_closed = False

    async def _start(self) -> None:
        self._work = Background(self._run)
        problem = await self._started.take()
        if problem is not None and problem is not _END:
            await self.aclose()
            raise problem

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the connection, and its iteration."""
        self._is_closed = True
        socket, self._socket = self._socket, None
        if self._work is not None:
            self._work.stop()
        if socket is not None:
            await socket.close()
        self._end_answers("The connection was closed")
        self._events.put(_END)

    async def _next(self) -> Any:
        event = await self._events.take()
        if event is _END or isinstance(event, PlatformError):
            # Further iterations end, too.
            self._events.put(_END)
            if isinstance(event, PlatformError):
                raise event
            raise StopAsyncIteration
        return event

    async def _run(self) -> None:
        failures = 0
        while not self._is_closed:
            try:
                socket = await self._login.open(self._path)
                try:
                    await self._begin(socket)
                    self._socket = socket
                    failures = 0
                    await self._serve(socket)
                finally:
                    self._socket = None
                    await socket.close()
            except Closed as end:
                problem = await self._problem_of(end)
            except PlatformError as error:
                is_passing = error.status in (0, 429, 502, 503)
                problem = None if is_passing and (self._is_ready or failures < RETRIES_MAX) else error
            self._end_answers("The connection was lost before the answer")
            if problem is not None:
                self._fail(problem)
                return
            if not self._is_closed:
                await sleep(reconnect_wait(failures))
            failures += 1

    async def _problem_of(self, end: Closed) -> Optional[PlatformError]:
        """Returns why a connection is not made again, None if it is."""
        if end.code == 4001:
            return PlatformError(403, "The room has removed this user")
        try:
            await self._login.lost(end)
        except PlatformError as error:
            return error if error.status == 401 else None
        return None

    async def _serve(self, socket: Socket) -> None:
        looked = pinged = time.monotonic()
        while True:
            message = await socket.receive(IDLE_SECONDS)
            if message is not None:
                await self._take(socket, message)
            now = time.monotonic()
            if now - pinged >= PING_SECONDS:
                pinged = now
                await socket.send({"type": "ping"})
            if now - looked >= IDLE_SECONDS:
                looked = now
                await self._login.send_fresh(socket)

    async def _begin(self, socket: Socket) -> None:
        """Sends what a new connection begins with."""
        raise NotImplementedError

    async def _received(self, socket: Socket, message: Mapping[str, Any]) -> None:
        """Takes a message that is no answer."""
        raise NotImplementedError

    async def _take(self, socket: Socket, message: Mapping[str, Any]) -> None:
        type, request_id = message.get("type"), message.get("requestId")
        if type == "auth_refreshed" and self._is_revoked(message):
            raise PlatformError(403, "The rights to this have ended")
        if type in ("error", "action_error"):
            problem = self._error_of(message)
            if request_id is not None:
                self._answer(request_id, problem)
            elif problem.status == 429:
                raise Closed(1013)
            elif problem.status in (401, 403) or not self._is_ready:
                raise problem
        elif type in ("done", "action_result"):
            self._answer(request_id, message)
        else:
            await self._received(socket, message)

    def _is_revoked(self, message: Mapping[str, Any]) -> bool:
        return False

    def _error_of(self, message: Mapping[str, Any]) -> PlatformError:
        code = str(message.get("code", ""))
        status = next((status for ending, status in _STATUSES if code.endswith(ending)), 400)
        is_nobody = status == 403 and self._login.is_nobody
        return PlatformError(401 if is_nobody else status, str(message.get("message", code)))

    def _answer(self, request_id: Any, outcome: Any) -> None:
        box = self._answers.get(str(request_id))
        if box is not None:
            box.put(outcome)

    def _end_answers(self, reason: str) -> None:
        for box in list(self._answers.values()):
            box.put(PlatformError(0, reason, code="network"))

    def _ready(self) -> None:
        if not self._is_ready:
            self._is_ready = True
            self._started.put(_END)

    def _fail(self, problem: PlatformError) -> None:
        self._problem = problem
        self._started.put(problem)
        self._events.put(problem)

    async def _ask(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sends a message and returns its answer. It is sent once: a lost connection leaves it unknown."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while self._socket is None:
            if self._problem is not None:
                raise self._problem
            if self._is_closed or time.monotonic() > deadline:
                raise PlatformError(0, "There is no connection", code="network")
            await sleep(0.02)
        request_id, box = new_key(), Mailbox(1)
        self._answers[request_id] = box
        try:
            await self._socket.send({**message, "requestId": request_id})
            outcome = await box.take(ANSWER_SECONDS)
        except Closed as end:
            raise PlatformError(0, str(end), code="network") from end
        finally:
            del self._answers[request_id]
        if isinstance(outcome, PlatformError):
            raise outcome
        if outcome is None:
            raise PlatformError(0, "The server did not answer in time", code="timeout")
        return cast(Mapping[str, Any], outcome)


class AsyncPresence(AsyncLink):
    """Who is on a channel. Iterating gives the entries after each change. Errors: 401, 403."""

    def __init__(self, transport: AsyncTransport, channel: str) -> None:
        super().__init__(transport, "/api/realtime", 1)
        self._channel = channel
        self._tracked: Optional[Mapping[str, Any]] = None
        self._present: Dict[str, PresenceEntry] = {}
        #: Entries now; while the connection is lost, those before.
        self.users: List[PresenceEntry] = []

    async def __aenter__(self) -> AsyncPresence:
        """Subscribes: `users` has who is there."""
        await self._start()
        return self

    def __aiter__(self) -> AsyncPresence:
        return self

    async def __anext__(self) -> List[PresenceEntry]:
        return cast("List[PresenceEntry]", await self._next())

    async def track(self, state: Mapping[str, Any]) -> None:
        """Shows this connection with a state of at most 1 KB until `untrack`, also after a reconnect. Errors: 413."""
        before, self._tracked = self._tracked, state
        try:
            await self._ask({"type": "track", "channel": self._channel, "state": dict(state)})
        except PlatformError as error:
            # Without an answer it is shown as soon as the connection is back.
            if error.status != 0:
                self._tracked = before
            raise

    async def untrack(self) -> None:
        """Shows this connection no longer."""
        self._tracked = None
        await self._ask({"type": "untrack", "channel": self._channel})

    async def _begin(self, socket: Socket) -> None:
        await socket.send({"type": "subscribe", "channel": self._channel})
        if self._tracked is not None:
            await socket.send({"type": "track", "channel": self._channel, "state": dict(self._tracked)})

    def _is_revoked(self, message: Mapping[str, Any]) -> bool:
        return self._channel in message.get("revokedChannels", [])

    async def _received(self, socket: Socket, message: Mapping[str, Any]) -> None:
        type = message.get("type")
        if type == "presence_sync":
            self._present = {entry["connectionId"]: _entry_of(entry) for entry in message["users"]}
        elif type in ("presence_join", "presence_update"):
            self._present[message["connectionId"]] = _entry_of(message)
        elif type == "presence_leave":
            self._present.pop(message["connectionId"], None)
        else:
            return
        self.users = list(self._present.values())
        if type == "presence_sync":
            self._ready()
        self._events.put(self.users)


def _entry_of(entry: Mapping[str, Any]) -> PresenceEntry:
    return PresenceEntry(entry["userId"], entry["connectionId"], entry.get("state") or {})


class AsyncBroadcast(AsyncLink):
    """Messages of a channel, which are not stored. Iterating gives those of others. Errors: 401, 403."""

    def __init__(self, transport: AsyncTransport, channel: str) -> None:
        super().__init__(transport, "/api/realtime", EVENTS_MAX)
        self._channel = channel

    async def __aenter__(self) -> AsyncBroadcast:
        """Subscribes: what is said from now on is heard."""
        await self._start()
        return self

    def __aiter__(self) -> AsyncBroadcast:
        return self

    async def __anext__(self) -> BroadcastEvent:
        return cast(BroadcastEvent, await self._next())

    async def send(self, event: str, data: Any) -> None:
        """Sends a message. It is sent once."""
        await self._ask({"type": "broadcast", "channel": self._channel, "event": event, "data": data})

    async def _begin(self, socket: Socket) -> None:
        await socket.send({"type": "subscribe", "channel": self._channel})

    def _is_revoked(self, message: Mapping[str, Any]) -> bool:
        return self._channel in message.get("revokedChannels", [])

    async def _received(self, socket: Socket, message: Mapping[str, Any]) -> None:
        if message.get("type") == "subscribed":
            self._ready()
        elif message.get("type") == "broadcast_event":
            self._events.put(BroadcastEvent(str(message["event"]), message.get("data")))


class AsyncRoom(AsyncLink):
    """Room: its state, its actions and its messages. Iterating gives what happens. Errors: 401, 403, 409 for a full one."""

    def __init__(self, transport: AsyncTransport, namespace: str, id: str) -> None:
        path = f"/api/room?namespace={quote(namespace, safe='')}&id={quote(id, safe='')}"
        super().__init__(transport, path, EVENTS_MAX)
        #: State that all players share; replaced by each change.
        self.shared: Dict[str, Any] = {}
        #: State that this user alone gets.
        self.mine: Dict[str, Any] = {}
        self._versions: Dict[str, int] = {}

    async def __aenter__(self) -> AsyncRoom:
        """Joins: the states are there."""
        await self._start()
        return self

    def __aiter__(self) -> AsyncRoom:
        return self

    async def __anext__(self) -> RoomEvent:
        return cast(RoomEvent, await self._next())

    async def act(self, type: str, payload: Any = None) -> Any:
        """Runs an action and returns its result. It is sent once. Errors: 400 with the message that the action has thrown."""
        return (await self._ask({"type": "send", "actionType": type, "payload": payload})).get("result")

    async def _begin(self, socket: Socket) -> None:
        await socket.send({"type": "join"})

    async def _received(self, socket: Socket, message: Mapping[str, Any]) -> None:
        type = message.get("type")
        if type == "sync":
            self.shared, self.mine = message.get("sharedState") or {}, message.get("playerState") or {}
            self._versions = {"shared": message["sharedVersion"], "player": message["playerVersion"]}
            self._ready()
        elif type in ("shared_delta", "player_delta"):
            name = str(type).split("_")[0]
            if message["version"] != self._versions[name] + 1:
                # Something is missing: the answer is the whole state.
                await socket.send({"type": "join"})
                return
            self._versions[name] = message["version"]
            if name == "shared":
                self.shared = changed_by(self.shared, message["delta"])
            else:
                self.mine = changed_by(self.mine, message["delta"])
        elif type == "message":
            self._events.put(RoomEvent("message", message.get("messageType"), message.get("data")))
            return
        elif type == "kicked":
            raise PlatformError(403, "The room has removed this user")
        else:
            return
        self._events.put(RoomEvent("state", None, self.shared))

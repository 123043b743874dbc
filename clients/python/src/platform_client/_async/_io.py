"""Sockets, locks and waits of asyncio. `_sync/_io.py` has the same with threads; all other modules there are made from these."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Callable, Coroutine, Dict, Mapping, Optional

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from .._errors import PlatformError, network_error
from .._wire import TIMEOUT_SECONDS

#: A silent connection is pinged after so many seconds, and then lost without an answer.
PING_SECONDS = 5.0
MESSAGE_MAX_BYTES = 64 * 1024 * 1024

Lock = asyncio.Lock
sleep = asyncio.sleep


def http_client() -> httpx.AsyncClient:
    """Makes the client of HTTP; redirects are errors, since an API has none."""
    return httpx.AsyncClient(timeout=TIMEOUT_SECONDS)


class Mailbox:
    """Queue of at most so many things: a further one takes the place of the oldest."""

    def __init__(self, size: int) -> None:
        self._items: asyncio.Queue[Any] = asyncio.Queue(size)

    def put(self, item: Any) -> None:
        """Adds a thing."""
        if self._items.full():
            self._items.get_nowait()
        self._items.put_nowait(item)

    async def take(self, timeout: Optional[float] = None) -> Any:
        """Returns the oldest thing, None if there is none in so many seconds."""
        try:
            return await asyncio.wait_for(self._items.get(), timeout)
        except (asyncio.TimeoutError, TimeoutError):
            return None


class Background:
    """Work beside the caller's."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._task = asyncio.create_task(work())

    def stop(self) -> None:
        """Ends it."""
        self._task.cancel()


class Closed(Exception):
    """End of a WebSocket, with its close code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the connection was closed with {code}")
        self.code = code


class Socket:
    """WebSocket whose messages are JSON objects."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> Socket:
        """Connects. Errors: `PlatformError`, without a status where the server cannot be reached."""
        try:
            connection = await connect(
                url,
                open_timeout=15,
                ping_interval=PING_SECONDS,
                ping_timeout=PING_SECONDS,
                close_timeout=1,
                max_size=MESSAGE_MAX_BYTES,
            )
        except InvalidStatus as problem:
            status = problem.response.status_code
            raise PlatformError(status, f"The server refused the connection with {status}") from problem
        except (OSError, TimeoutError, WebSocketException) as problem:
            raise network_error(url, problem) from problem
        return cls(connection)

    async def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message. Errors: `Closed`."""
        try:
            await self._connection.send(json.dumps(message))
        except ConnectionClosed as problem:
            raise _closed(problem) from problem

    async def receive(self, timeout: float) -> Optional[Dict[str, Any]]:
        """Returns the next message, None if there is none in so many seconds. Errors: `Closed`."""
        try:
            text = await asyncio.wait_for(self._connection.recv(), timeout)
        except (asyncio.TimeoutError, TimeoutError):
            return None
        except ConnectionClosed as problem:
            raise _closed(problem) from problem
        message = json.loads(text)
        return message if isinstance(message, dict) else {}

    async def close(self) -> None:
        """Closes the connection."""
        await self._connection.close()


def _closed(problem: ConnectionClosed) -> Closed:
    return Closed(1006 if problem.rcvd is None else problem.rcvd.code)

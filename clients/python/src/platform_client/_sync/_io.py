"""Sockets, locks and waits of threads. `_async/_io.py` has the same with asyncio; all other modules here are made from those there."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from contextlib import ExitStack
from typing import Any, Callable, Dict, Mapping, Optional

import httpx
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from .._errors import PlatformError, network_error
from .._wire import TIMEOUT_SECONDS

#: A silent connection is pinged after so many seconds, and then lost without an answer.
PING_SECONDS = 5.0
MESSAGE_MAX_BYTES = 64 * 1024 * 1024

Lock = threading.Lock
sleep = time.sleep


def http_client() -> httpx.Client:
    """Makes the client of HTTP; redirects are errors, since an API has none."""
    return httpx.Client(timeout=TIMEOUT_SECONDS)


class Mailbox:
    """Queue of at most so many things: a further one takes the place of the oldest."""

    def __init__(self, size: int) -> None:
        self._items: queue.Queue[Any] = queue.Queue(size)

    def put(self, item: Any) -> None:
        """Adds a thing."""
        while True:
            try:
                return self._items.put_nowait(item)
            except queue.Full:
                with contextlib.suppress(queue.Empty):
                    self._items.get_nowait()

    def take(self, timeout: Optional[float] = None) -> Any:
        """Returns the oldest thing, None if there is none in so many seconds."""
        try:
            return self._items.get(timeout=timeout)
        except queue.Empty:
            return None


class Background:
    """Work beside the caller's, in a thread that keeps no program alive."""

    def __init__(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, daemon=True).start()

    def stop(self) -> None:
        """Does nothing: it ends by itself when its connection is closed."""


class Closed(Exception):
    """End of a WebSocket, with its close code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the connection was closed with {code}")
        self.code = code


class Socket:
    """WebSocket whose messages are JSON objects."""

    def __init__(self, connection: Connection, opened: ExitStack) -> None:
        self._connection = connection
        self._opened = opened

    @classmethod
    def open(cls, url: str) -> Socket:
        """Connects. Errors: `PlatformError`, without a status where the server cannot be reached."""
        try:
            opened = ExitStack()
            connection = opened.enter_context(
                connect(
                    url,
                    open_timeout=15,
                    ping_interval=PING_SECONDS,
                    ping_timeout=PING_SECONDS,
                    close_timeout=1,
                    max_size=MESSAGE_MAX_BYTES,
                )
            )
        except InvalidStatus as problem:
            status = problem.response.status_code
            raise PlatformError(status, f"The server refused the connection with {status}") from problem
        except (OSError, TimeoutError, WebSocketException) as problem:
            raise network_error(url, problem) from problem
        return cls(connection, opened)

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message. Errors: `Closed`."""
        try:
            self._connection.send(json.dumps(message))
        except ConnectionClosed as problem:
            raise _closed(problem) from problem

    def receive(self, timeout: float) -> Optional[Dict[str, Any]]:
        """Returns the next message, None if there is none in so many seconds. Errors: `Closed`."""
        try:
            text = self._connection.recv(timeout=timeout)
        except TimeoutError:
            return None
        except ConnectionClosed as problem:
            raise _closed(problem) from problem
        message = json.loads(text)
        return message if isinstance(message, dict) else {}

    def close(self) -> None:
        """Closes the connection."""
        self._opened.close()


def _closed(problem: ConnectionClosed) -> Closed:
    return Closed(1006 if problem.rcvd is None else problem.rcvd.code)

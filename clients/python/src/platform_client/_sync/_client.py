# Made by scripts/generate_sync.py of the module of the same name in _async.
"""The client."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from .._types import Params
from ._auth import Auth
from ._channels import Broadcast, Presence, Room
from ._storage import Bucket
from ._tables import Database
from ._transport import Transport


class Client:
    """Client of one server: of a user, of nobody, or of a program with a service key.

    It is used in a `with` block, or closed by `close()`.
    """

    def __init__(self, url: str, service_key: Optional[str] = None) -> None:
        self._transport = Transport(url, service_key)
        self.auth = Auth(self._transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections. The session stays good at the server."""
        self._transport.close()

    def db(self, namespace: str, instance: Optional[str] = None) -> Database:
        """Returns the tables of a namespace; with an instance, those of it alone."""
        return Database(self._transport, namespace, instance)

    def storage(self, bucket: str) -> Bucket:
        """Returns the files of a bucket."""
        return Bucket(self._transport, bucket)

    def presence(self, name: str) -> Presence:
        """Returns who is on a channel, while its `with` block lasts: `with client.presence("lobby") as lobby`."""
        return Presence(self._transport, f"presence:{name}")

    def broadcast(self, name: str) -> Broadcast:
        """Returns the messages of a channel, while its `with` block lasts."""
        return Broadcast(self._transport, f"broadcast:{name}")

    def room(self, namespace: str, id: str) -> Room:
        """Returns a room, which is joined while its `with` block lasts: `with client.room("quiz", "sunday") as room`."""
        return Room(self._transport, namespace, id)

    def request(
        self, method: str, path: str, *, params: Optional[Params] = None, json: Optional[Any] = None
    ) -> Any:
        """Sends any request with the caller's credentials, and returns the JSON of its answer: `request("GET", "/api/health")`."""
        body: Optional[Mapping[str, Any]] = json
        return self._transport.request(method.upper(), path, params=params, json=body)

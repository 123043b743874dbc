"""The client."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from .._types import Params
from ._auth import AsyncAuth
from ._channels import AsyncBroadcast, AsyncPresence, AsyncRoom
from ._storage import AsyncBucket
from ._tables import AsyncDatabase
from ._transport import AsyncTransport


class AsyncClient:
    """Client of one server: of a user, of nobody, or of a program with a service key.

    It is used in a `with` block, or closed by `aclose()`.
    """

    def __init__(self, url: str, service_key: Optional[str] = None) -> None:
        self._transport = AsyncTransport(url, service_key)
        self.auth = AsyncAuth(self._transport)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections. The session stays good at the server."""
        await self._transport.close()

    def db(self, namespace: str, instance: Optional[str] = None) -> AsyncDatabase:
        """Returns the tables of a namespace; with an instance, those of it alone."""
        return AsyncDatabase(self._transport, namespace, instance)

    def storage(self, bucket: str) -> AsyncBucket:
        """Returns the files of a bucket."""
        return AsyncBucket(self._transport, bucket)

    def presence(self, name: str) -> AsyncPresence:
        """Returns who is on a channel, while its `with` block lasts: `async with client.presence("lobby") as lobby`."""
        return AsyncPresence(self._transport, f"presence:{name}")

    def broadcast(self, name: str) -> AsyncBroadcast:
        """Returns the messages of a channel, while its `with` block lasts."""
        return AsyncBroadcast(self._transport, f"broadcast:{name}")

    def room(self, namespace: str, id: str) -> AsyncRoom:
        """Returns a room, which is joined while its `with` block lasts: `async with client.room("quiz", "sunday") as room`."""
        return AsyncRoom(self._transport, namespace, id)

    async def request(
        self, method: str, path: str, *, params: Optional[Params] = None, json: Optional[Any] = None
    ) -> Any:
        """Sends any request with the caller's credentials, and returns the JSON of its answer: `request("GET", "/api/health")`."""
        body: Optional[Mapping[str, Any]] = json
        return await self._transport.request(method.upper(), path, params=params, json=body)

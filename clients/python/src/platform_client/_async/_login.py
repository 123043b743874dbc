"""Authentication of a WebSocket, and the tokens that follow."""

from __future__ import annotations

from typing import Any, Dict, Optional

from .._errors import PlatformError
from ._io import Closed, Socket
from ._transport import AsyncTransport

#: Time after which an answer to a message is given up, and the connection with it.
ANSWER_SECONDS = 15.0


class AsyncLogin:
    """Credentials of a caller on one connection after another."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        #: Token that the connection has; None for nobody.
        self.token: Optional[str] = None

    @property
    def is_nobody(self) -> bool:
        """Whether there are no credentials at all."""
        return self.token is None and self._transport.service_key is None

    async def open(self, path: str) -> Socket:
        """Connects and authenticates. Errors: 401; `Closed`."""
        socket = await Socket.open("ws" + self._transport.base[len("http") :] + path)
        try:
            await self._authenticate(socket)
        except BaseException:
            await socket.close()
            raise
        return socket

    async def _authenticate(self, socket: Socket) -> None:
        for _ in range(2):
            self.token = await self._credentials()
            anonymous: Dict[str, Any] = {"type": "auth", "anonymous": True}
            await socket.send(anonymous if self.token is None else {"type": "auth", "token": self.token})
            if (await answer_of(socket)).get("type") == "auth_success":
                return
            if self.token is None or not await self._transport.replace_refused(self.token):
                break
        raise PlatformError(401, "The server refused the access token")

    async def _credentials(self) -> Optional[str]:
        """Returns an access token, for a service key a ticket that is good once, None for nobody."""
        if self._transport.service_key is None:
            return await self._transport.token()
        return str((await self._transport.request("POST", "/api/admin/socket-ticket"))["ticket"])

    async def send_fresh(self, socket: Socket) -> None:
        """Sends the access token when it has been replaced, so that the connection goes on by the rights of now."""
        if self._transport.service_key is not None:
            return
        token = await self._transport.token()
        if token is None and self.token is not None:
            raise PlatformError(401, "The session has ended")
        if token is not None and token != self.token:
            self.token = token
            await socket.send({"type": "auth", "token": token})

    async def lost(self, end: Closed) -> None:
        """Looks for other tokens where the server has ended the session. Errors: 401 if there are none."""
        if end.code == 4003 and self.token is not None and not await self._transport.replace_refused(self.token):
            raise PlatformError(401, "The session has ended")


async def answer_of(socket: Socket) -> Dict[str, Any]:
    """Returns the next message. Errors: `Closed` without one in time."""
    message = await socket.receive(ANSWER_SECONDS)
    if message is None:
        raise Closed(1006)
    return message

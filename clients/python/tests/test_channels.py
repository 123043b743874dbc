"""Presence, broadcasts and rooms."""

from __future__ import annotations

import asyncio
import signal
import time
import uuid
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import CONFIG, Server

from platform_client import AsyncClient, Client, PlatformError
from platform_client._wire import changed_by

SECONDS = 15


def until(holds: Callable[[], Any]) -> None:
    """Waits until something holds."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_presence(server: Server, client: Client) -> None:
    """[PY22] who is there, with what state, until they leave"""
    name = str(uuid.uuid4())
    other = server.user()
    assert other.auth.user
    with client.presence(name) as seen:
        assert seen.users == []
        with other.presence(name) as shown:
            shown.track({"mood": "fine"})
            until(lambda: [entry.state for entry in seen.users] == [{"mood": "fine"}])
            assert seen.users[0].user_id == other.auth.user["id"]
            shown.track({"mood": "better"})
            until(lambda: [entry.state for entry in seen.users] == [{"mood": "better"}])
            with pytest.raises(PlatformError, match="^413 "):
                shown.track({"mood": "x" * 2000})
            shown.untrack()
            until(lambda: seen.users == [])
            shown.track({})
            until(lambda: len(seen.users) == 1)
        # The end of the block ends it.
        until(lambda: seen.users == [])
        assert next(iter(seen)) == []
    assert list(seen) == []
    other.close()


def test_refused(server: Server) -> None:
    """[PY21] nobody is 401 and a rule that denies is 403, at the beginning of the block"""
    with Client(server.url) as nobody:
        for link in (nobody.presence("lobby"), nobody.broadcast("chat"), nobody.room("board", "a")):
            with pytest.raises(PlatformError, match="^401 "):
                link.__enter__()
    user = server.user()
    with pytest.raises(PlatformError, match="^403 "):
        user.room("board", "closed-1").__enter__()
    user.close()


def test_ended(server: Server, root: Client) -> None:
    """[PY21] a block goes on with fresh tokens, and ends with the session"""
    user = server.user()
    assert user.auth.user
    with user.broadcast("news") as news:
        # Longer than an access token lives.
        time.sleep(3)
        root.request("POST", "/api/realtime/broadcast", json={"channel": "broadcast:news", "event": "a", "payload": {}})
        assert next(iter(news)).event == "a"
        root.request("POST", f"/api/auth/admin/users/{user.auth.user['id']}/revoke")
        with pytest.raises(PlatformError, match="^401 "):
            next(iter(news))
        with pytest.raises(PlatformError, match="^401 "):
            news.send("b", None)
    user.close()


def test_broadcast(server: Server, client: Client) -> None:
    """[PY23] what is said reaches those who listen, in order"""
    name = str(uuid.uuid4())
    other = server.user()
    with client.broadcast(name) as heard, other.broadcast(name) as said:
        for number in range(5):
            said.send("n", {"number": number})
        assert [next(heard).data["number"] for _ in range(5)] == list(range(5))
    other.close()


def test_room(server: Server, client: Client) -> None:
    """[PY24] states follow, actions answer, refusals say why, and a removed player is 403"""
    id = str(uuid.uuid4())
    other = server.user()
    assert client.auth.user
    with client.room("board", id) as mine, other.room("board", id) as theirs:
        before = theirs.shared
        assert mine.act("write", {"line": "one"}) == 3
        until(lambda: theirs.shared.get("lines") == ["one"])
        assert (before, theirs.mine) == ({}, {})
        until(lambda: mine.mine == {"count": 1})
        kept = theirs.shared
        assert mine.act("clear") is None
        until(lambda: "last" not in theirs.shared)
        assert "last" in kept
        with pytest.raises(PlatformError, match="^400 .*A line has a text"):
            mine.act("write", {"line": ""})
        with pytest.raises(PlatformError, match="^404 "):
            mine.act("dance")
        mine.act("say", {"text": "hi"})
        assert next(event.data for event in theirs if event.type == "message") == {"text": "hi"}
        theirs.act("kick", {"userId": client.auth.user["id"]})
        with pytest.raises(PlatformError, match="^403 "):
            list(mine)
    other.close()


def test_restart(tmp_path: Path) -> None:
    """[PY21, PY22, PY24] after a kill of the server states are shown and read again"""
    server = Server(tmp_path, CONFIG)
    try:
        ann, bob = server.user(), server.user()
        with ann.presence("lobby") as seen, bob.presence("lobby") as shown, ann.room("board", "a") as room:
            shown.track({"mood": "fine"})
            until(lambda: len(seen.users) == 1)
            room.act("write", {"line": "one"})
            until(lambda: room.shared.get("lines") == ["one"])
            first = seen.users[0].connection_id
            server.end(signal.SIGKILL)
            server.start()
            until(lambda: seen.users and seen.users[0].connection_id != first)
            assert [entry.state for entry in seen.users] == [{"mood": "fine"}]
            assert room.act("write", {"line": "two"}) == 3
            until(lambda: "two" in room.shared.get("lines", []))
        ann.close()
        bob.close()
    finally:
        server.end()


def test_async(server: Server) -> None:
    """[PY21] the same with asyncio: an iteration ends with its block"""

    async def main() -> None:
        name = str(uuid.uuid4())
        async with AsyncClient(server.url) as client:
            await client.auth.sign_in_anonymously()
            async with client.presence(name) as lobby, client.room("board", name) as room:
                await lobby.track({"n": 1})
                async for users in lobby:
                    if users:
                        break
                assert await room.act("write", {"line": "one"}) == 3
                async for event in room:
                    if room.shared.get("lines") == ["one"]:
                        break
                waiting = asyncio.create_task(lobby.__anext__())
                await asyncio.sleep(0.1)
            with pytest.raises(StopAsyncIteration):
                while True:
                    await asyncio.wait_for(waiting, SECONDS)
                    waiting = asyncio.create_task(lobby.__anext__())

    asyncio.run(main())


def test_deltas() -> None:
    """[PY24] a delta makes another state, and leaves the one before as it is"""
    state = {"a": {"b": 1, "c": 2}, "d": [1]}
    assert changed_by(state, {"a.b": None, "e.f.g": 3, "d": [2], "none.x": None}) == {
        "a": {"c": 2},
        "d": [2],
        "e": {"f": {"g": 3}},
        "none": {},
    }
    assert state == {"a": {"b": 1, "c": 2}, "d": [1]}

"""Changes of records."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
import uuid
from pathlib import Path
from queue import Queue
from typing import Any, Callable

import pytest
from conftest import CONFIG, KEY, Server

from platform_client import AsyncClient, Change, Client, PlatformError
from platform_client._mirror import Mirror

SECONDS = 15


def follow(query: Any) -> "Queue[Any]":
    """Puts the changes of a query into a queue, and what ends them."""
    queue: "Queue[Any]" = Queue()
    changes = query.changes()
    changes.__enter__()

    def work() -> None:
        try:
            for change in changes:
                queue.put((change.type, change.record["id"]))
            queue.put("end")
        except PlatformError as error:
            queue.put(error)

    threading.Thread(target=work, daemon=True).start()
    queue.close = changes.close  # type: ignore[attr-defined]
    return queue


def test_kinds(client: Client, root: Client) -> None:
    """[PY16] added, modified and removed, as seen through the conditions, however many these are"""
    films = client.db("shared").table("films")
    code = str(uuid.uuid4())
    query = films.where("title", "==", code).where("year", ">", 0)
    for other in range(6):
        query = query.where("year", "!=", -other)
    seen, all_seen = follow(query), follow(root.db("shared").table("films").where("title", "==", code))
    film = films.insert({"title": code, "year": 0})
    films.update(film["id"], {"year": 1})
    films.update(film["id"], {"year": 2})
    films.update(film["id"], {"year": 0})
    films.batch(inserts=[{"title": code, "year": 9} for _ in range(12)])
    films.delete(film["id"])
    id = film["id"]
    assert [seen.get(timeout=SECONDS) for _ in range(3)] == [("added", id), ("modified", id), ("removed", id)]
    assert {seen.get(timeout=SECONDS)[0] for _ in range(12)} == {"added"}
    assert [all_seen.get(timeout=SECONDS) for _ in range(4)] == [("added", id)] + [("modified", id)] * 3
    assert {all_seen.get(timeout=SECONDS)[0] for _ in range(12)} == {"added"}
    assert all_seen.get(timeout=SECONDS) == ("removed", id)
    seen.close()  # type: ignore[attr-defined]
    assert seen.get(timeout=SECONDS) == "end"
    all_seen.close()  # type: ignore[attr-defined]


def test_async_block(server: Server) -> None:
    """[PY16] what is committed after the beginning of the block is there, and the iterator ends with the block"""

    async def main() -> None:
        async with AsyncClient(server.url, service_key=KEY) as client:
            films = client.db("shared").table("films")
            code = str(uuid.uuid4())
            async with films.where("title", "==", code).changes() as changes:
                film = await films.insert({"title": code})
                change = await asyncio.wait_for(changes.__anext__(), SECONDS)
                assert (change.type, change.record["id"]) == ("added", film["id"])
                waiting = asyncio.create_task(changes.__anext__())
                await asyncio.sleep(0.1)
            with pytest.raises(StopAsyncIteration):
                await asyncio.wait_for(waiting, SECONDS)

    asyncio.run(main())


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_restart(tmp_path: Path, ending: signal.Signals) -> None:
    """[PY17] nothing is missing after a stop or a kill of the server: records came, changed and went"""
    server = Server(tmp_path, CONFIG)
    try:
        with Client(server.url, service_key=KEY) as root:
            films = root.db("shared").table("films")
            films.batch(inserts=[{"id": id, "title": "A"} for id in ("stays", "changes", "goes")])
            seen = follow(films)
            films.update("stays", {"year": 1})
            assert seen.get(timeout=SECONDS) == ("modified", "stays")
            server.end(ending)
            time.sleep(0.5)
            server.start()
            # Before the iterator is back, or after it: either way they are seen once.
            films.insert({"id": "comes", "title": "A"})
            films.update("changes", {"year": 2})
            films.delete("goes")
            found = {seen.get(timeout=SECONDS) for _ in range(3)}
            assert found == {("added", "comes"), ("modified", "changes"), ("removed", "goes")}
            films.insert({"id": "last", "title": "A"})
            assert seen.get(timeout=SECONDS) == ("added", "last")
            seen.close()  # type: ignore[attr-defined]
    finally:
        server.end()


def test_mirror() -> None:
    """[PY17] a list that is compared again shows what has changed; too long a list is one resync"""
    mirror = Mirror()
    assert mirror.load([{"id": "a", "n": 1}, {"id": "b", "n": 1}]) == []
    assert mirror.take("modified", "a", {"id": "a", "n": 2}) == [Change("modified", {"id": "a", "n": 2})]
    assert mirror.load([{"n": 2, "id": "a"}, {"id": "c"}]) == [
        Change("removed", {"id": "b"}),
        Change("added", {"id": "c"}),
    ]
    # The change that the list has shown already comes as well.
    assert mirror.take("added", "c", {"id": "c"}) == []
    assert mirror.take("removed", "b", None) == []
    assert mirror.take("removed", "c", None) == [Change("removed", {"id": "c"})]
    assert mirror.load(None) == [Change("resync", {})]
    assert mirror.take("added", "d", {"id": "d"}) == [Change("added", {"id": "d"})]
    assert mirror.load([{"id": "d"}]) == [Change("resync", {})]


def test_rights(client: Client, server: Server, root: Client) -> None:
    """[PY18] a session that ends is 401, rights that end are 403, nobody's are 401 at once"""
    assert client.auth.user
    with Client(server.url) as nobody, pytest.raises(PlatformError, match="^401 "):
        nobody.db("shared").table("notes").changes().__enter__()
    secrets = client.db("shared").table("secrets")
    with pytest.raises(PlatformError, match="^403 "):
        secrets.changes().__enter__()
    root.db("shared").table("members").insert({"id": client.auth.user["id"], "userId": client.auth.user["id"]})
    seen = follow(secrets)
    # Longer than an access token lives.
    time.sleep(3)
    secret = root.db("shared").table("secrets").insert({"text": "A"})
    assert seen.get(timeout=SECONDS) == ("added", secret["id"])
    root.db("shared").table("members").delete(client.auth.user["id"])
    ended: Callable[[], Any] = lambda: seen.get(timeout=SECONDS)
    assert ended().status == 403

    notes = follow(client.db("shared").table("notes"))
    root.request("POST", f"/api/auth/admin/users/{client.auth.user['id']}/revoke")
    assert notes.get(timeout=SECONDS).status == 401

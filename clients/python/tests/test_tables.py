"""Records, queries, errors and retries."""

from __future__ import annotations

import datetime
import math
import pickle
import socket
import threading
import uuid
from typing import Any, Dict, List
from unittest.mock import patch

import pytest
from conftest import Server

from platform_client import Client, PlatformError, add, all_of, any_of, delete_field, increment, not_, remove, some
from platform_client import field as field_


def shelf() -> str:
    """A code that no other test uses."""
    return str(uuid.uuid4())


def failing(status: int) -> Any:
    return pytest.raises(PlatformError, match=rf"^{status} ")


def test_error(client: Client, server: Server) -> None:
    """[PY3] errors have status, fields and the request's id, and survive a process"""
    with failing(400) as raised:
        client.db("shared").table("films").insert({"year": 1.5, "colour": "red"})
    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.status, error.code) == (400, "invalid")
    assert {name: problem["code"] for name, problem in error.fields.items()} == {
        "title": "required",
        "year": "invalid_type",
        "colour": "unknown_field",
    }
    assert error.request_id and error.message
    with Client("http://127.0.0.1:9") as nobody, failing(0) as raised:
        nobody.db("shared").table("films").first()
    assert raised.value.code == "network"


@pytest.mark.parametrize("value", [math.nan, math.inf, datetime.datetime(2024, 1, 1), {1}, "\ud800"])
def test_not_json(client: Client, value: Any) -> None:
    """[PY3] what JSON does not have is refused before anything is sent"""
    with patch.object(client._transport, "_once", side_effect=AssertionError("it was sent")), failing(400):
        client.db("shared").table("notes").insert({"value": value})


def test_values(client: Client) -> None:
    """[PY3] datetimes with a zone, dates and UUIDs are sent as they mean"""
    films = client.db("shared").table("films")
    at = datetime.datetime(2024, 5, 6, 6, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    code = uuid.uuid4()
    film = films.insert({"title": "A", "at": at, "day": datetime.date(2024, 5, 6), "code": code})
    assert (film["at"], film["day"], film["code"]) == ("2024-05-06T04:00:00.000Z", "2024-05-06", str(code))
    assert films.where("at", "==", at).where("code", "==", code).count() == 1


def test_request(client: Client, root: Client) -> None:
    """[PY5] any endpoint is asked with the caller's credentials"""
    assert client.auth.user
    assert client.request("GET", "/api/auth/me")["user"]["id"] == client.auth.user["id"]
    assert root.request("get", "/api/auth/admin/users", params={"limit": 1})["users"]
    with failing(401):
        client.request("GET", "/api/auth/admin/users")


class Breaking:
    """Listener in front of a server that loses the answers to the next requests."""

    def __init__(self, target: str) -> None:
        self.lost = 0
        self.requests: List[bytes] = []
        self._port = int(target.rsplit(":", 1)[1])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, socket.create_connection(("127.0.0.1", self._port)) as upstream:
            while True:
                request = connection.recv(1_000_000)
                if not request:
                    return
                self.requests.append(request)
                upstream.sendall(request)
                # A request may come in two pieces: its head, then its body.
                if request.endswith(b"\r\n\r\n") and b"ontent-length" in request.lower():
                    upstream.sendall(connection.recv(1_000_000))
                answer = upstream.recv(1_000_000)
                if self.lost > 0:
                    self.lost -= 1
                    return
                connection.sendall(answer)

    def close(self) -> None:
        self._listener.close()


def test_retries(server: Server) -> None:
    """[PY4] a write whose answer is lost is sent again with its key and done once; a delete is sent once"""
    breaking = Breaking(server.url)
    with Client(breaking.url) as client:
        client.auth.sign_up(f"{uuid.uuid4()}@example.com", "correct horse battery")
        films = client.db("shared").table("films")
        code = shelf()
        breaking.lost = 2
        film = films.insert({"title": "Once", "code": code})
        assert films.where("code", "==", code).count() == 1
        breaking.lost = 3
        assert films.get(film["id"])["title"] == "Once"
        breaking.requests.clear()
        breaking.lost = 1
        with failing(0):
            films.delete(film["id"])
        assert len([request for request in breaking.requests if request.startswith(b"DELETE")]) == 1
        with failing(404):
            films.get(film["id"])
    breaking.close()


def test_queries_are_values(client: Client) -> None:
    """[PY8] a query never changes, and filters are made by functions"""
    films = client.db("shared").table("films")
    code = shelf()
    for year in range(1990, 1996):
        films.insert({"title": f"{code} {year}", "year": year})
    mine = films.where("title", "startsWith", code)
    early = mine.where("year", "<", 1992)
    assert (mine.count(), early.count(), early.or_where("year", "==", 1990).count()) == (6, 2, 1)
    assert mine.where(any_of([("year", "==", 1990)], all_of([("year", ">", 1994)]))).count() == 2
    assert mine.where([not_([("year", "in", [1990, 1991])]), ("year", "<", 1994)]).count() == 2
    assert mine.where(some("people", [("id", "==", field_("directorId"))])).count() == 0
    with pytest.raises(TypeError):
        films.where("year")


def test_pages(client: Client) -> None:
    """[PY9] iterating goes through all pages, each record once, also by near"""
    films = client.db("shared").table("films")
    code = shelf()
    inserts = [
        {"title": f"{code} {year}", "year": year, "place": {"lat": 48 + year / 100, "lng": 16}} for year in range(7)
    ]
    films.batch(inserts=inserts)
    mine = films.where("title", "startsWith", code).sort("year", "desc").limit(3)
    assert [film["year"] for film in mine] == [6, 5, 4, 3, 2, 1, 0]
    page = mine.list()
    assert (len(page.items), page.total, page.has_more) == (3, 7, True)
    assert [film["year"] for film in mine.list(after=page.cursor).items] == [3, 2, 1]
    assert [len(one.items) for one in mine.pages()] == [3, 3, 1]
    assert [film["year"] for film in mine.page(2, per_page=4).items] == [2, 1, 0]
    first = mine.first()
    assert first and first["year"] == 6
    assert mine.where("year", ">", 100).first() is None
    near = films.where("title", "startsWith", code).near("place", 48, 16).limit(3)
    assert [film["year"] for film in near] == [0, 1, 2, 3, 4, 5, 6]
    assert list(mine.fields("title").limit(1))[0].keys() == {"id", "title"}


def test_missing(client: Client) -> None:
    """[PY10] a record that is not there is 404, whatever its id is"""
    films = client.db("shared").table("films")
    for id in ["none", "count", "aggregate", "search", "", ".", ".."]:
        with failing(404):
            films.get(id)
    with patch.object(client._transport, "_once", side_effect=AssertionError("it was sent")), failing(404):
        films.get("..")


def test_writes(client: Client, server: Server) -> None:
    """[PY11] writes give the server's records, conditions are 412, and operators are atomic"""
    db = client.db("shared")
    films = db.table("films")
    code = shelf()
    film = films.upsert({"title": "A", "code": code, "year": 1}, conflict_target="code")
    assert films.upsert({"title": "B", "code": code}, conflict_target="code")["id"] == film["id"]
    threads = [threading.Thread(target=films.update, args=[film["id"], {"year": increment(2)}]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert films.get(film["id"], fields=["year"]) == {"id": film["id"], "year": 17}
    assert films.update(film["id"], {"year": delete_field()}, if_=[("year", "==", 17)])["year"] is None
    with failing(412):
        films.delete(film["id"], if_=[("year", "==", 17)])

    people = db.table("people")
    ann, bob = people.insert({"name": "Ann"}), people.insert({"name": "Bob"})
    assert people.update(ann["id"], {"friends": add(bob["id"])})["friends"] == [bob["id"]]
    assert people.update(ann["id"], {"friends": remove(bob["id"])})["friends"] == []

    with failing(400) as raised:
        films.batch(inserts=[{"title": "One"}, {}])
    assert raised.value.fields["inserts.1.title"]["code"] == "required"
    done = films.batch(updates=[{"id": film["id"], "data": {"year": 5}}])
    assert [record["year"] for record in done["updated"]] == [5]
    results = db.transaction(
        [
            {"table": "people", "action": "insert", "data": {"name": "Carl"}},
            {"table": "films", "action": "delete", "id": film["id"]},
        ]
    )
    assert results[0]["name"] == "Carl" and results[1] == {"id": film["id"]}
    club = client.db("clubs", f"club-{code}").table("members")
    club.insert({"name": "Ann"})
    assert [member["name"] for member in club] == ["Ann"]


def test_record_files(client: Client) -> None:
    """[PY11] files of records are sent in a form"""
    films = client.db("shared").table("films")
    film = films.insert({"title": "Ü"}, files={"cover": ('a "b".txt', "Grüße".encode(), "text/plain")})
    assert (film["title"], film["cover"]["name"], film["cover"]["size"]) == ("Ü", 'a "b".txt', 7)
    changed = films.update(film["id"], {"year": 1}, files={"cover": ("c.txt", b"c", "text/plain")})
    assert (changed["year"], changed["cover"]["name"]) == (1, "c.txt")


def test_query_writes(client: Client) -> None:
    """[PY12] a query updates and deletes what matches; one with more than conditions is refused"""
    films = client.db("shared").table("films")
    code = shelf()
    films.batch(inserts=[{"title": code, "year": year} for year in range(4)])
    mine = films.where("title", "==", code)
    assert mine.where("year", "<", 2).update_all({"genre": "Crime"}) == {"processed": 2, "succeeded": 2}
    assert mine.where("genre", "==", "Crime").delete_all() == {"processed": 2, "succeeded": 2}
    assert mine.count() == 2
    for other in (mine.sort("year"), mine.limit(1), mine.fields("year"), mine.expand("directorId")):
        with failing(400):
            other.delete_all()
    with failing(400):
        films.delete_all()
    assert mine.count() == 2


def test_aggregate_and_search(client: Client) -> None:
    """[PY13] groups and searches"""
    films = client.db("shared").table("films")
    code = f"w{uuid.uuid4().hex}"
    films.batch(inserts=[{"title": f"{code} {i}", "year": i, "genre": "Crime" if i % 2 else "Comedy"} for i in range(5)])
    mine = films.where("title", "startsWith", code)
    groups = mine.aggregate(select=["count()", "max(year)"], group_by="genre", sort=[("count()", "desc")])
    assert groups == [
        {"genre": "Comedy", "count()": 3, "max(year)": 4},
        {"genre": "Crime", "count()": 2, "max(year)": 3},
    ]
    assert mine.aggregate() == [{"count()": 5}]
    found = films.limit(2).search(code, highlight_pre="[", highlight_post="]").list()
    assert (len(found.items), found.total, found.has_more) == (2, 5, True)
    assert found.items[0]["highlights"]["title"].startswith(f"[{code}]")
    assert not films.limit(2).search(code).list(offset=4).has_more


def test_dataframe(client: Client) -> None:
    """[PY14] a DataFrame has the records of all pages, with times; without pandas the error says what to install"""
    films = client.db("shared").table("films")
    code = shelf()
    films.batch(inserts=[{"title": code, "year": year} for year in range(5)])
    query = films.where("title", "==", code).limit(2)
    with patch.dict("sys.modules", {"pandas": None}), pytest.raises(ImportError, match="platform-client\\[pandas\\]"):
        query.to_dataframe()
    pandas = pytest.importorskip("pandas")
    frame = query.to_dataframe()
    assert (frame["year"].sum(), len(frame)) == (10, 5)
    assert (frame["createdAt"] <= pandas.Timestamp.now(tz="UTC")).all()
    value: Dict[str, Any] = {"title": code, "year": frame["year"].max()}
    assert films.insert(value)["year"] == 4

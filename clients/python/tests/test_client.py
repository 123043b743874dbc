"""Clients, sign-in, files, types and the guide."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import io
import os
import re
import struct
import subprocess
import sys
import threading
import time
import uuid
from base64 import b32decode
from pathlib import Path
from typing import Any, List
from unittest.mock import patch

import pytest
from conftest import CONFIG, KEY, ROOT, Server

from platform_client import AsyncClient, Client, PlatformError

HERE = Path(__file__).resolve().parent


def test_one_source() -> None:
    """[PY1] the synchronous form is made of the asynchronous one"""
    script = HERE.parent / "scripts" / "generate_sync.py"
    checked = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert (checked.returncode, checked.stdout) == (0, "")


def test_same_methods() -> None:
    """[PY1] both clients have the same methods, and refuse what is no address"""
    names = {name for name in dir(Client) if not name.startswith("_")}
    others = {name for name in dir(AsyncClient) if not name.startswith("_")}
    assert (names - {"close"}, "close" in names) == (others - {"aclose"}, "aclose" in others)
    for url in ["localhost:8787", "ftp://example.com", ""]:
        with pytest.raises(ValueError):
            Client(url)


def test_typed() -> None:
    """[PY2] the package says that it is typed, and needs what it declares alone"""
    package = HERE.parent / "src" / "platform_client"
    assert (package / "py.typed").exists()
    imported = {
        name
        for path in package.rglob("*.py")
        for name in re.findall(r"^(?:from|import) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {name for name in imported if name not in sys.stdlib_module_names} == {"httpx", "websockets"}


def code_of(secret: str, at: float) -> str:
    """The code of an authenticator app (RFC 6238)."""
    digest = hmac.new(b32decode(secret), struct.pack(">Q", int(at // 30)), hashlib.sha1).digest()
    offset = digest[-1] & 15
    return str((struct.unpack(">I", digest[offset : offset + 4])[0] & 0x7FFFFFFF) % 1_000_000).zfill(6)


def test_sign_in(server: Server) -> None:
    """[PY6] signing up, in and out, with a second factor too"""
    email, password = f"{uuid.uuid4()}@example.com", "correct horse battery"
    with Client(server.url) as client:
        assert client.auth.user is None
        user = client.auth.sign_up(email, password, display_name="Ann", metadata={"likes": "films"})
        assert (user["email"], user["displayName"], user["metadata"]) == (email, "Ann", {"likes": "films"})
        factor = client.request("POST", "/api/auth/mfa/totp/enroll")
        now = time.time()
        verify = {"factorId": factor["factorId"], "code": code_of(factor["secret"], now)}
        client.request("POST", "/api/auth/mfa/totp/verify", json=verify)
        client.auth.sign_out()
        assert client.auth.user is None
        with pytest.raises(PlatformError) as raised:
            client.auth.sign_in(email, password)
        assert (raised.value.status, list(raised.value.fields)) == (401, ["code"])
        signed_in = client.auth.sign_in(email, password, code=code_of(factor["secret"], now + 30))
        assert signed_in["id"] == user["id"]
        client.auth.sign_out()
        client.auth.sign_out()
        assert client.auth.sign_in_anonymously()["isAnonymous"]


def test_refresh(server: Server) -> None:
    """[PY7] threads that need a fresh token at once refresh once"""
    with contextlib.closing(server.user()) as client:
        refreshes: List[str] = []
        original = client._transport._once

        def counted(method: str, path: str, *rest: Any) -> Any:
            if path == "/api/auth/refresh":
                refreshes.append(path)
            return original(method, path, *rest)

        time.sleep(2.2)
        failures: List[BaseException] = []

        def read() -> None:
            try:
                client.request("GET", "/api/auth/me")
            except BaseException as error:
                failures.append(error)

        with patch.object(client._transport, "_once", side_effect=counted):
            threads = [threading.Thread(target=read) for _ in range(10)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert (failures, len(refreshes)) == ([], 1)


def test_refresh_of_tasks(server: Server) -> None:
    """[PY7] and so do tasks; a token that is refused is replaced once"""

    async def main() -> None:
        async with AsyncClient(server.url) as client:
            await client.auth.sign_in_anonymously()
            session = client._transport.session
            assert session
            session.access_token = "x.y.z"
            original, refreshes = client._transport._refresh, []

            async def counted(stale: Any) -> None:
                refreshes.append(client._transport.session is stale)
                await original(stale)

            with patch.object(client._transport, "_refresh", side_effect=counted):
                answers = await asyncio.gather(*[client.request("GET", "/api/auth/me") for _ in range(10)])
            assert len(answers) == 10
            assert client._transport.session and client._transport.session.access_token != "x.y.z"

    asyncio.run(main())


def test_files(client: Client, server: Server, tmp_path: Path) -> None:
    """[PY15] bytes, texts, paths and open files of any size are stored whole"""
    files = client.storage("files")
    key = f"a b/{uuid.uuid4()} ü.txt"
    assert files.upload(key, "Grüße", content_type="text/plain", metadata={"mood": "fine"})["size"] == 7
    assert files.download(key).decode() == "Grüße"
    assert files.metadata(key)["customMetadata"] == {"mood": "fine"}
    assert [entry["key"] for entry in files.list(prefix=key).items] == [key]
    with Client(server.url) as nobody:
        assert nobody.storage("files").download(key) == "Grüße".encode()
    assert "token=" in files.signed_url(key, expires_in=60)
    files.delete(key)
    with pytest.raises(PlatformError, match="^404 "):
        files.download(key)
    with pytest.raises(PlatformError, match="^404 "):
        files.download("../films")

    large = os.urandom(9 * 1024 * 1024 + 1)
    path = tmp_path / "large"
    path.write_bytes(large)
    for content in (large, path, io.BytesIO(large)):
        assert files.upload("large", content)["size"] == len(large)
        assert hashlib.sha256(files.download("large")).digest() == hashlib.sha256(large).digest()
    small = tmp_path / "small"
    small.write_bytes(b"small")
    assert files.upload("small", small)["size"] == 5


def test_failed_parts(client: Client, root: Client) -> None:
    """[PY15] an upload in parts that fails leaves none"""

    class Broken(io.BytesIO):
        def read(self, size: Any = -1) -> bytes:
            if self.tell() >= 12 * 1024 * 1024:
                raise OSError("unreadable")
            return super().read(size)

    with pytest.raises(OSError, match="unreadable"):
        client.storage("files").upload("broken", Broken(bytes(20 * 1024 * 1024)))
    assert root.request("GET", "/api/admin/storage/files/uploads")["uploads"] == []


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    source = str(HERE.parent / "src")
    env = {**os.environ, "PYTHONPATH": source, **environment}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env)


USE = """
from typing import List, Optional
from platform_client import AsyncClient, Client
from tables import ClubsMembers, SharedFilms, SharedFilmsInsert, SharedFilmsUpdate

def use(client: Client) -> None:
    films = client.db("shared").table("films", SharedFilms)
    new: SharedFilmsInsert = {"title": "Heat", "genre": "Crime", "from": {"any": 1}}
    change: SharedFilmsUpdate = {"year": {"$op": "increment", "value": 1}, "genre": None}
    film = films.insert(new)
    films.update(film["id"], change)
    title: str = film["title"]
    year: Optional[int] = film["year"]
    titles: List[str] = [one["title"] for one in films.where("year", ">", 1990)]
    for change_ in films.changes():
        size: Optional[int] = None if change_.record["cover"] is None else change_.record["cover"].get("size")

async def use_async(client: AsyncClient) -> None:
    members = client.db("clubs", "one").table("members", ClubsMembers)
    names = [member["name"] async for member in members]
    first = await members.first()
    if first is not None:
        name: Optional[str] = first["name"]
"""
WRONG = """
from tables import SharedFilms, SharedFilmsInsert
def use(film: SharedFilms) -> int:
    return film["title"]
missing: SharedFilmsInsert = {"year": 1}
other: SharedFilmsInsert = {"title": "A", "genre": "Opera"}
"""


def test_types(server: Server, tmp_path: Path) -> None:
    """[PY19] types of the server's tables are written, mypy takes them, and finds what is wrong with them"""
    made = run("-m", "platform_client", "types", "--url", server.url, "--out", str(tmp_path / "tables.py"))
    assert (made.returncode, made.stderr) == (0, "")
    assert run(str(tmp_path / "tables.py")).returncode == 0
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text(USE, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    source = f"{HERE.parent / 'src'}:{tmp_path}"

    def check(name: str) -> str:
        file = str(tmp_path / name)
        return run("-m", "mypy", "--strict", "--no-error-summary", "--config-file=", file, MYPYPATH=source).stdout

    assert check("use.py") == ""
    assert len(check("wrong.py").splitlines()) == 3


def test_hidden_types(tmp_path: Path) -> None:
    """[PY19] a server that shows no tables is an error that says how to change it; with a key it shows them"""
    hidden = Server(tmp_path, CONFIG.replace("schemaEndpoint: true", 'schemaEndpoint: "authenticated"'))
    try:
        arguments = ["-m", "platform_client", "types", "--url", hidden.url, "--out", str(tmp_path / "tables.py")]
        refused = run(*arguments, PLATFORM_SERVICE_KEY="")
        assert (refused.returncode, "api.schemaEndpoint" in refused.stderr) == (1, True)
        assert run(*arguments, PLATFORM_SERVICE_KEY=KEY).returncode == 0
    finally:
        hidden.end()


def test_guide(tmp_path: Path) -> None:
    """[PY20] the examples of the guide print what it says"""
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+) (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    config = next(text for _, role, text in blocks if role == "platform.config.ts")
    server = Server(tmp_path, config)
    answers = 0
    try:
        printed = ""
        for _, role, text in blocks:
            if role == "run":
                made = run("-c", text.replace("http://127.0.0.1:8787", server.url))
                assert made.stderr == ""
                printed = made.stdout
            elif role == "answer":
                answers += 1
                assert printed == text
    finally:
        server.end()
    assert answers > 1

"""A server for the tests: PLATFORM_EXECUTABLE, else the sources of this repository."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import uuid
from pathlib import Path
from typing import Iterator

import pytest

from platform_client import Client

ROOT = Path(__file__).resolve().parents[3]
KEY = "python-test-key-0123456789abcdefghijkl"
START_SECONDS = 20


class Server:
    """Server process on its own folder; `kill` and `start` keep its port and its data."""

    def __init__(self, folder: Path, config: str) -> None:
        self.folder = folder
        (folder / "platform.config.ts").write_text(config, encoding="utf-8")
        self.port = "0"
        self.url = ""
        self.start()

    def start(self) -> None:
        executable = os.environ.get("PLATFORM_EXECUTABLE")
        program = (
            [str(Path(executable).resolve())]
            if executable
            else [str(ROOT / "node_modules/.bin/bun"), "--no-env-file", str(ROOT / "src/main.ts")]
        )
        self.process = subprocess.Popen(
            [*program, "start", "--config", "platform.config.ts", "--data", "data", "--port", self.port],
            cwd=self.folder,
            env={**os.environ, "PLATFORM_SERVICE_KEY": KEY, "NODE_ENV": "production"},
            stdout=subprocess.PIPE,
            stderr=(self.folder / "log").open("ab"),
            text=True,
        )
        timer = threading.Timer(START_SECONDS, self.process.kill)
        timer.start()
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = re.match(r"platform listening on (http://\S+?)/?$", line)
            if found:
                self.url = found[1]
                self.port = self.url.rsplit(":", 1)[1]
                break
        else:
            raise RuntimeError((self.folder / "log").read_text(encoding="utf-8"))
        timer.cancel()

    def end(self, with_signal: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(with_signal)
        self.process.wait(20)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def user(self) -> Client:
        """Returns the client of a new user."""
        client = Client(self.url)
        client.auth.sign_up(f"{uuid.uuid4()}@example.com", "correct horse battery")
        return client


CONFIG = """
import { defineConfig, Refusal } from "platform";
const all = { read: true, insert: (auth) => auth !== null, update: (auth) => auth !== null, delete: (auth) => auth !== null, upsert: "matching" };
const many = { requests: 1_000_000, window: 60 };
export default defineConfig({
  api: { schemaEndpoint: true },
  auth: { anonymous: true, mfa: { totp: true }, session: { accessTokenTtl: 2 } },
  rateLimits: { auth: many, signin: many, signup: many },
  storage: { buckets: { files: { access: { read: true, write: (auth) => auth !== null, delete: (auth) => auth !== null } } } },
  rooms: {
    board: {
      access: { join: (auth, roomId) => auth !== null && !roomId.startsWith("closed") },
      actions: {
        write(room, player, { line }) {
          if (line === "") throw new Refusal("A line has a text");
          room.setShared((state) => ({ ...state, last: { line, by: player.userId }, lines: [...(state.lines ?? []), line] }));
          room.setPlayer(player.userId, (state) => ({ count: (state.count ?? 0) + 1 }));
          room.save();
          return line.length;
        },
        clear(room) { room.setShared((state) => ({ ...state, last: null })); },
        say: (room, _player, { text }) => room.send("said", { text }),
        kick: (room, _player, { userId }) => room.kick(userId),
      },
    },
  },
  databases: {
    shared: {
      tables: {
        films: {
          schema: {
            title: { type: "string", required: true },
            genre: { type: "string", enum: ["Crime", "Comedy"] },
            year: { type: "integer" },
            at: { type: "datetime" },
            day: { type: "date" },
            place: { type: "geo" },
            code: { type: "string", unique: true },
            from: { type: "json" },
            directorId: { type: "string", references: "people" },
            cover: { type: "file", bucket: "files" },
          },
          fts: ["title"],
          access: all,
        },
        people: { schema: { name: { type: "string", required: true }, friends: { type: "references", references: "people" } }, access: all },
        notes: { access: { ...all, read: (auth) => auth !== null && [["ownerId", "==", auth.id]] } },
        members: { schema: { userId: { type: "string", unique: true } }, access: {} },
        secrets: { schema: { text: { type: "string" } }, access: { ...all, read: (auth, _r, { table }) => auth !== null && table("members").where("userId", "==", auth.id).exists() } },
      },
    },
    clubs: { instance: true, access: { create: true, open: true }, tables: { members: { schema: { name: { type: "string" } }, access: all } } },
  },
});
"""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("platform"), CONFIG)
    yield running
    running.end()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """A signed-in user."""
    made = server.user()
    yield made
    made.close()


@pytest.fixture
def root(server: Server) -> Iterator[Client]:
    """A program with the root key."""
    with Client(server.url, service_key=KEY) as made:
        yield made

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, testPlatform } from "../support/index.ts";
import { attemptStart } from "../support/start-attempt.ts";
import { until } from "../support/until.ts";

const CONFIG = `{ databases: { shared: { tables: { notes: {} } }, team: { instance: true, tables: { lines: {} } } } }`;
const NOTES = "/api/db/shared/tables/notes";

let platform: TestPlatform;
beforeEach(async () => {
  platform = await testPlatform({ config: CONFIG });
  expect((await platform.service.post(NOTES, { id: "first" })).status).toBe(201);
});
afterEach(() => platform.stop());

const start = () => attemptStart({ configFile: platform.configFile, dataDirectory: platform.dataDirectory });
const write = (id: string) => platform.service.post(NOTES, { id });
const isStatus = (status: number) => async () => (await write(crypto.randomUUID())).status === status;

test("[DB301] while the data directory is elsewhere writes are refused, until it is back", async () => {
  const moved = `${platform.dataDirectory}-moved`;
  renameSync(platform.dataDirectory, moved);
  await until("writes are refused", isStatus(503));
  const refused = await write("refused");
  expect(refused.body).toMatchObject({ message: expect.stringContaining("not where it was") });
  expect((await platform.service.post("/api/db/team/new/tables/lines", { id: "one" })).status).toBe(503);
  expect(await platform.service.get(`${NOTES}/first`)).toMatchObject({ status: 200, body: { id: "first" } });
  renameSync(moved, platform.dataDirectory);
  await until("writes are taken again", isStatus(201));
  await platform.restart();
  expect((await platform.service.get(`${NOTES}/first`)).status).toBe(200);
  expect((await platform.service.get(`${NOTES}/refused`)).status).toBe(404);
});

test("[DB301] a data directory that is deleted takes no writes", async () => {
  rmSync(platform.dataDirectory, { recursive: true });
  await until("writes are refused", isStatus(503));
  mkdirSync(platform.dataDirectory);
  expect((await write("into another")).status).toBe(503);
  expect(platform.stderr()).toContain("writes are refused until it is back");
});

test("[DB301] a lock file that is removed is made and locked again", async () => {
  const lock = join(platform.dataDirectory, "platform.lock");
  rmSync(lock);
  await until("it is there again", () => existsSync(lock));
  const second = await start();
  expect([second.hasStarted, second.exitCode]).toEqual([false, 1]);
  expect(second.stderr).toContain("in use by another process");
  expect((await write("second")).status).toBe(201);
});

test("[DB301] a server whose directory another process has taken stops", async () => {
  const lock = join(platform.dataDirectory, "platform.lock");
  rmSync(lock);
  const other = new Database(lock, { create: true });
  other.run("BEGIN EXCLUSIVE");
  await until("the server has said why it stops", () => platform.stderr().includes("another process has taken"));
  expect(await platform.kill("SIGCONT")).toBe(1);
  other.close();
});

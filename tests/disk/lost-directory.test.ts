import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, testPlatform } from "../support/index.ts";
import { attemptStart } from "../support/start-attempt.ts";
import { until } from "../support/until.ts";

const CONFIG = `{ databases: { shared: { tables: { notes: {} } } } }`;
const NOTES = "/api/db/shared/tables/notes";

let platform: TestPlatform;
beforeEach(async () => {
  platform = await testPlatform({ config: CONFIG });
  expect((await platform.service.post(NOTES, { id: "first" })).status).toBe(201);
});
afterEach(() => platform.stop());

const start = () => attemptStart({ configFile: platform.configFile, dataDirectory: platform.dataDirectory });
const expectEnd = async () => {
  await until("the server has said why it stops", () => platform.stderr().includes("moved, deleted or taken"));
  expect(await platform.kill("SIGCONT")).toBe(1);
};

test("[DB301] a server whose data directory is moved stops, and what it has answered is in it", async () => {
  const moved = `${platform.dataDirectory}-moved`;
  renameSync(platform.dataDirectory, moved);
  const { status } = await platform.service.post(NOTES, { id: "meanwhile" });
  await expectEnd();
  renameSync(moved, platform.dataDirectory);
  await platform.restart();
  const { body } = await platform.service.get(NOTES);
  const ids = status === 201 ? ["first", "meanwhile"] : ["first"];
  expect(body).toMatchObject({ items: ids.map((id) => ({ id })), total: ids.length });
});

test("[DB301] a server whose data directory is deleted stops", async () => {
  rmSync(platform.dataDirectory, { recursive: true });
  await expectEnd();
});

test("[DB301] a lock file that is removed is made and locked again", async () => {
  const lock = join(platform.dataDirectory, "platform.lock");
  rmSync(lock);
  await until("it is there again", () => existsSync(lock));
  const second = await start();
  expect([second.hasStarted, second.exitCode]).toEqual([false, 1]);
  expect(second.stderr).toContain("in use by another process");
  expect((await platform.service.post(NOTES, { id: "second" })).status).toBe(201);
});

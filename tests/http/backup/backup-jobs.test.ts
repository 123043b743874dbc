import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, temporaryDirectory, testPlatform, until } from "../../support/index.ts";
import { runCommand } from "./backup-support.ts";

const CONFIG = `{
  kv: { notes: {} },
  databases: { shared: { tables: { orders: { access: { read: true, insert: true }, hooks: {
    beforeInsert: async (auth, { delay }, app) => { await app.jobs.enqueue("note", null, { delay }); return {}; },
  } } } } },
  jobs: { note: { run: ({ id, app }) => app.kv("notes").set("ran", id) } },
}`;

let platform: TestPlatform;
let copy: string;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  expect((await platform.post("/api/db/shared/tables/orders", { delay: 3600 })).status).toBe(201);
  const file = join(temporaryDirectory(), "backup.tar.zst");
  copy = join(temporaryDirectory(), "copy");
  expect(await runCommand(["backup", file, "--data", platform.dataDirectory])).toMatchObject({ code: 0 });
  expect(await runCommand(["restore", file, "--data", copy])).toMatchObject({ code: 0 });
});
afterAll(() => platform.stop());

const waitingIn = (directory: string): number => {
  expect(existsSync(join(directory, "jobs.db"))).toBe(true);
  const file = new Database(join(directory, "jobs.db"));
  const row = file.query<{ count: number }, []>("SELECT count(*) AS count FROM jobs WHERE state = 0").get();
  // Its time has come.
  file.run("UPDATE jobs SET due_at = 0");
  file.close();
  return row?.count ?? 0;
};

test("[BK200] [JB16] a backup has the jobs; they run after a restore, and not in a drill", async () => {
  expect(waitingIn(copy)).toBe(1);
  const restored = await testPlatform({ config: CONFIG, args: ["--drill", "--data", copy] });
  const list = async () =>
    (await restored.service.get<{ jobs: { state: string; id: string }[] }>("/api/admin/jobs")).body;
  expect((await restored.post("/api/db/shared/tables/orders", { delay: 0 })).status).toBe(201);
  expect((await list()).jobs.map(({ state }) => state)).toEqual(["waiting", "waiting"]);
  await restored.stop();

  const server = await testPlatform({ config: CONFIG, args: ["--data", copy] });
  await until("both have run", async () => {
    const { body } = await server.service.get<{ jobs: { state: string }[] }>("/api/admin/jobs?state=done");
    return body.jobs.length === 2;
  });
  await server.stop();
});

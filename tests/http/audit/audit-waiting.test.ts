import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { testPlatform, until } from "../../support/index.ts";

const CONFIG = { d1: { reports: {} }, kv: { cache: {} } };
const STATEMENTS = 1_100;
const AT_ONCE = 20;

interface Entry {
  target: string;
  actor: { name: string | null };
  requestId: string | null;
}

interface Health {
  status: string;
  checks: { audit: { ok: boolean } };
}

test("[AL18] while the log cannot be written its entries are on disk, none is lost, and health says so", async () => {
  const platform = await testPlatform({ config: CONFIG });
  const { service } = platform;
  const path = join(platform.dataDirectory, "audit.db");
  await platform.kill("SIGTERM");
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
  writeFileSync(path, "this is no database ".repeat(1_000));
  await platform.restart();
  await service.post("/api/d1/reports", { query: "CREATE TABLE t (x)" });
  for (let count = 0; count < STATEMENTS; count += AT_ONCE) {
    const some = Array.from({ length: AT_ONCE }, () =>
      service.post("/api/d1/reports", { query: "INSERT INTO t VALUES (1)" }),
    );
    expect((await Promise.all(some)).map(({ status }) => status)).toEqual(Array(AT_ONCE).fill(200));
  }
  await until("health says so", async () => {
    const { body } = await service.get<Health>("/api/health?full");
    return !body.checks.audit.ok && body.status === "degraded";
  });
  await platform.kill("SIGKILL");
  renameSync(path, `${path}.damaged`);
  await platform.restart();
  let found = 0;
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? "" : `&cursor=${cursor}`;
    const page = await service.get<{ entries: object[]; cursor: string | null }>(
      `/api/admin/audit?target=d1/reports&limit=200${query}`,
    );
    found += page.body.entries.length;
    cursor = page.body.cursor;
  } while (cursor !== null);
  expect(found).toBe(STATEMENTS + 1);
  await until("health is well again", async () => (await service.get<Health>("/api/health?full")).body.checks.audit.ok);
  await platform.stop();
}, 120_000);

test("[AL16] a log of a later version stops the start", async () => {
  const platform = await testPlatform({ config: CONFIG });
  await platform.service.post("/api/kv/cache", { action: "set", key: "a", value: 1 });
  await platform.service.get("/api/admin/audit");
  await platform.kill("SIGTERM");
  const path = join(platform.dataDirectory, "audit.db");
  {
    using sqlite = new Database(path);
    sqlite.run("PRAGMA user_version = 99");
  }
  const why = await platform.restart().then(
    () => "it started",
    (cause: Error) => cause.message,
  );
  expect(why).toContain("audit.db has version 99");
  await platform.stop();
});

test("[AL1, DB105] first writes of many instances at once have an entry each, with the request and the key of each", async () => {
  const key = "editor-of-everything-0123456789abcdefghij";
  const platform = await testPlatform({
    config: {
      databases: { team: { instance: true, access: { open: true }, tables: { notes: {} } } },
      serviceKeys: { editor: { key, scopes: ["db:*:*:*"] } },
    },
  });
  const callers = { editor: platform.withKey(key), root: platform.service };
  const wanted = await Promise.all(
    Array.from({ length: 60 }, (_, at) => `together-${at}`).flatMap((instance) =>
      Object.entries(callers).map(async ([name, client]) => {
        const { status, headers } = await client.post(`/api/db/team/${instance}/tables/notes`, { id: name });
        expect(status).toBe(201);
        return `db/team/${instance}/notes/${name} ${name} ${headers.get("x-request-id")}`;
      }),
    ),
  );
  const { body } = await platform.service.get<{ entries: Entry[] }>("/api/admin/audit?action=record.insert&limit=200");
  const found = body.entries.map(({ target, actor, requestId }) => `${target} ${actor.name} ${requestId}`);
  expect(found.sort()).toEqual(wanted.sort());
  await platform.stop();
});

test("[AL14] while the log cannot be written, no instance is deleted with entries that wait in it", async () => {
  const platform = await testPlatform({
    config: { databases: { team: { instance: true, access: { open: true }, tables: { notes: {} } } } },
  });
  const { service } = platform;
  const path = join(platform.dataDirectory, "audit.db");
  const remove = async () => (await service.delete("/api/admin/instances/team/one")).status;
  writeFileSync(path, "this is no database ".repeat(1_000));
  await platform.restart();
  await service.post("/api/db/team/one/tables/notes", { id: "a" });
  expect([await remove(), await remove()]).toEqual([503, 503]);
  expect((await service.get("/api/db/team/one/tables/notes/a")).status).toBe(200);
  await platform.kill("SIGTERM");
  renameSync(path, `${path}.damaged`);
  await platform.restart();
  expect(await remove()).toBe(200);
  const { body } = await service.get<{ entries: (Entry & { action: string })[] }>("/api/admin/audit?target=db/team");
  expect(body.entries.map(({ action, target }) => `${action} ${target}`)).toEqual([
    "instance.delete db/team/one",
    "record.insert db/team/one/notes/a",
  ]);
  await platform.stop();
});

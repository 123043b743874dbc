import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { testPlatform } from "../../support/index.ts";

const CONFIG = `{
  databases: { shared: { tables: { notes: {} } }, clubs: { instance: true, tables: { films: {} } } },
  kv: { cache: {} },
  d1: { main: {} },
  vectorize: { near: { dimensions: 4 } },
  rooms: { game: {} },
  jobs: { nothing: { run() {} } },
  cron: { hourly: { schedule: "@hourly", run() {} } },
  storage: { buckets: { files: {} } },
}`;

test("[DB31] every database file that the server lays out has a version", async () => {
  const platform = await testPlatform({ config: CONFIG });
  const { service } = platform;
  await service.post("/api/db/clubs/noir/tables/films", { title: "M" });
  await service.post("/api/kv/cache", { action: "set", key: "a", value: 1 });
  await service.post("/api/d1/main", { query: "CREATE TABLE t (x)" });
  await service.post("/api/vectorize/near", { action: "upsert", vectors: [{ id: "v", values: [1, 0, 0, 0] }] });
  // A mail is a job.
  await service.post("/api/auth/admin/users/invite", { email: "ann@example.com" });
  await platform.kill("SIGTERM");
  const paths = readdirSync(platform.dataDirectory, { recursive: true }).map(String);
  const versions = paths
    .filter((path) => path.endsWith(".db"))
    .map((path): [string, number] => {
      using sqlite = new Database(join(platform.dataDirectory, path), { readonly: true });
      return [path, Number(sqlite.query("PRAGMA user_version").values()[0]?.[0])];
    });
  const unversioned = versions.filter(([, version]) => version === 0).map(([path]) => path);
  expect(unversioned).toEqual(["d1/main.db"]);
  const names = versions.map(([path]) => path);
  for (const name of ["system.db", "analytics.db", "jobs.db", "rooms.db", "databases/clubs/noir.db"]) {
    expect(names).toContain(name);
  }
  await platform.stop();
}, 30_000);

test("[DB300] the copy of an instance goes with the instance", async () => {
  const platform = await testPlatform({ config: CONFIG });
  await platform.service.post("/api/db/clubs/noir/tables/films", { title: "M" });
  const path = join(platform.dataDirectory, "databases/clubs/noir.db");
  // The second one as a crash leaves it.
  const copies = [`${path}.v0`, `${path}.v0.new`];
  for (const copy of copies) copyFileSync(path, copy);
  expect((await platform.service.fetch("/api/admin/instances/clubs/noir", { method: "DELETE" })).status).toBe(200);
  expect([path, ...copies].filter((file) => existsSync(file))).toEqual([]);
  await platform.stop();
});

import { expect, test } from "bun:test";
import { join } from "node:path";
import { JWT_SECRET, SERVICE_KEY, temporaryDirectory, testClock, until } from "../../../tests/support/index.ts";
import { createStorageEngine } from "../db/index.ts";
import { createPlatform } from "./index.ts";

interface Health {
  status: string;
}

test("[SY11] while the server stops, health is 503", async () => {
  const inProcess = await createPlatform(
    {},
    { dataDirectory: temporaryDirectory(), secrets: { serviceKey: SERVICE_KEY, jwtSecret: JWT_SECRET } },
  );
  const ask = (path: string) =>
    inProcess.fetch(new Request(`http://localhost${path}`, { headers: { "x-platform-service-key": SERVICE_KEY } }));
  expect((await ask("/api/health")).status).toBe(200);
  const stopped = inProcess.stop();
  for (const path of ["/api/health", "/api/health?full"]) {
    const answer = await ask(path);
    expect([answer.status, ((await answer.json()) as Health).status]).toEqual([503, "unavailable"]);
  }
  await stopped;
});

test("[SY11] a failed job does not make the server degraded; one that waits too long does", async () => {
  const clock = testClock();
  const inProcess = await createPlatform(
    { jobs: { slow: { concurrency: 1, run: () => new Promise(() => {}) } } },
    { dataDirectory: temporaryDirectory(), secrets: { serviceKey: SERVICE_KEY, jwtSecret: JWT_SECRET }, clock },
  );
  const status = async () => {
    clock.advance(2_000);
    const answer = await inProcess.fetch(new Request("http://localhost/api/health"));
    return [answer.status, ((await answer.json()) as Health).status];
  };
  await inProcess.app.jobs.enqueue("slow", null);
  await inProcess.app.jobs.enqueue("slow", null);
  expect(await status()).toEqual([200, "ok"]);
  clock.advance(16 * 60_000);
  expect(await status()).toEqual([200, "degraded"]);
  const stopped = inProcess.stop();
  for (let turn = 0; turn < 30; turn++) await clock.advanceAsync(1_000);
  await stopped;
});

test("[SY11] a file whose sync has failed is counted, and the last sync is known", async () => {
  let isBroken = false;
  const engine = createStorageEngine({
    clock: testClock(),
    syncFile: (_, done) => done(isBroken ? new Error("EIO") : null),
  });
  const path = join(temporaryDirectory(), "a.db");
  const file = engine.open(path, { migrate: (sqlite) => void sqlite.run("CREATE TABLE IF NOT EXISTS t (x)") });
  expect([engine.lastSync.at, engine.load.failedFiles, engine.paths()]).toEqual([null, 0, [path]]);
  await file.write((tx) => void tx.query("INSERT INTO t VALUES (1)").run());
  expect(engine.lastSync.at).not.toBeNull();
  isBroken = true;
  await expect(file.write((tx) => void tx.query("INSERT INTO t VALUES (1)").run())).rejects.toThrow("failed to keep");
  await until("the file has failed", () => engine.load.failedFiles === 1);
  await engine.stop();
});

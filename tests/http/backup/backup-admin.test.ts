import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { SERVICE_KEY } from "../../support/platform.ts";
import { startS3Server } from "../../support/s3-server.ts";
import { timedPlatform } from "../../support/timed-platform.ts";
import { until } from "../../support/until.ts";
import { runCommand } from "./backup-support.ts";

const KEYS = {
  reader: ["backups:*:*:read"],
  writer: ["backups:*:*:write"],
  downloader: ["backups:*:*:download"],
  other: ["system:*:*:read"],
};
const keyOf = (name: string): string => `${name}-key-0123456789abcdef`;
const serviceKeys = Object.fromEntries(
  Object.entries(KEYS).map(([name, scopes]) => [name, { key: keyOf(name), scopes }]),
);
const BACKUPS = "/api/admin/backups";

interface Run {
  id: string;
  backup: string | null;
  state: string;
  error: string | null;
  files: number | null;
  databases: number | null;
}
interface Listing {
  place: string;
  schedule: string | null;
  keep: number;
  backups: { name: string; createdAt: string; size: number; verifiedAt: string | null; failed: boolean }[];
  runs: Run[];
}

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: { kv: { cache: {} }, serviceKeys } });
  await platform.service.post("/api/kv/cache", { action: "set", key: "a", value: "x".repeat(100_000) });
});
afterAll(() => platform.stop());

type Server = Pick<TestPlatform, "service">;
const listing = async ({ service }: Server) => (await service.get<Listing>(BACKUPS)).body;

async function ended({ service }: Server, { id }: Run): Promise<Run> {
  let run: Run | null = null;
  await until("the run has ended", async () => {
    run = (await service.get<Run>(`${BACKUPS}/runs/${id}`)).body;
    return run.state === "done" || run.state === "failed";
  });
  if (run === null) throw new Error("no run");
  return run;
}

/** Makes a backup and gives its name. */
async function made(server: Server): Promise<string> {
  const answer = await server.service.post<Run>(BACKUPS);
  expect([answer.status, answer.headers.get("location")]).toEqual([202, `${BACKUPS}/runs/${answer.body.id}`]);
  const run = await ended(server, answer.body);
  expect(run).toMatchObject({ state: "done", error: null, databases: null });
  return run.backup ?? "";
}

const statusOf = async (method: string, path: string, key: string | null) => {
  const headers = key === null ? {} : { "x-platform-service-key": keyOf(key) };
  return (await platform.fetch(path, { method, headers })).status;
};

test("[BK305] [BK306] without backups in the config one is made into the data directory, of which the newest 3 are kept", async () => {
  expect(await listing(platform)).toMatchObject({ schedule: null, keep: 3, backups: [], runs: [] });
  const folder = join(platform.dataDirectory, "backups");
  mkdirSync(folder);
  for (const day of [1, 2, 3]) writeFileSync(join(folder, `platform-2001-01-0${day}T02-00-00Z.tar.zst`), "x");
  const name = await made(platform);
  const { backups, runs, place } = await listing(platform);
  expect(place).toContain(folder);
  expect(backups.map((backup) => backup.name)).toEqual([
    name,
    "platform-2001-01-03T02-00-00Z.tar.zst",
    "platform-2001-01-02T02-00-00Z.tar.zst",
  ]);
  expect(backups[1]).toEqual({
    name: "platform-2001-01-03T02-00-00Z.tar.zst",
    createdAt: "2001-01-03T02:00:00.000Z",
    size: 1,
    verifiedAt: null,
    failed: false,
  });
  expect(runs).toMatchObject([{ action: "create", backup: name, state: "done" }]);
  // The folder itself is in no backup, and restoring one gives what was there.
  const data = join(temporaryDirectory(), "data");
  const restored = await runCommand(["restore", join(folder, name), "--data", data]);
  expect(restored.code).toBe(0);
  expect([existsSync(join(data, "kv/cache.db")), existsSync(join(data, "backups"))]).toEqual([true, false]);
}, 60_000);

test("[BK307] while one is made, another one and a verification are 409", async () => {
  const answers = await Promise.all([1, 2, 3].map(() => platform.service.post<Run>(BACKUPS)));
  expect(answers.map(({ status }) => status).sort()).toEqual([202, 409, 409]);
  const run = answers.find(({ status }) => status === 202)?.body;
  const [backup] = (await listing(platform)).backups;
  expect((await platform.service.post(`${BACKUPS}/${backup?.name}/verify`)).status).toBe(409);
  expect(await ended(platform, run as Run)).toMatchObject({ state: "done" });
}, 60_000);

test("[BK308] a verification says what is in a backup, or what was found", async () => {
  const name = await made(platform);
  const verify = async (one: string) =>
    ended(platform, (await platform.service.post<Run>(`${BACKUPS}/${one}/verify`)).body);
  const held = await verify(name);
  expect([held.state, held.backup, held.error]).toEqual(["done", name, null]);
  expect(held.databases).toBeGreaterThan(1);
  const [newest] = (await listing(platform)).backups;
  expect([newest?.name, typeof newest?.verifiedAt]).toEqual([name, "string"]);
  const folder = join(platform.dataDirectory, "backups");
  const damaged = "platform-2020-01-01T00-00-00Z.tar.zst";
  const bytes = readFileSync(join(folder, name));
  writeFileSync(join(folder, damaged), bytes.subarray(0, bytes.length >> 1));
  const failed = await verify(damaged);
  expect([failed.state, failed.error]).toEqual([
    "failed",
    expect.stringMatching(/damaged|not a backup|does not match/),
  ]);
  expect(readdirSync(folder).filter((one) => one.endsWith(".verify"))).toEqual([]);
  for (const wrong of ["nothing", "platform-2019-01-01T00-00-00Z.tar.zst", "..%2Fsecrets.json"]) {
    expect((await platform.service.post(`${BACKUPS}/${wrong}/verify`)).status).toBe(404);
  }
}, 60_000);

test("[BK309] a backup is downloaded whole or in parts, and nothing else from its folder", async () => {
  const name = await made(platform);
  const folder = join(platform.dataDirectory, "backups");
  const bytes = readFileSync(join(folder, name));
  const download = (headers: Record<string, string> = {}, path = `${BACKUPS}/${name}`) =>
    platform.service.fetch(path, { headers });
  const whole = await download();
  expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).toBe(true);
  expect([whole.status, whole.headers.get("content-type"), whole.headers.get("content-disposition")]).toEqual([
    200,
    "application/zstd",
    `attachment; filename="${name}"`,
  ]);
  const part = await download({ range: "bytes=10-19" });
  expect([part.status, Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(10, 20))]).toEqual([206, true]);
  expect((await download({ "if-none-match": whole.headers.get("etag") ?? "" })).status).toBe(304);
  expect((await download({ range: "bytes=999999999-" })).status).toBe(416);
  for (const other of [
    ".platform-owner.json",
    "..%2F..%2Fsecrets.json",
    "..%2Fsystem.db",
    `${name}%00`,
    `${name}.failed`,
  ]) {
    expect((await download({}, `${BACKUPS}/${other}`)).status).toBe(404);
  }
}, 60_000);

test("[BK309] [BK305] each endpoint has its scope: a key that may read or make backups gets none", async () => {
  const name = await made(platform);
  const requests = [
    ["GET", BACKUPS, "reader"],
    ["GET", `${BACKUPS}/runs/nothing`, "reader"],
    ["POST", BACKUPS, "writer"],
    ["POST", `${BACKUPS}/${name}/verify`, "writer"],
    ["GET", `${BACKUPS}/${name}`, "downloader"],
    ["POST", `${BACKUPS}/${name}/link`, "downloader"],
  ] as const;
  for (const [method, path, owner] of requests) {
    expect([path, await statusOf(method, path, null)]).toEqual([path, 401]);
    for (const key of Object.keys(KEYS)) {
      const status = await statusOf(method, path, key);
      if (key === owner)
        expect([path, key, status < 400 || status === 404 || status === 409]).toEqual([path, key, true]);
      else expect([path, key, status]).toEqual([path, key, 403]);
    }
  }
  await until("nothing runs", async () => (await listing(platform)).runs.every(({ state }) => state !== "running"));
}, 60_000);

test("[BK310] a link counts once, for its backup; HEAD does not use it up", async () => {
  const name = await made(platform);
  const link = async () => (await platform.service.post<{ path: string }>(`${BACKUPS}/${name}/link`)).body.path;
  const path = await link();
  const head = await platform.fetch(path, { method: "HEAD" });
  expect([head.status, Number(head.headers.get("content-length")) > 1000]).toEqual([200, true]);
  const answer = await platform.fetch(path);
  expect([answer.status, (await answer.arrayBuffer()).byteLength > 1000]).toEqual([200, true]);
  expect((await platform.fetch(path)).status).toBe(401);
  expect((await platform.fetch(path, { method: "HEAD" })).status).toBe(401);
  const other = (await link()).replace(name, "platform-2020-01-01T00-00-00Z.tar.zst");
  expect((await platform.fetch(other)).status).toBe(401);
  expect((await platform.fetch(`${BACKUPS}/${name}?ticket=guess`)).status).toBe(401);
  expect((await platform.service.fetch(`${BACKUPS}/${name}?other=1`)).status).toBe(400);
}, 60_000);

test("[BK310] a link ends after a minute", async () => {
  const timed = await timedPlatform({});
  const folder = join(timed.dataDirectory, "backups");
  const name = "platform-2020-01-01T00-00-00Z.tar.zst";
  mkdirSync(folder);
  writeFileSync(join(folder, name), "archive");
  const headers = { "x-platform-service-key": SERVICE_KEY };
  const link = async () => {
    const answer = await timed.fetch(`${BACKUPS}/${name}/link`, { method: "POST", headers });
    return ((await answer.json()) as { path: string }).path;
  };
  const [used, old] = [await link(), await link()];
  timed.clock.advance(59_000);
  expect(await (await timed.fetch(used)).text()).toBe("archive");
  timed.clock.advance(2_000);
  expect((await timed.fetch(old)).status).toBe(401);
  await timed.stop();
});

test("[BK311] the audit log has who made, verified and downloaded a backup", async () => {
  const name = await made(platform);
  await platform.service.fetch(`${BACKUPS}/${name}`);
  await platform.service.post(`${BACKUPS}/${name}/link`);
  const { body } = await platform.service.post<Run>(`${BACKUPS}/${name}/verify`);
  await ended(platform, body);
  const log = await platform.service.get<{ entries: { action: string; target: string; actor: object }[] }>(
    "/api/admin/audit?action=backup&limit=4",
  );
  expect(log.body.entries.map(({ action, target }) => [action, target])).toEqual([
    ["backup.verify", `backups/${name}`],
    ["backup.download", `backups/${name}`],
    ["backup.download", `backups/${name}`],
    ["backup.create", "backups"],
  ]);
  expect(log.body.entries[0]?.actor).toEqual({ kind: "serviceKey", name: "root" });
}, 60_000);

test("[BK312] a drill makes and verifies none, and shows those that are there", async () => {
  const folder = temporaryDirectory();
  const name = "platform-2020-01-01T00-00-00Z.tar.zst";
  writeFileSync(join(folder, name), "archive");
  const backups = { schedule: "0 0 1 1 *", keep: 5, to: { folder } };
  const drill = await testPlatform({ config: { backups }, args: ["--drill"] });
  expect(await listing(drill)).toMatchObject({ schedule: "0 0 1 1 *", keep: 5, backups: [{ name, size: 7 }] });
  expect((await drill.service.post(BACKUPS)).status).toBe(503);
  expect((await drill.service.post(`${BACKUPS}/${name}/verify`)).status).toBe(503);
  expect(await (await drill.service.fetch(`${BACKUPS}/${name}`)).text()).toBe("archive");
  expect(readdirSync(folder)).toEqual([name]);
  await drill.stop();
}, 60_000);

test("[BK306] [BK308] [BK309] in an object store; one that fails is 503", async () => {
  const s3 = startS3Server("attic");
  const store = { endpoint: s3.endpoint, bucket: "attic", prefix: "api/", accessKeyId: "id", secretAccessKey: "s" };
  const backups = { schedule: "0 0 1 1 *", keep: 2, to: { s3: store } };
  const server = await testPlatform({ config: { kv: { cache: {} }, backups } });
  const name = await made(server);
  const stored = s3.objects.get(`api/${name}`) ?? new Uint8Array();
  expect((await listing(server)).backups).toMatchObject([{ name, size: stored.byteLength }]);
  const answer = await server.service.fetch(`${BACKUPS}/${name}`);
  expect([answer.status, Buffer.from(await answer.arrayBuffer()).equals(stored)]).toEqual([200, true]);
  const part = await server.service.fetch(`${BACKUPS}/${name}`, { headers: { range: "bytes=0-3" } });
  expect([part.status, Buffer.from(await part.arrayBuffer()).equals(stored.subarray(0, 4))]).toEqual([206, true]);
  const { body } = await server.service.post<Run>(`${BACKUPS}/${name}/verify`);
  expect(await ended(server, body)).toMatchObject({ state: "done", error: null });
  expect((await listing(server)).backups[0]?.verifiedAt).toBeString();
  expect(existsSync(join(server.dataDirectory, "backup.partial"))).toBe(false);
  s3.failing = true;
  const failed = await server.service.get<{ message: string }>(BACKUPS);
  expect([failed.status, failed.body.message]).toEqual([503, expect.stringContaining("object store")]);
  await server.stop();
  await s3.stop();
}, 60_000);

test("[BK307] [BK313] a scheduled backup waits for a verification; a stop cancels one and leaves nothing", async () => {
  const folder = temporaryDirectory();
  const timed = await timedPlatform({ kv: { cache: {} }, backups: { schedule: "0 3 * * *", keep: 2, to: { folder } } });
  const headers = { "x-platform-service-key": SERVICE_KEY };
  const ask = async <T>(path: string, method = "GET") =>
    (await (await timed.fetch(path, { method, headers })).json()) as T;
  const runs = async () => (await ask<Listing>(BACKUPS)).runs;
  await ask(BACKUPS, "POST");
  await until("one is made", async () => (await runs())[0]?.state === "done");
  const [first] = await runs();
  await ask(`${BACKUPS}/${first?.backup}/verify`, "POST");
  timed.clock.advance(24 * 60 * 60 * 1_000);
  await until("both have ended", async () => {
    const all = await runs();
    return all.length === 3 && all.every(({ state }) => state === "done");
  });
  const times = (await ask<{ runs: { action: string }[] }>(BACKUPS)).runs.map(({ action }) => action);
  expect(times).toEqual(["create", "verify", "create"]);
  const begun = await ask<Run>(`${BACKUPS}/${first?.backup}/verify`, "POST");
  await until("it has begun", () => readdirSync(folder).some((name) => name.endsWith(".verify")));
  expect(begun.state).toBe("running");
  await timed.stop();
  expect(readdirSync(folder).filter((name) => /verify$|partial$/.test(name))).toEqual([]);
}, 60_000);

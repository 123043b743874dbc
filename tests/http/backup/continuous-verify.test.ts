import { expect, test } from "bun:test";
import { closeSync, openSync, readdirSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { until, upload } from "../storage/storage-support.ts";
import { type Continuous, continuousOf, historyOf, untilStored, untilWhole } from "./continuous-support.ts";

const NOTES = "/api/db/shared/tables/notes";
const VERIFY = "/api/admin/backups/continuous/verify";
const TIMEOUT_MS = 120_000;

const config = (folder: string, more = "") => `{
  databases: {
    shared: { tables: { notes: { schema: { n: { type: "integer" }, text: { type: "text" } } } } },
    clubs: { instance: true, tables: { members: { schema: { n: { type: "integer" } } } } },
  },
  storage: { buckets: { files: {} } },
  d1: { ledger: {} },
  serviceKeys: { reader: { key: "reader-key-0123456789", scopes: ["backups:*:*:read"] } },
  backups: { continuous: { to: { folder: ${JSON.stringify(folder)} }, everyMs: 250${more} } },
}`;

async function begun(place: string, more = ""): Promise<TestPlatform> {
  const platform = await testPlatform({ config: config(place, more) });
  await platform.service.post("/api/d1/ledger", { query: "CREATE TABLE l (n INTEGER)" });
  for (let n = 0; n < 20; n++) {
    await platform.service.post(NOTES, { n, text: "text ".repeat(100) });
    await platform.service.post("/api/db/clubs/a/tables/members", { n });
    await platform.service.post("/api/d1/ledger", { query: "INSERT INTO l (n) VALUES (?)", params: [n] });
  }
  await upload(platform.service, "files", "a.txt", "content");
  await untilWhole(place);
  return platform;
}

async function verifiedBy(platform: TestPlatform): Promise<Continuous> {
  const before = await continuousOf(platform);
  expect((await platform.service.post(VERIFY)).status).toBe(202);
  let last = before;
  await until(
    "the verification has ended",
    async () => {
      last = await continuousOf(platform);
      return last.verified !== before.verified || last.verifiedAt !== before.verifiedAt;
    },
    60_000,
  );
  return last;
}

test(
  "[BK354] a verification compares each database with its restore while the server writes, and health, metrics and history say when",
  async () => {
    const place = join(temporaryDirectory(), "store");
    const platform = await begun(place, ", verify: false");
    expect(await continuousOf(platform)).toMatchObject({ verifiedAt: null, verified: null });
    let isWriting = true;
    const writing = (async () => {
      for (let n = 20; isWriting; n++) await platform.service.post(NOTES, { n });
    })();
    const found = await verifiedBy(platform);
    isWriting = false;
    await writing;
    expect(found).toMatchObject({ ok: true, verified: true, message: null });
    const metrics = await (await platform.service.fetch("/metrics")).text();
    expect(metrics).toMatch(/platform_continuous_verified_timestamp_seconds 1\d{9}/);
    await untilStored(platform);
    expect((await historyOf(place)).verifiedAt).toBe(found.verifiedAt);
    expect(readdirSync(join(platform.dataDirectory, "continuous"))).not.toContain("verify");
    // The next server knows it.
    await platform.restart();
    await untilStored(platform);
    expect(await continuousOf(platform)).toMatchObject({ verifiedAt: found.verifiedAt, verified: true });
    await platform.stop();
  },
  TIMEOUT_MS,
);

test(
  "[BK354] a page that changes without a commit is found, and health is not ok",
  async () => {
    const place = join(temporaryDirectory(), "store");
    const platform = await begun(place, ", verify: false");
    await platform.kill("SIGTERM");
    await platform.restart();
    await untilStored(platform);
    // The last page of a file, whose size and commit stay.
    const file = join(platform.dataDirectory, "databases", "shared.db");
    const descriptor = openSync(file, "r+");
    writeSync(descriptor, Buffer.from("another text"), 0, 12, Bun.file(file).size - 200);
    closeSync(descriptor);
    const found = await verifiedBy(platform);
    expect(found).toMatchObject({ ok: false, verified: false });
    expect(found.message).toContain("databases/shared differs from the store");
    await platform.stop();
  },
  TIMEOUT_MS,
);

test(
  "[BK354] a store that lacks the content of a file fails the verification",
  async () => {
    const place = join(temporaryDirectory(), "store");
    const platform = await begun(place, ", verify: false");
    await untilStored(platform);
    rmSync(join(place, "contents"), { recursive: true });
    const found = await verifiedBy(platform);
    expect(found).toMatchObject({ ok: false, verified: false });
    expect(found.message).toContain("the store lacks storage/objects/");
    await platform.stop();
  },
  TIMEOUT_MS,
);

test(
  "[BK354] the first verification follows the first full copies by itself",
  async () => {
    const place = join(temporaryDirectory(), "store");
    const platform = await begun(place);
    await until("it is verified", async () => (await continuousOf(platform)).verified === true, 90_000);
    await platform.stop();
  },
  TIMEOUT_MS,
);

test(
  "[BK355] a verification needs the right to write backups, is refused while one runs and in a drill, and has to have something to verify",
  async () => {
    const place = join(temporaryDirectory(), "store");
    const platform = await begun(place, ", verify: false");
    const answers = await Promise.all([platform.service.post(VERIFY), platform.service.post(VERIFY)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409]);
    expect((await platform.service.post(VERIFY, { a: 1 })).status).toBe(400);
    expect((await platform.post(VERIFY)).status).toBe(401);
    expect((await platform.withKey("reader-key-0123456789").post(VERIFY)).status).toBe(403);
    await platform.stop();
    const without = await testPlatform({ config: "{}" });
    expect((await without.service.post(VERIFY)).status).toBe(404);
    await without.stop();
    const drill = await testPlatform({ config: config(place), args: ["--drill"] });
    expect((await drill.service.post(VERIFY)).status).toBe(503);
    await drill.stop();
  },
  TIMEOUT_MS,
);

/** Tests of what the server says of its continuous backup. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { historyOf, untilStored, untilWhole } from "./continuous-support.ts";

const CONTINUOUS = "/api/admin/backups/continuous";
const [READER, OTHER] = ["reader-key-0123456789", "other-key-0123456789"];

interface ContinuousBackup {
  message: string | null;
  history: {
    spans: { from: string; to: string }[];
    gaps: object[];
    copies: { at: string; files: number; bytes: number }[];
    files: number;
    bytes: number;
  } | null;
}

const config = (more: string) => `{
  databases: { clubs: { instance: true, tables: { members: { schema: { n: { type: "integer" } } } } } },
  serviceKeys: {
    reader: { key: "${READER}", scopes: ["backups:*:*:read"] },
    other: { key: "${OTHER}", scopes: ["backups:*:*:write"] },
  },
  ${more}
}`;

let place: string;
let platform: TestPlatform;
beforeAll(async () => {
  place = join(temporaryDirectory(), "store");
  const continuous = { to: { folder: place }, everyMs: 250, keepDays: 3, verify: false };
  platform = await testPlatform({ config: config(`backups: ${JSON.stringify({ continuous })}`) });
  await add("a", 0);
  await untilWhole(place);
}, 60_000);
afterAll(() => platform.stop());

const add = async (club: string, n: number): Promise<void> => {
  expect((await platform.service.post(`/api/db/clubs/${club}/tables/members`, { n })).status).toBe(201);
};
test("[BK386] the moments of all files are those of history, with lag, copies and gaps", async () => {
  await untilStored(platform);
  const { status, body } = await platform.service.get<ContinuousBackup>(CONTINUOUS);
  expect(status).toBe(200);
  expect(body).toMatchObject({ place: `The folder ${place}`, everyMs: 250, keepDays: 3, ok: true, verified: null });
  const known = await historyOf(place);
  const { spans = [], copies = [], gaps, files = 0, bytes = 0 } = body.history ?? {};
  expect(spans.map(({ from }) => from)).toEqual([known.from]);
  expect(gaps).toEqual([]);
  expect(files).toBe(known.files.length);
  expect(copies.reduce((sum, copy) => sum + copy.files, 0)).toBeGreaterThanOrEqual(files);
  expect(bytes).toBeGreaterThan(0);
});

test("[BK386] an instance that was deleted and made again has the times in which it was there", async () => {
  await add("b", 1);
  await untilStored(platform);
  expect((await platform.service.delete("/api/admin/instances/clubs/b")).status).toBe(200);
  await add("b", 2);
  await untilStored(platform);
  for (const file of ["clubs/b", "databases/clubs/b"]) {
    const { body } = await platform.service.get<ContinuousBackup>(`${CONTINUOUS}?file=${encodeURIComponent(file)}`);
    const [first, second, ...more] = body.history?.spans ?? [];
    expect(more).toEqual([]);
    expect(Date.parse(first?.to ?? "")).toBeLessThanOrEqual(Date.parse(second?.from ?? ""));
    expect(body.history?.files).toBe(1);
  }
});

test("[BK386] it takes a key that may read backups; 404 for an unknown file, and without a continuous backup; 503 in a drill", async () => {
  expect((await platform.withKey(READER).get(CONTINUOUS)).status).toBe(200);
  expect((await platform.withKey(OTHER).get(CONTINUOUS)).status).toBe(403);
  expect((await platform.get(CONTINUOUS)).status).toBe(401);
  expect((await platform.service.get(`${CONTINUOUS}?file=clubs/nobody`)).status).toBe(404);
  expect((await platform.service.get(`${CONTINUOUS}?files=clubs/a`)).status).toBe(400);
  const without = await testPlatform({ config: config("") });
  expect((await without.service.get(CONTINUOUS)).status).toBe(404);
  expect((await without.service.get<object>("/api/admin/backups")).body).toMatchObject({ continuous: false });
  await without.stop();
  const drilled = config(`backups: ${JSON.stringify({ continuous: { to: { folder: place } } })}`);
  const drill = await testPlatform({ config: drilled, args: ["--drill"] });
  expect((await drill.service.get(CONTINUOUS)).status).toBe(503);
  expect((await drill.service.get<object>("/api/admin/backups")).body).toMatchObject({ continuous: false });
  await drill.stop();
}, 60_000);

test("[BK386] while the place cannot be read the lag is still said, with the reason", async () => {
  await untilStored(platform);
  const manifest = join(place, "manifest");
  renameSync(manifest, `${manifest}-away`);
  const { status, body } = await platform.service.get<ContinuousBackup>(CONTINUOUS);
  expect(status).toBe(200);
  expect(body.history).toBeNull();
  expect(body.message).toBeString();
  renameSync(`${manifest}-away`, manifest);
  expect((await platform.service.get<ContinuousBackup>(CONTINUOUS)).body.history).not.toBeNull();
});

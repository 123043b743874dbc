import { expect, test } from "bun:test";
import { join } from "node:path";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { historyOf, numbersIn, restored, untilPassed, untilWhole, upTo } from "./continuous-support.ts";

const NOTES = "/api/db/shared/tables/notes";
const MEMBERS = "/api/db/clubs/a/tables/members";

/** Interval of passes: a write right after one is not in the store when the server is killed. */
const EVERY_MS = 3_000;

const config = (folder: string) => `{
  databases: {
    shared: { tables: { notes: { schema: { n: { type: "integer" } } } } },
    clubs: { instance: true, tables: { members: { schema: { n: { type: "integer" } } } } },
  },
  backups: { continuous: { to: { folder: ${JSON.stringify(folder)} }, everyMs: ${EVERY_MS} } },
}`;

async function add(platform: TestPlatform, n: number): Promise<void> {
  expect((await platform.service.post(NOTES, { n })).status).toBe(201);
  expect((await platform.service.post(MEMBERS, { n })).status).toBe(201);
}

test("[BK353] every moment that a kill has left in the WALs can be restored after the next start, of files that nobody opens too", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await testPlatform({ config: config(place) });
  await add(platform, 0);
  await untilWhole(place);
  await untilPassed(platform);
  const moments: string[] = [];
  for (const n of [1, 2, 3, 4]) {
    await add(platform, n);
    await Bun.sleep(5);
    moments.push(new Date().toISOString());
    await Bun.sleep(5);
  }
  await platform.kill("SIGKILL");
  await platform.restart();
  await untilPassed(platform);
  await platform.kill("SIGTERM");
  expect((await historyOf(place)).gaps).toEqual([]);
  for (const [index, at] of moments.entries()) {
    const copy = await restored(place, "--at", at);
    expect(numbersIn(copy, "databases/shared", "notes")).toEqual(upTo(2 + index));
    expect(numbersIn(copy, "databases/clubs/a", "members")).toEqual(upTo(2 + index));
  }
  await platform.stop();
}, 120_000);

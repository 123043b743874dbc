import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { defineConfig } from "platform";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { HOUR_MS } from "../../../src/kernel/time/duration.ts";
import { until } from "../../support/index.ts";
import { postInTwo } from "../../support/split-request.ts";
import { type TimedPlatform, timedPlatform } from "../../support/timed-platform.ts";

const OPEN = { read: true, insert: true } as const;
let platform: TimedPlatform;
let openAsked = 0;
beforeAll(async () => {
  platform = await timedPlatform(
    defineConfig({
      databases: {
        shared: { tables: { notes: { schema: { n: { type: "integer" } }, access: OPEN } } },
        rooms: {
          instance: true,
          access: { create: true, open: () => ++openAsked > 0 },
          tables: { notes: { access: OPEN } },
        },
      },
    }),
  );
});
afterAll(() => platform.stop());

const SHARED = "/api/db/shared/tables/notes";
const ROOM = "/api/db/rooms/one/tables/notes";
const SERVICE = { "x-platform-service-key": "test-service-key-0123456789abcdefghijklmnop" };
const insert = async (path: string, key: string) => {
  const { status, headers, body } = await platform.post<JsonObject>(
    path,
    {},
    {
      headers: { ...SERVICE, "idempotency-key": key },
    },
  );
  return { status, isReplay: headers.get("idempotent-replay") === "true", id: body["id"] };
};

/** The keys that the file `name` keeps, and those that it counts. */
async function kept(name: string): Promise<[number, number]> {
  const [found = ""] = await Array.fromAsync(new Bun.Glob(`**/${name}`).scan(platform.dataDirectory));
  using sqlite = new Database(join(platform.dataDirectory, found), { readonly: true });
  const rows = sqlite.query<{ n: number }, []>(`SELECT count(*) AS n FROM "_platform_idempotency"`).get();
  const counted = sqlite
    .query<{ n: number | null }, []>(`SELECT sum("keys") AS n FROM "_platform_idempotency_callers"`)
    .get();
  return [rows?.n ?? -1, counted?.n ?? 0];
}

test("[TB325] an answer is kept for 24 hours, then its key may be used again", async () => {
  for (const path of [SHARED, ROOM]) {
    const first = await insert(path, "again");
    expect(first).toMatchObject({ status: 201, isReplay: false });
    await platform.clock.advanceAsync(24 * HOUR_MS - 1_000);
    expect(await insert(path, "again")).toEqual({ ...first, isReplay: true });
    await platform.clock.advanceAsync(1_000);
    const second = await insert(path, "again");
    expect([second.isReplay, second.id === first.id]).toEqual([false, false]);
    expect(await insert(path, "again")).toEqual({ ...second, isReplay: true });
  }
});

test("[TB325] expired answers are removed, of open instances too, and are no longer counted", async () => {
  for (let n = 0; n < 6; n++) await insert(SHARED, `old-${n}`);
  for (let n = 0; n < 450; n++) await insert(ROOM, `room-${n}`);
  expect((await kept("one.db"))[0]).toBeGreaterThanOrEqual(450);
  await platform.clock.advanceAsync(23 * HOUR_MS);
  expect((await kept("one.db"))[0]).toBeGreaterThanOrEqual(450);
  const isSwept = async () => [...(await kept("shared.db")), ...(await kept("one.db"))].every((count) => count === 0);
  await until("all answers are removed", async () => {
    await platform.clock.advanceAsync(HOUR_MS);
    return isSwept();
  });
});

test("[TB325] a key that is used again removes no answer but its own", async () => {
  const room = "/api/db/rooms/reused/tables/notes";
  // Between two sweeps, so that the answer expires before it is swept.
  await platform.clock.advanceAsync(HOUR_MS / 2);
  const account = { email: "ann@example.com", password: "correct horse battery" };
  const headersOf = ({ body }: { body: JsonObject }) => ({
    authorization: `Bearer ${body["accessToken"]}`,
    "idempotency-key": "a",
  });
  const first = headersOf(await platform.post("/api/auth/signup", account));
  expect((await platform.post(room, {}, { headers: first })).status).toBe(201);
  await platform.clock.advanceAsync(24 * HOUR_MS);
  const again = headersOf(await platform.post("/api/auth/signin", account));
  const askedBefore = openAsked;
  const request = postInTwo(platform.url + room, { headers: again, begin: "{", restBytes: 1 });
  await until("it has found its expired answer, and waits for the rest of the body", () => openAsked > askedBefore);
  await until("that answer is swept", async () => {
    await platform.clock.advanceAsync(HOUR_MS);
    return (await kept("reused.db"))[0] === 0;
  });
  const other = await insert(room, "b");
  expect(await request.end("}")).toBe(201);
  expect(await insert(room, "b")).toEqual({ ...other, isReplay: true });
  expect(await kept("reused.db")).toEqual([2, 2]);
});

test("[TB325] answers of a clock that was far ahead do not hold up the removal of others", async () => {
  const [room, day] = ["/api/db/rooms/ahead/tables/notes", 24 * HOUR_MS];
  platform.clock.advance(10 * day);
  await insert(room, "ahead");
  platform.clock.advance(-10 * day);
  for (let n = 0; n < 6; n++) await insert(room, `old-${n}`);
  platform.clock.advance(day);
  // Each eighth key removes some.
  for (let n = 0; n < 8; n++) await insert(room, `new-${n}`);
  expect(await kept("ahead.db")).toEqual([8, 8]);
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestPlatform, testPlatform } from "../../support/index.ts";

// So many and long records that a count with many conditions takes some seconds.
const RECORDS = 6_000;
const TEXT = "a".repeat(1_000);
const CONFIG = `{
  server: { trustProxy: true },
  databases: { shared: { tables: { notes: { schema: { text: { type: "text" } }, access: { read: true } } } } },
}`;
const PATH = "/api/db/shared/tables/notes";
const needle = (end: string) => `${"a".repeat(300)}${end}`;
const SLOW_FILTERS = `filter=${encodeURIComponent(
  JSON.stringify(Array.from({ length: 49 }, (_, index) => ["text", "not in", [needle(`${index}`)]])),
)}&orFilter=${encodeURIComponent(JSON.stringify([1, 2, 3, 4, 5].map((n) => ["text", "contains", needle(`${n}`)])))}`;
const SLOW = `${PATH}/count?${SLOW_FILTERS}`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  for (let start = 0; start < RECORDS; start += 500) {
    const { status } = await platform.service.post(`${PATH}/batch`, {
      inserts: Array.from({ length: 500 }, () => ({ text: TEXT })),
    });
    expect(status).toBe(200);
  }
});
afterAll(() => platform.stop());

const from = (address: string, signal?: AbortSignal) => ({
  headers: { "x-forwarded-for": address },
  ...(signal === undefined ? {} : { signal }),
});

async function longReads(): Promise<{ running: number; waiting: number }> {
  const text = await (await platform.service.fetch("/metrics")).text();
  const gauge = (name: string) => Number(new RegExp(`^platform_long_reads_${name} (\\d+)$`, "m").exec(text)?.[1]);
  return { running: gauge("running"), waiting: gauge("waiting") };
}

test("[TB100] slow counts of one address do not delay those of another, and end with their connections", async () => {
  const gone = new AbortController();
  let doneCount = 0;
  const slow = Array.from({ length: 40 }, () =>
    platform
      .fetch(SLOW, from("203.0.113.1", gone.signal))
      .then(() => doneCount++)
      .catch(() => null),
  );
  while ((await longReads()).waiting === 0) await Bun.sleep(5);
  const filter = encodeURIComponent(JSON.stringify([["text", "==", "b"]]));
  const honest = await platform.fetch(`${PATH}/count?filter=${filter}`, from("203.0.113.2"));
  expect(await honest.json()).toEqual({ total: 0 });
  expect(doneCount).toBeLessThan(20);
  gone.abort();
  await Promise.all(slow);
  // The processes end shortly after their requests.
  let left = await longReads();
  for (let tries = 0; tries < 500 && left.running + left.waiting > 0; tries++) {
    await Bun.sleep(10);
    left = await longReads();
  }
  expect(left).toEqual({ running: 0, waiting: 0 });
  expect(platform.stderr()).not.toContain("request failed");
});

test("[TB417] aggregates share the processes of other reads fairly, and end with their connections", async () => {
  const gone = new AbortController();
  const slow = Array.from({ length: 20 }, () =>
    platform.fetch(`${PATH}/aggregate?${SLOW_FILTERS}`, from("203.0.113.3", gone.signal)).catch(() => null),
  );
  while ((await longReads()).waiting === 0) await Bun.sleep(5);
  const honest = await platform.fetch(`${PATH}/aggregate?groupBy=text`, from("203.0.113.4"));
  expect(await honest.json()).toEqual({ groups: [{ text: TEXT, "count()": RECORDS }] });
  gone.abort();
  await Promise.all(slow);
  let left = await longReads();
  for (let tries = 0; tries < 500 && left.running + left.waiting > 0; tries++) {
    await Bun.sleep(10);
    left = await longReads();
  }
  expect(left).toEqual({ running: 0, waiting: 0 });
});

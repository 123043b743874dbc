import { expect, test } from "bun:test";
import { settle, testClock } from "../../../../tests/support/clock.ts";
import { jsonPieces, streamJson } from "./json-stream.ts";

const LARGE = {
  items: Array.from({ length: 40 }, (_, n) => ({
    id: `r${n}`,
    text: '\u00e9\n"'.repeat(10_000),
    n: n / 3,
    none: null,
  })),
  total: 40,
  cursor: null,
  missing: undefined,
  'odd "name"': [1, undefined, "x"],
};

test("[HT90] a large answer is the same JSON, in pieces", async () => {
  const pieces = [...jsonPieces(LARGE)];
  expect(pieces.join("")).toBe(JSON.stringify(LARGE));
  expect(pieces.length).toBeGreaterThan(5);
  for (const empty of [{}, { items: [] }, { items: [], total: 0 }, { a: undefined }]) {
    expect([...jsonPieces(empty)].join("")).toBe(JSON.stringify(empty));
  }
  const record = (expand: unknown) => ({ id: "a", text: "x".repeat(1_000), expand });
  const related = {
    one: record({ deep: null }),
    many: { items: [record({}), record([1])], hasMore: false },
    none: null,
  };
  for (const expanded of [record(related), { items: [record(related), record("its own"), 1, null] }]) {
    expect([...jsonPieces(expanded)].join("")).toBe(JSON.stringify(expanded));
  }
  const wide = record({ many: { items: Array.from({ length: 1_000 }, () => record({})), hasMore: true } });
  expect([...jsonPieces(wide)].length).toBeGreaterThan(5);
  let endCount = 0;
  const stream = streamJson(LARGE, { clock: testClock(), onEnd: () => endCount++ });
  expect(await new Response(stream).text()).toBe(JSON.stringify(LARGE));
  expect(endCount).toBe(1);
});

test("[HT90] a client that disconnects, or stops reading, ends its answer", async () => {
  const clock = testClock();
  let endCount = 0;
  const onEnd = () => endCount++;
  const left = streamJson(LARGE, { clock, onEnd }).getReader();
  await left.read();
  await left.cancel();
  expect([endCount, clock.waiting]).toEqual([1, 0]);

  const stalled = streamJson(LARGE, { clock, onEnd }).getReader();
  await stalled.read();
  clock.advance(20_000);
  await settle();
  expect(endCount).toBe(2);
  await expect(stalled.read()).rejects.toThrow("takes nothing");
});

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { TestPlatform } from "../../support/index.ts";
import { type PocketBase, startPocketbase } from "../../support/pocketbase.ts";
import { type Moved, moved, started } from "./moved.ts";
import { type Attempt, nobody, seen, tried } from "./rights.ts";

// Rules that compare two fields of one record.

setDefaultTimeout(120_000);

let pb: PocketBase;
let made: Moved;
let platform: TestPlatform;
const ID = (number: number): string => `pair${String(number).padStart(11, "0")}`;
const ROWS = [
  { one: "a", other: "a", low: 2, high: 1 },
  { one: "a", other: "b", low: 1, high: 2 },
  { one: "", other: "", low: 2, high: 1 },
  { one: "a", other: "", low: 1, high: 2 },
  { one: "b", other: "a", low: 0, high: 0 },
];

beforeAll(async () => {
  pb = await startPocketbase();
  const rules = { listRule: "one = other || low < high", viewRule: "one = other || low < high" };
  await pb.collection({
    name: "pairs",
    type: "base",
    fields: [
      ...["one", "other"].map((name) => ({ name, type: "text" })),
      ...["low", "high"].map((name) => ({ name, type: "number" })),
    ],
    ...rules,
    createRule: "low <= high",
    updateRule: "one != other",
    deleteRule: null,
  });
  for (const [index, row] of ROWS.entries()) await pb.insert("pairs", { id: ID(index), ...row });
  made = await moved(pb.folder);
  platform = await started(made);
});
afterAll(async () => {
  await platform?.stop();
  await pb?.stop();
});

test("[MG48] two fields of one record are compared as before", async () => {
  const actor = nobody(pb, platform);
  const { differences, compared } = await seen([actor], ["pairs"], pb, (id) => id);
  expect([differences, compared]).toEqual([[], 8]);
  const attempts: Attempt[] = [
    ...ROWS.map(
      (_, index): Attempt => ({ actor, action: "update", table: "pairs", id: ID(index), values: { low: 3 } }),
    ),
    ...[1, 2].map(
      (low): Attempt => ({ actor, action: "insert", table: "pairs", id: ID(10 + low), values: { low, high: 1 } }),
    ),
  ];
  const done = await tried(attempts, (id) => id);
  expect(done.allowed).toBe(3);
  // Nobody reads it, and so nobody changes it here.
  expect(done.differences).toEqual([`- nobody updates pairs ${ID(4)} low`]);
  expect(made.report).not.toContain("stricter");
});

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Adapter, startAdapter } from "./adapter.ts";
import { runScenario, startWorld, type World } from "./runner.ts";
import { difference, readScenarios, type Step } from "./scenario.ts";

// The typed client passes the suite. Clients of other languages run it by `bun tests/conformance/run.ts COMMAND…`.

const scenarios = readScenarios();
const callsIn = (steps: readonly Step[]) =>
  steps.flatMap((step) => ("together" in step ? step.together : "do" in step ? [step] : []));

test("[CN1] scenarios use operations that SPEC.md describes, of clients that they open", () => {
  const spec = readFileSync(join(import.meta.dir, "SPEC.md"), "utf8");
  const operations = [...spec.matchAll(/^\| `(\w+)` /gm)].map(([, name]) => name);
  expect(operations.length).toBeGreaterThan(20);
  const wrong = scenarios.flatMap(({ name, clients, steps }) =>
    callsIn(steps)
      .filter(({ client, do: operation }) => !(client in clients) || !operations.includes(operation))
      .map(({ client, do: operation }) => `${name}: ${client} ${operation}`),
  );
  expect(wrong).toEqual([]);
  const used = new Set(scenarios.flatMap(({ steps }) => callsIn(steps).map((call) => call.do)));
  expect(operations.filter((name = "") => !used.has(name) && !["hello", "open", "close"].includes(name))).toEqual([]);
});

test("[CN2] a difference is found wherever it is, and further members of objects are none", () => {
  expect(difference({ a: [1, { b: "…" }] }, { a: [1, { b: 0, c: 2 }], d: 1 })).toBeNull();
  expect(difference({ a: [1] }, { a: [1, 2] })).toContain("result.a");
  expect(difference({ a: { b: "…" } }, { a: { b: null } })).toContain("result.a.b");
  expect(difference([], {})).not.toBeNull();
  expect(difference({ a: 1 }, {})).toContain("found undefined");
});

describe("the typed client", () => {
  let world: World;
  let adapter: Adapter;
  beforeAll(async () => {
    const command = [process.execPath, join(import.meta.dir, "../client/conformance-adapter.ts")];
    [world, adapter] = await Promise.all([startWorld(), startAdapter(command)]);
  });
  afterAll(async () => {
    await adapter.end();
    await world.stop();
  });

  test("[CN3] leaves nothing out", () => {
    const needed = scenarios.flatMap(({ needs = [] }) => needs);
    expect(needed.filter((need) => !adapter.supports.includes(need))).toEqual([]);
  });

  for (const scenario of scenarios) test(scenario.name, () => runScenario(world, adapter, scenario));
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { testSeed } from "../../support/random.ts";
import { may, type RulesWorld, recordOf, rulesWorld } from "../../support/rules-world.ts";

// A replayed answer is a way to read: it shows what its caller may read by the rules, whatever the first answer had.

const SEED = testSeed(30_300);
const ROUNDS = Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);

let world: RulesWorld;
beforeAll(async () => {
  world = await rulesWorld(SEED, 20 * ROUNDS);
});
afterAll(() => world.stop());

test(`[TB55, TB323] a replay has the records that its caller may read, and ids (seed ${SEED})`, async () => {
  const seen = { whole: 0, ids: 0 };
  for (const table of world.tables) {
    for (const caller of world.callers.filter(({ auth, scopes }) => auth !== null || scopes !== null)) {
      const record: JsonObject = recordOf(world.r, table.name, `replayed-${caller.name}`, world.owners);
      const requests: [path: string, body: JsonObject, recordsOf: (body: JsonObject) => unknown][] = [
        [table.path, record, (body) => [body]],
        [
          `${table.path}/batch`,
          { inserts: [{ ...record, id: `${record["id"]}-b`, slug: `${record["slug"]}-b` }] },
          (body) => body["inserted"],
        ],
        [
          table.path.replace(/\/tables\/.*/, "/transaction"),
          {
            operations: [
              {
                table: table.name,
                action: "insert",
                data: { ...record, id: `${record["id"]}-t`, slug: `${record["slug"]}-t` },
              },
            ],
          },
          (body) => body["results"],
        ],
      ];
      for (const [path, body, recordsOf] of requests) {
        const send = () =>
          caller.client.post(path, body, { headers: { "idempotency-key": `${table.name}${path}-${caller.name}` } });
        const first = await send();
        if (first.status >= 300) {
          expect(first.status).toBe(403);
          continue;
        }
        const [made] = recordsOf(first.body) as JsonObject[];
        if (made === undefined) throw new Error("no record");
        const isShown = may(table, caller, "read", made);
        seen[isShown ? "whole" : "ids"] += 1;
        const again = await send();
        const about = { caller: caller.name, path, read: table.rules.read?.source };
        expect({ ...about, replay: again.headers.get("idempotent-replay"), records: recordsOf(again.body) }).toEqual({
          ...about,
          replay: "true",
          records: [isShown ? made : { id: made["id"] ?? null }],
        });
      }
    }
  }
  expect(Math.min(seen.whole, seen.ids)).toBeGreaterThan(10);
});

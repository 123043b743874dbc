import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import { type ListAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";
import { random, testSeed } from "../../support/random.ts";

// Two tables with the same visible records: one has hidden ones among them, the other has none. [TB755] [TB110]

const table = `{
  schema: { at: { type: "geo" }, isShown: { type: "boolean" }, parent: { references: "pins" } },
  access: { read: () => [["isShown", "==", true]] },
}`;
const config = `{ databases: { shared: { tables: { pins: ${table}, alone: ${table} } } },
  routes: (api) => api.get("/near", ({ app }) => app.db("shared").table("pins").list({ near: "at:10:20", limit: 2 }), { access: true }) }`;

let platform: TestPlatform;
const seed = testSeed(7_570);
beforeAll(async () => {
  platform = await testPlatform({ config });
  const from = random(seed);
  for (let part = 0; part < 8; part++) {
    const inserts = Array.from({ length: 500 }, (_, n) => {
      const isShown = from.chance(0.3);
      const at = { lat: 10 + from.below(2_000) / 1e4, lng: 20 + from.below(2_000) / 1e4 };
      return { id: `r${part}-${n}`, at: from.chance(0.02) ? null : at, isShown };
    });
    const shown = inserts.filter(({ isShown }) => isShown);
    expect((await platform.service.post("/api/db/shared/tables/pins/batch", { inserts })).status).toBe(200);
    expect((await platform.service.post("/api/db/shared/tables/alone/batch", { inserts: shown })).status).toBe(200);
  }
});
afterAll(() => platform.stop());

const answer = async (name: string, query: Record<string, string>) => {
  const fields = { fields: "at", ...query };
  const { status, body } = await platform.get<ListAnswer>(`/api/db/shared/tables/${name}`, { query: fields });
  return { status, body };
};

test("[TB755] [TB757] hidden records change no distance, order, total or page", async () => {
  const from = random(seed + 1);
  for (let round = 0; round < 60; round++) {
    const point = { lat: 10 + from.below(3_000) / 1e4, lng: 20 + from.below(3_000) / 1e4 };
    const area: JsonValue = from.chance(0.5)
      ? [["at", "within", { ...point, meters: from.pick([0, 500, 5_000, 50_000]) }]]
      : [["at", "inBox", { south: point.lat - 0.02, west: point.lng - 0.02, north: point.lat, east: point.lng }]];
    const near = { near: `at:${point.lat}:${point.lng}`, limit: String(from.pick([1, 20, 300])) };
    const queries: Record<string, string>[] = [
      near,
      { ...near, total: "false" },
      { ...near, offset: String(from.pick([10, 600, 1_150])) },
      { ...near, filter: JSON.stringify(area) },
      { filter: JSON.stringify(area) },
      { filter: JSON.stringify([{ not: area }]), sort: "id:desc" },
    ];
    for (const query of queries) {
      expect([seed, query, await answer("pins", query)]).toEqual([seed, query, await answer("alone", query)]);
    }
  }
}, 60_000);

test("[TB755] `app` has distances too", async () => {
  const { body } = await platform.get<ListAnswer>("/api/functions/near");
  expect(body.items?.map(({ distance }) => typeof distance)).toEqual(["number", "number"]);
  expect([body.cursor, body.hasMore]).toEqual([null, true]);
});

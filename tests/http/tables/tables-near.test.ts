import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type ListAnswer, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { type Random, random, testSeed } from "../../support/random.ts";

const access = "insert: true, update: true, delete: true";
const config = `{ databases: { shared: { tables: {
  places: { schema: { at: { type: "geo" }, kind: { type: "string" }, text: { type: "text" } }, access: { read: true, ${access} } },
  own: {
    schema: { at: { type: "geo" }, owner: { type: "string" }, distance: { type: "string" } },
    access: { read: (auth) => [["owner", "==", auth === null ? "" : auth.id]], ${access} },
  },
  each: { schema: { at: { type: "geo" } }, access: { read: (auth, record) => record.id !== "", ${access} } },
  none: { schema: { at: { type: "geo" } } },
  notes: { schema: { place: { references: "places" }, at: { type: "geo" } }, access: { read: true, ${access} } },
} } } }`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config });
});
afterAll(() => platform.stop());

const path = (table: string): string => `/api/db/shared/tables/${table}`;
const list = (table: string, query: Record<string, string>) => platform.get<ListAnswer>(path(table), { query });

type Point = { lat: number; lng: number };

/** Distance calculated by vectors, in another way than the server's. */
function distance(from: Point, to: Point): number {
  const vector = ({ lat, lng }: Point) => {
    const [a, b] = [(lat * Math.PI) / 180, (lng * Math.PI) / 180];
    return [Math.cos(a) * Math.cos(b), Math.cos(a) * Math.sin(b), Math.sin(a)] as const;
  };
  const [[a, b, c], [d, e, f]] = [vector(from), vector(to)];
  const cross = Math.hypot(b * f - c * e, c * d - a * f, a * e - b * d);
  return 6_371_008.8 * Math.atan2(cross, a * d + b * e + c * f);
}

/** Near one city, at the edges of the map, opposite of each other, or anywhere. */
function point(from: Random): Point {
  const kind = from.below(4);
  if (kind === 0) return { lat: 48.2 + from.below(1000) / 1e5, lng: 16.37 + from.below(1000) / 1e5 };
  if (kind === 1) return { lat: from.pick([-90, 90, 89.999, 0]), lng: from.pick([-180, 180, 179.999, -179.999, 12]) };
  if (kind === 2)
    return from.pick([
      { lat: 20, lng: 30 },
      { lat: -20, lng: -150 },
    ]);
  return { lat: from.below(180_001) / 1000 - 90, lng: from.below(360_001) / 1000 - 180 };
}

/** Checks a list against all records: complete, in order, with right distances. */
function check(
  items: readonly JsonObject[],
  known: ReadonlyMap<string, Point | null>,
  near: Point,
  offset: number,
): void {
  const distances = [...known.values()]
    .map((at) => (at === null ? Number.POSITIVE_INFINITY : distance(near, at)))
    .sort((a, b) => a - b);
  let before: JsonObject | null = null;
  for (const [index, item] of items.entries()) {
    const at = known.get(String(item["id"]));
    const wanted = distances[offset + index] ?? Number.NaN;
    if (at === null) expect([item["distance"], wanted]).toEqual([undefined, Number.POSITIVE_INFINITY]);
    else {
      expect(Math.abs(Number(item["distance"]) - wanted)).toBeLessThan(0.5);
      expect(Math.abs(Number(item["distance"]) - distance(near, at ?? near))).toBeLessThan(0.5);
    }
    if (before !== null) {
      const [left, right] = [before, item].map((one) => Number(one["distance"] ?? Number.POSITIVE_INFINITY));
      const isInOrder = (left ?? 0) < (right ?? 0) || (left === right && String(before["id"]) < String(item["id"]));
      expect(isInOrder).toBe(true);
    }
    before = item;
  }
}

test("[TB755] [TB757] [TB905] the nearest come first: brute force in a small and a large table, with conditions and rules", async () => {
  const seed = testSeed(7_550);
  const from = random(seed);
  const ann = await signIn(platform);
  const bob = await signIn(platform);
  const known = new Map<string, Point | null>();
  const own = new Map<string, Point | null>();
  for (const size of [300, 12_000]) {
    while (known.size < size) {
      const inserts: JsonValue[] = [];
      const owned: JsonValue[] = [];
      for (let count = 0; count < 450; count++) {
        const id = `p${known.size}`;
        const at = from.chance(0.05) ? null : point(from);
        known.set(id, at);
        if (from.chance(0.3)) own.set(id, at);
        inserts.push({ id, at, kind: own.has(id) ? "a" : "b", text: "x".repeat(300) });
        owned.push({ id, at, owner: own.has(id) ? ann.id : bob.id, distance: "mine" });
      }
      expect((await platform.service.post(`${path("places")}/batch`, { inserts })).status).toBe(200);
      expect((await platform.service.post(`${path("own")}/batch`, { inserts: owned })).status).toBe(200);
    }
    for (let round = 0; round < 60; round++) {
      const near = point(from);
      const offset = from.pick([0, 0, 7, 150, known.size - 20]);
      const limit = from.pick([1, 20, 100, 600, 1_000]);
      const query = {
        near: `at:${near.lat}:${near.lng}`,
        limit: String(limit),
        ...(offset > 0 && { offset: String(offset) }),
      };
      const all = await list("places", query);
      expect([seed, round, all.status, all.body.items?.length]).toEqual([
        seed,
        round,
        200,
        Math.max(0, Math.min(limit, known.size - offset)),
      ]);
      expect([all.body.total, all.body.cursor, all.body.hasMore]).toEqual([
        known.size,
        null,
        offset + limit < known.size,
      ]);
      check(all.body.items ?? [], known, near, offset);
      const narrowed = await list("places", { ...query, filter: '[["kind","==","a"]]', total: "false" });
      expect([narrowed.status, narrowed.body.hasMore]).toEqual([200, offset + limit < own.size]);
      check(narrowed.body.items ?? [], own, near, offset);
      const visible = await ann.get<ListAnswer>(path("own"), { query });
      expect([visible.body.total, visible.body.items?.length]).toEqual([
        own.size,
        Math.max(0, Math.min(limit, own.size - offset)),
      ]);
      check(visible.body.items ?? [], own, near, offset);
    }
  }
}, 120_000);

test("[TB755] `distance` is there with fields and expand, in place of a field of that name", async () => {
  const ann = await signIn(platform);
  const inserts = [
    { id: "d1", at: { lat: 1, lng: 1 }, owner: ann.id, distance: "mine" },
    { id: "d2", at: null, owner: ann.id, distance: "mine" },
  ];
  expect((await platform.service.post(`${path("own")}/batch`, { inserts })).status).toBe(200);
  const { body } = await ann.get<ListAnswer>(path("own"), { query: { near: "at:1:1", fields: "distance" } });
  expect(body.items).toEqual([{ id: "d1", distance: 0 }, { id: "d2" }]);
  expect((await platform.post(path("places"), { id: "dp", at: { lat: 50, lng: 50 } })).status).toBe(201);
  expect((await platform.post(path("notes"), { id: "n1", place: "dp", at: { lat: 0, lng: -180 } })).status).toBe(201);
  const expanded = await list("notes", { near: "at:0:180", expand: "place", fields: "id" });
  expect(expanded.body.items).toMatchObject([{ id: "n1", distance: 0, expand: { place: { id: "dp" } } }]);
});

test("[TB756] pages of a sort by distance hold each record once", async () => {
  const seen: unknown[] = [];
  for (let page = 1; ; page++) {
    const { body } = await list("places", { near: "at:20:30", perPage: "1000", page: String(page), fields: "id" });
    seen.push(...(body.items ?? []).map(({ id }) => id));
    expect([body.page, body.perPage, body.cursor]).toEqual([page, 1000, null]);
    if (body.hasMore !== true) break;
  }
  const { body } = await platform.get<{ total: number }>(`${path("places")}/count`);
  expect([seen.length, new Set(seen).size]).toEqual([body.total, body.total]);
});

test.each([
  ["at", "near"],
  ["at:1", "near"],
  ["at:1:2:3", "near"],
  ["at:91:2", "near"],
  ["at:1:-181", "near"],
  ["at:x:2", "near"],
  ["at::2", "near"],
  ["at:0x1:2", "near"],
  ["at:1:Infinity", "near"],
  ["kind:1:2", "near"],
  ["nothing:1:2", "near"],
  ["id:1:2", "near"],
])("[TB756] near=%s is 400", async (near, field) => {
  const answer = await platform.get<ErrorAnswer>(path("places"), { query: { near } });
  expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([400, [field]]);
});

test("[TB756] near with a sort or a cursor is 400, with a rule about each record 403, and elsewhere unknown", async () => {
  const near = "at:1:2";
  for (const other of ["sort", "after", "before"]) {
    const answer = await platform.get<ErrorAnswer>(path("places"), { query: { near, [other]: "id" } });
    expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([400, [other]]);
  }
  const ann = await signIn(platform);
  expect((await ann.get(path("each"), { query: { near } })).status).toBe(403);
  expect((await platform.get(path("each"), { query: { near } })).status).toBe(401);
  expect((await ann.get(path("each"))).status).toBe(200);
  for (const place of ["count", "aggregate"]) {
    expect((await platform.get(`${path("places")}/${place}`, { query: { near } })).status).toBe(400);
  }
});

test("[TB755] an empty table has no nearest record", async () => {
  const empty = await platform.service.get<ListAnswer>(path("none"), { query: { near: "at:1:2" } });
  expect([empty.status, empty.body.items, empty.body.total]).toEqual([200, [], 0]);
});

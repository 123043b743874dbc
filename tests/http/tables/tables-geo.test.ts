import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type ListAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";
import { type Random, random, testSeed } from "../../support/random.ts";

const AREA = `{ lat: 48.2, lng: 16.37, meters: 5_000 }`;
const config = `{ databases: { shared: { tables: {
  places: {
    schema: { name: { type: "string" }, at: { type: "geo" }, n: { type: "integer" } },
    access: { read: true, insert: true, update: true, delete: true },
  },
  must: {
    schema: { at: { type: "geo", required: true }, home: { type: "geo", default: { lat: 1, lng: 2 } } },
    access: { read: true, insert: true, update: true },
  },
  near: { schema: { at: { type: "geo" } }, access: { read: () => [["at", "within", ${AREA}]], insert: true, update: true } },
  cities: {
    schema: { at: { type: "geo" }, isOpen: { type: "boolean" } },
    access: { read: () => [["isOpen", "==", true]], insert: true, update: true, delete: true },
  },
  stops: { schema: { place: { references: "places", onDelete: "cascade" }, at: { type: "geo" } }, access: { read: true, insert: true } },
} } } }`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config });
});
afterAll(() => platform.stop());

const path = (table: string): string => `/api/db/shared/tables/${table}`;
const P = path("places");

async function ids(filter: JsonValue, table = "places", query: Record<string, string> = {}): Promise<unknown[]> {
  const { status, body } = await platform.get<ListAnswer>(path(table), {
    query: { filter: JSON.stringify(filter), limit: "1000", ...query },
  });
  expect([status, body.total]).toEqual([200, body.items?.length ?? -1]);
  return (body.items ?? []).map(({ id }) => id);
}

const POINTS: readonly JsonValue[] = [
  "48.2,16.37",
  [48.2, 16.37],
  {},
  { lat: 48.2 },
  { lat: 48.2, lng: "16.37" },
  { lat: 90.1, lng: 0 },
  { lat: -91, lng: 0 },
  { lat: 0, lng: 180.5 },
  { lat: 0, lng: -181 },
  { lat: 0, lng: 0, alt: 3 },
  { lat: null, lng: 0 },
  5,
  true,
];

test.each(POINTS.map((at) => [at]))("[TB750] %j is no point", async (at) => {
  const answer = await platform.post<ErrorAnswer>(P, { at });
  expect([answer.status, answer.body.data?.["at"]?.code]).toEqual([400, "invalid_value"]);
});

test("[TB750] a point is answered as sent; required, default and null work", async () => {
  const sent = { id: "p", at: { lng: -180, lat: 90 }, name: "pole" };
  expect(await platform.post(P, sent)).toMatchObject({ status: 201, body: sent });
  expect((await platform.get<JsonObject>(`${P}/p`)).body["at"]).toEqual({ lat: 90, lng: -180 });
  expect((await platform.patch<JsonObject>(`${P}/p`, { at: null })).body["at"]).toBeNull();
  const missing = await platform.post<ErrorAnswer>(path("must"), {});
  expect([missing.status, missing.body.data?.["at"]?.code]).toEqual([400, "required"]);
  const isNull = await platform.post<ErrorAnswer>(path("must"), { at: null });
  expect([isNull.status, isNull.body.data?.["at"]?.code]).toEqual([400, "required"]);
  const made = await platform.post<JsonObject>(path("must"), { at: { lat: 0, lng: 0 } });
  expect(made.body).toMatchObject({ at: { lat: 0, lng: 0 }, home: { lat: 1, lng: 2 } });
  expect(await ids([["home", "inBox", { south: 1, west: 2, north: 1, east: 2 }]], "must")).toEqual([made.body["id"]]);
  expect((await platform.delete(`${P}/p`)).status).toBe(200);
});

const REFUSED: readonly JsonValue[] = [
  ["at", "within", { lat: 0, lng: 0 }],
  ["at", "within", { lat: 0, lng: 0, meters: -1 }],
  ["at", "within", { lat: 0, lng: 0, meters: "5" }],
  ["at", "within", { lat: 95, lng: 0, meters: 5 }],
  ["at", "within", { lat: 0, lng: 0, meters: 5, unit: "km" }],
  ["at", "within", null],
  ["at", "within", [0, 0, 5]],
  ["at", "inBox", { south: 1, west: 0, north: 0, east: 1 }],
  ["at", "inBox", { south: 0, west: 0, north: 0 }],
  ["at", "inBox", { south: 0, west: -190, north: 0, east: 1 }],
  ["at", "==", { lat: 0, lng: 0 }],
  ["at", "!=", { lat: 0, lng: 0 }],
  ["at", "==", "x"],
  ["at", "in", [{ lat: 0, lng: 0 }]],
  ["at", ">", null],
  ["at", "contains", "4"],
  ["at.lat", ">", 4],
  ["name", "within", { lat: 0, lng: 0, meters: 5 }],
  ["id", "inBox", { south: 0, west: 0, north: 0, east: 1 }],
];

test.each(REFUSED.map((tuple) => [tuple]))("[TB752] %j is 400", async (tuple) => {
  const answer = await platform.get<ErrorAnswer>(P, { query: { filter: JSON.stringify([tuple]) } });
  expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([400, ["filter.0"]]);
});

test("[TB752] a geo field has no order", async () => {
  const sorted = await platform.get<ErrorAnswer>(P, { query: { sort: "at" } });
  expect([sorted.status, Object.keys(sorted.body.data ?? {})]).toEqual([400, ["sort"]]);
  for (const query of [{ groupBy: "at" }, { select: "min(at)" }] as Record<string, string>[]) {
    const answer = await platform.get<ErrorAnswer>(`${P}/aggregate`, { query });
    expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([400, Object.keys(query)]);
  }
});

test("[TB751] 180 and −180 are one meridian, edges count, and west above east crosses the date line", async () => {
  const points: [string, number, number][] = [
    ["a", 0, 180],
    ["b", 0, -180],
    ["c", 10, 179.5],
    ["d", 10, -179.5],
    ["e", 10, 0],
    ["f", -90, 12],
  ];
  const inserts: JsonValue[] = points.map(([id, lat, lng]) => ({ id: `l-${id}`, at: { lat, lng } }));
  inserts.push({ id: "l-none" });
  expect((await platform.post(`${P}/batch`, { inserts })).status).toBe(200);
  const own: JsonValue = ["id", "startsWith", "l-"];
  const box = (south: number, west: number, north: number, east: number) =>
    ids([own, ["at", "inBox", { south, west, north, east }]]);
  expect(await box(0, 170, 0, 180)).toEqual(["l-a", "l-b"]);
  expect(await box(0, -180, 0, -170)).toEqual(["l-a", "l-b"]);
  expect(await box(0, 180, 0, -180)).toEqual(["l-a", "l-b"]);
  expect(await box(-90, 179, 90, -179)).toEqual(["l-a", "l-b", "l-c", "l-d"]);
  expect(await box(10, 179.5, 10, -179.5)).toEqual(["l-c", "l-d"]);
  expect(await box(10, -179.5, 10, 179.5)).toEqual(["l-c", "l-d", "l-e"]);
  expect(await box(-90, -180, 90, 180)).toEqual(["l-a", "l-b", "l-c", "l-d", "l-e", "l-f"]);
  expect(await ids([own, ["at", "within", { lat: 0, lng: 180, meters: 0 }]])).toEqual(["l-a", "l-b"]);
  expect(await ids([own, ["at", "within", { lat: -90, lng: -100, meters: 0 }]])).toEqual(["l-f"]);
  expect(await ids([own, { not: [["at", "within", { lat: 0, lng: 0, meters: 20_015_200 }]] }])).toEqual(["l-none"]);
  expect(await ids([own, ["at", "==", null]])).toEqual(["l-none"]);
  expect((await ids([own, ["at", "!=", null]])).length).toBe(6);
});

/** Distance calculated by vectors, in another way than the server's. */
function distance(from: { lat: number; lng: number }, to: { lat: number; lng: number }): number {
  const vector = ({ lat, lng }: { lat: number; lng: number }) => {
    const [a, b] = [(lat * Math.PI) / 180, (lng * Math.PI) / 180];
    return [Math.cos(a) * Math.cos(b), Math.cos(a) * Math.sin(b), Math.sin(a)] as const;
  };
  const [[a, b, c], [d, e, f]] = [vector(from), vector(to)];
  const cross = Math.hypot(b * f - c * e, c * d - a * f, a * e - b * d);
  return 6_371_008.8 * Math.atan2(cross, a * d + b * e + c * f);
}

/** A point, often at an edge of the map or near others. */
function point(from: Random): { lat: number; lng: number } {
  const edges = [-180, 180, 179.9999, -179.9999, 0];
  const lat = from.chance(0.25) ? [-90, 90, 89.9999, -89.9999, 0][from.below(5)] : from.below(180_001) / 1000 - 90;
  const lng = from.chance(0.25) ? edges[from.below(5)] : from.below(360_001) / 1000 - 180;
  return { lat: lat ?? 0, lng: lng ?? 0 };
}

const isIn = (at: { lat: number; lng: number }, box: { south: number; west: number; north: number; east: number }) => {
  const lngs = Math.abs(at.lng) === 180 ? [180, -180] : [at.lng];
  const isAt = (lng: number) =>
    box.west <= box.east ? box.west <= lng && lng <= box.east : lng >= box.west || lng <= box.east;
  return box.south <= at.lat && at.lat <= box.north && lngs.some(isAt);
};

test("[TB751] [TB753] areas match what brute force matches, through changes, in lists, counts and rules", async () => {
  const seed = testSeed(7_510);
  const from = random(seed);
  const known = new Map<string, { lat: number; lng: number } | null>();
  const table = path("cities");
  const put = async (names: string[]) => {
    const inserts = names.map((id) => {
      const at = from.chance(0.1) ? null : point(from);
      const isOpen = from.chance(0.8);
      if (isOpen) known.set(id, at);
      else known.delete(id);
      return { id, at, isOpen };
    });
    expect((await platform.service.post(`${table}/batch?upsert=true`, { inserts })).status).toBe(200);
  };
  for (let part = 0; part < 4; part++) await put(Array.from({ length: 400 }, (_, n) => `c${part * 300 + n}`));
  const gone = [...known.keys()].filter((_, index) => index % 7 === 0);
  expect((await platform.service.post(`${table}/batch`, { deletes: gone })).status).toBe(200);
  for (const id of gone) known.delete(id);
  for (let round = 0; round < 150; round++) {
    const centre = point(from);
    const meters = [0, 1000, 300_000, 2_000_000, 10_007_557, 20_015_000][from.below(6)] ?? 0;
    const [a, b] = [point(from), point(from)];
    const box = { south: Math.min(a.lat, b.lat), west: a.lng, north: Math.max(a.lat, b.lat), east: b.lng };
    const isCircle = from.chance(0.5);
    const tuple = isCircle ? ["at", "within", { ...centre, meters }] : ["at", "inBox", box];
    const isMatch = (at: { lat: number; lng: number } | null) =>
      at !== null && (isCircle ? distance(centre, at) <= meters : isIn(at, box));
    // The two calculations may differ where a point is at the very edge.
    const isEdge = [...known.values()].some((at) => at && isCircle && Math.abs(distance(centre, at) - meters) < 0.5);
    const wanted = [...known].filter(([, at]) => isMatch(at)).map(([id]) => id);
    const found = await ids([tuple], "cities");
    if (!isEdge) expect([seed, round, tuple, found]).toEqual([seed, round, tuple, wanted.sort()]);
    const outside = await ids([{ not: [tuple] }], "cities", { total: "true" });
    expect(found.length + outside.length).toBe(known.size);
    const query = { filter: JSON.stringify([tuple]) };
    expect((await platform.get(`${table}/count`, { query })).body).toEqual({ total: found.length });
    // Evaluated on each record in memory.
    if (found.length > 0 && round % 10 === 0) {
      const id = String(found[0]);
      const answer = await platform.patch(`${table}/${id}`, { isOpen: true }, { query: { if: query.filter } });
      expect([seed, round, answer.status]).toEqual([seed, round, 200]);
      const refused = await platform.patch(
        `${table}/${id}`,
        { isOpen: true },
        { query: { if: JSON.stringify([{ not: [tuple] }]) } },
      );
      expect(refused.status).toBe(412);
    }
  }
}, 60_000);

test("[TB751] [TB753] areas in read rules, hidden records, cascades", async () => {
  const near = path("near");
  const [inside, outside] = [
    { id: "in", at: { lat: 48.21, lng: 16.38 } },
    { id: "out", at: { lat: 48.3, lng: 16.37 } },
  ];
  expect((await platform.service.post(`${near}/batch`, { inserts: [inside, outside] })).status).toBe(200);
  expect(await ids([], "near")).toEqual(["in"]);
  expect((await platform.get(`${near}/out`)).status).toBe(404);
  expect((await platform.get(`${near}/in`)).status).toBe(200);
  expect((await platform.patch(`${near}/out`, { at: null })).status).toBe(404);
  expect(await ids([["at", "inBox", { south: 48, west: 16, north: 49, east: 17 }]], "near")).toEqual(["in"]);

  expect((await platform.post(P, { id: "stop", at: { lat: 5, lng: 5 } })).status).toBe(201);
  expect((await platform.post(path("stops"), { id: "s1", place: "stop", at: { lat: 5, lng: 5 } })).status).toBe(201);
  expect(await ids([["at", "within", { lat: 5, lng: 5, meters: 1 }]], "stops")).toEqual(["s1"]);
  expect((await platform.delete(`${P}/stop`)).status).toBe(200);
  expect(await ids([["at", "within", { lat: 5, lng: 5, meters: 1 }]], "stops")).toEqual([]);
  expect(await ids([["at", "within", { lat: 5, lng: 5, meters: 1 }]])).toEqual([]);
});

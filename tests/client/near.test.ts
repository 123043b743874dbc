import { afterAll, beforeAll, expect, test } from "bun:test";
import { defineConfig } from "platform";
import { createClient } from "../../src/client/index.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import { errorOf } from "./support.ts";

const config = defineConfig({
  databases: {
    shared: {
      tables: {
        places: {
          schema: { name: { type: "string" }, at: { type: "geo" }, kind: { type: "string" } },
          access: { read: true, insert: true, update: true, delete: true },
        },
      },
    },
  },
});

let platform: TestPlatform;
beforeAll(async () => {
  const access = "access: { read: true, insert: true, update: true, delete: true }";
  platform = await testPlatform({
    config: `{ databases: { shared: { tables: { places: { schema: { name: { type: "string" }, at: { type: "geo" }, kind: { type: "string" } }, ${access} } } } } }`,
  });
});
afterAll(() => platform.stop());

const clientOf = () => createClient<typeof config>({ url: platform.url });
const HERE = { lat: 0, lng: 180 };

test("[TC350] near sorts by distance, and pages hold each record once", async () => {
  const client = clientOf();
  const places = client.db("shared").table("places");
  const inserts = Array.from({ length: 25 }, (_, n) => ({
    name: `p${n}`,
    kind: "pages",
    at: n === 7 ? null : { lat: 0, lng: n % 2 === 0 ? 180 - n : n - 180 },
  }));
  await places.batch({ inserts });
  const query = places.where("kind", "==", "pages").near("at", HERE).limit(10);
  const names: (string | null)[] = [];
  for await (const page of query.pages()) names.push(...page.map(({ name }) => name));
  expect(names).toEqual([...inserts.filter(({ at }) => at !== null).map(({ name }) => name), "p7"]);
  const nearest = await query.first();
  expect([nearest?.name, nearest?.distance, nearest?.at?.lng]).toEqual(["p0", 0, 180]);
  const [item] = (await query.fields("name").list()).items;
  expect(item as unknown).toEqual({ id: item?.id, name: "p0", distance: 0 });
  expect((await places.where("at", "within", { ...HERE, meters: 200_000 }).list()).items.length).toBe(2);
  expect(await errorOf(query.sort("name").list())).toMatchObject({ code: "invalid" });
  expect(await errorOf(places.near("at", HERE).update({ name: "x" }))).toMatchObject({ code: "invalid" });
  client.close();
});

test("[TC350] a live list by distance follows points that move, come and go", async () => {
  const client = clientOf();
  const places = client.db("shared").table("places");
  const put = (id: string, lng: number | null) =>
    platform.service.post(
      "/api/db/shared/tables/places",
      { id, name: id, kind: "live", at: lng === null ? null : { lat: 0, lng } },
      { query: { upsert: "true" } },
    );
  for (const [id, lng] of [
    ["a", 179],
    ["b", -178],
    ["c", 170],
    ["d", 0],
    ["e", null],
  ] as const) {
    await put(id, lng);
  }
  const query = places.where("kind", "==", "live").near("at", HERE).limit(4);
  const live = query.live();
  const named = query.fields("name").live();
  const ids = () => live.items.map(({ id }) => id).join("");
  await until("it is live", () => live.status === "live" && named.status === "live");
  expect([ids(), live.hasMore]).toEqual(["abcd", true]);
  await put("d", -180);
  await until("the one that came near is first", () => ids() === "dabc");
  expect(live.items.map(({ distance = -1 }) => Math.round(distance / 1000))).toEqual([0, 111, 222, 1112]);
  await put("a", null);
  await until("one without a point is behind all", () => ids() === "dbca");
  await put("b", 0);
  await until("it went to the other side", () => ids() === "dcba");
  expect("distance" in (live.items[3] ?? {})).toBe(false);
  await platform.service.delete("/api/db/shared/tables/places/c");
  await until("the window is filled again", () => ids() === "dbae");
  await until("there are no more", () => !live.hasMore);
  await put("f", 179.9);
  await until("a new one takes its place", () => ids() === "dfba");
  await until("fields follow too", () => named.items.length === 4 && named.items[1]?.id === "f");
  expect(named.items[0] as unknown).toEqual({ id: "d", name: "d", distance: 0 });
  expect(live.items as unknown).toEqual((await query.list()).items);
  client.close();
});

/** Types as TypeScript infers them: checked by `tsc`, never run. */
export async function types(): Promise<void> {
  const places = clientOf().db("shared").table("places");
  const [item] = (await places.near("at", HERE).list()).items;
  const distance: number | undefined = item?.distance;
  // @ts-expect-error: without `near` there is no distance
  (await places.list()).items[0]?.distance;
  // @ts-expect-error: a text has no place
  places.near("name", HERE);
  // @ts-expect-error: a circle has meters
  places.where("at", "within", HERE);
  // @ts-expect-error: points are found by within and inBox
  places.where("at", "==", HERE);
  places.where("at", "==", null).where("at", "inBox", { south: 0, west: 170, north: 1, east: -170 });
  // @ts-expect-error: a text is not in an area
  places.where("name", "within", { ...HERE, meters: 5 });
  // @ts-expect-error: points have no order
  void places.aggregate({ select: ["min(at)"] });
  void distance;
}

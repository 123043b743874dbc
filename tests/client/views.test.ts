import { afterAll, beforeAll, expect, test } from "bun:test";
import { defineConfig } from "platform";
import { createClient } from "../../src/client/index.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import { errorOf } from "./support.ts";

const SQL =
  "SELECT f.id, f.title, count(r.id) AS ratings FROM films f LEFT JOIN ratings r ON r.filmId = f.id GROUP BY f.id";
const config = defineConfig({
  databases: {
    shared: {
      tables: {
        films: { schema: { title: { type: "string", required: true } }, access: { read: true } },
        ratings: { schema: { filmId: { references: "films" } }, access: { read: true } },
      },
      views: {
        rated: {
          sql: SQL,
          schema: { title: { type: "string", required: true }, ratings: { type: "integer", required: true } },
          access: { read: true },
          live: ["films", "ratings"],
        },
        still: { sql: "SELECT id FROM films", schema: {}, access: { read: true } },
      },
    },
  },
});

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: JSON.parse(JSON.stringify(config)) });
  await platform.service.post("/api/db/shared/tables/films/batch", {
    inserts: ["a", "b", "c"].map((id) => ({ id, title: `Film ${id}` })),
  });
});
afterAll(() => platform.stop());

const clientOf = () => createClient<typeof config>({ url: platform.url });
const rate = async (filmId: string) =>
  expect((await platform.service.post("/api/db/shared/tables/ratings", { filmId })).status).toBe(201);

test("[TB872] a client reads a view as a table, with its types", async () => {
  const client = clientOf();
  const rated = client.db("shared").table("rated");
  await rate("b");
  const { items, total } = await rated.where("ratings", ">", 0).sort("title").list();
  const titles: string[] = items.map(({ title }) => title);
  expect([titles, total]).toEqual([["Film b"], 1]);
  const one = await rated.get("b");
  const ratings: number | undefined = one?.ratings;
  expect(ratings).toBe(1);
  expect(await rated.count()).toBe(3);
  expect(await rated.first()).toEqual({ id: "a", title: "Film a", ratings: 0 });
  expect(await errorOf(rated.insert({ title: "x", ratings: 1 }))).toMatchObject({ status: 405 });
  expect(await errorOf(rated.update("a", { title: "x" }))).toMatchObject({ status: 405 });
  client.close();
});

test("[TB872] live queries of a view follow its tables", async () => {
  const client = clientOf();
  const rated = client.db("shared").table("rated");
  const query = rated.sort("ratings", "desc").limit(2).live();
  const one = rated.where("id", "==", "c").live();
  const shown = () => query.items.map(({ id, ratings }) => `${id}${ratings}`);
  await until("the lists are loaded", () => query.status === "live" && one.status === "live");
  for (let count = 1; count <= 3; count++) {
    await rate("c");
    const expected = `c${count}`;
    await until(`the list has ${expected}`, () => shown().includes(expected));
    await until("the record follows", () => one.items[0]?.ratings === count);
  }
  query.close();
  one.close();
  client.close();
});

test("[TB872] a live query of a view without live says why there is none", async () => {
  const client = clientOf();
  const query = client.db("shared").table("still").live();
  await until("it fails", () => query.error !== null);
  expect(query.error?.message).toContain("databases.shared.views.still.live");
  query.close();
  client.close();
});

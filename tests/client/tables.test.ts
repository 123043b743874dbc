import { afterAll, beforeAll, expect, test } from "bun:test";
import { createClient, deleteField, increment } from "../../src/client/index.ts";
import type { TestPlatform } from "../support/platform.ts";
import { type TestProxy, testProxy } from "./proxy.ts";
import { clubPlatform, errorOf, visitor } from "./support.ts";

let platform: TestPlatform;
let proxy: TestProxy;
let client: Awaited<ReturnType<typeof visitor>>;
beforeAll(async () => {
  platform = await clubPlatform();
  proxy = await testProxy(platform.url);
  client = await visitor(platform.url);
});
afterAll(async () => {
  client.close();
  await proxy.stop();
  await platform.stop();
});

/** Films that no other test sees: their titles begin with a word of the test. */
async function filmsOf(word: string, count: number) {
  const films = client.db("shared").table("films");
  const inserts = Array.from({ length: count }, (_, index) => ({
    title: `${word} ${index}`,
    year: 1900 + index,
    rating: index % 3,
  }));
  await films.batch({ inserts });
  return films.where("title", "startsWith", `${word} `);
}

test("[TC10] a record is inserted, read, changed and deleted; get of none is null", async () => {
  const films = client.db("shared").table("films");
  const film = await films.insert({ title: "Casablanca", year: 1942 });
  expect(film).toMatchObject({ title: "Casablanca", year: 1942, genre: null, seen: false });
  expect(await films.get(film.id)).toEqual(film);
  expect(await films.update(film.id, { rating: 8.5 })).toMatchObject({ rating: 8.5, year: 1942 });
  expect(await films.upsert({ id: film.id, title: "Casablanca", year: 1943 })).toMatchObject({
    id: film.id,
    year: 1943,
  });
  expect(await films.delete(film.id)).toBeUndefined();
  expect(await films.get(film.id)).toBeNull();
  expect(await films.upsert({ id: film.id, title: "Casablanca" })).toMatchObject({ id: film.id, rating: null });

  const people = client.db("shared").table("people");
  const ann = await people.upsert({ name: "Ann of upserts" }, { conflictTarget: "name" });
  expect(ann.name).toBe("Ann of upserts");
});

test("[TC10] get of a text that no record has as its id gives null, and not another answer of the table", async () => {
  const films = client.db("shared").table("films");
  for (const id of ["", ".", "..", "count", "search", "aggregate", "batch", "a/b"]) {
    expect([id, await films.get(id)]).toEqual([id, null]);
  }
});

test("[TC123] what is sent is what was given at the call, whatever becomes of it", async () => {
  const films = client.db("shared").table("films");
  const given = { title: "as given" };
  const inserting = films.insert(given);
  given.title = "changed";
  const { id, title } = await inserting;
  expect(title).toBe("as given");
  const changes = { title: "as changed" };
  const updating = films.update(id, changes);
  changes.title = "changed again";
  expect((await updating).title).toBe("as changed");
  const data = { title: "in a transaction" };
  const [done] = await Promise.all([
    client.db("shared").transaction([{ action: "update", table: "films", id, data }]),
    Promise.resolve().then(() => {
      data.title = "changed";
    }),
  ]);
  expect(done).toMatchObject([{ title: "in a transaction" }]);
  await films.delete(id);
});

test("[TC3] numbers that JSON does not have are refused by the field, and not stored as null", async () => {
  const films = client.db("shared").table("films");
  for (const rating of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    for (const work of [
      () => films.insert({ title: "a film", rating }),
      () => films.batch({ inserts: [{ title: "a film", extra: { nested: [{ rating }] } }] }),
      () => films.where("title", "==", "a film").update({ rating }),
    ]) {
      const message = "rating must be a finite number";
      expect(await errorOf(work())).toMatchObject({ name: "PlatformError", code: "invalid", message });
    }
  }
});

test("[TC11] each method gives another query; the one before stays as it was", async () => {
  const all = await filmsOf("immutable", 6);
  const few = all.where("rating", "==", 0);
  const sorted = few.sort("rating").sort("year", "desc").limit(5).limit(1);
  expect((await sorted.list()).items.map(({ year }) => year)).toEqual([1903]);
  expect(await few.count()).toBe(2);
  expect(await all.count()).toBe(6);
  expect(await all.orWhere("year", "==", 1900).orWhere("year", "==", 1905).count()).toBe(2);
  const { items } = await all.fields("title").fields("year").limit(1).list();
  expect(Object.keys(items[0] ?? {}).sort()).toEqual(["id", "year"]);
  expect(all.description.sort).toEqual([]);
});

test("[TC12] a page says how many there are and where the next one begins; pages gives each record once", async () => {
  const films = (await filmsOf("paged", 25)).sort("rating").sort("year");
  const first = await films.limit(10).list();
  expect(first).toMatchObject({ total: 25, hasMore: true });
  const second = await films.limit(10).list({ after: first.cursor ?? "", total: false });
  expect(second).toMatchObject({ total: null, hasMore: true });
  const skipped = await films.limit(10).list({ offset: 10 });
  expect(skipped.items).toEqual(second.items);
  expect(await films.page(2, { perPage: 10 })).toEqual({ items: second.items, total: 25, page: 2, perPage: 10 });
  expect(await films.limit(10).page(3)).toMatchObject({ items: { length: 5 }, total: 25, page: 3, perPage: 10 });
  expect(await films.page(0).catch(({ code }) => code)).toBe("invalid");
  expect(await films.page(1, { perPage: 0 }).catch(({ code }) => code)).toBe("invalid");
  expect(await films.count()).toBe(25);
  expect(await films.first()).toEqual(first.items[0] ?? null);
  expect(await films.where("year", ">", 2000).first()).toBeNull();

  const years: (number | null)[] = [];
  const sizes: number[] = [];
  for await (const page of films.limit(10).pages()) {
    sizes.push(page.length);
    years.push(...page.map(({ year }) => year));
  }
  expect(sizes).toEqual([10, 10, 5]);
  expect(new Set(years).size).toBe(25);
  for await (const page of films.where("year", ">", 2000).pages()) expect(page).toEqual([]);
});

test("[TC13] expanded records are where the types say, and only the fields asked for", async () => {
  const shared = client.db("shared");
  const ann = await shared.table("people").insert({ name: "Ann" });
  const film = await shared.table("films").insert({ title: "expanded", directorId: ann.id });
  await shared
    .table("reviews")
    .batch({ inserts: [{ filmId: film.id, authorId: ann.id, text: "Good" }, { filmId: film.id }] });

  const query = shared.table("films").where("id", "==", film.id).fields("title");
  const found = await query.expand("directorId", "reviews(filmId).authorId").first();
  expect(Object.keys(found ?? {}).sort()).toEqual(["expand", "id", "title"]);
  expect(found?.expand.directorId?.name).toBe("Ann");
  const authors = found?.expand["reviews(filmId)"].items.map((review) => review.expand.authorId?.name ?? null);
  expect(authors?.sort()).toEqual(["Ann", null]);

  const got = await shared.table("films").get(film.id, { fields: ["year"], expand: ["directorId"] });
  expect(got).toEqual({ id: film.id, year: null, expand: { directorId: ann } });
});

test("[TC14] a query's update and delete change what it finds, and count it", async () => {
  const films = await filmsOf("changed", 9);
  expect(await films.where("rating", "==", 0).update({ genre: "War" })).toEqual({ processed: 3, succeeded: 3 });
  expect(await films.where("genre", "==", "War").delete()).toEqual({ processed: 3, succeeded: 3 });
  expect(await films.count()).toBe(6);
  expect(await films.orWhere("rating", "==", 1).orWhere("year", "==", 1902).delete()).toMatchObject({ succeeded: 4 });
  expect(await films.count()).toBe(2);
});

test("[TC14] [TC3] a query with a value that is missing changes nothing, and not what has null there", async () => {
  const films = client.db("shared").table("films");
  const { id } = await films.insert({ title: "without a year" });
  // Types refuse it; programs without them have it from `user?.id`.
  for (const missing of [undefined, Number.NaN] as never[]) {
    const found = films.where("title", "==", "without a year").where("year", "==", missing);
    expect(await errorOf(found.delete())).toMatchObject({ status: 400, code: "invalid" });
    expect(await errorOf(found.update({ title: "changed" }))).toMatchObject({ status: 400, code: "invalid" });
    const among = films.where("title", "==", "without a year").where("year", "in", [missing]);
    expect(await errorOf(among.delete())).toMatchObject({ status: 400, code: "invalid" });
  }
  expect((await films.get(id))?.title).toBe("without a year");
});

test("[TC14] a sort, a limit, fields or paths would not count: such a query changes nothing", async () => {
  const strict = await visitor(proxy.url);
  const films = strict.db("shared").table("films").where("title", "==", "none");
  const before = proxy.requests.length;
  for (const query of [films.limit(1), films.sort("year"), films.fields("title"), films.expand("directorId")]) {
    expect(await errorOf(query.delete())).toMatchObject({ code: "invalid", status: 0 });
    expect(await errorOf(query.update({ year: 1 }))).toMatchObject({ code: "invalid", status: 0 });
  }
  expect(proxy.requests.length).toBe(before);
});

test("[TC15] operators are atomic, and a condition holds for the stored record", async () => {
  const films = client.db("shared").table("films");
  const film = await films.insert({ title: "counted", year: 0, rating: 1, extra: { a: 1 } });
  await Promise.all(Array.from({ length: 20 }, () => films.update(film.id, { year: increment() })));
  await films.update(film.id, { year: increment(-5), extra: deleteField() });
  expect(await films.get(film.id)).toMatchObject({ year: 15, extra: null });

  await films.update(film.id, { rating: 2 }, { if: [["year", "==", 15]] });
  const late = films.update(film.id, { rating: 3 }, { if: [["year", "==", 14]] });
  expect(await errorOf(late)).toMatchObject({ status: 412, code: "precondition_failed" });
  expect(await errorOf(films.delete(film.id, { if: [["rating", "!=", 2]] }))).toMatchObject({ status: 412 });
  await films.delete(film.id, { if: [["rating", "==", 2]] });
});

test("[TC16] a batch does all or nothing, and answers in order", async () => {
  const films = client.db("shared").table("films");
  const [one, other] = (await films.batch({ inserts: [{ title: "batch 1" }, { title: "batch 2" }] })).inserted;
  const result = await films.batch({
    inserts: [{ title: "batch 3" }],
    updates: [{ id: one?.id ?? "", data: { year: 7 } }],
    deletes: [other?.id ?? ""],
  });
  expect(result.inserted.map(({ title }) => title)).toEqual(["batch 3"]);
  expect(result.updated).toMatchObject([{ id: one?.id, year: 7 }]);
  expect(result.deleted).toEqual([{ id: other?.id ?? "" }]);

  const broken = films.batch({ inserts: [{ title: "batch 4" }, { title: "x".repeat(300) }] });
  expect(await errorOf(broken)).toMatchObject({ code: "invalid", fields: { "inserts.1.title": { code: "too_long" } } });
  expect(await films.where("title", "startsWith", "batch ").count()).toBe(2);

  await films.batch({ inserts: [{ id: one?.id ?? "", title: "batch 1", year: 8 }] }, { upsert: true });
  expect((await films.get(one?.id ?? ""))?.year).toBe(8);
});

test("[TC16] a transaction over several tables does all or nothing, and answers in order", async () => {
  const shared = client.db("shared");
  const [person, film] = await shared.transaction([
    { table: "people", action: "insert", data: { id: "p-tx", name: "Tx" } },
    { table: "films", action: "insert", data: { title: "in a transaction", directorId: "p-tx" } },
  ]);
  expect([person.name, film.directorId]).toEqual(["Tx", "p-tx"]);
  const broken = shared.transaction([
    { table: "films", action: "update", id: film.id, data: { year: 1 } },
    { table: "films", action: "update", id: film.id, data: { year: 2 }, if: [["year", "==", 0]] },
  ]);
  expect(await errorOf(broken)).toMatchObject({ code: "precondition_failed" });
  expect((await shared.table("films").get(film.id))?.year).toBeNull();
});

test("[TC17] an aggregate gives groups, a search what matches, marked", async () => {
  const films = await filmsOf("aggregated", 6);
  const groups = await films.aggregate({
    select: ["count()", "max(year)"],
    groupBy: ["rating"],
    sort: [["max(year)", "desc"]],
    limit: 2,
  });
  expect(groups).toEqual([
    { rating: 2, "count()": 2, "max(year)": 1905 },
    { rating: 1, "count()": 2, "max(year)": 1904 },
  ]);
  expect(await films.aggregate({ select: ["avg(rating)", "sum(year)"], sort: ["avg(rating)"] })).toEqual([
    { "avg(rating)": 1, "sum(year)": 11_415 },
  ]);

  const { items, total, hasMore } = await films.fields("title").sort("year", "desc").limit(2).search("aggreg");
  expect(items.map(({ title }) => title)).toEqual(["aggregated 5", "aggregated 4"]);
  expect(items[0]?.highlights).toEqual({ title: "<mark>aggregated</mark> 5" });
  expect([total, hasMore]).toEqual([6, true]);
  const last = await films.search("aggregated", { offset: 5, highlightPre: "[", highlightPost: "]" });
  expect([last.items.length, last.hasMore]).toEqual([1, false]);
  expect(last.items[0]?.highlights["title"]).toStartWith("[aggregated]");
});

test("[TC18] each instance has its own records, and names with signs are encoded", async () => {
  const [north, south] = [client.db("clubs", "north"), client.db("clubs", "south")];
  await north.table("messages").insert({ id: "a%2F ?#é", text: "hello" });
  expect((await north.table("messages").get("a%2F ?#é"))?.text).toBe("hello");
  expect(await south.table("messages").count()).toBe(0);
  const [inside] = await south.transaction([{ table: "messages", action: "insert", data: { text: "there" } }]);
  expect((await south.table("messages").list()).items).toEqual([inside]);
});

test("[TC2] without a config, and in a table without a schema, everything is any JSON", async () => {
  const any = createClient({ url: platform.url });
  const drafts = any.db("shared").table("drafts");
  const draft = await drafts.insert({ a: { b: [1, "2"] } });
  expect(await drafts.where("a.b", "contains", "2").first()).toEqual(draft);
});

test("[TC2] tests/client/types.ts, which tests the inference, is checked by tsc", async () => {
  const { include } = await Bun.file(new URL("tsconfig.json", import.meta.url)).json();
  expect(include).toContain(".");
  expect(await Bun.file(new URL("types.ts", import.meta.url)).text()).toContain("[TC2]");
});

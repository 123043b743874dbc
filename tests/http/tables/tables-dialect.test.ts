import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

// The queries of server code: of `app.db(…)`, transactions and lookups.

/** Each case is a function of the tables of one kind of query; `of` gives such a table. What it throws is its answer. */
const CONFIG = `
const COMEDY = [["genre", "==", "comedy"]];
const BY_RULE = [["genre", "in", ["comedy", "drama"]]];
const ids = (items) => items.map(({ id }) => id);
const shared = {
  all: async (films) => { const { items, hasMore, cursor } = await films.where(BY_RULE).list(); return { ids: ids(items), hasMore, cursor }; },
  where: async (films) => ids((await films.where("genre", "==", "comedy").where([["year", ">", 1990]]).list()).items),
  group: async (films) => ids((await films.where("genre", "in", ["comedy", "drama"]).where({ or: [[["year", "==", 1999]], [["rating", ">", 8]]] }).list()).items),
  orWhere: async (films) => ids((await films.where(COMEDY).orWhere("year", "==", 1999).orWhere("rating", ">", 8).list()).items),
  sort: async (films) => ids((await films.where(BY_RULE).sort("rating", "desc").sort("year").list()).items),
  limit: async (films) => { const { items, hasMore } = await films.where(BY_RULE).sort("year").limit(2).list(); return { ids: ids(items), hasMore }; },
  first: async (films) => (await films.where(COMEDY).sort("year", "desc").first()).id,
  none: (films) => films.where("genre", "==", "none").first(),
  page: async (films) => { const { items, ...page } = await films.where(BY_RULE).sort("year").page(2, { perPage: 2 }); return { ids: ids(items), ...page }; },
  pageOfLimit: async (films) => { const { items, perPage } = await films.where(BY_RULE).limit(3).page(1); return [items.length, perPage]; },
  beyond: async (films) => (await films.where(BY_RULE).page(9)).items,
  count: async (films) => films.where(BY_RULE).where("year", ">", 1990).count(),
  groups: async (films) => films.where(BY_RULE).aggregate({ select: ["count()", "max(rating)"], groupBy: ["genre"], sort: [["count()", "desc"]] }),
  expand: async (films) => (await films.where("id", "==", "f1").expand("directorId", "reviews(filmId)").first()).expand,
  never: async (films) => { const query = films.where(COMEDY); query.where("year", "<", 0); query.limit(1); return ids((await query.list()).items).length; },
};
const wrong = {
  whereUndefined: (films) => films.where(undefined),
  whereNull: (films) => films.where(null),
  whereText: (films) => films.where("genre"),
  whereTwo: (films) => films.where("genre", "=="),
  valueUndefined: (films) => films.where("genre", "==", undefined).list(),
  inside: (films) => films.where([{ or: [[["genre", "==", undefined]]] }]).list(),
  orUndefined: (films) => films.orWhere("genre", "==", undefined).list(),
  unknownField: (films) => films.where("gender", "==", "x").list(),
  unknownSort: (films) => films.where(COMEDY).sort("gender").list(),
  unknownPath: (films) => films.where(COMEDY).expand("gender").list(),
  listFilter: (films) => films.where(COMEDY).list([["year", ">", 1]]),
  listUndefined: (films) => films.where(COMEDY).list({ filter: undefined }),
  firstFilter: (films) => films.where(COMEDY).first(COMEDY),
  countFilter: (films) => films.where(COMEDY).count(COMEDY),
  limitZero: (films) => films.where(COMEDY).limit(0).list(),
  pageZero: (films) => films.where(COMEDY).page(0),
  pageOption: (films) => films.where(COMEDY).page(1, { limit: 2 }),
  groupFilter: (films) => films.where(COMEDY).aggregate({ select: ["count()"], filter: COMEDY }),
  groupText: (films) => films.where(COMEDY).aggregate({ select: "count()" }),
  groupNone: (films) => films.where(COMEDY).aggregate(),
  groupUnknown: (films) => films.where(COMEDY).aggregate({ select: ["sum(title)"] }),
};
const former = {
  first: (films) => [films.first(COMEDY)?.id, films.first([["genre", "==", "none"]])],
  list: (films) => { const found = films.list(COMEDY, { limit: 2 }); return [Array.isArray(found), ids(found)]; },
  exists: (films) => [films.exists(COMEDY), films.exists([["genre", "==", "none"]])],
};
const refused = {
  list: (films) => films.list(undefined),
  first: (films) => films.first(null),
  exists: (films) => films.exists(undefined),
};
const formerApp = {
  list: async (films) => ids((await films.list({ filter: COMEDY, sort: "year:desc", limit: 2 })).items),
  count: (films) => films.count({ filter: COMEDY }),
  groups: (films) => films.aggregate({ select: "count()", filter: COMEDY }),
  search: async (films) => ids((await films.search("film", { filter: COMEDY })).items),
};
const refusedApp = {
  listUndefined: (films) => films.list({ filter: undefined }),
  listNull: (films) => films.list({ filter: null }),
  orUndefined: (films) => films.list({ orFilter: undefined }),
  valueUndefined: (films) => films.list({ filter: [["genre", "==", undefined]] }),
  inUndefined: (films) => films.list({ filter: [["genre", "in", [undefined]]] }),
  countUndefined: (films) => films.count({ filter: undefined }),
  groupsNull: (films) => films.aggregate({ select: "count()", filter: null }),
  searchUndefined: (films) => films.search("film", { filter: undefined }),
  first: (films) => films.first(COMEDY),
};
const ownApp = {
  fields: async (films) => films.where(COMEDY).sort("id").fields("title").first(),
  search: async (films) => ids((await films.where(COMEDY).sort("id").limit(2).search("film")).items),
  searchMore: async (films) => {
    const some = films.where(COMEDY).limit(2);
    return [(await some.search("film")).hasMore, (await some.search("film", { offset: 2 })).hasMore, (await some.search("nothing")).hasMore];
  },
  cursor: async (films) => { const one = await films.where(COMEDY).limit(2).list(); return ids((await films.where(COMEDY).limit(2).list({ after: one.cursor })).items); },
  all: async (films) => { const { items, total, hasMore } = await films.list(); return [items.length, total, hasMore]; },
};
const answer = (work) => { try { return work(); } catch (error) { return said(error); } };
const said = (error) => ({ status: error.status ?? error.name, message: error.message });
/** Runs all cases of a kind on the tables that a query has. Answers of synchronous ones must be no promises. */
const run = async (cases, films) => {
  const answers = {};
  for (const [name, one] of Object.entries(cases)) answers[name] = await Promise.resolve(answer(() => one(films))).catch(said);
  return answers;
};
/** Runs cases whose methods are synchronous, although they are written for both: nothing in them waits for anything. */
const runNow = (cases, films) => {
  const waiting = [];
  for (const [name, one] of Object.entries(cases)) waiting.push([name, Promise.resolve(answer(() => one(films))).catch(said)]);
  return waiting;
};
const settled = async (waiting) => Object.fromEntries(await Promise.all(waiting.map(async ([name, value]) => [name, await value])));
const KINDS = { shared, wrong, former, refused, formerApp, refusedApp, ownApp };
let looked = null;
export default {
  databases: {
    shared: {
      tables: {
        directors: { schema: { name: { type: "string" } }, access: { read: true } },
        films: {
          schema: { title: { type: "text" }, genre: { type: "string" }, year: { type: "integer" }, rating: { type: "number" }, directorId: { references: "directors" } },
          indexes: [{ fields: ["genre"] }], fts: ["title"], access: { read: true },
        },
        reviews: { schema: { filmId: { references: "films" }, text: { type: "string" } }, access: { read: true } },
        many: { schema: { genre: { type: "string" }, n: { type: "integer" } }, indexes: [{ fields: ["genre"] }], access: { read: true } },
        own: { schema: { ownerId: { type: "string" }, filmId: { references: "films" } }, access: { read: (auth) => [["ownerId", "==", auth?.id ?? ""]] } },
        judged: { schema: { filmId: { references: "films" } }, access: { read: (auth, record) => record.id !== "hidden" } },
        checked: { access: { read: (auth, record, { table }) => {
          const found = table("directors").list([["id", "==", record.directorId]]);
          return found.length > 0;
        } } },
        closed: { schema: { filmId: { references: "films" } } },
        probes: { schema: { what: { type: "string" } }, access: { read: true, insert: (auth, record, context) => {
          const table = context.table(record.what === "many" ? "many" : "films");
          looked = record.what === "many" ? many(table) : runNow(KINDS[record.what], table);
          return true;
        } } },
      },
    },
  },
  routes: (api) => api
    .get("/app/:kind", ({ app, params }) => run(KINDS[params.kind], app.db("shared").table("films")), { access: true })
    .get("/user/:kind", ({ app, auth, params }) => run(KINDS[params.kind], app.as(auth).db("shared").table("films")), { access: true })
    .get("/tx/:kind", async ({ app, params }) => settled(await app.db("shared").transaction((tx) => runNow(KINDS[params.kind], tx.table("films")))
      .then((waiting) => waiting)), { access: true })
    .get("/looked", () => Array.isArray(looked) ? settled(looked) : looked, { access: true })
    .get("/rights", ({ app, auth }) => app.as(auth).db("shared").transaction((tx) => ({
      own: answer(() => tx.table("own").list().items.map(({ id }) => id)),
      count: answer(() => tx.table("own").count()),
      expanded: answer(() => tx.table("films").where("id", "==", "f1").expand("own(filmId)", "closed(filmId)").first().expand),
      judged: answer(() => tx.table("films").where("id", "==", "f1").expand("judged(filmId)").first().expand),
      closed: answer(() => tx.table("closed").where("filmId", "==", "f1").count()),
      judgedCount: answer(() => tx.table("judged").count()),
    })), { access: true })
    .get("/related/:who", ({ app, auth, params }) => (params.who === "app" ? app : app.as(auth)).db("shared").transaction((tx) => {
      const films = tx.table("films");
      const by = (kind, table, more = []) => answer(() => ids(films.where([{ [kind]: { table, where: [["filmId", "==", { field: "id" }], ...more] } }]).list().items));
      if (params.who === "app") {
        films.insert({ id: "fresh" });
        tx.table("reviews").insert({ filmId: "fresh", text: "new" });
      }
      const found = {
        reviews: by("some", "reviews"), none: by("none", "reviews"), good: by("some", "reviews", [["text", "==", "good"]]),
        own: by("some", "own"), closed: by("some", "closed"), judged: by("some", "judged"), unknown: by("some", "nobody"),
        count: answer(() => films.where([{ some: { table: "own", where: [["filmId", "==", { field: "id" }]] } }]).count()),
      };
      throw Object.assign(new Error("undone"), { found });
    }).catch(({ found }) => found), { access: true })
    .get("/sees", ({ app }) => app.db("shared").transaction((tx) => {
      const films = tx.table("films");
      films.insert({ id: "new", genre: "new", year: 1, rating: 1 });
      const query = films.where("genre", "==", "new");
      return [query.count(), query.list().items.length, query.exists(), query.sort("year").first().id, query.page(1).items.length];
    }).then((seen) => seen), { access: true }),
};
const tried = (work) => { try { return work(); } catch (error) { return error.message; } };
const many = (table) => ({
  list: (() => { const { items, hasMore, total } = table.where("genre", "==", "a").list(); return [items.length, hasMore, total]; })(),
  sorted: table.where("genre", "==", "a").sort("n", "desc").first().n,
  page: table.where("genre", "==", "a").page(3, { perPage: 600 }).items.length,
  count: table.where("genre", "==", "a").count(),
  noIndex: tried(() => table.where("n", "==", 1).exists()),
  noCondition: tried(() => table.list()),
  tooMany: tried(() => table.where("genre", "==", "b").count()),
  tooManySorted: tried(() => table.where("genre", "==", "b").sort("n").first()),
  enough: table.where("genre", "==", "b").list().items.length,
  frozen: Object.isFrozen(table.where("genre", "==", "a").first()),
});`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  const insert = async (table: string, inserts: JsonObject[]): Promise<void> => {
    for (let start = 0; start < inserts.length; start += 500) {
      const batch = { inserts: inserts.slice(start, start + 500) };
      expect((await platform.service.post(`/api/db/shared/tables/${table}/batch`, batch)).status).toBe(200);
    }
  };
  await insert("directors", [{ id: "d1", name: "Ann" }]);
  await insert("films", [
    { id: "f1", title: "film one", genre: "comedy", year: 1999, rating: 7, directorId: "d1" },
    { id: "f2", title: "film two", genre: "comedy", year: 1980, rating: 9 },
    { id: "f3", title: "film three", genre: "drama", year: 1999, rating: 9 },
    { id: "f4", title: "film four", genre: "comedy", year: 2005, rating: 6 },
    { id: "f5", title: "film five", genre: "horror", year: 2010, rating: 5 },
  ]);
  await insert("reviews", [{ id: "r1", filmId: "f1", text: "good" }]);
  await insert("many", [
    ...Array.from({ length: 1_200 }, (_, n) => ({ id: `a${n}`, genre: "a", n })),
    ...Array.from({ length: 10_001 }, (_, n) => ({ id: `b${n}`, genre: "b", n })),
  ]);
});
afterAll(() => platform.stop());

type Answers = Record<string, JsonValue>;
const answersOf = async (path: string, caller: Pick<TestPlatform, "get"> = platform): Promise<Answers> => {
  const { status, body } = await caller.get<Answers>(`/api/functions/${path}`);
  expect(status).toBe(200);
  return body;
};
/** The answers of lookups in an insert rule. */
const lookedUp = async (what: string): Promise<Answers> => {
  expect((await platform.post("/api/db/shared/tables/probes", { what })).status).toBe(201);
  return answersOf("looked");
};

const FOUND = {
  where: ["f1", "f4"],
  group: ["f1", "f2", "f3"],
  orWhere: ["f1", "f2"],
  sort: ["f2", "f3", "f1", "f4"],
  limit: { ids: ["f2", "f1"], hasMore: true },
  first: "f4",
  none: null,
  pageOfLimit: [3, 3],
  beyond: [],
  count: 3,
  groups: [
    { genre: "comedy", "count()": 3, "max(rating)": 9 },
    { genre: "drama", "count()": 1, "max(rating)": 9 },
  ],
  expand: {
    directorId: expect.objectContaining({ name: "Ann" }),
    "reviews(filmId)": { items: [expect.objectContaining({ id: "r1" })], hasMore: false },
  },
  never: 3,
};
const ALL = { ids: ["f1", "f2", "f3", "f4"], hasMore: false, cursor: null };

test("[TB851] app.db(…) has the queries of the client, with the server's rights and a user's", async () => {
  for (const path of ["app/shared", "user/shared"]) {
    const page = { ids: ["f3", "f4"], total: 4, page: 2, perPage: 2 };
    expect(await answersOf(path)).toEqual({ ...FOUND, all: ALL, page });
  }
  expect(await answersOf("app/ownApp")).toEqual({
    fields: { id: "f1", title: "film one" },
    search: ["f1", "f2"],
    searchMore: [true, false, false],
    cursor: ["f4"],
    all: [5, 5, false],
  });
});

test("[TB852] a transaction has them too: they are synchronous, see what it has written, and count no pages", async () => {
  const page = { ids: ["f3", "f4"], total: null, page: 2, perPage: 2 };
  expect(await answersOf("tx/shared")).toEqual({ ...FOUND, all: ALL, page });
  expect(await answersOf("sees")).toEqual([1, 1, true, "new", 1] as never);
});

test("[TB853] lookups have them too, by an index, with up to 1,000 records, and examine at most 10,000", async () => {
  const page = { ids: ["f3", "f4"], total: null, page: 2, perPage: 2 };
  expect(await lookedUp("shared")).toEqual({ ...FOUND, all: ALL, page });
  expect(await lookedUp("many")).toEqual({
    list: [1_000, true, null],
    sorted: 1_199,
    page: 0,
    count: 1_200,
    noIndex: expect.stringContaining('declare indexes: [{ fields: ["n"] }]'),
    noCondition: expect.stringContaining("a lookup of every record"),
    tooMany: expect.stringContaining("would examine more than 10000 records"),
    tooManySorted: expect.stringContaining("would examine more than 10000 records"),
    enough: 1_000,
    frozen: true,
  });
});

test("[TB854] no query ignores a filter: one that is undefined or null, or stands where none is taken, is refused", async () => {
  const places: Record<string, string> = { app: "app/wrong", user: "user/wrong", tx: "tx/wrong" };
  for (const [place, path] of Object.entries(places)) {
    for (const [name, answer] of Object.entries(await answersOf(path))) {
      expect([place, name, answer]).toEqual([place, name, { status: 400, message: expect.any(String) }]);
    }
  }
  for (const [name, answer] of Object.entries(await lookedUp("wrong"))) {
    expect([name, answer]).toEqual([name, { status: "LookupMistake", message: expect.any(String) }]);
  }
  const { whereUndefined, inside } = await answersOf("app/wrong");
  expect(whereUndefined).toMatchObject({ message: "where: filter is undefined" });
  expect(inside).toMatchObject({ message: "where: filter.0.or.0.0.2 is undefined" });
  const refused = { status: 400, message: expect.stringContaining("filter is") };
  expect(await answersOf("tx/refused")).toEqual({ list: refused, first: refused, exists: refused });
  const mistake = { status: "LookupMistake", message: expect.stringContaining("filter is") };
  expect(await lookedUp("refused")).toEqual({ list: mistake, first: mistake, exists: mistake });
  for (const [name, answer] of Object.entries(await answersOf("app/refusedApp"))) {
    expect([name, answer]).toEqual([name, { status: 400, message: expect.stringMatching(/[fF]ilter|argument/) }]);
  }
});

test("[TB855] the forms of 0.2 mean what they did, and the log has each line once", async () => {
  const former = { first: ["f1", null], list: [true, ["f1", "f2"]], exists: [true, false] };
  for (let round = 0; round < 3; round++) {
    expect(await answersOf("tx/former")).toEqual(former);
    expect(await lookedUp("former")).toEqual(former);
    expect(await answersOf("app/formerApp")).toEqual({
      list: ["f4", "f1"],
      count: 3,
      groups: { groups: [{ "count()": 3 }] },
      search: ["f1", "f2", "f4"],
    });
  }
  const lines = platform
    .stderr()
    .split("\n")
    .filter((line) => line.includes("ends with 0.4"));
  const of = (form: string) => lines.filter((line) => line.includes(JSON.stringify(form)));
  const place =
    CONFIG.trim()
      .split("\n")
      .findIndex((line) => line.includes("const found = films.list(COMEDY")) + 1;
  for (const form of ["list(options)", "count(options)", "aggregate(options)", "search(q, options)"]) {
    expect([form, of(form).length]).toEqual([form, 1]);
  }
  const [line, ...others] = of("list(filter)");
  expect(others).toEqual([]);
  for (const part of [`platform.config.ts:${place}"`, "where(filter).list().items", "shared.films", "genre =="]) {
    expect(line).toContain(part);
  }
});

test("[TB856] a transaction of a user expands, counts and groups what the user may read", async () => {
  const [ann, bob] = [await signIn(platform), await signIn(platform)];
  const inserts = [ann, bob].map(({ id }, n) => ({ id: `o${n}`, ownerId: id, filmId: "f1" }));
  await platform.service.post("/api/db/shared/tables/own/batch", { inserts });
  await platform.service.post("/api/db/shared/tables/closed", { id: "c1", filmId: "f1" });
  await platform.service.post("/api/db/shared/tables/judged", { id: "hidden", filmId: "f1" });
  expect(await answersOf("rights", ann)).toEqual({
    own: ["o0"],
    count: 1,
    expanded: {
      "own(filmId)": { items: [expect.objectContaining({ id: "o0" })], hasMore: false },
      "closed(filmId)": { items: [], hasMore: false },
    },
    judged: { status: 403, message: expect.any(String) },
    closed: { status: 403, message: expect.any(String) },
    judgedCount: { status: 403, message: expect.any(String) },
  });
});

test("[TB856] [TB609] relations in a transaction ask what its caller may read, and see what it has written", async () => {
  const ann = await signIn(platform);
  const own = [
    { id: "p0", ownerId: ann.id, filmId: "f2" },
    { id: "p1", ownerId: "another", filmId: "f3" },
  ];
  await platform.service.post("/api/db/shared/tables/own/batch", { inserts: own });
  await platform.service.post("/api/db/shared/tables/closed", { id: "c2", filmId: "f4" });
  await platform.service.post("/api/db/shared/tables/judged", { id: "seen", filmId: "f5" });
  const unknown = { status: 400, message: expect.stringContaining("nobody is not a table of shared") };
  const server = await answersOf("related/app");
  expect(server).toMatchObject({
    reviews: ["f1", "fresh"],
    none: expect.not.arrayContaining(["f1"]),
    good: ["f1"],
    unknown,
  });
  expect(server["own"]).toEqual(expect.arrayContaining(["f2", "f3"]));
  expect(server["closed"]).toContain("f4");
  expect(server["judged"]).toContain("f5");
  expect(await answersOf("related/user", ann)).toEqual({
    reviews: ["f1"],
    none: expect.arrayContaining(["f2", "f3", "f4", "f5"]),
    good: ["f1"],
    own: ["f2"],
    closed: [],
    judged: { status: 403, message: expect.any(String) },
    unknown,
    count: 1,
  });
});

test("[CF340] the start and check name the lines of rules that use such a form", () => {
  const place =
    CONFIG.trim()
      .split("\n")
      .findIndex((line) => line.includes('table("directors").list(')) + 1;
  const warning = platform
    .stderr()
    .split("\n")
    .find((line) => line.includes("tables.checked.access.read uses"));
  expect(warning).toContain(`uses list(filter) of shared.directors (`);
  expect(warning).toContain(`platform.config.ts:${place}), which ends with 0.4: write where(filter).list().items`);
});

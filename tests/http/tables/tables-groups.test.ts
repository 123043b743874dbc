import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import {
  type ListAnswer,
  openSocket,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
  until,
} from "../../support/index.ts";

// Groups of conditions, wherever a filter is taken.

const RULES = `{
  films: {
    schema: { title: { type: "text" }, genre: { type: "string" }, rating: { type: "number" }, ownerId: { type: "string" }, tags: { type: "json" } },
    indexes: [{ fields: ["genre"] }, { fields: ["ownerId"] }],
    fts: ["title"],
    access: { read: true, insert: true, update: true, delete: true },
  },
  notes: {
    schema: { text: { type: "string" }, ownerId: { type: "string" }, visibility: { type: "string" }, editorIds: { type: "json" } },
    indexes: [{ fields: ["ownerId"] }],
    access: {
      read: (auth) => anyOf([["ownerId", "==", auth?.id ?? ""]], [["visibility", "==", "public"]]),
      update: (auth) => [anyOf([["ownerId", "==", auth?.id ?? ""]], [["editorIds", "contains", auth?.id ?? ""]])],
      delete: (auth) => not([["ownerId", "!=", auth?.id ?? ""]]),
      insert: (auth, record, context) =>
        !context.table("notes").exists([["ownerId", "==", auth?.id ?? ""], anyOf([["visibility", "==", "public"]], [["text", "==", "full"]])]),
    },
  },
  odd: { access: { read: () => ({ any: [] }), insert: () => ({ or: [], and: [] }) } },
}`;

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `import { anyOf, not } from "platform";
      export default { databases: { shared: { tables: ${RULES} } } }`,
  });
  const inserts = [
    { id: "a", title: "red fox", genre: "Comedy", rating: 5, ownerId: "ann", tags: ["x"] },
    { id: "b", title: "red hen", genre: "Drama", rating: 9, ownerId: "bob", tags: ["y"] },
    { id: "c", title: "blue fox", genre: "Drama", rating: null, ownerId: "ann" },
    { id: "d", title: "blue hen", genre: null, rating: 2, ownerId: "cyd", tags: null },
  ];
  expect((await platform.service.post("/api/db/shared/tables/films/batch", { inserts })).status).toBe(200);
  [ann, bob] = [await signIn(platform), await signIn(platform)];
  for (const [id, ownerId, visibility, editorIds] of [
    ["own", ann.id, "private", []],
    ["open", bob.id, "public", []],
    ["edit", bob.id, "public", [ann.id]],
    ["hidden", bob.id, "private", [ann.id]],
  ] as const) {
    const note = { id, text: id, ownerId, visibility, editorIds: [...editorIds] };
    expect((await platform.service.post("/api/db/shared/tables/notes", note)).status).toBe(201);
  }
});
afterAll(() => platform.stop());

const FILMS = "/api/db/shared/tables/films";
const json = (value: unknown) => JSON.stringify(value);
const found = async (filter: unknown, orFilter: unknown = []) => {
  const query = { filter: json(filter), orFilter: json(orFilter) };
  const answer = await platform.get<ListAnswer>(FILMS, { query });
  const counted = await platform.get<{ total: number }>(`${FILMS}/count`, { query });
  expect([answer.body.total, counted.body.total]).toEqual([
    answer.body.items?.length ?? 0,
    answer.body.items?.length ?? 0,
  ]);
  return answer.body.items?.map(({ id }) => id);
};

const COMEDY = ["genre", "==", "Comedy"];
const GOOD = ["rating", ">", 8];

test("[TB600] or, and, not, within each other, with a single group as a whole filter", async () => {
  expect(await found({ or: [[COMEDY], [GOOD]] })).toEqual(["a", "b"]);
  expect(await found([{ or: [[COMEDY], GOOD_OF("bob")] }])).toEqual(["a", "b"]);
  expect(await found([{ or: [{ and: [[GOOD], [["ownerId", "==", "ann"]]] }, [COMEDY]] }])).toEqual(["a"]);
  expect(await found([["ownerId", "==", "ann"], { or: [[COMEDY], [GOOD]] }])).toEqual(["a"]);
  expect(await found({ and: [[["ownerId", "==", "ann"]], { not: [COMEDY] }] })).toEqual(["c"]);
  expect(await found([], [{ and: [[["ownerId", "==", "cyd"]]] }, COMEDY])).toEqual(["a", "d"]);
  expect(await found([], [{ and: [[GOOD], [["ownerId", "==", "ann"]]] }, ["ownerId", "==", "cyd"]])).toEqual(["d"]);
  expect(await found([], { and: [[GOOD], [["ownerId", "==", "bob"]]] })).toEqual(["b"]);
});
const GOOD_OF = (owner: string) => [GOOD, ["ownerId", "==", owner]];

test("[TB601] not matches exactly what its filter does not, where values are null too", async () => {
  for (const filter of [
    [COMEDY],
    [GOOD],
    [["rating", "<=", 8]],
    [["tags", "contains", "x"]],
    { or: [[COMEDY], [GOOD]] },
  ]) {
    const [those, others] = [await found(filter), await found({ not: filter })];
    expect([...(those ?? []), ...(others ?? [])].map(String).sort()).toEqual(["a", "b", "c", "d"]);
  }
  expect(await found({ not: { not: [GOOD] } })).toEqual(["b"]);
});

test("[TB601] an empty or matches nothing, an empty and everything", async () => {
  expect(await found({ or: [] })).toEqual([]);
  expect(await found({ and: [] })).toEqual(["a", "b", "c", "d"]);
  expect(await found({ or: [[]] })).toEqual(["a", "b", "c", "d"]);
  expect(await found({ not: [] })).toEqual([]);
});

const deep = (levels: number): unknown => (levels === 0 ? [COMEDY] : { or: [deep(levels - 1)] });

test.each([
  [deep(5), "filter.or.0.or.0.or.0.or.0"],
  [[["genre", "==", "x"], { xor: [] }], "filter.1"],
  [[{ or: [], and: [] }], "filter.0"],
  [{ or: {} }, "filter.or"],
  [{ or: [[["nope", "==", 1]]] }, "filter.or.0.0"],
  [{ not: [["rating", ">", "x"]] }, "filter.not.0"],
  [{ or: [Array(100).fill(COMEDY)] }, "filter"],
  [Array(101).fill(COMEDY), "filter"],
  ["text", "filter"],
] as const)("[TB600] %j is 400 and named", async (filter, name) => {
  const answer = await platform.get<{ data: object }>(FILMS, { query: { filter: json(filter) } });
  expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([400, [name]]);
});

test("[TB600] 100 conditions and groups at 4 levels are taken", async () => {
  expect(await found(deep(4))).toEqual(["a"]);
  expect(await found({ or: [Array(99).fill(COMEDY)] })).toEqual(["a"]);
});

test("[TB600] pages, aggregates, searches and statements of one form take groups", async () => {
  const filter = { or: [[COMEDY], [GOOD]] };
  const first = await platform.get<ListAnswer>(FILMS, { query: { filter: json(filter), limit: 1, sort: "rating" } });
  const next = await platform.get<ListAnswer>(FILMS, {
    query: { filter: json(filter), limit: 1, sort: "rating", after: String(first.body.cursor) },
  });
  expect([first.body.items, next.body.items].map((items) => items?.map(({ id }) => id))).toEqual([["a"], ["b"]]);
  const sum = await platform.get<{ groups: object[] }>(`${FILMS}/aggregate`, {
    query: { filter: json(filter), select: "count(),max(rating)" },
  });
  expect(sum.body.groups).toEqual([{ "count()": 2, "max(rating)": 9 }]);
  const search = await platform.get<ListAnswer>(`${FILMS}/search`, {
    query: { q: "red", filter: json({ not: [COMEDY] }) },
  });
  expect(search.body.items?.map(({ id }) => id)).toEqual(["b"]);
  // Another value in the same form.
  expect(await found({ or: [[["genre", "==", "Drama"]], [["rating", ">", 100]]] })).toEqual(["b", "c"]);
});

test("[TB602] if, batches by filter and transactions take groups", async () => {
  const change = (condition: unknown) =>
    platform.patch(`${FILMS}/a?if=${encodeURIComponent(json(condition))}`, { title: "red fox" });
  expect((await change({ or: [[COMEDY], [GOOD]] })).status).toBe(200);
  expect((await change([{ not: [COMEDY] }])).status).toBe(412);
  const batch = (filter: JsonValue) =>
    platform.post<{ processed: number }>(`${FILMS}/batch-by-filter`, {
      action: "update",
      filter,
      data: { title: "same" },
    });
  expect((await batch({ or: [[["ownerId", "==", "cyd"]]] })).body.processed).toBe(1);
  expect((await batch({ or: [] })).body.processed).toBe(0);
  expect((await batch([])).status).toBe(400);
  const transact = (condition: JsonValue) =>
    platform.post("/api/db/shared/transaction", {
      operations: [{ table: "films", action: "update", id: "b", data: { title: "red hen" }, if: condition }],
    });
  expect((await transact({ or: [[GOOD]] as JsonValue })).status).toBe(200);
  expect((await transact({ not: [GOOD] as JsonValue })).status).toBe(412);
  const values = Array.from({ length: 1000 }, () => "v");
  const wide = { or: Array(60).fill([["genre", "in", values]]) } as JsonValue;
  const many = await platform.post("/api/db/shared/transaction", {
    operations: Array.from({ length: 2 }, () => ({ table: "films", action: "update", id: "b", data: {}, if: wide })),
  });
  expect(many.status).toBe(400);
});

test("[TB603] rules return a group as their filter, or in a list", async () => {
  const seen = await ann.get<ListAnswer>("/api/db/shared/tables/notes");
  expect([seen.body.total, seen.body.items?.map(({ id }) => id)]).toEqual([3, ["edit", "open", "own"]]);
  const status = async (id: string, method: "patch" | "delete") => {
    const path = `/api/db/shared/tables/notes/${id}`;
    return (await (method === "patch" ? ann.patch(path, { text: "new" }) : ann.delete(path))).status;
  };
  expect(await Promise.all(["own", "edit", "open", "hidden"].map((id) => status(id, "patch")))).toEqual([
    200, 200, 403, 404,
  ]);
  expect(await Promise.all(["open", "hidden"].map((id) => status(id, "delete")))).toEqual([403, 404]);
  expect((await platform.get<ListAnswer>("/api/db/shared/tables/notes")).body.total).toBe(2);
  const insert = (client: SignedIn, text: string) =>
    client.post("/api/db/shared/tables/notes", { text, ownerId: bob.id });
  expect((await insert(bob, "n")).status).toBe(403);
  expect((await insert(ann, "n")).status).toBe(201);
});

test("[TB603] an object that is no group denies, and the log says so", async () => {
  expect((await platform.get("/api/db/shared/tables/odd")).status).toBe(401);
  expect((await platform.post("/api/db/shared/tables/odd", {})).status).toBe(401);
  await until("the log says so", () => platform.stderr().includes("invalid filter and denies"));
});

test("[RT350] subscriptions take groups in filters and orFilters", async () => {
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`);
  socket.send({ type: "auth", token: ann.token });
  socket.send({
    type: "subscribe",
    channel: "realtime:shared:films",
    id: "g",
    filters: [{ or: [[COMEDY], [GOOD]] }] as JsonValue,
  });
  await socket.nextOf("subscribed");
  await platform.service.patch(`${FILMS}/d`, { title: "unseen" });
  await platform.service.patch(`${FILMS}/b`, { title: "seen" });
  const change = await socket.nextOf("db_change");
  expect(JSON.stringify(change)).toContain('"seen"');
  socket.send({
    type: "subscribe",
    channel: "realtime:shared:films",
    id: "h",
    filters: [{ or: [deep(4)] }] as JsonValue,
  });
  expect(JSON.stringify(await socket.nextOf("error"))).toContain("INVALID_FILTER");
  await socket.close();
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type ListAnswer, type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";

// Relations: conditions on records of other tables, in the filters that rules return.

const TABLES = `{
  members: {
    schema: { workspaceId: { type: "string" }, userId: { type: "string" }, role: { type: "string" }, level: { type: "integer" } },
    indexes: [{ fields: ["workspaceId", "userId"], unique: true }, { fields: ["userId"] }],
    access: { insert: true, delete: (auth) => [["userId", "==", auth?.id ?? ""]] , read: true },
  },
  workspaces: {
    schema: { name: { type: "string" } },
    access: { read: (auth) => some("members", [["workspaceId", "==", field("id")], ["userId", "==", auth?.id ?? ""]]) },
  },
  docs: {
    schema: {
      workspaceId: { references: "workspaces", type: "string" }, title: { type: "text" }, level: { type: "number" }, ownerId: { type: "string" },
      isOpen: { type: "boolean" },
    },
    fts: ["title"],
    access: {
      read: (auth) => anyOf([["ownerId", "==", auth?.id ?? ""]], [some("members", [...member(auth)])]),
      insert: (auth) => [some("members", [...member(auth), ["role", "in", ["owner", "editor"]]])],
      update: (auth) => [some("members", [...member(auth), ["role", "in", ["owner", "editor"]]])],
      delete: (auth) => [none("members", [...member(auth), ["role", "!=", "owner"]]), some("members", member(auth))],
    },
  },
  pages: {
    schema: { docId: { type: "string", references: "docs" } },
    access: {
      read: (auth) => some("docs", [["id", "==", field("docId")], some("members", member(auth))]),
      insert: (auth) => some("docs", [["id", "==", field("docId")], some("members", member(auth))]),
    },
  },
  elsewhere: {
    schema: { workspaceId: { type: "string" } },
    access: { read: (auth) => some("members", [["userId", "==", auth?.id ?? ""], not([["workspaceId", "==", field("workspaceId")]])]) },
  },
  owned: {
    schema: { workspaceId: { type: "string" } },
    access: {
      read: (auth) => some("members", [["userId", "==", auth?.id ?? ""], anyOf([["role", "==", "owner"]], [["workspaceId", "==", field("workspaceId")]])]),
    },
  },
  limits: {
    schema: { key: { type: "string" }, level: { type: "integer" } },
    access: {
      read: (auth) => auth === null ? false : not(some("members", [["userId", "==", auth.id], ["level", auth.custom.op ?? "<", field("level")]])),
    },
  },
  scanned: { schema: { name: { type: "string" } }, access: { read: () => some("members", [["role", "==", field("name")]]) } },
  unknown: { schema: { name: { type: "string" } }, access: { read: () => some("nobody", []) } },
  typed: { schema: { name: { type: "string" } }, access: { read: () => some("members", [["userId", "==", "u"], ["level", "==", field("name")]]) } },
  deep: {
    schema: { name: { type: "string" } },
    access: { read: (auth) => {
      let filter = [["userId", "==", "u"]];
      for (let level = 0; level < 5; level++) filter = [["userId", "==", "u"], some("members", filter)];
      return filter[1];
    } },
  },
}`;

let platform: TestPlatform;
let [ann, bob]: SignedIn[] = [];
beforeAll(async () => {
  platform = await testPlatform({
    config: `import { anyOf, field, none, not, some } from "platform";
      const member = (auth) => [["workspaceId", "==", field("workspaceId")], ["userId", "==", auth?.id ?? ""]];
      export default { databases: { shared: { tables: ${TABLES} } } }`,
  });
  [ann, bob] = [await signIn(platform), await signIn(platform)];
  for (const id of ["w1", "w2", "w3"]) await insert("workspaces", { id, name: id });
  await insert("members", { id: "a1", workspaceId: "w1", userId: ann.id, role: "owner", level: 5 });
  await insert("members", { id: "a2", workspaceId: "w2", userId: ann.id, role: "viewer" });
  await insert("members", { id: "b2", workspaceId: "w2", userId: bob.id, role: "editor" });
  for (const workspaceId of ["w1", "w2", "w3"]) {
    await insert("docs", { id: `d-${workspaceId}`, workspaceId, title: `red ${workspaceId}`, ownerId: "nobody" });
    await insert("pages", { id: `p-${workspaceId}`, docId: `d-${workspaceId}` });
  }
  await insert("docs", { id: "loose", workspaceId: null, title: "red loose", ownerId: bob.id });
});
afterAll(() => platform.stop());

const PATH = "/api/db/shared/tables";
async function insert(table: string, record: JsonObject): Promise<void> {
  expect((await platform.service.post(`${PATH}/${table}`, record)).status).toBe(201);
}
const client = (who: SignedIn | undefined) => (who === undefined ? platform : who);
async function seen(who: SignedIn | undefined, table: string, query: Record<string, string> = {}) {
  const { body } = await client(who).get<ListAnswer>(`${PATH}/${table}`, { query });
  const counted = await client(who).get<{ total: number }>(`${PATH}/${table}/count`);
  const ids = body.items?.map(({ id }) => String(id)) ?? [];
  if (Object.keys(query).length === 0) expect([body.total, counted.body.total]).toEqual([ids.length, ids.length]);
  return ids;
}

test("[TB604] a rule's relation decides lists, totals, GET one, searches, aggregates and expansions", async () => {
  expect(await seen(ann, "workspaces")).toEqual(["w1", "w2"]);
  expect(await seen(ann, "docs")).toEqual(["d-w1", "d-w2"]);
  expect(await seen(bob, "docs")).toEqual(["d-w2", "loose"]);
  expect(await seen(undefined, "docs")).toEqual([]);
  expect(await seen(ann, "docs", { sort: "title:desc" })).toEqual(["d-w2", "d-w1"]);
  expect(await seen(ann, "docs", { filter: JSON.stringify([["title", "contains", "w1"]]) })).toEqual(["d-w1"]);
  const one = async (who: SignedIn | undefined, id: string) => (await client(who).get(`${PATH}/docs/${id}`)).status;
  expect(await Promise.all([one(ann, "d-w1"), one(bob, "d-w1"), one(bob, "loose"), one(ann, "loose")])).toEqual([
    200, 404, 200, 404,
  ]);
  const search = await bob?.get<ListAnswer>(`${PATH}/docs/search`, { query: { q: "red" } });
  expect(search?.body.items?.map(({ id }) => id).sort()).toEqual(["d-w2", "loose"]);
  const groups = await bob?.get(`${PATH}/docs/aggregate`, { query: { select: "count()" } });
  expect(groups?.body).toEqual({ groups: [{ "count()": 2 }] });
  const expanded = await bob?.get<ListAnswer>(`${PATH}/docs`, { query: { expand: "workspaceId" } });
  expect(expanded?.body.items?.map((item) => (item["expand"] as JsonObject | undefined)?.["workspaceId"])).toEqual([
    expect.objectContaining({ id: "w2" }),
    null,
  ] as JsonValue[]);
});

test("[TB604] a relation within a relation names fields of the record in which it stands", async () => {
  expect(await seen(ann, "pages")).toEqual(["p-w1", "p-w2"]);
  expect(await seen(bob, "pages")).toEqual(["p-w2"]);
  expect((await ann?.get(`${PATH}/pages/p-w3`))?.status).toBe(404);
});

test("[TB604] a field of the outer record may stand in groups of the relation", async () => {
  for (const table of ["elsewhere", "owned"]) {
    for (const workspaceId of ["w1", "w2", null]) await insert(table, { id: workspaceId ?? "null", workspaceId });
  }
  const get = async (who: SignedIn | undefined, path: string) => (await client(who).get(`${PATH}/${path}`)).status;
  expect(await seen(bob, "elsewhere")).toEqual(["null", "w1"]);
  expect(await seen(ann, "elsewhere")).toEqual(["null", "w1", "w2"]);
  expect(await seen(undefined, "elsewhere")).toEqual([]);
  expect(await seen(bob, "owned")).toEqual(["w2"]);
  expect(await seen(ann, "owned")).toEqual(["null", "w1", "w2"]);
  expect([await get(bob, "elsewhere/w2"), await get(bob, "owned/null"), await get(bob, "owned/w2")]).toEqual([
    404, 404, 200,
  ]);
});

test("[TB604] within a transaction a nested relation is asked again after each change", async () => {
  const erin = await signIn(platform);
  await insert("members", { id: "e2", workspaceId: "w2", userId: erin.id, role: "editor" });
  const act = (id: string) => ({ table: "pages", action: "insert", data: { id, docId: "d-w2" } });
  const leave = { table: "members", action: "delete", id: "e2" };
  const transact = async (operations: JsonObject[]) =>
    (await erin.post("/api/db/shared/transaction", { operations })).status;
  expect(await transact([act("e-1"), act("e-2")])).toBe(200);
  expect(await transact([act("e-3"), leave, act("e-4")])).toBe(403);
  expect(await transact([act("e-5"), leave])).toBe(200);
  expect(await transact([act("e-6")])).toBe(403);
  for (const id of ["e-1", "e-2", "e-5"]) await platform.service.delete(`${PATH}/pages/${id}`);
});

test("[TB604] not and none match where the relation does not, nulls included; field equals nothing where it is null", async () => {
  await insert("limits", { id: "low", level: 1 });
  await insert("limits", { id: "high", level: 9 });
  await insert("limits", { id: "null", level: null });
  // Ann has the levels 5 and null, bob only null.
  expect(await seen(ann, "limits")).toEqual(["low", "null"]);
  expect(await seen(bob, "limits")).toEqual(["high", "low", "null"]);
  const withOperator = async (op: string) => {
    const user = await signIn(platform, { claims: { op } });
    await insert("members", { id: `m${op}`, workspaceId: "w9", userId: user.id, level: 1 });
    await insert("members", { id: `n${op}`, workspaceId: "w8", userId: user.id, level: null });
    return seen(user, "limits");
  };
  expect(await withOperator("==")).toEqual(["high", "null"]);
  expect(await withOperator("!=")).toEqual([]);
});

test("[TB604] writes are decided by what the transaction has written", async () => {
  const change = async (who: SignedIn | undefined, id: string) =>
    (await client(who).patch(`${PATH}/docs/${id}`, { title: "changed" })).status;
  expect(
    await Promise.all([change(ann, "d-w1"), change(ann, "d-w2"), change(bob, "d-w2"), change(bob, "d-w1")]),
  ).toEqual([200, 403, 200, 404]);
  const create = async (who: SignedIn | undefined, workspaceId: string) =>
    (await client(who).post(`${PATH}/docs`, { workspaceId, title: "new" })).status;
  expect([await create(ann, "w1"), await create(ann, "w2"), await create(undefined, "w1")]).toEqual([201, 403, 401]);
  const joins = (workspaceId: string, role: string) =>
    bob?.post("/api/db/shared/transaction", {
      operations: [
        { table: "members", action: "insert", data: { workspaceId, userId: bob.id, role } },
        { table: "docs", action: "insert", data: { id: `${workspaceId}-${role}`, workspaceId, title: "mine" } },
        { table: "docs", action: "delete", id: `${workspaceId}-${role}` },
      ],
    });
  expect((await joins("w1", "viewer"))?.status).toBe(403);
  expect((await joins("w1", "editor"))?.status).toBe(403);
  expect((await joins("w1", "owner"))?.status).toBe(200);
  expect(await seen(bob, "workspaces")).toEqual(["w1", "w2"]);
});

test("[TB604] totals follow the table that the relation asks", async () => {
  const carl = await signIn(platform);
  expect(await seen(carl, "docs")).toEqual([]);
  await insert("members", { id: "c3", workspaceId: "w3", userId: carl.id });
  expect(await seen(carl, "docs")).toEqual(["d-w3"]);
  expect((await platform.service.delete(`${PATH}/members/c3`)).status).toBe(200);
  expect(await seen(carl, "docs")).toEqual([]);
});

test("[TB605] a relation that no index answers, or is not valid, denies, and the log says so", async () => {
  for (const [table, problem] of [
    ["scanned", "no index of members answers it"],
    ["unknown", "nobody is not a table of shared"],
    ["typed", "must be fields of one type"],
    ["deep", "deeper than 4 levels"],
  ] as const) {
    expect((await ann?.get(`${PATH}/${table}`))?.status).toBe(403);
    await until("the log says so", () => platform.stderr().includes(problem));
  }
});

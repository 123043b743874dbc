import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  type ListAnswer,
  openSocket,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
  until,
} from "../../support/index.ts";
import { random, testSeed } from "../../support/random.ts";

// Relations in the filters of rules: a membership rule is one line.

const SEED = testSeed(20_270);
const r = random(SEED);

const MEMBER = '[["workspaceId", "==", field("workspaceId")], ["userId", "==", auth?.id ?? ""]]';
/** Whether two values are equal; null equals nothing. */
const same = (one: unknown, other: unknown): boolean => one !== null && one === other;

/** Read rules of tables of equal records, and what they mean. `mine`: memberships of the caller. */
const READS: Record<
  string,
  { rule: string; shows(record: JsonObject, mine: JsonObject[], all: JsonObject[]): boolean }
> = {
  inside: {
    rule: `[some("members", ${MEMBER})]`,
    shows: ({ workspaceId }, mine) => mine.some((one) => same(one["workspaceId"], workspaceId)),
  },
  outside: {
    rule: `none("members", ${MEMBER})`,
    shows: ({ workspaceId }, mine) => !mine.some((one) => same(one["workspaceId"], workspaceId)),
  },
  editors: {
    rule: `[["n", "<", 4], some("members", [...${MEMBER}, ["role", "in", ["owner", "editor"]]])]`,
    shows: ({ workspaceId, n }, mine) =>
      n !== null &&
      Number(n) < 4 &&
      mine.some((one) => same(one["workspaceId"], workspaceId) && one["role"] !== "viewer"),
  },
  either: {
    rule: `anyOf([["n", "==", 0]], [some("members", ${MEMBER})])`,
    shows: ({ workspaceId, n }, mine) => n === 0 || mine.some((one) => same(one["workspaceId"], workspaceId)),
  },
  neither: {
    rule: `not([some("members", ${MEMBER})])`,
    shows: ({ workspaceId }, mine) => !mine.some((one) => same(one["workspaceId"], workspaceId)),
  },
  elsewhere: {
    rule: `[some("members", [["userId", "==", auth?.id ?? ""], ["workspaceId", "!=", field("workspaceId")]])]`,
    shows: ({ workspaceId }, mine) => mine.some((one) => workspaceId === null || one["workspaceId"] !== workspaceId),
  },
  ranked: {
    rule: `[some("members", [["userId", "==", auth?.id ?? ""], ["level", ">", field("n")]])]`,
    shows: ({ n }, mine) => mine.some(({ level }) => level !== null && n !== null && Number(level) > Number(n)),
  },
  // Whoever shares a workspace with the owner of the record.
  shared: {
    rule: `[some("members", [["userId", "==", field("ownerId")], some("members", ${MEMBER})])]`,
    shows: ({ ownerId }, mine, all) =>
      all.some((one) => one["userId"] === ownerId && mine.some((own) => same(own["workspaceId"], one["workspaceId"]))),
  },
};

const schema = `{ workspaceId: { type: "string" }, ownerId: { type: "string" }, n: { type: "integer" }, text: { type: "text" } }`;
const tables = Object.entries(READS).map(
  ([name, { rule }]) =>
    `${name}: { schema: ${schema}, fts: ["text"], access: { read: (auth) => ${rule}, insert: (auth) => ${rule}, update: (auth) => ${rule}, delete: (auth) => ${rule} } },
     links_${name}: { schema: { to: { type: "string", references: "${name}" } }, access: { read: true } },`,
);
const CONFIG = `import { anyOf, field, none, not, some } from "platform";
  export default { databases: { shared: { tables: {
    members: {
      schema: { workspaceId: { type: "string" }, userId: { type: "string" }, role: { type: "string" }, level: { type: "integer" } },
      indexes: [{ fields: ["userId", "workspaceId"] }],
    },
    ${tables.join("\n")}
    unknownTable: { access: { read: () => some("nothing", []) } },
    unknownField: { schema: { a: { type: "string" } }, access: { read: () => some("members", [["userId", "==", field("b")]]) } },
    otherType: { schema: { a: { type: "integer" } }, access: { read: () => some("members", [["userId", "==", field("a")]]) } },
    noIndex: { schema: { a: { type: "string" } }, access: { read: () => some("members", [["role", "==", field("a")]]) } },
    open: { schema: { a: { type: "string" } }, access: { read: true } },
  } } } }`;

let platform: TestPlatform;
let users: SignedIn[];
const memberships = new Map<string, JsonObject>();
const records = new Map<string, JsonObject>();

const path = (table: string) => `/api/db/shared/tables/${table}`;
const WORKSPACES = ["w1", "w2", "w3"];

async function join(id: string, membership: JsonObject): Promise<void> {
  memberships.set(id, membership);
  expect((await platform.service.post(path("members"), { id, ...membership })).status).toBe(201);
}

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  users = [await signIn(platform), await signIn(platform), await signIn(platform)];
  for (let index = 0; index < 24; index++) {
    records.set(`r${index}`, {
      workspaceId: r.pick([...WORKSPACES, null]),
      ownerId: r.pick([...users.map(({ id }) => id), null]),
      n: r.pick([0, 1, 2, 3, 4, null]),
      text: "word",
    });
  }
  for (const table of Object.keys(READS)) {
    const inserts = [...records].map(([id, record]) => ({ id, ...record }));
    expect((await platform.service.post(`${path(table)}/batch`, { inserts })).status).toBe(200);
    const links = [...records.keys()].map((id) => ({ id, to: id }));
    await platform.service.post(`${path(`links_${table}`)}/batch`, { inserts: links });
  }
});
afterAll(() => platform.stop());

/** Compares every way to read with what the rule means. */
async function compare(user: SignedIn): Promise<void> {
  const all = [...memberships.values()];
  const mine = all.filter(({ userId }) => userId === user.id);
  for (const [table, { shows }] of Object.entries(READS)) {
    const wanted = [...records]
      .filter(([, record]) => shows(record, mine, all))
      .map(([id]) => id)
      .sort();
    const list = await user.get<ListAnswer>(path(table), { query: { limit: 1000 } });
    expect({ table, found: list.body.items?.map(({ id }) => String(id)).sort(), total: list.body.total }).toEqual({
      ...{ table, found: wanted, total: wanted.length },
    });
    const sorted = await user.get<ListAnswer>(path(table), { query: { sort: "n:desc", limit: 1000, total: false } });
    expect(sorted.body.items?.map(({ id }) => String(id)).sort()).toEqual(wanted);
    expect((await user.get<{ total: number }>(`${path(table)}/count`)).body.total).toBe(wanted.length);
    const groups = await user.get<{ groups: JsonObject[] }>(`${path(table)}/aggregate`);
    expect(groups.body.groups).toEqual([{ "count()": wanted.length }]);
    const search = await user.get<ListAnswer>(`${path(table)}/search`, { query: { q: "word", limit: 1000 } });
    expect(search.body.items?.map(({ id }) => String(id)).sort()).toEqual(wanted);
    const links = await user.get<ListAnswer>(path(`links_${table}`), { query: { expand: "to", limit: 1000 } });
    const expanded = (links.body.items ?? []).filter(({ expand }) => (expand as JsonObject)["to"] !== null);
    expect(expanded.map(({ id }) => String(id)).sort()).toEqual(wanted);
    for (const id of records.keys()) {
      const status = wanted.includes(id) ? 200 : 404;
      expect({ table, id, get: (await user.get(`${path(table)}/${id}`)).status }).toEqual({ table, id, get: status });
      const patched = await user.patch(`${path(table)}/${id}`, { text: "word" });
      expect({ table, id, patch: patched.status }).toEqual({ table, id, patch: status });
    }
  }
}

test(`[TB604] a relation shows the same in lists, totals, searches, expanded, one by one and in writes (seed ${SEED})`, async () => {
  for (let round = 0; round < 4; round++) {
    for (const user of users) await compare(user);
    for (let index = 0; index < 3; index++) {
      await join(`m${round}-${index}`, {
        workspaceId: r.pick([...WORKSPACES, null]),
        userId: r.pick(users).id,
        role: r.pick(["owner", "editor", "viewer"]),
        level: r.pick([1, 3, null]),
      });
    }
    if (round === 2) {
      const [gone = ""] = memberships.keys();
      memberships.delete(gone);
      await platform.service.delete(`${path("members")}/${gone}`);
    }
  }
}, 60_000);

test("[TB604] an insert is judged by the relation, in a transaction by what it has written before", async () => {
  const user = await signIn(platform);
  const insert = (id: string) => ({ table: "inside", action: "insert", data: { id, workspaceId: "new" } }) as const;
  const alone = await user.post(path("inside"), { id: "early", workspaceId: "new" });
  expect(alone.status).toBe(403);
  const together = await platform.service.post("/api/db/shared/transaction", {
    operations: [
      { table: "members", action: "insert", data: { id: "new", workspaceId: "new", userId: user.id } },
      insert("by-key"),
    ],
  });
  expect(together.status).toBe(200);
  expect((await user.post(path("inside"), { id: "now", workspaceId: "new" })).status).toBe(201);
  const batch = await user.post(`${path("inside")}/batch`, { inserts: [{ id: "b", workspaceId: "w9" }] });
  expect(batch.status).toBe(403);
  const byFilter = await user.post<{ processed: number }>(`${path("inside")}/batch-by-filter`, {
    ...{ action: "update", filter: [["text", "==", "word"]], data: { text: "other" } },
  });
  expect(byFilter.body.processed).toBe(0);
  for (const id of ["now", "by-key"]) await platform.service.delete(`${path("inside")}/${id}`);
  await platform.service.delete(`${path("members")}/new`);
});

test.each(["unknownTable", "unknownField", "otherType", "noIndex"])(
  "[TB605] a relation with a mistake denies, and the log names it: %s",
  async (table) => {
    const [user] = users;
    expect((await user?.get(path(table)))?.status).toBe(403);
    await until("the log names the table", () => platform.stderr().includes(`shared.${table}`));
  },
);

test("[RT351] a change of a membership concerns its user at once: changes end, or a resync follows", async () => {
  const user = await signIn(platform);
  const stranger = await signIn(platform);
  const listen = async (who: SignedIn) => {
    const socket = await openSocket(`${platform.wsUrl}/api/realtime`);
    socket.send({ type: "auth", token: who.token });
    await socket.nextOf("auth_success");
    socket.send({ type: "subscribe", channel: "realtime:shared:inside", id: "s" });
    await socket.nextOf("subscribed");
    return socket;
  };
  const [socket, other] = [await listen(user), await listen(stranger)];
  const touch = (text: string) => platform.service.patch(`${path("inside")}/live`, { text });
  await platform.service.post(path("inside"), { id: "live", workspaceId: "w-live", text: "0" });
  await touch("unseen");
  await platform.service.post(path("members"), { id: "live", workspaceId: "w-live", userId: user.id });
  expect(await socket.nextOf("subscribed")).toMatchObject({ resync: true });
  await touch("seen");
  expect(await socket.nextOf("db_change")).toMatchObject({ docId: "live", data: { text: "seen" } });
  await platform.service.delete(`${path("members")}/live`);
  await touch("unseen again");
  await until("the resync", async () =>
    socket.pending.some(({ type, resync }) => type === "subscribed" && resync === true),
  );
  expect(JSON.stringify(socket.pending)).not.toContain("unseen again");
  expect(other.pending.filter(({ type }) => type === "db_change")).toEqual([]);
  for (const one of [socket, other]) await one.close();
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, type TestSocket, testPlatform } from "../../support/index.ts";
import { connect, connectAnonymously } from "./realtime-support.ts";

// Subscriptions whose filters have relations.

const CONFIG = `import { field, some } from "platform";
const text = { type: "string" };
const mine = (auth) => auth !== null && [["userId", "==", auth.id]];
const table = (read) => ({
  schema: { docId: text, userId: text, secret: text, n: { type: "integer" } },
  indexes: [{ fields: ["docId", "userId"] }, { fields: ["userId"] }], access: { read },
});
export default {
  serviceKeys: { docs: { key: "key-docs-0123456789abcdef", scopes: ["db:shared:docs:read", "realtime:*:*:read"] } },
  databases: { shared: { tables: {
    docs: { schema: { title: text, ownerId: text }, access: { read: true } },
    own: { schema: { title: text, ownerId: text }, access: { read: (auth) => auth !== null && [["ownerId", "==", auth.id]] } },
    open: table(true),
    mine: table(mine),
    either: table((auth) => ({ or: [[["userId", "==", auth?.id ?? ""]], [["userId", "==", "everybody"]]] })),
    rough: table((auth) => [["userId", "==", auth?.id ?? ""], ["n", ">", 5]]),
    looked: table((auth, _record, context) => auth !== null && context.table("mine").where([["userId", "==", auth.id]]).exists()),
    closed: table(undefined),
    each: table((auth, record) => record.userId === auth?.id),
  } },
  rooms: { instance: true, access: { create: true, open: true }, tables: {
    docs: { schema: { title: text }, access: { read: true, insert: true, update: true } },
    open: { ...table(true), access: { read: true, insert: true } },
  } },
} };`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const PATH = "/api/db/shared/tables";
async function insert(table: string, record: JsonObject): Promise<void> {
  expect((await platform.service.post(`${PATH}/${table}`, record)).status).toBe(201);
}
const retitle = (id: string, title: string, table = "docs") =>
  platform.service.patch(`${PATH}/${table}/${id}`, { title });
const onDoc = ["docId", "==", { field: "id" }];
const some = (table: string, ...where: JsonValue[]): JsonValue[] => [{ some: { table, where: [onDoc, ...where] } }];
const none = (table: string, ...where: JsonValue[]): JsonValue[] => [{ none: { table, where: [onDoc, ...where] } }];

interface Listening {
  channel: string;
  user: SignedIn;
  socket: TestSocket;
}

async function listen(
  filters: JsonValue,
  { user = null as SignedIn | null, channel = "shared:docs" } = {},
): Promise<Listening> {
  const by = user ?? (await signIn(platform));
  const socket = await connect(platform, by);
  socket.send({ type: "subscribe", channel: `realtime:${channel}`, filters });
  expect(await socket.nextOf("subscribed")).toMatchObject({ serverFilter: true });
  return { channel: `realtime:${channel}`, user: by, socket };
}

/** Everything that a socket has got, with all changes that are committed. */
async function received({ socket, channel }: Pick<Listening, "socket" | "channel">): Promise<JsonObject[]> {
  socket.send({ type: "flush", channel, requestId: "seen" });
  const messages: JsonObject[] = [];
  do messages.push(await socket.next());
  while (messages.at(-1)?.["requestId"] !== "seen");
  return messages.slice(0, -1);
}

/** The changes among them, and `subscribed` for a resync. */
const seen = async (listening: Pick<Listening, "socket" | "channel">): Promise<string[]> =>
  (await received(listening)).map(({ type, changeType, docId }) =>
    type === "db_change" ? `${changeType} ${docId}` : String(type),
  );
const DOCS = "realtime:shared:docs";

test("[RT360] relations are asked for each record that changes, among the records that the user may read", async () => {
  const [ann, bob] = [await signIn(platform), await signIn(platform)];
  for (const table of ["open", "mine", "either", "looked"]) {
    const [d1, d2] = [`${table}1`, `${table}2`];
    await insert(table, { docId: d1, userId: ann.id, n: 1 });
    await insert(table, { docId: d2, userId: bob.id, n: 1 });
    const all: Listening[] = [];
    for (const user of [ann, bob]) {
      for (const filters of [some(table), none(table), [{ not: some(table) }], some(table, ["n", "!=", 1])]) {
        all.push(await listen(filters, { user }));
      }
    }
    await insert("docs", { id: d1, title: "x" });
    await insert("docs", { id: d2, title: "x" });
    const both = [`added ${d1}`, `added ${d2}`];
    const answers: string[][] = [];
    for (const one of all) answers.push(await seen(one));
    const shows = (first: string[], others: string[]) => [first, others, others, []];
    if (table === "open" || table === "looked") expect(answers).toEqual([...shows(both, []), ...shows(both, [])]);
    else
      expect(answers).toEqual([...shows([both[0] ?? ""], [both[1] ?? ""]), ...shows([both[1] ?? ""], [both[0] ?? ""])]);
    for (const { socket } of all) await socket.close();
  }
});

test("[RT360] the read rule of the channel's own table holds as well", async () => {
  const [ann, bob] = [await signIn(platform), await signIn(platform)];
  const socket = await listen(some("open"), { user: ann, channel: "shared:own" });
  for (const [id, ownerId] of [
    ["o1", ann.id],
    ["o2", bob.id],
    ["o3", ann.id],
  ] as const) {
    if (id !== "o3") await insert("open", { docId: id, userId: bob.id });
    await insert("own", { id, ownerId });
  }
  expect((await seen(socket)).filter((one) => one !== "subscribed")).toEqual(["added o1"]);
  await socket.socket.close();
});

test("[RT360] of a table that may not be read the relation is empty, whatever it asks", async () => {
  for (const where of [[onDoc], [["secret", "contains", "x"]], [["nothing", "==", 1]], "odd"] as JsonValue[]) {
    const [has, lacks] = [
      await listen([{ some: { table: "closed", where } }]),
      await listen([{ none: { table: "closed", where } }]),
    ];
    const id = `c${crypto.randomUUID()}`;
    await insert("closed", { docId: id, secret: "x" });
    await insert("docs", { id });
    expect([await seen(has), await seen(lacks)]).toEqual([[], [`added ${id}`]]);
    await has.socket.close();
    await lacks.socket.close();
  }
});

test("[RT360] a service key asks by its scopes", async () => {
  const [socket, root] = [await connectAnonymously(platform), await connectAnonymously(platform)];
  for (const [one, client] of [
    [socket, platform.withKey("key-docs-0123456789abcdef")],
    [root, platform.service],
  ] as const) {
    const { ticket } = (await client.post<{ ticket: string }>("/api/admin/socket-ticket")).body;
    one.send({ type: "auth", token: ticket });
    await one.nextOf("auth_success");
  }
  for (const one of [socket, root]) {
    one.send({ type: "subscribe", channel: "realtime:shared:docs", filters: some("mine") });
    await one.nextOf("subscribed");
  }
  await insert("mine", { docId: "k1", userId: "x" });
  await insert("docs", { id: "k1" });
  expect(await root.nextOf("db_change")).toMatchObject({ docId: "k1" });
  expect(JSON.stringify(await received({ socket, channel: DOCS }))).not.toContain("k1");
  await Promise.all([socket.close(), root.close()]);
});

test("[RT361] a change of the other table is followed at once: nothing by the earlier answer, and resync", async () => {
  for (const table of ["open", "mine", "either"]) {
    const id = `r-${table}`;
    await insert("docs", { id, title: "x" });
    const ann = await listen(some(table));
    await insert(table, { id, docId: id, userId: ann.user.id });
    await ann.socket.expect({ type: "subscribed", resync: true });
    await retitle(id, "shown");
    await ann.socket.expect({ type: "db_change", changeType: "modified", docId: id });
    await platform.service.delete(`${PATH}/${table}/${id}`);
    await retitle(id, "hidden");
    await ann.socket.expect({ type: "subscribed", resync: true });
    expect(JSON.stringify(await received(ann))).not.toContain('"hidden"');
    await ann.socket.close();
  }
});

test("[RT361] a right to the other table that begins or ends is followed", async () => {
  await insert("docs", { id: "right", title: "x" });
  await insert("looked", { docId: "right", userId: "x" });
  const ann = await listen(some("looked"));
  await retitle("right", "no right");
  await insert("mine", { id: "right", docId: "x", userId: ann.user.id });
  await ann.socket.expect({ type: "subscribed", resync: true });
  await retitle("right", "shown");
  await ann.socket.expect({ type: "db_change", docId: "right" });
  await platform.service.delete(`${PATH}/mine/right`);
  await ann.socket.expect({ type: "subscribed", resync: true });
  await retitle("right", "hidden");
  expect(JSON.stringify(await received(ann))).not.toMatch(/no right|hidden/);
  await ann.socket.close();
});

test("[RT361] hidden records of the other table tell nothing, whatever the filter asks of them", async () => {
  for (const table of ["mine", "either", "rough"]) {
    const ann = await listen([
      {
        some: {
          table,
          where: [
            ["userId", "==", "bob"],
            ["secret", "==", "s"],
          ],
        },
      },
    ]);
    const eve = await listen([
      {
        some: {
          table,
          where: [
            ["docId", "==", { field: "id" }],
            ["secret", "==", "s"],
          ],
        },
      },
    ]);
    await insert(table, { id: `${table}h`, docId: "h", userId: "bob", secret: "s", n: 9 });
    await platform.service.patch(`${PATH}/${table}/${table}h`, { secret: "t" });
    await platform.service.delete(`${PATH}/${table}/${table}h`);
    expect([await seen(ann), await seen(eve)]).toEqual([[], []]);
    await ann.socket.close();
    await eve.socket.close();
  }
  // Hidden by a condition that is no equality: that something has changed is told, whatever it has.
  const rough = await listen([
    {
      some: {
        table: "rough",
        where: [
          ["docId", "==", { field: "id" }],
          ["secret", "==", "s"],
        ],
      },
    },
  ]);
  await insert("rough", { docId: "h", userId: rough.user.id, secret: "other", n: 9 });
  await rough.socket.expect({ type: "subscribed", resync: true });
  await rough.socket.close();
});

test.each<[JsonValue, string]>([
  [[{ some: { table: "open", where: [["n", "==", 1]] } }], 'indexes: [{ fields: ["n"] }]'],
  [[{ some: { table: "nobody", where: [] } }], "nobody is not a table"],
  [some("open", ["nothing", "==", 1]), "nothing is not a field"],
  [some("each"), "looks at each record"],
])("[RT362] %j is INVALID_FILTER, and the subscription stays", async (filters, message) => {
  const { socket } = await listen(some("open"));
  for (const type of ["subscribe", "update_filters"]) {
    socket.send({ type, channel: "realtime:shared:docs", filters });
    const error = (await socket.nextOf("error")) as JsonObject;
    expect([error["code"], error["message"]]).toEqual(["INVALID_FILTER", expect.stringContaining(message)]);
  }
  const id = crypto.randomUUID();
  await insert("open", { docId: id, userId: "x" });
  await socket.expect({ type: "subscribed", resync: true });
  await insert("docs", { id });
  await socket.expect({ type: "db_change", docId: id });
  await socket.close();
});

test("[RT362] the filters of one connection have at most 50 relations together", async () => {
  const socket = await connect(platform, await signIn(platform));
  const many = (count: number) =>
    [{ or: Array.from({ length: count }, (_, at) => some("open", ["n", "!=", at])) }] as JsonValue;
  const subscribe = (id: string, filters: JsonValue) =>
    socket.send({ type: "subscribe", channel: "realtime:shared:docs", id, filters });
  subscribe("a", many(30));
  await socket.expect({ type: "subscribed", id: "a" });
  subscribe("b", many(21));
  await socket.expect({ type: "error", code: "INVALID_FILTER", id: "b" });
  subscribe("b", many(20));
  await socket.expect({ type: "subscribed", id: "b" });
  socket.send({ type: "update_filters", id: "a", filters: many(31) });
  await socket.expect({ type: "error", code: "INVALID_FILTER", id: "a" });
  // Replaced ones, and those within others, count once.
  subscribe("a", many(10));
  await socket.expect({ type: "subscribed", id: "a" });
  subscribe("c", [{ none: { table: "open", where: [onDoc, { not: many(19) as JsonObject[] }] } }] as JsonValue);
  await socket.expect({ type: "subscribed", id: "c" });
  socket.send({ type: "unsubscribe", id: "b" });
  await socket.expect({ type: "unsubscribed", id: "b" });
  subscribe("b", many(21));
  await socket.expect({ type: "error", code: "INVALID_FILTER", id: "b" });
  await socket.close();
});

test("[RT363] update_filters gives a subscription relations, others, and none", async () => {
  const { socket } = await listen([["title", "==", "x"]]);
  const update = async (filters: JsonValue) => {
    socket.send({ type: "update_filters", channel: "realtime:shared:docs", filters });
    await socket.expect({ type: "filters_updated" });
  };
  const added = async (id: string, isShown: boolean) => {
    await insert("docs", { id, title: "x" });
    const changes = await seen({ socket, channel: DOCS });
    expect(changes.filter((one) => one.startsWith("added"))).toEqual(isShown ? [`added ${id}`] : []);
  };
  await insert("open", { docId: "u2", userId: "x" });
  await update(some("open"));
  await added("u1", false);
  await added("u2", true);
  await update(none("open"));
  await added("u3", true);
  await insert("docs", { id: "u4x", title: "y" });
  await socket.expect({ type: "db_change", docId: "u4x" });
  await update([["title", "==", "x"]]);
  await added("u5", true);
  await update(null);
  await added("u6", true);
  await socket.close();
});

test("[RT364] who comes back with since has to ask anew", async () => {
  const { socket } = await listen(some("open"));
  const send = (since: number | null) =>
    socket.send({ type: "subscribe", channel: "realtime:shared:docs", filters: some("open"), since });
  send(null);
  const { seq } = (await socket.nextOf("subscribed")) as { seq: number };
  send(seq);
  expect(await socket.nextOf("subscribed")).toMatchObject({ resync: true });
  await socket.close();
});

test("[RT365] a record whose relations would examine too much is left to resync", async () => {
  const inserts = (count: number) => Array.from({ length: count }, () => ({ docId: "many", userId: "x", n: 1 }));
  for (let at = 0; at < 3; at++) {
    expect((await platform.service.post(`${PATH}/open/batch`, { inserts: inserts(450) })).status).toBe(200);
  }
  const { socket } = await listen(some("open", ["n", "==", 2]));
  await insert("docs", { id: "many", title: "x" });
  await socket.expect({ type: "subscribed", resync: true });
  expect(await seen({ socket, channel: DOCS })).toEqual([]);
  await socket.close();
});

test("[RT360] relations ask the instance's own file", async () => {
  const ann = await signIn(platform);
  const path = (id: string) => `/api/db/rooms/${id}/tables`;
  for (const id of ["one", "two"]) expect((await ann.post(`${path(id)}/docs`, { id: "first" })).status).toBe(201);
  expect((await ann.post(`${path("two")}/open`, { docId: "d1", userId: "x" })).status).toBe(201);
  const [one, two] = [
    await listen(some("open"), { user: ann, channel: "rooms:one:docs" }),
    await listen(some("open"), { user: ann, channel: "rooms:two:docs" }),
  ];
  for (const id of ["one", "two"]) await ann.post(`${path(id)}/docs`, { id: "d1", title: id });
  expect([await seen(one), await seen(two)]).toEqual([[], ["added d1"]]);
  await Promise.all([one.socket.close(), two.socket.close()]);
});

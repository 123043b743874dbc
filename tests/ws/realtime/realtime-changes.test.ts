import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { type ChangeEvent, connect, settled, subscribe } from "./realtime-support.ts";

const OPEN = "{ read: true, insert: true, update: true, delete: true }";
const CONFIG = `{
  databases: { shared: { tables: {
    posts: { schema: { title: { type: "string", required: true }, score: { type: "integer" }, hidden: { type: "boolean" } },
      access: ${OPEN} },
    comments: { schema: { postId: { type: "string", references: { table: "posts", onDelete: "cascade" } } }, access: ${OPEN} },
    notes: { schema: { postId: { type: "string", references: { table: "posts", onDelete: "set null" } } }, access: ${OPEN} },
    lists: { schema: { posts: { type: "references", references: "posts" }, members: { type: "json" } }, access: ${OPEN} },
    teams: { schema: { members: { type: "references", references: "people" } },
      access: { ...${OPEN}, read: (auth) => auth !== null && [["members", "has", auth.id]] } },
    looked: { schema: { text: { type: "string" } },
      access: { ...${OPEN}, read: (auth, record, context) => auth !== null && context.table("teams").exists([["members", "has", auth.id]]) } },
    related: { schema: { text: { type: "string" } },
      access: { ...${OPEN}, read: (auth) => auth !== null && [{ some: { table: "teams", where: [["members", "hasAny", [auth.id]]] } }] } },
    people: { schema: { name: { type: "string" } }, access: ${OPEN} },
    owned: { schema: { ownerId: { type: "string" }, text: { type: "string" } },
      access: { ...${OPEN}, read: (auth) => auth !== null && [["ownerId", "==", auth.id]] } },
    judged: { schema: { ownerId: { type: "string" }, text: { type: "string" } },
      access: { ...${OPEN}, read: (auth, record) => record.ownerId === auth?.id } },
    awaited: { schema: { ownerId: { type: "string" }, delay: { type: "integer" } },
      access: { ...${OPEN}, read: async (auth, record) => { await Bun.sleep(record.delay ?? 0); return record.ownerId === auth?.id; } } },
    loose: { maxRecordSize: 10 * 1024 * 1024, access: ${OPEN} },
    hooked: { schema: { text: { type: "string" } }, access: ${OPEN},
      hooks: { afterInsert: (_auth, record, app) => app.broadcast("broadcast:hooks", "inserted", { id: record.id }) } },
  } } },
}`;

let platform: TestPlatform;
let user: SignedIn;
let other: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [user, other] = [await signIn(platform), await signIn(platform)];
});
afterAll(() => platform.stop());

const table = (name: string) => `/api/db/shared/tables/${name}`;
const insert = async (name: string, record: JsonObject): Promise<string> => {
  const answer = await user.post<{ id: string }>(table(name), record);
  expect(answer.status).toBe(201);
  return answer.body.id;
};

test("[RT100] records that are too large for an event are sent without their data, live and replayed", async () => {
  const socket = await connect(platform, user);
  const { seq } = await subscribe(socket, "realtime:shared:loose");
  const filtered = await connect(platform, user);
  await subscribe(filtered, "realtime:shared:loose", { filters: [["kind", "==", "large"]] });
  await user.post(table("loose"), { id: "whole", text: "x".repeat(300_000) });
  await user.post(table("loose"), { id: "large", kind: "large", text: "x".repeat(1_100_000) });
  await user.post(table("loose"), { id: "values", list: Array(140_000).fill(1) });
  const inserts = Array.from({ length: 12 }, (_, n) => ({ id: `b${n}`, text: "x".repeat(n < 4 ? 1_000_000 : 50_000) }));
  await user.post(`${table("loose")}/batch`, { inserts });
  const check = async () => {
    await socket.expect({ changeType: "added", docId: "whole", data: { id: "whole" } });
    await socket.expect({ changeType: "added", docId: "large", data: null, truncated: true });
    await socket.expect({ changeType: "added", docId: "values", data: null, truncated: true });
    const batch = await socket.next<{
      total: number;
      changes: { docId: string; data: unknown; truncated?: boolean }[];
    }>();
    expect(batch.total).toBe(12);
    const whole = batch.changes.filter(({ data }) => data !== null).map(({ docId }) => docId);
    expect(whole).toEqual(["b0", "b1", "b2", "b3", "b4", "b5", "b6"]);
    expect(batch.changes.every(({ data, truncated }) => (data === null) === (truncated === true))).toBe(true);
    return JSON.stringify(batch).length;
  };
  expect(await check()).toBeLessThan(4.5 * 1024 * 1024);
  await filtered.expect({ changeType: "added", docId: "large", data: null, truncated: true });
  await user.delete(`${table("loose")}/large`);
  const removed = await socket.next();
  expect(removed).toMatchObject({ changeType: "removed", docId: "large", data: null });
  expect("truncated" in removed).toBe(false);
  await subscribe(socket, "realtime:shared:loose", { since: seq });
  await check();
  await Promise.all([socket.close(), filtered.close()]);
});

test("[RT17] each kind of change, by each kind of request", async () => {
  const socket = await connect(platform, user);
  await subscribe(socket, "realtime:shared:posts");
  const created = await user.post<JsonObject & { id: string }>(table("posts"), { title: "one" });
  const { id } = created.body;
  const added = await socket.next<ChangeEvent & { timestamp: string }>();
  expect(added).toEqual({
    ...{ type: "db_change", channel: "realtime:shared:posts", table: "posts", changeType: "added", docId: id },
    ...{ data: created.body, timestamp: added.timestamp, seq: added.seq },
  });
  expect(new Date(added.timestamp).toISOString()).toBe(added.timestamp);
  const changed = await user.patch(`${table("posts")}/${id}`, { title: "two" });
  await socket.expect({ changeType: "modified", docId: id, data: changed.body });
  await user.post(`${table("posts")}?upsert=true`, { id, title: "three" });
  await socket.expect({ changeType: "modified", docId: id, data: { title: "three" } });
  await user.post(`${table("posts")}?upsert=true`, { id: "upserted", title: "new" });
  await socket.expect({ changeType: "added", docId: "upserted" });
  await user.post(`${table("posts")}/batch`, {
    inserts: [{ id: "b1", title: "b" }],
    updates: [{ id, data: { score: 5 } }],
    deletes: ["upserted"],
  });
  const batch = [await socket.next(), await socket.next(), await socket.next()];
  expect(batch.map((event) => [event["changeType"], event["docId"]]).sort()).toEqual([
    ["added", "b1"],
    ["modified", id],
    ["removed", "upserted"],
  ]);
  await user.post(`${table("posts")}/batch-by-filter`, {
    ...{ action: "update", filter: [["id", "==", "b1"]], data: { score: { $op: "increment", value: 2 } } },
  });
  await socket.expect({ changeType: "modified", docId: "b1", data: { score: 2 } });

  await subscribe(socket, "realtime:shared:comments");
  const commentId = await insert("comments", { postId: id });
  await socket.expect({ changeType: "added", table: "comments" });
  await user.delete(`${table("posts")}/${id}`);
  const cascade = [await socket.next(), await socket.next()];
  expect(cascade.map((event) => [event["table"], event["changeType"], event["docId"], event["data"]]).sort()).toEqual([
    ["comments", "removed", commentId, null],
    ["posts", "removed", id, null],
  ]);
  await subscribe(socket, "realtime:shared:loose");
  await insert("loose", { any: { thing: [1, true, null] } });
  await socket.expect({ data: { any: { thing: [1, true, null] } } });
  await socket.close();
});

test("[TB74] a reference that a delete clears is sent as a modified record with its new time", async () => {
  const socket = await connect(platform, user);
  const postId = await insert("posts", { title: "referred" });
  const noteId = await insert("notes", { postId });
  await subscribe(socket, "realtime:shared:notes");
  const before = await user.get<JsonObject>(`${table("notes")}/${noteId}`);
  const updatedAt = Date.parse(String(before.body["updatedAt"]));
  await until("a new time differs from the old one", () => Date.now() > updatedAt);
  await user.delete(`${table("posts")}/${postId}`);
  const event = await socket.next();
  const after = await user.get(`${table("notes")}/${noteId}`);
  expect(event).toMatchObject({ changeType: "modified", docId: noteId, data: { postId: null } });
  expect(event["data"]).toEqual(after.body);
  expect(String(after.body["updatedAt"]) > String(before.body["updatedAt"])).toBe(true);
  await socket.close();
});

test("[TB653] [TB654] filters and rules with ids of several references decide about changes; [TB657] a deletion is one", async () => {
  const socket = await connect(platform, user);
  const [first, second] = [await insert("posts", { title: "one" }), await insert("posts", { title: "two" })];
  await subscribe(socket, "realtime:shared:lists", { filters: [["posts", "hasAll", [first, second]]] });
  const id = await insert("lists", { posts: [first] });
  await user.patch(`${table("lists")}/${id}`, { posts: { $op: "add", value: second } });
  await socket.expect({ changeType: "added", docId: id, data: { posts: [first, second] } });
  await user.delete(`${table("posts")}/${first}`);
  await socket.expect({ changeType: "removed", docId: id, data: null });
  await subscribe(socket, "realtime:shared:lists");
  await user.delete(`${table("posts")}/${second}`);
  await socket.expect({ changeType: "modified", docId: id, data: { posts: [] } });
  socket.send({ type: "subscribe", channel: "realtime:shared:lists", filters: [["posts", "==", "x"]] });
  await socket.expect({ type: "error", code: "INVALID_FILTER" });

  for (const person of [user.id, other.id]) await insert("people", { id: person });
  await subscribe(socket, "realtime:shared:teams");
  const team = await platform.service.post<{ id: string }>(table("teams"), { members: [other.id] });
  const change = (members: JsonObject) => platform.service.patch(`${table("teams")}/${team.body.id}`, { members });
  await change({ $op: "add", value: user.id });
  await socket.expect({ changeType: "added", docId: team.body.id, data: { members: [other.id, user.id] } });
  await change({ $op: "remove", value: other.id });
  await socket.expect({ changeType: "modified", docId: team.body.id, data: { members: [user.id] } });
  await change({ $op: "remove", value: user.id });
  await socket.expect({ changeType: "removed", docId: team.body.id, data: null });
  await settled(socket);
  await socket.close();
});

test("[TB654] subscriptions whose rule looks several references up follow the records that have them", async () => {
  const [reader, writer] = [await signIn(platform), await signIn(platform)];
  for (const person of [reader.id, writer.id]) await insert("people", { id: person });
  const { body: team } = await platform.service.post<{ id: string }>(table("teams"), { members: [reader.id] });
  const change = (members: JsonObject) => platform.service.patch(`${table("teams")}/${team.id}`, { members });
  for (const name of ["looked", "related"]) {
    const socket = await connect(platform, reader);
    await subscribe(socket, `realtime:shared:${name}`);
    const put = async (id: string) => expect((await user.post(table(name), { id })).status).toBe(201);
    await put(`${name}-1`);
    await socket.expect({ type: "db_change", docId: `${name}-1` });
    await change({ $op: "add", value: writer.id });
    await put(`${name}-2`);
    await socket.expect({ type: "db_change", docId: `${name}-2` });
    await change({ $op: "remove", value: reader.id });
    const channel = `realtime:shared:${name}`;
    if (name === "looked") await socket.expect({ type: "auth_refreshed", revokedChannels: [channel] });
    else await socket.expect({ type: "subscribed", channel, resync: true });
    await put(`${name}-3`);
    await settled(socket);
    await change({ $op: "add", value: reader.id });
    await socket.close();
  }
});

test("[RT18] ten changes of one request are one batch_changes, nine changes are nine events", async () => {
  const [all, some] = [await connect(platform, user), await connect(platform, user)];
  await subscribe(all, "realtime:shared:posts");
  await subscribe(some, "realtime:shared:posts", { filters: [["score", ">", 4]] });
  const records = (count: number) => Array.from({ length: count }, (_, index) => ({ title: "n", score: index }));
  await user.post(`${table("posts")}/batch`, { inserts: records(9) });
  for (let index = 0; index < 9; index++) await all.expect({ type: "db_change", data: { score: index } });
  for (let index = 5; index < 9; index++) await some.expect({ type: "db_change", data: { score: index } });
  await user.post(`${table("posts")}/batch`, { inserts: records(12) });
  const batch = await all.next<{ type: string; channel: string; total: number; changes: ChangeEvent[] }>();
  expect(batch).toMatchObject({ type: "batch_changes", channel: "realtime:shared:posts", total: 12 });
  expect(batch.changes.map((change) => [change.type, change.changeType])).toEqual(
    Array.from({ length: 12 }, () => ["db_change", "added"]),
  );
  expect(batch.changes.map((change) => (change["data"] as JsonObject)["score"])).toEqual(
    records(12).map((r) => r.score),
  );
  for (let index = 5; index < 12; index++) await some.expect({ type: "db_change", data: { score: index } });
  await user.post(`${table("posts")}/batch`, { inserts: records(15) });
  await some.expect({ type: "batch_changes", total: 10 });
  await Promise.all([all.close(), some.close()]);
});

test("[RT19] with filters, a record that enters is added, one that leaves is removed, others are not sent", async () => {
  const socket = await connect(platform, user);
  const answer = await subscribe(socket, "realtime:shared:posts", {
    filters: [["hidden", "!=", true]],
    orFilters: [
      ["score", ">=", 10],
      ["title", "contains", "hot"],
    ],
  });
  expect(answer["serverFilter"]).toBe(true);
  const id = await insert("posts", { title: "cold", score: 1 });
  const path = `${table("posts")}/${id}`;
  await user.patch(path, { score: 2 });
  await settled(socket);
  await user.patch(path, { score: 10 });
  await socket.expect({ changeType: "added", docId: id, data: { score: 10 } });
  await user.patch(path, { score: 0, title: "hot" });
  await socket.expect({ changeType: "modified", docId: id });
  await user.patch(path, { hidden: true });
  await socket.expect({ changeType: "removed", docId: id, data: null });
  await user.patch(path, { title: "hotter" });
  await user.patch(path, { hidden: false });
  await socket.expect({ changeType: "added", docId: id, data: { title: "hotter" } });
  await user.delete(path);
  await socket.expect({ changeType: "removed", docId: id, data: null });
  await settled(socket);
  await socket.close();
});

test("[RT20] malformed filters are INVALID_FILTER, and the subscription stays as it was", async () => {
  const socket = await connect(platform, user);
  const channel = "realtime:shared:posts";
  await subscribe(socket, channel, { filters: [["score", "==", 42]] });
  const five = Array.from({ length: 5 }, () => ["score", ">", 0]);
  for (const filters of [
    "text",
    [["nothing", "==", 1]],
    [["score", "~", 1]],
    [["score", "==", "x"]],
    [["score"]],
    { score: 1 },
    [...five, ["score", ">", 0]],
  ]) {
    for (const message of [{ filters }, { orFilters: filters }]) {
      socket.send({ type: "subscribe", channel, ...message });
      await socket.expect({ type: "error", code: "INVALID_FILTER", channel });
      socket.send({ type: "update_filters", channel, ...message });
      await socket.expect({ type: "error", code: "INVALID_FILTER", channel });
    }
  }
  const long = [["title", "in", Array.from({ length: 1_000 }, () => "x".repeat(80))]];
  socket.send({ type: "update_filters", channel, filters: long });
  await socket.expect({ type: "error", code: "INVALID_FILTER", channel });
  socket.send({ type: "subscribe", channel: "broadcast:x", filters: [] });
  await socket.expect({ type: "error", code: "INVALID_FILTER" });
  await insert("posts", { title: "no", score: 1 });
  await insert("posts", { title: "yes", score: 42 });
  await socket.expect({ type: "db_change", data: { title: "yes" } });
  await subscribe(socket, channel, { filters: five, orFilters: five });
  await socket.close();
});

test("[RT21] update_filters replaces its members, null clears, absent keeps; a second subscribe replaces all", async () => {
  const socket = await connect(platform, user);
  const channel = "realtime:shared:posts";
  const update = async (message: JsonObject, serverFilter: boolean) => {
    socket.send({ type: "update_filters", channel, ...message });
    expect(await socket.next()).toEqual({ type: "filters_updated", channel, serverFilter });
  };
  socket.send({ type: "update_filters", channel, filters: [] });
  await socket.expect({ type: "error", code: "NOT_SUBSCRIBED", channel });
  await subscribe(socket, channel, { filters: [["score", "==", 1]], orFilters: [["title", "==", "a"]] });
  await update({ filters: [["score", "==", 2]] }, true);
  await insert("posts", { title: "b", score: 2 });
  await insert("posts", { title: "a", score: 1 });
  await insert("posts", { title: "a", score: 2 });
  await socket.expect({ data: { title: "a", score: 2 } });
  await update({ orFilters: null }, true);
  await insert("posts", { title: "c", score: 2 });
  await socket.expect({ data: { title: "c", score: 2 } });
  await update({ filters: null }, false);
  await insert("posts", { title: "d", score: 9 });
  await socket.expect({ data: { title: "d" } });
  expect((await subscribe(socket, channel, { filters: [["score", "==", 3]] }))["serverFilter"]).toBe(true);
  await insert("posts", { title: "e", score: 9 });
  await insert("posts", { title: "f", score: 3 });
  await socket.expect({ data: { title: "f" } });
  await settled(socket);
  await socket.close();
});

test("[RT22] [RT23] a record's channel carries changes of that record, until unsubscribe", async () => {
  const socket = await connect(platform, user);
  const [id, neighbour] = [await insert("posts", { title: "x" }), await insert("posts", { title: "y" })];
  await subscribe(socket, `realtime:shared:posts:${id}`);
  await user.patch(`${table("posts")}/${neighbour}`, { title: "z" });
  await user.patch(`${table("posts")}/${id}`, { title: "w" });
  await socket.expect({ channel: `realtime:shared:posts:${id}`, changeType: "modified", data: { title: "w" } });
  await subscribe(socket, "realtime:shared:posts");
  socket.send({ type: "unsubscribe", channel: `realtime:shared:posts:${id}` });
  socket.send({ type: "unsubscribe", channel: "realtime:shared:never" });
  await settled(socket);
  await user.delete(`${table("posts")}/${id}`);
  await socket.expect({ channel: "realtime:shared:posts", changeType: "removed", docId: id });
  await settled(socket);
  await socket.close();
});

test("[RT15] rules that return a filter or look at the record narrow the channel for each user", async () => {
  const [mine, theirs] = [await connect(platform, user), await connect(platform, other)];
  for (const name of ["owned", "judged", "awaited"]) {
    const channel = `realtime:shared:${name}`;
    await subscribe(mine, channel);
    await subscribe(theirs, channel);
    const answer = await platform.service.post<{ id: string }>(table(name), { ownerId: user.id });
    const { id } = answer.body;
    await mine.expect({ channel, changeType: "added", docId: id, data: { ownerId: user.id } });
    await platform.service.patch(`${table(name)}/${id}`, { ownerId: other.id });
    await mine.expect({ channel, changeType: "removed", docId: id, data: null });
    await theirs.expect({ channel, changeType: "added", docId: id, data: { ownerId: other.id } });
    await platform.service.delete(`${table(name)}/${id}`);
    await theirs.expect({ channel, changeType: "removed", docId: id });
    await settled(mine);
    socketIsSilent(mine.pending);
  }
  await Promise.all([mine.close(), theirs.close()]);
});

const socketIsSilent = (pending: readonly JsonObject[]): void => expect(pending).toEqual([]);

test("[RT24] events come in the order of commit, also where a rule is awaited; failed writes are not sent", async () => {
  const socket = await connect(platform, user);
  await subscribe(socket, "realtime:shared:awaited");
  const ids: string[] = [];
  for (const delay of [60, 0, 30, 0, 10, 0]) ids.push(await insert("awaited", { ownerId: user.id, delay }));
  for (const id of ids) await socket.expect({ docId: id });
  await subscribe(socket, "realtime:shared:posts");
  const failed = await user.post(`${table("posts")}/batch`, { inserts: [{ title: "fine" }, { score: 1 }] });
  expect(failed.status).toBe(400);
  expect((await user.delete(`${table("posts")}/missing`)).status).toBe(404);
  const id = await insert("posts", { title: "counted", score: 0 });
  const increments = Array.from({ length: 50 }, () =>
    user.patch(`${table("posts")}/${id}`, { score: { $op: "increment", value: 1 } }),
  );
  await Promise.all(increments);
  await socket.expect({ changeType: "added", docId: id });
  for (let score = 1; score <= 50; score++) await socket.expect({ docId: id, data: { score } });
  await socket.close();
});

test("[RT26] since replays missed changes under the present filters, and live ones follow", async () => {
  const first = await connect(platform, user);
  const channel = "realtime:shared:posts";
  const { seq } = await subscribe(first, channel);
  const [r0, r1] = [await insert("posts", { title: "r0", score: 0 }), await insert("posts", { title: "r1", score: 1 })];
  await first.expect({ docId: r0 });
  const seen = await first.next<ChangeEvent>();
  await first.close();
  const [r2, r3] = [await insert("posts", { title: "r2", score: 2 }), await insert("posts", { title: "r3", score: 3 })];
  await user.post(`${table("posts")}/batch`, {
    inserts: Array.from({ length: 11 }, (_, index) => ({ title: `m${index}`, score: 100 })),
  });

  const second = await connect(platform, user);
  const again = await subscribe(second, channel, { since: seen.seq });
  expect(again.seq).toBe(seen.seq);
  expect(again).not.toHaveProperty("resync");
  await second.expect({ changeType: "added", docId: r2 });
  await second.expect({ changeType: "added", docId: r3 });
  await second.expect({ type: "batch_changes", total: 11 });
  const last = await insert("posts", { title: "live" });
  await second.expect({ docId: last });

  await subscribe(second, channel, {
    since: seq,
    filters: [
      ["score", "<", 3],
      ["title", "contains", "r"],
    ],
  });
  for (const id of [r0, r1, r2]) await second.expect({ type: "db_change", docId: id });
  await subscribe(second, `${channel}:${r1}`, { since: seq });
  await second.expect({ channel: `${channel}:${r1}`, docId: r1 });
  await settled(second);
  const now = await subscribe(second, channel);
  expect((await subscribe(second, channel, { since: now.seq })).seq).toBe(now.seq);
  await settled(second);
  await second.close();
});

test("[RT26] a subscription that joins a slower audience gets no event twice", async () => {
  const channel = "realtime:shared:awaited";
  const [slow, quick] = [await connect(platform, user), await connect(platform, user)];
  await subscribe(slow, channel);
  const { seq } = await subscribe(quick, channel, { filters: [["delay", "<", 0]] });
  await insert("awaited", { ownerId: user.id, delay: 400 });
  // The rule of the first subscription is still awaited; the filter of the second needs none.
  quick.send({ type: "update_filters", channel, filters: null });
  await quick.expect({ type: "filters_updated" });
  const next = await insert("awaited", { ownerId: user.id, delay: 0 });
  const [first, second] = [await slow.next<ChangeEvent>(), await slow.next<ChangeEvent>()];
  expect([first.seq > seq, second.seq > first.seq, second.docId]).toEqual([true, true, next]);
  await quick.expect({ type: "db_change", docId: next, seq: second.seq });
  await Promise.all([slow.close(), quick.close()]);
});

test("[RT26] a long replay arrives whole and in order, followed by live changes", async () => {
  const watcher = await connect(platform, user);
  const channel = "realtime:shared:loose";
  const { seq } = await subscribe(watcher, channel);
  const text = "x".repeat(4_000);
  for (let batch = 0; batch < 6; batch++) {
    const inserts = Array.from({ length: 500 }, (_, index) => ({ n: batch * 500 + index, text }));
    expect((await user.post(`${table("loose")}/batch`, { inserts })).status).toBe(200);
    await watcher.expect({ type: "batch_changes", total: 500 });
  }
  const socket = await connect(platform, user);
  await subscribe(socket, channel, { since: seq });
  for (let n = 3_000; n < 3_020; n++) await insert("loose", { n });
  let next = 0;
  while (next < 3_020) {
    const event = await socket.next<{ changes?: ChangeEvent[] } & JsonObject>();
    for (const change of event.changes ?? [event as ChangeEvent]) {
      expect((change["data"] as JsonObject)["n"]).toBe(next++);
    }
  }
  await settled(socket);
  await Promise.all([socket.close(), watcher.close()]);
});

test("[RT27] resync for an unknown number, for changes that the log has dropped, and, but for the last one, after a restart", async () => {
  const own = await testPlatform({ config: CONFIG });
  const writer = await signIn(own);
  const socket = await connect(own, writer);
  const channel = "realtime:shared:loose";
  expect(await subscribe(socket, channel, { since: 12345 })).toMatchObject({ resync: true });
  const { seq } = await subscribe(socket, channel);
  const seqs: number[] = [];
  for (let batch = 0; batch < 21; batch++) {
    const inserts = Array.from({ length: 500 }, () => ({ a: 1 }));
    await writer.post(`${table("loose")}/batch`, { inserts });
    const { changes } = await socket.next<{ changes: ChangeEvent[] } & JsonObject>();
    seqs.push(...changes.map((change) => change.seq));
  }
  const seqOf = (index: number) => seqs.at(index) ?? Number.NaN;
  expect(await subscribe(socket, channel, { since: seq })).toMatchObject({ resync: true });
  expect(await subscribe(socket, channel, { since: seqOf(-10_002) })).toMatchObject({ resync: true });
  expect(await subscribe(socket, channel, { since: seqOf(-1) + 1 })).toMatchObject({ resync: true });
  await settled(socket);
  expect(await subscribe(socket, channel, { since: seqOf(-21) })).not.toHaveProperty("resync");
  await socket.expect({ type: "batch_changes", total: 20 });
  await own.restart();
  const back = await connect(own, writer);
  expect(await subscribe(back, channel, { since: seqOf(-2) })).toMatchObject({ resync: true });
  const restarted = await subscribe(back, channel, { since: seqOf(-1) });
  expect(restarted).not.toHaveProperty("resync");
  expect(restarted.seq).toBeGreaterThan(seqOf(-1));
  await settled(back);
  await back.close();
  await own.stop();
});

test("[RT36] app.broadcast reaches subscribers from a hook", async () => {
  const socket = await connect(platform, user);
  await subscribe(socket, "broadcast:hooks");
  const id = await insert("hooked", { text: "x" });
  expect(await socket.next()).toEqual({
    ...{ type: "broadcast_event", channel: "broadcast:hooks", event: "inserted", data: { id } },
  });
  await socket.close();
});

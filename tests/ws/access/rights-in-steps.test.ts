import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, type TestSocket, testPlatform } from "../../support/index.ts";
import { connect, settled, subscribe } from "../realtime/realtime-support.ts";

/** While `slow.ms` is set, each question takes a turn of the event loop, so that those of many subscriptions take many. */
const CONFIG = `
const slow = { ms: 0 };
const isEditor = (auth) => {
  for (const end = performance.now() + slow.ms; performance.now() < end; );
  return auth?.role === "editor";
};
export default {
  realtime: { access: { presence: isEditor, broadcast: isEditor } },
  databases: { shared: { tables: {
    staff: { access: { read: (auth) => isEditor(auth) } },
    notes: { access: { read: (auth) => isEditor(auth) || true } },
    mine: { schema: { owner: { type: "string" } }, access: {
      read: (auth) => isEditor(auth) || [["owner", "==", auth?.id ?? ""]] } },
  } } },
  routes: (api) => api
    .post("/change", async ({ app, body: { id, roles, ms = 6, writes = [] } }) => {
      slow.ms = ms;
      for (const role of roles) await app.users.update(id, { role });
      const written = writes.map(({ table, record }) => app.db("shared").table(table).insert(record));
      await app.broadcast("broadcast:staff", "secret", {});
      await Promise.all(written);
      return {};
    }, { access: true })
    .post("/quick", () => { slow.ms = 0; return {}; }, { access: true }),
};`;
const MANY = 40;
const STAFF = "realtime:shared:staff";
const names = Array.from({ length: MANY }, (_, index) => `s${index}`);

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

interface Change {
  roles: string[];
  ms?: number;
  writes?: { table: string; record: JsonObject }[];
}

const staff = (title: string) => ({ table: "staff", record: { title } });
/** Answered when the user has changed and the writes are announced, while the rules of many subscriptions are still asked. */
async function change({ id }: SignedIn, about: Change): Promise<void> {
  expect((await platform.post("/api/functions/change", { id, ...about })).status).toBe(200);
}
async function write(table: string, record: JsonObject): Promise<void> {
  expect((await platform.service.post(`/api/db/shared/tables/${table}`, record)).status).toBe(201);
}
async function quick(): Promise<void> {
  expect((await platform.post("/api/functions/quick", {})).status).toBe(200);
}
/** An editor with many subscriptions to a table, by the names `names`. */
async function editor(table = "staff"): Promise<{ user: SignedIn; socket: TestSocket }> {
  await quick();
  const user = await signIn(platform, { role: "editor" });
  const socket = await connect(platform, user);
  for (const id of names) await subscribe(socket, `realtime:shared:${table}`, { id });
  return { user, socket };
}
/** Returns the messages that come until the connection has been told of its ended rights, and that message. */
async function untilRefreshed(socket: TestSocket): Promise<JsonObject[]> {
  const heard = [await socket.next()];
  while (heard.at(-1)?.["type"] !== "auth_refreshed") heard.push(await socket.next());
  return heard;
}

test("[RT6] what is written and broadcast when a role is lost is sent to none of many subscriptions", async () => {
  const { user, socket } = await editor();
  const other = await connect(platform, await signIn(platform, { role: "editor" }));
  for (const channel of ["broadcast:staff", "presence:staff"]) await subscribe(socket, channel);
  await socket.expect({ type: "presence_sync" });
  for (const channel of [STAFF, "broadcast:staff"]) await subscribe(other, channel);
  await change(user, { roles: ["user"], writes: ["one", "two", "three"].map(staff) });
  const [refreshed, ...more] = await untilRefreshed(socket);
  expect(more).toEqual([]);
  expect(refreshed?.["revokedChannels"]).toEqual([STAFF, "broadcast:staff", "presence:staff"]);
  expect(refreshed?.["revokedIds"]).toEqual(names);
  await settled(socket);
  const heard = [];
  for (let count = 0; count < 4; count++) heard.push(await other.next());
  expect(heard.filter(({ type }) => type === "db_change").map(({ data }) => data)).toMatchObject([
    { title: "one" },
    { title: "two" },
    { title: "three" },
  ]);
  await Promise.all([socket.close(), other.close()]);
});

test("[RT6] who keeps a right with another role gets what is written meanwhile, in order and once", async () => {
  const { user, socket } = await editor("notes");
  const titles = ["one", "two", "three"];
  await change(user, {
    roles: ["user"],
    writes: titles.map((title) => ({ table: "notes", record: { title } })),
  });
  const byFeed = new Map<unknown, unknown[]>();
  for (let count = 0; count < MANY * titles.length; count++) {
    const { feed, data } = await socket.expect({ type: "db_change" });
    byFeed.set(feed, [...(byFeed.get(feed) ?? []), (data as JsonObject)["title"]]);
  }
  expect([...byFeed.values()]).toEqual(Array(MANY).fill(titles));
  await settled(socket);
  await socket.close();
});

test("[RT6] filters that change before the rule is asked send nothing of what the user may no longer see", async () => {
  const { user, socket } = await editor("mine");
  const theirs = { table: "mine", record: { owner: "somebody" } };
  await change(user, { roles: ["user"], ms: 15, writes: [theirs] });
  for (const id of names) socket.send({ type: "update_filters", id, filters: [["owner", "!=", "nobody"]] });
  // Their records are others now.
  let told = 0;
  while (told < MANY) {
    const { type, resync } = await socket.next();
    expect(type).not.toBe("db_change");
    if (resync === true) told++;
  }
  await quick();
  await write("mine", { owner: user.id });
  await socket.nextOf("db_change");
  for (let count = 1; count < MANY; count++) await socket.expect({ type: "db_change", data: { owner: user.id } });
  await settled(socket);
  await socket.close();
});

test("[RT6] a role that comes back before all rules are asked ends no right that was not asked, and they are told to load", async () => {
  const { user, socket } = await editor();
  await change(user, { roles: ["user", "editor"] });
  const ended = new Set<unknown>();
  const told = new Set<unknown>();
  while (ended.size + told.size < MANY) {
    const { type, id, resync, revokedIds = [] } = await socket.next();
    if (type === "auth_refreshed") for (const one of revokedIds as string[]) ended.add(one);
    else if (type === "subscribed" && resync === true) told.add(id);
  }
  for (const id of told) expect(ended.has(id)).toBe(false);
  await quick();
  await write("staff", { title: "after" });
  for (let count = 0; count < told.size; count++) await socket.expect({ type: "db_change", data: { title: "after" } });
  await settled(socket);
  await socket.close();
});

test("[RT6] a subscription that replaces one whose rule was not asked yet is not named among the ended ones", async () => {
  const { user, socket } = await editor();
  await change(user, { roles: ["user"] });
  const last = String(names.at(-1));
  socket.send({ type: "subscribe", channel: "realtime:shared:notes", id: last });
  await quick();
  const before = [];
  for (let one = await socket.next(); one["type"] !== "subscribed"; one = await socket.next()) before.push(one);
  await write("notes", { title: "hers" });
  const after = [];
  for (let one = await socket.next(); one["type"] !== "db_change"; one = await socket.next()) after.push(one);
  for (const { revokedIds = [] } of after) expect(revokedIds).not.toContain(last);
  expect(before.length + after.length).toBe(1);
  await settled(socket);
  await socket.close();
});

test("[RT6] others get what is written while rules of a user are asked whose connections end meanwhile", async () => {
  const { user, socket } = await editor();
  const sockets = [socket, await connect(platform, user), await connect(platform, user)];
  const other = await connect(platform, await signIn(platform, { role: "editor" }));
  for (const one of [...sockets, other]) await subscribe(one, STAFF);
  await change(user, { roles: ["user"], writes: [staff("for others")] });
  sockets[0]?.terminate();
  await sockets[1]?.close();
  expect((await platform.service.delete(`/api/auth/admin/users/${user.id}`)).status).toBe(200);
  await other.expect({ type: "db_change", data: { title: "for others" } });
  const heard = await untilClosed(sockets[2]);
  expect(heard.filter(({ type }) => type === "db_change")).toEqual([]);
  await quick();
  await other.close();
});

/** Returns the messages that a socket has got until the server closed it. */
async function untilClosed(socket: TestSocket | undefined): Promise<readonly JsonObject[]> {
  await socket?.closed;
  return socket?.pending ?? [];
}

test("[RT30] [RT25] who has many subscriptions and entries leaves all channels, and goes on from where it was", async () => {
  await quick();
  const [ann, other] = [await signIn(platform, { role: "editor" }), await signIn(platform, { role: "editor" })];
  const watcher = await connect(platform, other);
  const socket = await connect(platform, ann);
  for (const id of names) await subscribe(socket, STAFF, { id });
  const entries = names.map((name) => `presence:${name}`);
  for (const channel of entries) {
    await subscribe(watcher, channel);
    await watcher.expect({ type: "presence_sync" });
    socket.send({ type: "track", channel, state: {} });
    await watcher.expect({ type: "presence_join", channel });
  }
  const { seq } = await subscribe(socket, STAFF);
  await socket.close();
  for (const channel of entries) await watcher.expect({ type: "presence_leave", channel, reason: "disconnect" });
  await write("staff", { title: "missed" });
  const again = await connect(platform, ann);
  expect((await subscribe(again, STAFF, { since: seq }))["resync"]).toBeUndefined();
  await again.expect({ type: "db_change", data: { title: "missed" } });
  await Promise.all([again.close(), watcher.close()]);
});

test("[SK225] what is written when a session ends is sent to none of its connections, and each is told and closed", async () => {
  await quick();
  const user = await signIn(platform);
  const sockets: TestSocket[] = [];
  for (let opened = 0; opened < 300; opened += 20) {
    const some = await Promise.all(Array.from({ length: 20 }, () => connect(platform, user)));
    for (const socket of some) await subscribe(socket, "realtime:shared:notes");
    sockets.push(...some);
  }
  const other = await connect(platform, await signIn(platform));
  await subscribe(other, "realtime:shared:notes");
  const ended = platform.service.post(`/api/auth/admin/users/${user.id}/revoke`);
  const written = ended.then(() => write("notes", { title: "after" }));
  expect((await ended).status).toBe(200);
  await written;
  for (const socket of sockets) {
    expect(await socket.next()).toMatchObject({ type: "error", code: "SESSION_REVOKED" });
    expect((await socket.closed).code).toBe(4003);
  }
  await other.expect({ type: "db_change", data: { title: "after" } });
});

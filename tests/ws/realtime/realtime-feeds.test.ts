import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { VERSION } from "../../../src/kernel/version.ts";
import { type SignedIn, signIn, type TestPlatform, type TestSocket, testPlatform } from "../../support/index.ts";
import { connect, connectAnonymously, settled, subscribe } from "./realtime-support.ts";

const CONFIG = `{
  realtime: { access: { presence: () => true, broadcast: () => true } },
  rooms: { game: { access: { join: true } } },
  databases: { shared: { tables: {
    posts: {
      schema: { title: { type: "string" }, kind: { type: "string" }, ownerId: { type: "string" } },
      access: { read: true, insert: true, update: true, delete: true },
    },
    drafts: {
      schema: { title: { type: "string" }, ownerId: { type: "string" }, isPublic: { type: "boolean" } },
      access: { read: (auth) => (auth === null ? [["isPublic", "==", true]] : [["ownerId", "==", auth.id]]), insert: true },
    },
    staff: { schema: {}, access: { read: (auth) => auth !== null, insert: true } },
    visitors: { schema: {}, access: { read: (auth) => auth === null, insert: true } },
  } } },
}`;
const POSTS = "realtime:shared:posts";

let platform: TestPlatform;
let ann: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
});
afterAll(() => platform.stop());

async function visit(): Promise<TestSocket> {
  const socket = await connectAnonymously(platform);
  socket.send({ type: "auth", anonymous: true });
  expect(await socket.next()).toEqual({ type: "auth_success", userId: null, version: VERSION });
  return socket;
}

const insert = (table: string, record: JsonObject) => platform.service.post(`/api/db/shared/tables/${table}`, record);

/** Everything that comes before the next `pong`. */
async function received(socket: TestSocket): Promise<JsonObject[]> {
  const messages: JsonObject[] = [];
  socket.send({ type: "ping" });
  for (let next = await socket.next(); next["type"] !== "pong"; next = await socket.next()) messages.push(next);
  return messages;
}

test("[RT220] a connection without a user sees what rules allow to nobody", async () => {
  const socket = await visit();
  await subscribe(socket, POSTS);
  await subscribe(socket, "realtime:shared:drafts");
  await subscribe(socket, "realtime:shared:visitors");
  socket.send({ type: "subscribe", channel: "realtime:shared:staff" });
  await socket.expect({ type: "error", code: "SUBSCRIBE_DENIED", channel: "realtime:shared:staff" });
  await insert("drafts", { title: "mine", ownerId: ann.id, isPublic: false });
  await insert("drafts", { title: "everybody's", ownerId: ann.id, isPublic: true });
  await socket.expect({ type: "db_change", data: { title: "everybody's" } });
  await settled(socket);
  await socket.close();
});

test("[RT220] presence and broadcast are for users, whatever their rules say", async () => {
  const socket = await visit();
  for (const channel of ["presence:lobby", "broadcast:chat"]) {
    socket.send({ type: "subscribe", channel });
    await socket.expect({ type: "error", code: "SUBSCRIBE_DENIED", channel });
  }
  socket.send({ type: "track", channel: "presence:lobby", state: {} });
  await socket.expect({ type: "error", code: "ACCESS_DENIED" });
  socket.send({ type: "broadcast", channel: "broadcast:chat", event: "e", data: {} });
  await socket.expect({ type: "error", code: "ACCESS_DENIED" });
  await socket.close();
});

test("[SK220] [RT220] a token makes the connection that user's, and its subscriptions follow", async () => {
  const socket = await visit();
  await subscribe(socket, "realtime:shared:drafts", { id: "drafts" });
  await subscribe(socket, "realtime:shared:visitors", { id: "v" });
  socket.send({ type: "auth", token: "nonsense" });
  await socket.expect({ type: "error", code: "AUTH_REFRESH_FAILED" });
  socket.send({ type: "auth", token: ann.token });
  await socket.expect({ type: "subscribed", id: "drafts", resync: true });
  const revoked = { revokedChannels: ["realtime:shared:visitors"], revokedIds: ["v"] };
  expect(await socket.next()).toEqual({ type: "auth_refreshed", userId: ann.id, ...revoked });
  await insert("drafts", { title: "public", ownerId: "somebody", isPublic: true });
  await insert("drafts", { title: "mine", ownerId: ann.id });
  await socket.expect({ type: "db_change", data: { title: "mine" } });
  socket.send({ type: "auth", anonymous: true });
  await socket.expect({ type: "error", code: "AUTH_REFRESH_FAILED" });
  await ann.post("/api/auth/signout", { refreshToken: ann.refreshToken });
  await socket.expect({ type: "error", code: "SESSION_REVOKED" });
  expect((await socket.closed).code).toBe(4003);
  ann = await signIn(platform);
});

test("[SK220] a malformed request for no user is refused, and rooms take none", async () => {
  const socket = await connectAnonymously(platform);
  for (const wrong of [{ anonymous: false }, { anonymous: true, token: ann.token }, { anonymous: "true" }]) {
    socket.send({ type: "auth", ...wrong });
    await socket.expect({ type: "error", code: "INVALID_MESSAGE" });
  }
  socket.send({ type: "subscribe", channel: POSTS });
  await socket.expect({ type: "error", code: "NOT_AUTHENTICATED" });
  expect((await socket.closed).code).toBe(4000);
});

test("[RT221] a channel is subscribed to more than once with other filters, and changes carry their feed", async () => {
  const socket = await connect(platform, ann);
  const open = await subscribe(socket, POSTS, { id: "open", filters: [["kind", "==", "open"]] });
  const all = await subscribe(socket, POSTS, { id: "all" });
  const twin = await subscribe(socket, POSTS, { id: "twin" });
  const plain = await subscribe(socket, POSTS);
  expect([open["id"], all["id"], twin["id"]]).toEqual(["open", "all", "twin"]);
  const feeds = [open["feed"], all["feed"], twin["feed"]];
  expect(new Set(feeds).size).toBe(3);
  for (const feed of feeds) expect(feed).toBeString();
  expect(plain).not.toHaveProperty("feed");
  expect(plain).not.toHaveProperty("id");
  await insert("posts", { title: "a", kind: "closed" });
  const closed = await received(socket);
  expect(new Set(closed.map(({ feed }) => feed))).toEqual(new Set([all["feed"], twin["feed"], undefined]));
  expect(closed.length).toBe(3);
  await insert("posts", { title: "b", kind: "open" });
  const opened = await received(socket);
  expect(new Set(opened.map(({ feed }) => feed))).toEqual(new Set([...feeds, undefined]));
  const operations = Array.from({ length: 12 }, () => ({ title: "c", kind: "open" }));
  await platform.service.post("/api/db/shared/tables/posts/batch", { inserts: operations });
  const batches = await received(socket);
  expect(batches.map(({ type, total }) => [type, total])).toEqual(Array(4).fill(["batch_changes", 12]));
  expect(new Set(batches.map(({ feed }) => feed))).toEqual(new Set([...feeds, undefined]));
  await socket.close();
});

test("[RT221] connections with equal subscriptions share a feed, and since replays into the subscription alone", async () => {
  const [one, other] = [await connect(platform, ann), await connect(platform, ann)];
  const first = await subscribe(one, POSTS, { id: "x" });
  expect((await subscribe(other, POSTS, { id: "y" }))["feed"]).toBe(first["feed"] ?? "");
  await insert("posts", { title: "before" });
  await one.expect({ type: "db_change", data: { title: "before" } });
  const late = await subscribe(one, POSTS, { id: "late", since: first.seq });
  await one.expect({ type: "db_change", feed: late["feed"] ?? "", data: { title: "before" } });
  expect(late["feed"]).not.toBe(first["feed"] ?? "");
  await settled(one);
  await Promise.all([one.close(), other.close()]);
});

test("[RT222] an id is enough to change filters and to unsubscribe, which is answered", async () => {
  const socket = await connect(platform, ann);
  const before = await subscribe(socket, POSTS, { id: "p", filters: [["kind", "==", "a"]] });
  await subscribe(socket, POSTS);
  socket.send({ type: "update_filters", id: "p", filters: [["kind", "==", "b"]] });
  const updated = await socket.expect({ type: "filters_updated", id: "p", channel: POSTS, serverFilter: true });
  expect(updated["feed"]).not.toBe(before["feed"] ?? "");
  await insert("posts", { title: "b", kind: "b" });
  const changes = await received(socket);
  expect(new Set(changes.map(({ feed }) => feed))).toEqual(new Set([updated["feed"], undefined]));
  socket.send({ type: "unsubscribe", id: "p" });
  expect(await socket.next()).toEqual({ type: "unsubscribed", id: "p", channel: POSTS });
  socket.send({ type: "unsubscribe", id: "p" });
  expect(await socket.next()).toEqual({ type: "unsubscribed", id: "p" });
  socket.send({ type: "update_filters", id: "p", filters: null });
  await socket.expect({ type: "error", code: "NOT_SUBSCRIBED", id: "p" });
  socket.send({ type: "unsubscribe", channel: POSTS });
  await insert("posts", { title: "unheard", kind: "b" });
  expect(await received(socket)).toEqual([]);
  socket.send({ type: "unsubscribe" });
  await socket.expect({ type: "error", code: "INVALID_MESSAGE" });
  socket.send({ type: "subscribe", channel: POSTS, id: "x".repeat(129) });
  await socket.expect({ type: "error", code: "INVALID_MESSAGE" });
  await socket.close();
});

test("[RT222] an id that is in use is given to the new subscription, whatever its channel", async () => {
  const socket = await connect(platform, ann);
  await subscribe(socket, POSTS, { id: "1" });
  await subscribe(socket, "broadcast:b", { id: "1" });
  await insert("posts", { title: "unheard" });
  expect(await received(socket)).toEqual([]);
  await subscribe(socket, "broadcast:b", { id: "2" });
  socket.send({ type: "unsubscribe", id: "1" });
  await socket.expect({ type: "unsubscribed", id: "1" });
  const broadcast = { type: "broadcast", channel: "broadcast:b", event: "e", data: {}, excludeSelf: false };
  socket.send(broadcast);
  await socket.expect({ type: "broadcast_event", event: "e" });
  await settled(socket);
  socket.send({ type: "unsubscribe", id: "2" });
  await socket.expect({ type: "unsubscribed", id: "2" });
  socket.send(broadcast);
  expect(await received(socket)).toEqual([]);
  await subscribe(socket, "presence:p", { id: "1" });
  await socket.expect({ type: "presence_sync", channel: "presence:p" });
  await subscribe(socket, "presence:p", { id: "3" });
  await socket.expect({ type: "presence_sync", channel: "presence:p" });
  socket.send({ type: "track", channel: "presence:p", state: {} });
  await socket.expect({ type: "presence_join" });
  await settled(socket);
  await socket.close();
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { connect, settled, subscribe } from "./realtime-support.ts";

const all = "access: { read: true, insert: true, update: true, delete: true }";
const CONFIG = `{
  auth: { anonymous: true },
  databases: {
    shared: {
      tables: {
        notes: { schema: { text: { type: "text" } }, ${all} }, others: { schema: { text: { type: "text" } }, ${all} },
        members: { schema: { userId: { type: "string", unique: true } }, ${all} },
      },
      views: {
        both: { sql: "SELECT 'n' || id AS id, text FROM notes UNION ALL SELECT 'o' || id, text FROM others", schema: { text: { type: "text" } }, access: { read: true }, live: ["notes", "others"] },
        still: { sql: "SELECT id, text FROM notes", schema: { text: { type: "text" } }, access: { read: true } },
        keys: { sql: "SELECT id, text FROM notes", schema: { text: { type: "text" } }, live: ["notes"] },
        own: { sql: "SELECT id, text FROM notes", schema: { text: { type: "text" } }, live: ["notes"], access: { read: (auth, _note, context) => auth !== null && context.table("members").exists([["userId", "==", auth.id]]) && [] } },
      },
    },
    teams: {
      instance: true, access: { create: true, open: true },
      tables: { tasks: { schema: { text: { type: "text" } }, ${all} } },
      views: { texts: { sql: "SELECT id, text FROM tasks", schema: { text: { type: "text" } }, access: { read: true }, live: ["tasks"] } },
    },
  },
}`;

let platform: TestPlatform;
let ada: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ada = await signIn(platform);
});
afterAll(() => platform.stop());

const insert = async (path: string, record: JsonObject = {}) =>
  expect((await platform.service.post(`/api/db/${path}`, record)).status).toBe(201);

test("[TB869] a change of a table of a view is a resync for its subscribers, and no other table's is", async () => {
  const socket = await connect(platform, ada);
  const answer = await subscribe(socket, "realtime:shared:both", { id: "a" });
  expect(answer).toMatchObject({ id: "a", feed: expect.any(String), seq: expect.any(Number) });
  expect(answer["resync"]).toBeUndefined();
  await insert("shared/tables/members", { userId: "nobody" });
  await settled(socket);
  expect(socket.pending).toEqual([]);
  await insert("shared/tables/notes", { text: "x" });
  await socket.expect({
    type: "subscribed",
    channel: "realtime:shared:both",
    id: "a",
    feed: answer["feed"] as string,
    resync: true,
  });
  await insert("shared/tables/others", { text: "y" });
  await socket.expect({ type: "subscribed", id: "a", resync: true });
  await settled(socket);
  expect(socket.pending).toEqual([]);
  socket.send({ type: "unsubscribe", id: "a" });
  await socket.expect({ type: "unsubscribed", id: "a" });
  await insert("shared/tables/notes", { text: "z" });
  await settled(socket);
  expect(socket.pending).toEqual([]);
  await socket.close();
});

test("[TB869] many changes at once are told together, the last one too", async () => {
  const socket = await connect(platform, ada);
  await subscribe(socket, "realtime:shared:both");
  for (let n = 0; n < 30; n++) await insert("shared/tables/notes", { text: `${n}` });
  await socket.expect({ type: "subscribed", resync: true });
  socket.send({ type: "flush", channel: "realtime:shared:both", requestId: "f" });
  // What is waiting is told before the answer: the client has everything that was committed.
  const told = [(await socket.next())["type"], (await socket.next())["type"]];
  expect(told).toEqual(["subscribed", "done"]);
  await socket.close();
});

test("[TB869] a subscription that goes on is told to read again: nothing is known since then", async () => {
  const socket = await connect(platform, ada);
  const { seq } = await subscribe(socket, "realtime:shared:both", { id: "b" });
  await socket.close();
  const again = await connect(platform, ada);
  again.send({ type: "subscribe", channel: "realtime:shared:both", id: "b", since: seq });
  await again.expect({ type: "subscribed", id: "b", resync: true });
  await again.close();
});

test("[TB869] without live a subscription is refused in a sentence that names it, after the rights", async () => {
  const socket = await connect(platform, ada);
  socket.send({ type: "subscribe", channel: "realtime:shared:still", id: "s" });
  await socket.expect({
    type: "error",
    id: "s",
    code: "INVALID_CHANNEL",
    message: expect.stringContaining("databases.shared.views.still.live") as never,
  });
  socket.send({ type: "subscribe", channel: "realtime:shared:keys" });
  await socket.expect({ type: "error", code: "SUBSCRIBE_DENIED" });
  socket.send({ type: "subscribe", channel: "realtime:shared:both", filters: [["nothing", "==", 1]] });
  await socket.expect({ type: "error", code: "INVALID_FILTER" });
  await socket.close();
});

test("[TB869] rights to a view follow what its rule looks up", async () => {
  const user = await signIn(platform);
  await insert("shared/tables/members", { id: "member", userId: user.id });
  const socket = await connect(platform, user);
  await subscribe(socket, "realtime:shared:own");
  await insert("shared/tables/notes", { text: "seen" });
  await socket.expect({ type: "subscribed", channel: "realtime:shared:own", resync: true });
  expect((await platform.service.delete("/api/db/shared/tables/members/member")).status).toBe(200);
  await socket.expect({ type: "auth_refreshed", revokedChannels: ["realtime:shared:own"] });
  await insert("shared/tables/notes", { text: "unseen" });
  await settled(socket);
  expect(socket.pending).toEqual([]);
  await socket.close();
});

test("[TB869] an instance tells its own subscribers, until it is deleted", async () => {
  const socket = await connect(platform, ada);
  await insert("teams/a/tables/tasks");
  await insert("teams/b/tables/tasks");
  await subscribe(socket, "realtime:teams:a:texts");
  await insert("teams/b/tables/tasks");
  await settled(socket);
  expect(socket.pending).toEqual([]);
  await insert("teams/a/tables/tasks");
  await socket.expect({ type: "subscribed", channel: "realtime:teams:a:texts", resync: true });
  expect((await platform.service.delete("/api/admin/instances/teams/a")).status).toBe(200);
  await socket.expect({ type: "auth_refreshed", revokedChannels: ["realtime:teams:a:texts"] });
  await socket.close();
});

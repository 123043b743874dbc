import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, type TestSocket, testPlatform } from "../../support/index.ts";
import { connect, settled, subscribe } from "./realtime-support.ts";

// Subscriptions whose read rule returns a filter with a relation.

const CONFIG = `import { field, none, some } from "platform";
const text = { type: "string" };
export default { databases: { shared: { tables: {
  members: { schema: { workspaceId: text, userId: text }, indexes: [{ fields: ["workspaceId", "userId"] }], access: {} },
  bans: { schema: { userId: text }, indexes: [{ fields: ["userId"] }], access: {} },
  docs: {
    schema: { workspaceId: text, title: text },
    access: { read: (auth) => auth !== null && [some("members", [["workspaceId", "==", field("workspaceId")], ["userId", "==", auth.id]])] },
  },
  posts: {
    schema: { title: text },
    access: { read: (auth) => auth !== null && none("bans", [["userId", "==", auth.id]]) },
  },
} } } };`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const PATH = "/api/db/shared/tables";
async function insert(table: string, record: JsonObject): Promise<void> {
  expect((await platform.service.post(`${PATH}/${table}`, record)).status).toBe(201);
}
async function listen(channel: string): Promise<{ user: SignedIn; socket: TestSocket }> {
  const user = await signIn(platform);
  const socket = await connect(platform, user);
  await subscribe(socket, `realtime:shared:${channel}`);
  return { user, socket };
}

test("[RT351] a relation of the read rule is asked for each record that changes", async () => {
  const [ann, bob] = [await listen("docs"), await listen("docs")];
  await insert("members", { workspaceId: "w1", userId: ann.user.id });
  await ann.socket.expect({ type: "subscribed", resync: true });
  await insert("docs", { id: "other", workspaceId: "w2" });
  await insert("docs", { id: "mine", workspaceId: "w1" });
  await ann.socket.expect({ type: "db_change", changeType: "added", docId: "mine" });
  const move = (workspaceId: string | null) => platform.service.patch(`${PATH}/docs/mine`, { workspaceId });
  await move(null);
  await ann.socket.expect({ type: "db_change", changeType: "removed", docId: "mine", data: null });
  await move("w1");
  await ann.socket.expect({ type: "db_change", changeType: "added", docId: "mine" });
  await settled(bob.socket);
  expect(bob.socket.pending).toEqual([]);
  await Promise.all([ann.socket.close(), bob.socket.close()]);
});

test("[RT351] a row of the other table concerns those whom it names, before or after", async () => {
  const [ann, bob] = [await listen("docs"), await listen("docs")];
  await insert("docs", { id: "d3", workspaceId: "w3" });
  await insert("members", { id: "m3", workspaceId: "w3", userId: ann.user.id });
  await ann.socket.expect({ type: "subscribed", resync: true });
  await platform.service.patch(`${PATH}/docs/d3`, { title: "seen" });
  await ann.socket.expect({ type: "db_change", docId: "d3" });
  await platform.service.patch(`${PATH}/members/m3`, { userId: bob.user.id });
  await bob.socket.expect({ type: "subscribed", resync: true });
  await ann.socket.expect({ type: "subscribed", resync: true });
  await platform.service.patch(`${PATH}/docs/d3`, { title: "bob's" });
  await bob.socket.expect({ type: "db_change", docId: "d3" });
  await settled(ann.socket);
  expect(JSON.stringify(ann.socket.pending)).not.toContain("bob's");
  await Promise.all([ann.socket.close(), bob.socket.close()]);
});

test("[RT351] without a field a relation is a right of all records, gained and lost at once", async () => {
  const { user, socket } = await listen("posts");
  await insert("posts", { id: "p1", title: "one" });
  await socket.expect({ type: "db_change", docId: "p1" });
  await insert("bans", { id: "b", userId: user.id });
  await socket.expect({ type: "subscribed", resync: true });
  await platform.service.patch(`${PATH}/posts/p1`, { title: "hidden" });
  await settled(socket);
  expect(JSON.stringify(socket.pending)).not.toContain('"hidden"');
  await socket.close();
});

test("[RT351] the channel of one record follows its relation", async () => {
  await insert("docs", { id: "d4", workspaceId: "w4" });
  const { user, socket } = await listen("docs:d4");
  await insert("members", { id: "m4", workspaceId: "w4", userId: user.id });
  await socket.expect({ type: "subscribed", resync: true });
  await platform.service.patch(`${PATH}/docs/d4`, { title: "four" });
  await socket.expect({ type: "db_change", docId: "d4" });
  await platform.service.delete(`${PATH}/members/m4`);
  await socket.expect({ type: "subscribed", resync: true });
  await platform.service.patch(`${PATH}/docs/d4`, { title: "five" });
  await settled(socket);
  expect(JSON.stringify(socket.pending)).not.toContain("five");
  await socket.close();
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, type TestSocket, testPlatform } from "../../support/index.ts";
import { connect, settled, subscribe } from "./realtime-support.ts";

const CONFIG = `
const text = { type: "string" };

export default {
  databases: {
    org: { tables: {
      grants: { schema: { userId: text, projectId: text }, indexes: [{ fields: ["userId"] }], access: {} },
      projects: { schema: { isOpen: { type: "boolean" } }, access: {} },
    } },
    teams: { instance: true, access: { create: true, open: true }, tables: { members: { schema: {}, access: {} } } },
    shared: { tables: {
      tickets: {
        schema: { projectId: text },
        access: { read: (auth, ticket, { db }) => auth !== null &&
          db("org").table("grants").exists([["userId", "==", auth.id], ["projectId", "==", ticket.projectId]]) },
      },
      notes: {
        schema: { projectId: text },
        access: { read: (auth, note, { db }) => db("org").table("projects").get(note.projectId)?.isOpen === true },
      },
      plans: {
        schema: { team: text },
        access: { read: (auth, plan, { db }) => auth !== null && db("teams", plan.team).table("members").get(auth.id) !== null },
      },
      slow: {
        schema: { projectId: text },
        access: { read: async (auth, note, { db }) => {
          await Promise.resolve();
          return db("org").table("projects").get(note.projectId)?.isOpen === true;
        } },
      },
    } },
  },
};`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

async function insert(table: string, record: JsonObject): Promise<void> {
  const { status } = await platform.service.post(`/api/db/${table}`, record);
  expect(status).toBe(201);
}
async function open(project: string, isOpen = true): Promise<void> {
  const { status } = await platform.service.patch(`/api/db/org/tables/projects/${project}`, { isOpen });
  expect(status).toBe(200);
}
async function listen(channel: string): Promise<{ user: SignedIn; socket: TestSocket }> {
  const user = await signIn(platform);
  const socket = await connect(platform, user);
  await subscribe(socket, `realtime:shared:${channel}`);
  return { user, socket };
}
const isStatus = async (user: SignedIn, path: string, status: number): Promise<void> => {
  const answer = await platform.as(user.token).get(`/api/db/shared/tables/${path}`);
  expect(answer.status).toBe(status);
};

test("[RT227] who may see records that nobody has changed is told to load the list again", async () => {
  await insert("shared/tables/tickets", { id: "old", projectId: "p1" });
  const [ann, bob] = [await listen("tickets"), await listen("tickets")];
  await isStatus(ann.user, "tickets/old", 403);
  await insert("org/tables/grants", { userId: ann.user.id, projectId: "p1" });
  await ann.socket.expect({ type: "subscribed", resync: true });
  await isStatus(ann.user, "tickets/old", 200);
  await insert("shared/tables/tickets", { id: "new", projectId: "p1" });
  await ann.socket.expect({ type: "db_change", docId: "new" });
  await settled(bob.socket);
  await Promise.all([ann.socket.close(), bob.socket.close()]);
});

test("[RT227] the channel of one record follows what the rule looks up for that record alone", async () => {
  for (const id of ["p2", "p3"]) await insert("org/tables/projects", { id, isOpen: false });
  await insert("shared/tables/notes", { id: "two", projectId: "p2" });
  const { socket } = await listen("notes:two");
  await open("p3");
  await settled(socket);
  await open("p2");
  await socket.expect({ type: "subscribed", resync: true });
  await socket.close();
});

test("[RT227] many changes are one resync a second at most, the first at once, and the last one is followed by one", async () => {
  await insert("org/tables/projects", { id: "p4", isOpen: false });
  await insert("shared/tables/notes", { id: "four", projectId: "p4" });
  const { socket } = await listen("notes");
  const startedAt = performance.now();
  let count = 0;
  await open("p4");
  await socket.expect({ type: "subscribed", resync: true });
  for (let round = 0; round < 40; round++) await open("p4", round % 2 === 0);
  const wroteMs = performance.now() - startedAt;
  for (;;) {
    const { type } = await socket.next();
    expect(type).toBe("subscribed");
    count++;
    if (performance.now() - startedAt > wroteMs) break;
  }
  expect(count).toBeLessThanOrEqual(Math.ceil(wroteMs / 1_000) + 1);
  await socket.close();
});

test("[RT227] lookups into an instance that the record names are followed in each instance", async () => {
  await insert("shared/tables/plans", { id: "plan", team: "red" });
  await insert("shared/tables/plans", { id: "other", team: "blue" });
  const { user, socket } = await listen("plans");
  await insert("teams/green/tables/members", { id: user.id });
  await socket.expect({ type: "subscribed", resync: true });
  await insert("teams/green/tables/members", { id: "somebody" });
  await settled(socket);
  await socket.close();
});

test("[RT227] an asynchronous rule is followed too, and a record that comes later counts as well", async () => {
  const { socket } = await listen("slow");
  await insert("org/tables/projects", { id: "p5", isOpen: false });
  await insert("shared/tables/slow", { id: "later", projectId: "p5" });
  await settled(socket);
  await open("p5");
  await socket.expect({ type: "subscribed", resync: true });
  await socket.close();
});

test("[RT227] a user whose role changes goes on being told", async () => {
  await insert("org/tables/projects", { id: "p6", isOpen: false });
  await insert("shared/tables/notes", { id: "six", projectId: "p6" });
  const { user, socket } = await listen("notes");
  const { status } = await platform.service.patch(`/api/auth/admin/users/${user.id}`, { role: "editor" });
  expect(status).toBe(200);
  await socket.expect({ type: "subscribed", resync: true });
  await open("p6");
  await socket.expect({ type: "subscribed", resync: true });
  await socket.close();
});

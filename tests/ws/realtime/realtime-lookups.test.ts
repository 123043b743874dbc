import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, type TestSocket, testPlatform } from "../../support/index.ts";
import { roomVisits } from "../../support/room-visits.ts";
import { connect, settled, subscribe } from "./realtime-support.ts";

const CONFIG = `
const isMember = (auth, db) => auth !== null && db("org").table("members").get(auth.id) !== null;
const text = { type: "string" };

export default {
  realtime: {
    access: {
      presence: (auth, channel, { db }) => isMember(auth, db),
      broadcast: (auth, channel, event, { db }) => isMember(auth, db),
    },
  },
  rooms: { game: {
    access: { join: (auth, roomId, { db }) => roomId === "open" || isMember(auth, db) },
    onLeave(room, player, reason) { room.send("left", { userId: player.userId, reason }); },
    actions: { say(room, player, payload) { room.setShared({ said: payload.text }); } },
  } },
  databases: {
    org: { tables: {
      members: { schema: { role: text }, access: { read: true } },
      grants: {
        schema: { userId: text, projectId: text },
        indexes: [{ fields: ["userId"] }],
        access: {},
      },
      own: { schema: { title: text }, access: { read: (auth, _record, { table }) => table("members").get(auth?.id ?? "") !== null } },
    } },
    shared: { tables: {
      tasks: { schema: { title: text }, access: { read: (auth, _task, { db }) => isMember(auth, db) } },
      work: {
        schema: { title: text, projectId: text },
        access: { read: (auth, _work, { db }) => auth !== null && [
          ["projectId", "in", db("org").table("grants").list([["userId", "==", auth.id]]).map((grant) => grant.projectId)],
        ] },
      },
      reports: {
        schema: { title: text, isPublic: { type: "boolean" } },
        access: { read: (auth, _report, { db }) =>
          db("org").table("members").get(auth?.id ?? "")?.role === "admin" ? true : [["isPublic", "==", true]] },
      },
      records: {
        schema: { title: text, ownerId: text },
        access: { read: (auth, record, { db }) =>
          record.ownerId === auth?.id || db("org").table("members").get(auth?.id ?? "")?.role === "admin" },
      },
      slow: { schema: { title: text }, access: { read: async (auth, _slow, { db }) => {
        const before = isMember(auth, db);
        await new Promise((resolve) => setTimeout(resolve, 100));
        return before && isMember(auth, db);
      } } },
      odd: { schema: { title: text }, access: { read: (auth, _odd, { db }) => {
        const role = db("org").table("members").get(auth?.id ?? "")?.role;
        if (role === "broken") throw new Error("broken");
        return role !== undefined;
      } } },
      greedy: { schema: { title: text }, access: { read: (auth, _greedy, { db }) => {
        const count = Number(db("org").table("members").get(auth?.id ?? "")?.role ?? 0);
        for (let index = 0; index < count; index++) db("org").table("members").get("nobody" + index);
        return true;
      } } },
    } },
    teams: {
      instance: true,
      access: { create: true, open: (auth, _team, { table }) => auth !== null && table("members").get(auth.id) !== null },
      tables: {
        members: { schema: {}, access: {} },
        tasks: { schema: { title: text }, access: { read: true } },
      },
    },
  },
};`;

let platform: TestPlatform;
const { authenticate, closeAll } = roomVisits(() => platform);
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(async () => {
  await closeAll();
  await platform.stop();
});

const at = (path: string): string => `/api/db/${path}`;
const insert = async (table: string, record: JsonObject): Promise<void> => {
  const { status } = await platform.service.post(at(table), record);
  expect(status).toBe(201);
};
const remove = async (record: string): Promise<void> => {
  const { status } = await platform.service.delete(at(record));
  expect(status).toBe(200);
};
const MEMBERS = "org/tables/members";

async function member(role = "user"): Promise<SignedIn> {
  const user = await signIn(platform);
  await insert(MEMBERS, { id: user.id, role });
  return user;
}
const leave = (user: SignedIn): Promise<void> => remove(`${MEMBERS}/${user.id}`);
const setRole = async (user: SignedIn, role: string): Promise<void> => {
  const { status } = await platform.service.patch(at(`${MEMBERS}/${user.id}`), { role });
  expect(status).toBe(200);
};

async function expectRevoked(socket: TestSocket, user: SignedIn, channel: string): Promise<void> {
  expect(await socket.next()).toEqual({ type: "auth_refreshed", userId: user.id, revokedChannels: [channel] });
}

test("[RT224] a removed member gets nothing that the removing commit or a later one changed, in whatever file", async () => {
  const [ann, bob] = [await member(), await member()];
  const [hers, his] = [await connect(platform, ann), await connect(platform, bob)];
  for (const socket of [hers, his]) await subscribe(socket, "realtime:shared:tasks");
  await insert("shared/tables/tasks", { title: "for both" });
  for (const socket of [hers, his]) await socket.expect({ type: "db_change", data: { title: "for both" } });
  await leave(ann);
  await expectRevoked(hers, ann, "realtime:shared:tasks");
  await insert("shared/tables/tasks", { title: "for one" });
  await his.expect({ type: "db_change", data: { title: "for one" } });
  await settled(hers);
  hers.send({ type: "subscribe", channel: "realtime:shared:tasks" });
  await hers.expect({ type: "error", code: "SUBSCRIBE_DENIED" });
  await insert(MEMBERS, { id: ann.id });
  await subscribe(hers, "realtime:shared:tasks");
  await Promise.all([hers.close(), his.close()]);
});

test("[RT224] writes that are under way together with the removal are not delivered after it", async () => {
  for (let round = 0; round < 20; round++) {
    const ann = await member();
    const socket = await connect(platform, ann);
    await subscribe(socket, "realtime:shared:tasks");
    await Promise.all([
      leave(ann).then(() => insert("shared/tables/tasks", { title: `later ${round}` })),
      insert("shared/tables/tasks", { title: `beside ${round}` }),
    ]);
    const titles: unknown[] = [];
    for (let next = await socket.next(); next["type"] !== "auth_refreshed"; next = await socket.next()) {
      titles.push((next["data"] as JsonObject)["title"]);
    }
    expect(titles.filter((title) => title !== `beside ${round}`)).toEqual([]);
    await settled(socket);
    await socket.close();
  }
});

test("[RT224] a transaction that removes the member and changes records tells the member neither", async () => {
  const [ann, bob] = [await member(), await member()];
  const [hers, his] = [await connect(platform, ann), await connect(platform, bob)];
  for (const socket of [hers, his]) {
    await subscribe(socket, "realtime:org:own");
    await subscribe(socket, "realtime:org:members");
  }
  const { status } = await platform.service.post(at("org/transaction"), {
    operations: [
      { table: "own", action: "insert", data: { title: "before, in the same commit" } },
      { table: "members", action: "delete", id: ann.id },
      { table: "own", action: "insert", data: { title: "after" } },
    ],
  });
  expect(status).toBe(200);
  await expectRevoked(hers, ann, "realtime:org:own");
  await hers.expect({ type: "db_change", table: "members", changeType: "removed" });
  await settled(hers);
  const seen = [await his.next(), await his.next(), await his.next()];
  expect(seen.filter(({ table }) => table === "own").length).toBe(2);
  await settled(his);
  await Promise.all([hers.close(), his.close()]);
});

test("[RT224] rights that show other records are one subscribed with resync, for those whom they concern", async () => {
  const [ann, bob] = [await member("admin"), await member("admin")];
  const [hers, his] = [await connect(platform, ann), await connect(platform, bob)];
  for (const socket of [hers, his]) await subscribe(socket, "realtime:shared:reports", { id: "r" });
  await setRole(ann, "user");
  await hers.expect({ type: "subscribed", id: "r", channel: "realtime:shared:reports", resync: true });
  await insert("shared/tables/reports", { title: "secret", isPublic: false });
  await insert("shared/tables/reports", { title: "open", isPublic: true });
  await hers.expect({ type: "db_change", data: { title: "open" } });
  await his.expect({ type: "db_change", data: { title: "secret" } });
  await his.expect({ type: "db_change", data: { title: "open" } });
  await setRole(ann, "admin");
  await hers.expect({ type: "subscribed", id: "r", resync: true });
  await insert("shared/tables/reports", { title: "secret again", isPublic: false });
  for (const socket of [hers, his]) {
    await socket.expect({ type: "db_change", data: { title: "secret again" } });
    await settled(socket);
  }
  await Promise.all([hers.close(), his.close()]);
});

test("[RT224] a filter made of lookups follows them, and is not asked again with each change of its table", async () => {
  const ann = await member();
  const socket = await connect(platform, ann);
  await subscribe(socket, "realtime:shared:work");
  await insert("shared/tables/work", { title: "elsewhere", projectId: "p1" });
  await insert("org/tables/grants", { id: `${ann.id}-1`, userId: ann.id, projectId: "p1" });
  await socket.expect({ type: "subscribed", resync: true });
  await insert("org/tables/grants", { id: "other", userId: "somebody", projectId: "p2" });
  await insert("shared/tables/work", { title: "hers", projectId: "p1" });
  await insert("shared/tables/work", { title: "not hers", projectId: "p2" });
  await socket.expect({ type: "db_change", data: { title: "hers" } });
  await settled(socket);
  await remove(`org/tables/grants/${ann.id}-1`);
  await socket.expect({ type: "subscribed", resync: true });
  await insert("shared/tables/work", { title: "no longer", projectId: "p1" });
  await settled(socket);
  await socket.close();
});

test("[RT224] a rule that looks at records follows what it looked up for them", async () => {
  const ann = await member();
  const socket = await connect(platform, ann);
  await subscribe(socket, "realtime:shared:records");
  await insert("shared/tables/records", { title: "not hers", ownerId: "somebody" });
  await insert("shared/tables/records", { title: "hers", ownerId: ann.id });
  await socket.expect({ type: "db_change", data: { title: "hers" } });
  await setRole(ann, "admin");
  const resync = await socket.expect({ type: "subscribed", resync: true });
  await insert("shared/tables/records", { title: "all", ownerId: "somebody" });
  const { seq } = await socket.expect({ type: "db_change", data: { title: "all" } });
  await setRole(ann, "user");
  await socket.expect({ type: "subscribed", resync: true });
  await insert("shared/tables/records", { title: "hidden", ownerId: "somebody" });
  await settled(socket);
  await socket.close();
  // What was visible meanwhile is not known to the server.
  const again = await connect(platform, ann);
  expect(Number(seq)).toBeGreaterThan(Number(resync["seq"]));
  expect(await subscribe(again, "realtime:shared:records", { since: Number(seq) })).toMatchObject({ resync: true });
  await again.close();
});

test("[RT224] a rule of an instance's open that looks into the instance is followed too", async () => {
  const ann = await signIn(platform);
  const members = "teams/red/tables/members";
  await insert(members, { id: ann.id });
  const socket = await connect(platform, ann);
  await subscribe(socket, "realtime:teams:red:tasks");
  await insert("teams/red/tables/tasks", { title: "a" });
  await socket.expect({ type: "db_change", data: { title: "a" } });
  await remove(`${members}/${ann.id}`);
  await expectRevoked(socket, ann, "realtime:teams:red:tasks");
  await insert("teams/red/tables/tasks", { title: "b" });
  await settled(socket);
  await socket.close();
});

test("[RT225] delivery waits for a rule that is awaited, and follows its answer", async () => {
  const [ann, bob] = [await member(), await member()];
  const [hers, his] = [await connect(platform, ann), await connect(platform, bob)];
  for (const socket of [hers, his]) await subscribe(socket, "realtime:shared:slow");
  await Promise.all([leave(ann), setRole(bob, "editor")]);
  await insert("shared/tables/slow", { title: "later" });
  await expectRevoked(hers, ann, "realtime:shared:slow");
  await his.expect({ type: "db_change", data: { title: "later" } });
  await Promise.all([settled(hers), settled(his)]);
  await Promise.all([hers.close(), his.close()]);
});

test("[RT225] a replay waits for the answer too", async () => {
  const ann = await member();
  const first = await connect(platform, ann);
  const { seq } = await subscribe(first, "realtime:shared:slow");
  await insert("shared/tables/slow", { title: "missed" });
  await first.expect({ type: "db_change" });
  await first.close();
  const socket = await connect(platform, ann);
  socket.send({ type: "subscribe", channel: "realtime:shared:slow", since: seq });
  await socket.expect({ type: "subscribed" });
  await socket.expect({ type: "db_change", data: { title: "missed" } });
  await leave(ann);
  await insert("shared/tables/slow", { title: "not for her" });
  await expectRevoked(socket, ann, "realtime:shared:slow");
  await settled(socket);
  await socket.close();
});

test("[RT224] a rule that throws, and one that looks up too much, deny when they are asked again", async () => {
  const ann = await member("0");
  const socket = await connect(platform, ann);
  await subscribe(socket, "realtime:shared:odd");
  await subscribe(socket, "realtime:shared:greedy");
  await setRole(ann, "900");
  await socket.expect({ type: "subscribed", channel: "realtime:shared:greedy", resync: true });
  await insert("shared/tables/greedy", { title: "seen" });
  await socket.expect({ type: "db_change", data: { title: "seen" } });
  await setRole(ann, "1001");
  await expectRevoked(socket, ann, "realtime:shared:greedy");
  await setRole(ann, "broken");
  await expectRevoked(socket, ann, "realtime:shared:odd");
  await socket.close();
});

test("[RT224] each subscription of a connection that loses its right is named", async () => {
  const ann = await member();
  const socket = await connect(platform, ann);
  await subscribe(socket, "realtime:shared:tasks", { id: "one" });
  await subscribe(socket, "realtime:shared:tasks", { id: "two", filters: [["title", "==", "x"]] });
  await leave(ann);
  const ids = [await socket.next(), await socket.next()].flatMap(({ revokedIds }) => revokedIds);
  expect(ids.sort()).toEqual(["one", "two"]);
  await insert("shared/tables/tasks", { title: "x" });
  await settled(socket);
  await socket.close();
});

test("[RT226] a right to presence and broadcast that is gone ends the subscription, and the tracked entry with denied", async () => {
  const [ann, bob] = [await member(), await member()];
  const [hers, his] = [await connect(platform, ann), await connect(platform, bob)];
  for (const socket of [hers, his]) {
    await subscribe(socket, "presence:lobby");
    await socket.expect({ type: "presence_sync" });
    await subscribe(socket, "broadcast:chat");
  }
  hers.send({ type: "track", channel: "presence:lobby", state: {} });
  for (const socket of [hers, his]) await socket.expect({ type: "presence_join", userId: ann.id });
  await leave(ann);
  await his.expect({ type: "presence_leave", userId: ann.id, reason: "denied" });
  const revoked = [await hers.next(), await hers.next()].flatMap(({ revokedChannels }) => revokedChannels);
  expect(revoked.sort()).toEqual(["broadcast:chat", "presence:lobby"]);
  his.send({ type: "broadcast", channel: "broadcast:chat", event: "e", data: {}, excludeSelf: false });
  await his.expect({ type: "broadcast_event" });
  his.send({ type: "track", channel: "presence:lobby", state: {} });
  await his.expect({ type: "presence_join", userId: bob.id });
  await settled(hers);
  hers.send({ type: "track", channel: "presence:lobby", state: {} });
  await hers.expect({ type: "error", code: "ACCESS_DENIED" });
  await insert(MEMBERS, { id: ann.id });
  await subscribe(hers, "presence:lobby");
  await Promise.all([hers.close(), his.close()]);
});

test("[RT226] the entry of a lost connection goes as well", async () => {
  const [ann, bob] = [await member(), await member()];
  const [hers, his] = [await connect(platform, ann), await connect(platform, bob)];
  await subscribe(his, "presence:lost");
  await his.expect({ type: "presence_sync" });
  hers.send({ type: "track", channel: "presence:lost", state: {} });
  await his.expect({ type: "presence_join", userId: ann.id });
  hers.terminate();
  await hers.closed;
  await leave(ann);
  await his.expect({ type: "presence_leave", userId: ann.id, reason: "denied" });
  await his.close();
});

test("[RM221] a player whose right to join is gone leaves as kicked, and the socket gets JOIN_DENIED", async () => {
  const [ann, bob] = [await member(), await member()];
  const enter = async (user: SignedIn) => {
    const socket = await authenticate(user, "lookups");
    socket.send({ type: "join" });
    await socket.expect({ type: "sync" });
    return socket;
  };
  const [first, second, his] = [await enter(ann), await enter(ann), await enter(bob)];
  await leave(ann);
  for (const socket of [first, second]) await socket.expect({ type: "error", code: "JOIN_DENIED" });
  await his.expect({ type: "message", messageType: "left", data: { userId: ann.id, reason: "kicked" } });
  his.send({ type: "send", actionType: "say", payload: { text: "alone" }, requestId: "1" });
  await his.nextOf("shared_delta");
  for (const socket of [first, second]) {
    socket.send({ type: "send", actionType: "say", payload: { text: "back" }, requestId: "2" });
    await socket.expect({ type: "error", code: "NOT_JOINED" });
  }
  first.send({ type: "join" });
  await first.expect({ type: "error", code: "JOIN_DENIED" });
  await insert(MEMBERS, { id: ann.id });
  first.send({ type: "join" });
  await first.expect({ type: "sync", sharedState: { said: "alone" } });
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import { type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { roomVisits } from "../../support/room-visits.ts";
import { connect, settled, subscribe } from "../realtime/realtime-support.ts";

/**
 * Rules look up at once and answer later: all of them while the gate is open, else as many as it lets pass, or those that
 * allow. Those of "owned", "pointed" and "granted" look later.
 */
const CONFIG = `
const gate = { isOpen: true, passes: 0, isOpenToAllowed: false, asked: 0, waiting: 0 };
const later = async (answer) => {
  gate.asked++;
  gate.waiting++;
  const isOpen = () => gate.isOpen || (gate.isOpenToAllowed && answer);
  while (!isOpen() && gate.passes === 0) await new Promise((done) => setTimeout(done, 5));
  if (!isOpen()) gate.passes--;
  gate.waiting--;
  return answer;
};
const isMember = (auth, db) => auth !== null && db("org").table("members").get(auth.id) !== null;
const mayEnter = (auth, db) => auth?.role === "editor" || isMember(auth, db);

export default {
  realtime: { access: {
    presence: (auth, channel, { db }) => later(mayEnter(auth, db)),
    broadcast: (auth, channel, event, { db }) => later(mayEnter(auth, db)),
  } },
  rooms: { game: {
    access: { join: (auth, id, { db }) => {
      if (id === "editors-later") return auth.role === "editor";
      if (id === "editors") return later(auth.role === "editor");
      return later(isMember(auth, db) || (id === "both" && auth.role === "editor"));
    }, action: (auth, id, type) => type !== "decide" || later(auth.role === "editor") },
    async onJoin(room) { if (room.id === "editors-later") await later(true); },
    actions: { say(room, player, { text }) { room.setShared({ said: text }); room.send("said", text); },
      decide(room) { room.setShared({ decided: true }); },
      async read(room) { await new Promise((done) => setTimeout(done, 300)); return room.shared; } },
  } },
  databases: {
    org: { tables: {
      members: { access: {} },
      pointers: { schema: { to: { type: "string" } }, access: {} },
      grants: { schema: { area: { type: "string" }, userId: { type: "string" } }, indexes: [{ fields: ["userId"] }] },
    } },
    shared: { tables: {
      tasks: { access: { read: (auth, _task, { db }) => later(mayEnter(auth, db)) } },
      staff: { schema: { title: { type: "string" } }, access: { read: (auth) => auth?.role === "editor" } },
      slow: { access: { read: () => later(true) } },
      owned: { schema: { owner: { type: "string" } }, access: {
        // Looks at the record for everybody, and later.
        read: async (auth, task, { db }) => { await later(true); return task.owner === auth?.id || auth?.role === "editor"; },
      } },
      pointed: { schema: { area: { type: "string" } }, access: {
        read: async (auth, _task, { db }) => {
          await later(true);
          const { to } = db("org").table("pointers").get(auth.id);
          const further = db("org").table("pointers").get(to)?.to ?? to;
          return [["area", "in", [...new Set(["a", further])]]];
        },
      } },
      granted: { schema: { area: { type: "string" } }, access: {
        read: async (auth, _task, { db }) => {
          await later(true);
          return [["area", "in", db("org").table("grants").list([["userId", "==", auth.id]]).map(({ area }) => area)]];
        },
      } },
    } },
  },
  routes: (api) => api
    .post("/gate", ({ body }) => Object.assign(gate, body), { access: true })
    .get("/gate", () => gate, { access: true }),
};`;
const GATE = "/api/functions/gate";
const MEMBERS = "/api/db/org/tables/members";
const GRANTS = "/api/db/org/tables/grants";
const GRANTED = "realtime:shared:granted";

let platform: TestPlatform;
const { authenticate, enter, act, flush, closeAll } = roomVisits(() => platform);
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(async () => {
  await closeAll();
  await platform.stop();
});

const setGate = async (change: { isOpen: boolean; passes?: number; isOpenToAllowed?: boolean }): Promise<void> => {
  expect((await platform.post(GATE, change)).status).toBe(200);
};
const gate = async () => (await platform.get<{ asked: number; passes: number; waiting: number }>(GATE)).body;
const askedCount = async (): Promise<number> => (await gate()).asked;

/** Does `work` with the gate closed, until it has led to a question. */
async function untilAsked(work: () => unknown): Promise<void> {
  await setGate({ isOpen: false });
  const before = await askedCount();
  await work();
  await until("the rule is asked", async () => (await askedCount()) > before);
}
async function member(role = "user"): Promise<SignedIn> {
  const user = await signIn(platform, { role });
  expect((await platform.service.post(MEMBERS, { id: user.id })).status).toBe(201);
  return user;
}
const leave = async ({ id }: SignedIn): Promise<void> => {
  expect((await platform.service.delete(`${MEMBERS}/${id}`)).status).toBe(200);
};
const setRole = async ({ id }: SignedIn, role: string): Promise<void> => {
  expect((await platform.service.patch(`/api/auth/admin/users/${id}`, { role })).status).toBe(200);
};
const demote = (user: SignedIn): Promise<void> => setRole(user, "user");
const promote = (user: SignedIn): Promise<void> => setRole(user, "editor");

test("[RM221] what waited for the join rule is not sent when it denies", async () => {
  const [ann, bob] = [await member(), await member()];
  const [hers, his] = [await enter(ann, "awaited"), await enter(bob, "awaited")];
  await untilAsked(() => leave(ann));
  await act(his, "say", { text: "not for her" });
  await his.nextOf("shared_delta");
  await setGate({ isOpen: true });
  await hers.expect({ type: "error", code: "JOIN_DENIED" });
  expect(await flush(hers)).toEqual([]);
});

test("[RM221] what an action answers after its sender may not be in the room is not sent, after a refused join neither", async () => {
  const [ann, bob] = [await member(), await member()];
  const [hers, his] = [await enter(ann, "answered"), await enter(bob, "answered")];
  hers.send({ type: "send", actionType: "read", requestId: "1" });
  await leave(ann);
  await hers.expect({ type: "error", code: "JOIN_DENIED" });
  hers.send({ type: "join" });
  await hers.expect({ type: "error", code: "JOIN_DENIED" });
  his.send({ type: "send", actionType: "read", requestId: "2" });
  await his.expect({ type: "action_result", requestId: "2" });
  expect(await flush(hers)).toEqual([]);
});

test("[RM221] a join whose right goes while its rule is awaited gets no sync", async () => {
  const ann = await member();
  const socket = await authenticate(ann, "late");
  await untilAsked(() => socket.send({ type: "join" }));
  await leave(ann);
  await setGate({ isOpen: true });
  await socket.expect({ type: "error", code: "JOIN_DENIED" });
  expect(await flush(socket)).toEqual([]);
  expect((await platform.service.post(MEMBERS, { id: ann.id })).status).toBe(201);
  socket.send({ type: "join" });
  await socket.expect({ type: "sync" });
});

for (const [what, room] of [
  ["its rule", "editors"],
  ["onJoin", "editors-later"],
]) {
  test(`[RM222] a change of role while ${what} is awaited decides the join`, async () => {
    const ann = await signIn(platform, { role: "editor" });
    const socket = await authenticate(ann, String(room));
    await untilAsked(() => socket.send({ type: "join" }));
    await demote(ann);
    await setGate({ isOpen: true });
    await socket.expect({ type: "error", code: "JOIN_DENIED" });
    expect(await flush(socket)).toEqual([]);
    await promote(ann);
    socket.send({ type: "join" });
    await socket.expect({ type: "sync" });
  });
}

test("[RM222] a role that comes while the join rule is awaited is the one that counts", async () => {
  const ann = await signIn(platform);
  const socket = await authenticate(ann, "editors");
  await untilAsked(() => socket.send({ type: "join" }));
  await promote(ann);
  await setGate({ isOpen: true });
  await socket.expect({ type: "sync" });
});

test("[RM222] [RM221] a change of role while the join rule is asked again decides who stays", async () => {
  const ann = await member("editor");
  const socket = await enter(ann, "both");
  await untilAsked(() => leave(ann));
  await demote(ann);
  await setGate({ isOpen: true });
  await socket.expect({ type: "error", code: "JOIN_DENIED" });
});

for (const [what, end] of [
  ["the role goes", demote],
  [
    "the player is kicked",
    ({ id }: SignedIn, room: string) => platform.service.post(`/api/admin/rooms/game/${room}/kick`, { userId: id }),
  ],
  ["the session ends", ({ id }: SignedIn) => platform.service.post(`/api/auth/admin/users/${id}/revoke`)],
] as const) {
  test(`[RM223] an action does not run if ${what} while its rule is awaited`, async () => {
    const [ann, bob] = [await member("editor"), await member()];
    const room = `acted-${what.replaceAll(" ", "-")}`;
    const [hers, his] = [await enter(ann, room), await enter(bob, room)];
    await untilAsked(() => hers.send({ type: "send", actionType: "decide", requestId: "1" }));
    await end(ann, room);
    await setGate({ isOpen: true });
    await until("nothing is awaited", async () => (await gate()).waiting === 0);
    expect(await act(his, "read")).toMatchObject({ type: "action_result", result: {} });
    expect((await act(his, "read"))["result"]).not.toHaveProperty("decided");
  });
}

test("[RM223] an action whose rule is awaited runs if nothing goes meanwhile", async () => {
  const ann = await member("editor");
  const hers = await enter(ann, "acted");
  await untilAsked(() => hers.send({ type: "send", actionType: "decide", requestId: "1" }));
  await setGate({ isOpen: true });
  await hers.nextOf("action_result");
  expect((await act(hers, "read"))["result"]).toEqual({ decided: true });
});

test("[RT228] a broadcast whose rule is awaited while the role goes is not sent", async () => {
  const [ann, bob] = [await signIn(platform, { role: "editor" }), await member()];
  const channel = "broadcast:awaited-role";
  const [hers, his] = [await connect(platform, ann), await connect(platform, bob)];
  await subscribe(his, channel);
  await untilAsked(() => hers.send({ type: "broadcast", channel, event: "late", data: {}, requestId: "1" }));
  await demote(ann);
  await setGate({ isOpen: true });
  await hers.expect({ type: "error", code: "ACCESS_DENIED" });
  await hers.close();
  his.send({ type: "ping" });
  await his.expect({ type: "pong" });
});

test("[RT226] who loses a right while it is asked for is not told who is present", async () => {
  const [ann, bob] = [await member(), await member()];
  const [hers, his] = [await connect(platform, ann), await connect(platform, bob)];
  his.send({ type: "track", channel: "presence:late", state: {}, requestId: "1" });
  await his.expect({ type: "done" });
  await untilAsked(() => hers.send({ type: "subscribe", channel: "presence:late" }));
  await leave(ann);
  await setGate({ isOpen: true });
  await hers.expect({ type: "error", code: "SUBSCRIBE_DENIED" });
  await settled(hers);
  await Promise.all([hers.close(), his.close()]);
});

for (const channel of ["realtime:shared:tasks", "broadcast:chat", "presence:lobby"]) {
  test(`[RT4] [RT6] a right that goes while it is asked again for another role ends: ${channel}`, async () => {
    const ann = await member("editor");
    const socket = await connect(platform, ann);
    await subscribe(socket, channel);
    if (channel.startsWith("presence:")) await socket.expect({ type: "presence_sync" });
    await untilAsked(() => demote(ann));
    await leave(ann);
    await setGate({ isOpen: true });
    await socket.expect({ type: "auth_refreshed", revokedChannels: [channel] });
    await settled(socket);
    await socket.close();
  });
}

test("[RT4] an entry that another role may not have ends with denied", async () => {
  const [ann, bob] = [await signIn(platform, { role: "editor" }), await member()];
  const [hers, his] = [await connect(platform, ann), await connect(platform, bob)];
  await subscribe(his, "presence:entries");
  await his.expect({ type: "presence_sync" });
  hers.send({ type: "track", channel: "presence:entries", state: {} });
  await his.expect({ type: "presence_join", userId: ann.id });
  await demote(ann);
  await his.expect({ type: "presence_leave", userId: ann.id, reason: "denied" });
  await hers.expect({ type: "auth_refreshed", revokedChannels: ["presence:entries"] });
  await Promise.all([hers.close(), his.close()]);
});

test("[RT6] a lost role does not wait for the slow rules of other subscriptions", async () => {
  const ann = await signIn(platform, { role: "editor" });
  const socket = await connect(platform, ann);
  for (const table of ["slow", "staff"]) await subscribe(socket, `realtime:shared:${table}`);
  await untilAsked(() => demote(ann));
  expect((await platform.service.post("/api/db/shared/tables/staff", { title: "secret" })).status).toBe(201);
  await settled(socket);
  await setGate({ isOpen: true });
  await socket.expect({ type: "auth_refreshed", revokedChannels: ["realtime:shared:staff"] });
  await socket.close();
});

for (const channel of ["realtime:shared:tasks", "broadcast:held", "presence:held"]) {
  test(`[RT6] nothing is sent while a slow rule is asked about another role: ${channel}`, async () => {
    const [ann, bob] = [await signIn(platform, { role: "editor" }), await member()];
    const [hers, his] = [await connect(platform, ann), await connect(platform, bob)];
    await subscribe(hers, channel);
    if (channel.startsWith("presence:")) await hers.expect({ type: "presence_sync" });
    if (channel.startsWith("presence:")) his.send({ type: "track", channel, state: {}, requestId: "1" });
    if (channel.startsWith("presence:")) await hers.expect({ type: "presence_join" });
    await setGate({ isOpen: false, isOpenToAllowed: true });
    const before = await askedCount();
    await demote(ann);
    await until("the rule is asked", async () => (await askedCount()) > before);
    if (channel.startsWith("realtime:"))
      await platform.service.post("/api/db/shared/tables/tasks", { title: "secret" });
    else if (channel.startsWith("presence:")) his.send({ type: "untrack", channel, requestId: "2" });
    else his.send({ type: "broadcast", channel, event: "secret", data: {}, requestId: "2" });
    if (!channel.startsWith("realtime:")) await his.expect({ type: "done" });
    await settled(hers);
    await setGate({ isOpen: true, isOpenToAllowed: false });
    await hers.expect({ type: "auth_refreshed", revokedChannels: [channel] });
    await settled(hers);
    await Promise.all([hers.close(), his.close()]);
  });
}

test("[RT6] who keeps a right with another role gets what was written while its slow rule was asked", async () => {
  const channel = "realtime:shared:tasks";
  const ann = await member("editor");
  const socket = await connect(platform, ann);
  await subscribe(socket, channel);
  await untilAsked(() => demote(ann));
  const titles = ["one", "two", "three"];
  for (const title of titles) {
    expect((await platform.service.post("/api/db/shared/tables/tasks", { title })).status).toBe(201);
  }
  await settled(socket);
  await setGate({ isOpen: true });
  for (const title of titles) await socket.expect({ type: "db_change", data: { title } });
  await platform.service.post("/api/db/shared/tables/tasks", { title: "four" });
  await socket.expect({ type: "db_change", data: { title: "four" } });
  await socket.close();
});

test("[RT6] a lost role comes before messages that wait for slow rules, and the one under way", async () => {
  const ann = await signIn(platform, { role: "editor" });
  const socket = await connect(platform, ann);
  await subscribe(socket, "realtime:shared:staff");
  await untilAsked(() => {
    for (const id of ["one", "two", "three"]) socket.send({ type: "subscribe", channel: "realtime:shared:slow", id });
  });
  await demote(ann);
  expect((await platform.service.post("/api/db/shared/tables/staff", { title: "secret" })).status).toBe(201);
  await socket.expect({ type: "auth_refreshed", revokedChannels: ["realtime:shared:staff"] });
  await setGate({ isOpen: true });
  for (const id of ["one", "two", "three"]) await socket.expect({ type: "subscribed", id });
  await socket.close();
});

test("[RT6] a role that goes while a subscription's rule is awaited shows nothing, to later subscriptions neither", async () => {
  const channel = "realtime:shared:owned";
  const ann = await signIn(platform, { role: "editor" });
  const [first, second] = [await connect(platform, ann), await connect(platform, ann)];
  await untilAsked(() => first.send({ type: "subscribe", channel }));
  await demote(ann);
  await setGate({ isOpen: true });
  await first.expect({ type: "subscribed", channel });
  await subscribe(second, channel);
  for (const owner of ["somebody", ann.id]) {
    expect((await platform.service.post("/api/db/shared/tables/owned", { owner })).status).toBe(201);
  }
  for (const socket of [first, second]) {
    await socket.expect({ type: "db_change", data: { owner: ann.id } });
    await socket.close();
  }
});

for (const kind of ["broadcast", "presence"]) {
  test(`[RT6] a role that goes while a rule is awaited is of no use: ${kind}`, async () => {
    const channel = `${kind}:demoted`;
    const ann = await signIn(platform, { role: "editor" });
    const socket = await connect(platform, ann);
    await untilAsked(() => socket.send({ type: "subscribe", channel }));
    await demote(ann);
    await setGate({ isOpen: true });
    await socket.expect({ type: "error", code: "SUBSCRIBE_DENIED", channel });
    await socket.close();
  });
}

test("[RT224] who subscribes after a subscription that ended while its rule was asked again loses the right as others do", async () => {
  const channel = "realtime:shared:tasks";
  const ann = await member();
  const socket = await connect(platform, ann);
  await subscribe(socket, channel);
  await untilAsked(() => platform.service.patch(`${MEMBERS}/${ann.id}`, { since: 1 }));
  socket.send({ type: "unsubscribe", channel });
  await settled(socket);
  await setGate({ isOpen: false, passes: 1 });
  await until("the rule has answered", async () => (await gate()).passes === 0);
  await setGate({ isOpen: true });
  await subscribe(socket, channel);
  await leave(ann);
  await socket.expect({ type: "auth_refreshed", revokedChannels: [channel] });
  expect((await platform.service.post("/api/db/shared/tables/tasks", { title: "secret" })).status).toBe(201);
  await settled(socket);
  await socket.close();
});

/** Whoever may see the records of area "a" in the table "granted", and subscribes to it. */
async function granted() {
  const ann = await signIn(platform);
  const grant = async (area: string): Promise<string> => {
    const { status, body } = await platform.service.post<{ id: string }>(GRANTS, { area, userId: ann.id });
    expect(status).toBe(201);
    return body.id;
  };
  const withdraw = async (id: string): Promise<void> => {
    expect((await platform.service.delete(`${GRANTS}/${id}`)).status).toBe(200);
  };
  const write = async (area: string): Promise<void> => {
    expect((await platform.service.post("/api/db/shared/tables/granted", { area })).status).toBe(201);
  };
  const first = await grant("a");
  /** Changes the records that the rule looks at, and not its answer. */
  const regrant = async (): Promise<void> => {
    expect((await platform.service.patch(`${GRANTS}/${first}`, { area: "a" })).status).toBe(200);
  };
  const socket = await connect(platform, ann);
  const { seq } = await subscribe(socket, GRANTED);
  return { socket, seq, grant, regrant, withdraw, write };
}

test("[RT224] an answer equal to the last one is another view if two commits came before it", async () => {
  const { socket, grant, withdraw, write } = await granted();
  // The second time it has to wait for its turn. [RT227]
  for (let time = 0; time < 2; time++) {
    let second = "";
    await untilAsked(async () => {
      second = await grant("b");
    });
    // A list that is read now shows area "b" as well, and nothing but the resync takes its records away.
    await withdraw(second);
    await setGate({ isOpen: true });
    await socket.expect({ type: "subscribed", channel: GRANTED, resync: true });
  }
  await write("a");
  await socket.expect({ type: "db_change", data: { area: "a" } });
  await socket.close();
});

test("[RT224] an answer equal to the last one is the same view after a single commit", async () => {
  const { socket, regrant, write } = await granted();
  await untilAsked(regrant);
  await setGate({ isOpen: true });
  await write("a");
  await socket.expect({ type: "db_change", data: { area: "a" } });
  await socket.close();
});

test("[RT224] an equal answer is another view if the rule looks at something else for it, which another commit may have changed", async () => {
  const channel = "realtime:shared:pointed";
  const pointers = "/api/db/org/tables/pointers";
  const ann = await signIn(platform);
  const further = `${ann.id}-further`;
  for (const record of [
    { id: ann.id, to: "a" },
    { id: further, to: "b" },
  ]) {
    expect((await platform.service.post(pointers, record)).status).toBe(201);
  }
  const point = async (id: string, to: string): Promise<void> => {
    expect((await platform.service.patch(`${pointers}/${id}`, { to })).status).toBe(200);
  };
  const socket = await connect(platform, ann);
  await subscribe(socket, channel);
  await untilAsked(() => point(ann.id, further));
  // A list that is read now shows area "b" as well.
  await point(further, "a");
  await setGate({ isOpen: true });
  await socket.expect({ type: "subscribed", channel, resync: true });
  // What it looks at stays the same.
  await untilAsked(() => point(ann.id, further));
  await setGate({ isOpen: true });
  expect((await platform.service.post("/api/db/shared/tables/pointed", { area: "a" })).status).toBe(201);
  await socket.expect({ type: "db_change", data: { area: "a" } });
  await socket.close();
});

test("[RT224] [RT39] who subscribes again after a subscription that ended while its rule was asked again is told to load", async () => {
  const { socket, seq, regrant } = await granted();
  await untilAsked(regrant);
  socket.send({ type: "unsubscribe", channel: GRANTED });
  await settled(socket);
  await setGate({ isOpen: true });
  expect(await subscribe(socket, GRANTED, { since: seq })).toMatchObject({ resync: true });
  await socket.close();
});

for (const channel of ["broadcast:again", "presence:again"]) {
  test(`[RT226] an answer from before a subscription ended does not end the next one: ${channel}`, async () => {
    const ann = await member();
    const socket = await connect(platform, ann);
    const join = async (): Promise<void> => {
      await subscribe(socket, channel);
      if (channel.startsWith("presence:")) await socket.expect({ type: "presence_sync" });
    };
    await join();
    await untilAsked(() => leave(ann));
    socket.send({ type: "unsubscribe", channel });
    await settled(socket);
    expect((await platform.service.post(MEMBERS, { id: ann.id })).status).toBe(201);
    await setGate({ isOpen: false, isOpenToAllowed: true });
    await join();
    await setGate({ isOpen: true, isOpenToAllowed: false });
    await until("the rule has answered", async () => (await gate()).waiting === 0);
    await settled(socket);
    await leave(ann);
    await socket.expect({ type: "auth_refreshed", revokedChannels: [channel] });
    await socket.close();
  });
}

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestCluster, type TestNode, testCluster } from "../../support/cluster/cluster.ts";
import { type SignedIn, signIn } from "../../support/sign-in.ts";
import { openSocket, type TestSocket } from "../../support/socket.ts";
import { until } from "../../support/until.ts";
import { type ChangeEvent, connect, subscribe } from "../../ws/realtime/realtime-support.ts";

// WebSockets at the nodes of a cluster: each node holds those of its clients, and the owner decides about them.

const CONFIG = `
  databases: { main: { tables: { notes: {
    schema: { title: { type: "string", required: true } },
    access: { read: true, insert: true, update: true, delete: true },
  } } } },
  realtime: { access: { presence: () => true, broadcast: () => true } },
  rooms: { chat: {
    access: { join: true },
    onCreate(room) { room.setShared({ count: 0 }); },
    actions: { add(room) { room.setShared({ count: room.shared.count + 1 }); return room.shared.count; } },
  } }`;
const NOTES = "/api/db/main/tables/notes";
const CHANNEL = "realtime:main:notes";

let cluster: TestCluster;
let user: SignedIn;
beforeAll(async () => {
  cluster = await testCluster({ config: CONFIG, nodes: 3 });
  user = await signIn(cluster.nodes[0]!);
}, 120_000);
afterAll(() => cluster.stop(), 60_000);

const followers = async (): Promise<TestNode[]> => {
  const owner = await cluster.owner();
  return cluster.nodes.filter((node) => node !== owner);
};

/** Writes a note through a node. Returns its id. */
async function write(node: TestNode, title: string): Promise<string> {
  const key = crypto.randomUUID();
  let id: string | null = null;
  await until("the note is written", async () => {
    const headers = { "idempotency-key": key };
    const answer = await node.service.post<{ id: string }>(NOTES, { title }, { headers }).catch(() => null);
    if (answer?.status === 201) id = answer.body.id;
    return id !== null;
  });
  return id ?? "";
}

/** Takes changes up to that of a record. Returns the ids of all of them. */
async function changesTo(socket: TestSocket, id: string): Promise<{ ids: string[]; seq: number }> {
  const ids: string[] = [];
  for (;;) {
    const change = await socket.nextOf<ChangeEvent>("db_change");
    ids.push(change.docId);
    if (change.docId === id) return { ids, seq: change.seq };
  }
}

test("[CLU94] changes, broadcasts and presence reach sockets of all nodes, in one order", async () => {
  const sockets = await Promise.all(cluster.nodes.map((node) => connect(node, user)));
  for (const socket of sockets) for (const channel of [CHANNEL, "broadcast:news"]) await subscribe(socket, channel);
  const ids: string[] = [];
  for (const node of cluster.nodes) ids.push(await write(node, `${node.nodeUrl} writes`));
  for (const socket of sockets)
    for (const docId of ids) await socket.expect({ type: "db_change", changeType: "added", docId });
  for (const [index, sender] of sockets.entries()) {
    sender.send({ type: "broadcast", channel: "broadcast:news", event: `from ${index}`, data: {} });
    for (const socket of sockets)
      if (socket !== sender)
        await socket.nextOf("broadcast_event").then(({ event }) => expect(event).toBe(`from ${index}`));
  }
  const [first, second, third] = sockets;
  await subscribe(first!, "presence:lobby");
  await first!.nextOf("presence_sync");
  second!.send({ type: "track", channel: "presence:lobby", state: { mood: "fine" } });
  await first!.expect({ type: "presence_join", userId: user.id, state: { mood: "fine" } });
  await subscribe(third!, "presence:lobby");
  const { users } = await third!.nextOf<JsonObject & { users: JsonObject[] }>("presence_sync");
  expect(users).toHaveLength(1);
  // A client that leaves its node is missed by those at others.
  await second!.close();
  await first!.expect({ type: "presence_leave" });
  await third!.expect({ type: "presence_leave" });
  for (const socket of [first, third]) await socket!.close();
}, 60_000);

test("[CLU94] players of one room are at different nodes", async () => {
  const players = await Promise.all(
    cluster.nodes.map(async (node) => {
      const socket = await openSocket(`${node.wsUrl}/api/room?namespace=chat&id=sunday`);
      socket.send({ type: "auth", token: user.token });
      await socket.expect({ type: "auth_success", userId: user.id });
      socket.send({ type: "join" });
      await socket.nextOf("sync");
      return socket;
    }),
  );
  for (const [index, player] of players.entries()) {
    player.send({ type: "send", actionType: "add", requestId: "r" });
    for (const each of players)
      await each.nextOf("shared_delta").then(({ delta }) => expect(delta).toEqual({ count: index + 1 }));
  }
  for (const player of players) await player.close();
}, 60_000);

test("[CLU95] a client goes on with since at another node, and gets what it has missed, once", async () => {
  const [one, other] = await followers();
  const first = await connect(one!, user);
  await subscribe(first, CHANNEL);
  const id = await write(other!, "before the way");
  const { seq } = await changesTo(first, id);
  first.terminate();
  const missed = [await write(one!, "missed 1"), await write(other!, "missed 2")];
  const second = await connect(other!, user);
  const answer = await subscribe(second, CHANNEL, { since: seq });
  expect(answer["resync"]).toBeUndefined();
  const last = await write(one!, "after the way");
  expect((await changesTo(second, last)).ids).toEqual([...missed, last]);
  await second.close();
}, 60_000);

test("[CLU96] who loses a right has no socket at any node when that is answered", async () => {
  const [one, other] = await followers();
  const leaver = await signIn(one!);
  const sockets = await Promise.all(cluster.nodes.map((node) => connect(node, leaver)));
  for (const socket of sockets) await subscribe(socket, CHANNEL);
  const signedOut = await other!.post("/api/auth/signout", undefined, {
    headers: { authorization: `Bearer ${leaver.token}` },
  });
  expect(signedOut.status).toBe(200);
  await write(one!, "for others");
  for (const socket of sockets) {
    const { code } = await socket.closed;
    expect([code, socket.pending.filter(({ type }) => type === "db_change")]).toEqual([expect.any(Number), []]);
  }
}, 60_000);

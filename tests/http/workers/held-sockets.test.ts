import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, type TestSocket, testPlatform, until } from "../../support/index.ts";
import { connect, subscribe } from "../../ws/realtime/realtime-support.ts";

const CHANNEL = "realtime:shared:notes";
const T = "/api/db/shared/tables/notes";
/** A new connection for each request: the system spreads connections over the processes. */
const ALONE = { headers: { connection: "close" } };
/** Sockets that are open at once: a process without one of them would be chance of less than one in a million. */
const SOCKETS = 36;
const WRITES = 2_000;
const ROUNDS = 50;

const CONFIG = `{ server: { workers: 2 }, databases: { shared: { tables: {
  notes: { schema: { n: { type: "integer" } }, access: { read: (auth) => auth !== null, insert: true } },
} } }, realtime: { messageRate: 10_000 } }`;

interface Change extends JsonObject {
  type: string;
  docId: string;
  seq: number;
}

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

const write = async (n: number): Promise<string> => {
  const { status, body } = await platform.post<{ id: string }>(T, { n }, ALONE);
  expect(status).toBe(201);
  return body.id;
};
async function listeners(count: number, by: SignedIn): Promise<TestSocket[]> {
  const sockets = await Promise.all(Array.from({ length: count }, () => connect(platform, by)));
  await Promise.all(sockets.map((socket) => subscribe(socket, CHANNEL)));
  return sockets;
}
const workers = async (): Promise<number[]> => {
  const { body } = await platform.service.get<{ checks: { processes: { pid: number; role: string }[] } }>(
    "/api/health?full",
    ALONE,
  );
  return body.checks.processes.filter(({ role }) => role === "worker").map(({ pid }) => pid);
};

test("[WK24] sockets of all processes get every change once, in the order of the commits", async () => {
  const sockets = await listeners(SOCKETS, user);
  const written = new Set<string>();
  for (let n = 0; n < WRITES; n += 20) {
    for (const id of await Promise.all(Array.from({ length: 20 }, (_, index) => write(n + index)))) written.add(id);
  }
  let order: string[] | null = null;
  for (const socket of sockets) {
    await until("all changes are there", () => socket.pending.length === WRITES);
    const changes = await Promise.all(Array.from({ length: WRITES }, () => socket.next<Change>()));
    const seqs = changes.map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.toSorted((one, other) => one - other));
    const ids = changes.map(({ docId }) => docId);
    order ??= ids;
    expect(ids).toEqual(order);
  }
  expect(new Set(order)).toEqual(written);
  await Promise.all(sockets.map((socket) => socket.close()));
}, 60_000);

test("[WK24] a session that has ended gets nothing that is written after that is answered, at any process", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const person = await signIn(platform);
    const sockets = await listeners(6, person);
    const [before, ended, after] = [
      await write(round),
      (await platform.service.post(`/api/auth/admin/users/${person.id}/revoke`, undefined, ALONE)).status,
      await write(round),
    ];
    expect(ended).toBe(200);
    for (const socket of sockets) {
      expect((await socket.closed).code).toBe(4003);
      const ids = socket.pending.map((message) => message["docId"]);
      expect(ids).toContain(before);
      expect(ids).not.toContain(after);
    }
  }
}, 60_000);

test("[WK24] [WK40] a killed worker costs its own sockets, which go on with since, and nothing is lost", async () => {
  const sockets = await listeners(SOCKETS, user);
  const [victim = 0] = await workers();
  const closed = new Set<TestSocket>();
  for (const socket of sockets) void socket.closed.then(() => closed.add(socket));
  const first = await write(0);
  for (const socket of sockets) await until("the change is there", () => socket.pending.length === 1);
  process.kill(victim, "SIGKILL");
  await until("its sockets are closed", () => closed.size > 0);
  await until("another worker listens", async () => {
    const now = await workers().catch((): number[] => []);
    return now.length === 2 && !now.includes(victim);
  });
  const missed = await write(1);
  expect(closed.size).toBeLessThan(SOCKETS);
  for (const socket of sockets) {
    const change = await socket.next<Change>();
    expect(change.docId).toBe(first);
    if (!closed.has(socket)) {
      expect((await socket.next<Change>()).docId).toBe(missed);
      continue;
    }
    const again = await connect(platform, user);
    again.send({ type: "subscribe", channel: CHANNEL, since: change.seq });
    const subscribed = await again.next<Change>();
    expect([subscribed.type, subscribed["resync"]]).toEqual(["subscribed", undefined]);
    expect((await again.next<Change>()).docId).toBe(missed);
    await again.close();
  }
  await Promise.all(sockets.filter((socket) => !closed.has(socket)).map((socket) => socket.close()));
}, 60_000);

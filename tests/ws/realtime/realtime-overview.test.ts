import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  openSocket,
  type SignedIn,
  signIn,
  type TestPlatform,
  type TestSocket,
  testPlatform,
  until,
} from "../../support/index.ts";

const [READER, BROADCASTER] = [
  "reader-key-0123456789abcdefghijklmnopqrstuv",
  "sender-key-0123456789abcdefghijklmnopqrstuv",
];
const CONFIG = `{
  realtime: { messageRate: 1000 },
  databases: { shared: { tables: { notes: { schema: { text: { type: "string" } }, access: { read: true } } } } },
  serviceKeys: {
    reader: { key: "${READER}", scopes: ["realtime:*:*:read"] },
    sender: { key: "${BROADCASTER}", scopes: ["realtime:*:*:broadcast"] },
  },
}`;
const PATH = "/api/admin/realtime";

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [ann, bob] = await Promise.all([signIn(platform), signIn(platform)]);
});
afterAll(() => platform.stop());

interface Channel {
  name: string;
  kind: string;
  subscribers: number;
  messages: number;
  perSecond: number;
  entries: number | null;
}
interface Overview {
  connections: { total: number; users: number; serviceKeys: number };
  subscriptions: number;
  channels: Channel[];
  total: number;
}
const overview = async (query: Record<string, string | number> = {}) =>
  (await platform.service.get<Overview>(PATH, { query })).body;
const channelOf = async (name: string) => (await overview({ prefix: name })).channels.find((one) => one.name === name);

async function connect(token: string): Promise<TestSocket> {
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`);
  socket.send({ type: "auth", token });
  await socket.nextOf("auth_success");
  return socket;
}
async function subscribe(socket: TestSocket, channel: string, id?: string): Promise<void> {
  socket.send({ type: "subscribe", channel, ...(id === undefined ? {} : { id }) });
  await socket.nextOf("subscribed");
}
const broadcast = (channel: string) =>
  platform.service.post("/api/realtime/broadcast", { channel, event: "said", payload: { text: "hi" } });

test("[RT340] connections are counted, and the users and keys behind them", async () => {
  const { ticket } = (await platform.service.post<{ ticket: string }>("/api/admin/socket-ticket")).body;
  const sockets = [await connect(ann.token), await connect(ann.token), await connect(bob.token), await connect(ticket)];
  expect((await overview()).connections).toEqual({ total: 4, users: 2, serviceKeys: 1 });
  for (const socket of sockets) await socket.close();
  await until("they are gone", async () => (await overview()).connections.total === 0);
  expect((await overview()).connections).toEqual({ total: 0, users: 0, serviceKeys: 0 });
});

test("[RT341] channels are listed with their subscribers, messages and rates, the largest first", async () => {
  const [one, other] = [await connect(ann.token), await connect(bob.token)];
  for (const socket of [one, other]) await subscribe(socket, "broadcast:news");
  await subscribe(one, "broadcast:quiet");
  await subscribe(one, "presence:lobby");
  await subscribe(one, "realtime:shared:notes");
  await subscribe(one, "realtime:shared:notes", "mine");
  // Another `subscribe` to the same channel is no further one.
  await subscribe(one, "broadcast:news");
  one.send({ type: "track", channel: "presence:lobby", state: { here: true } });
  await one.nextOf("presence_join");
  for (let n = 0; n < 20; n++) expect((await broadcast("broadcast:news")).status).toBe(200);
  await platform.service.post("/api/db/shared/tables/notes", { text: "a" });
  const { channels, total, subscriptions } = await overview();
  expect([total, subscriptions]).toEqual([4, 6]);
  expect(channels.map(({ subscribers }) => subscribers)).toEqual([2, 2, 1, 1]);
  expect(await channelOf("broadcast:news")).toMatchObject({
    kind: "broadcast",
    subscribers: 2,
    messages: 20,
    entries: null,
  });
  expect((await channelOf("broadcast:news"))?.perSecond).toBeGreaterThan(0);
  expect(await channelOf("broadcast:quiet")).toMatchObject({ messages: 0, perSecond: 0 });
  expect(await channelOf("presence:lobby")).toMatchObject({ kind: "presence", entries: 1, messages: 1 });
  await until("the change is counted", async () => (await channelOf("realtime:shared:notes"))?.messages === 1);
  expect(await channelOf("realtime:shared:notes")).toMatchObject({ kind: "table", subscribers: 2 });
  expect(await overview({ prefix: "broadcast:", limit: 1, sort: "rate" })).toMatchObject({
    channels: [{ name: "broadcast:news" }],
    total: 2,
  });
  one.send({ type: "unsubscribe", id: "mine" });
  one.send({ type: "unsubscribe", channel: "broadcast:news" });
  await until("the subscriptions have ended", async () => (await overview()).subscriptions === 4);
  other.terminate();
  await one.close();
  await until("the channels are gone", async () => (await overview()).total === 0);
  expect((await overview()).subscriptions).toBe(0);
});

test("[RT340] the overview needs a service key with its scope, and says what is wrong with a parameter", async () => {
  expect((await platform.get(PATH)).status).toBe(401);
  expect((await ann.get(PATH)).status).toBe(401);
  expect((await platform.withKey(BROADCASTER).get(PATH)).status).toBe(403);
  expect((await platform.withKey(READER).get(PATH)).status).toBe(200);
  for (const query of ["limit=0", "limit=501", "sort=name", `prefix=${"x".repeat(513)}`, "unknown=1"]) {
    expect({ query, status: (await platform.withKey(READER).get(`${PATH}?${query}`)).status }).toEqual({
      query,
      status: 400,
    });
  }
});

test("[RT341] ten thousand subscriptions are listed, and the largest found", async () => {
  const sockets = await Promise.all(Array.from({ length: 50 }, () => connect(ann.token)));
  await Promise.all(
    sockets.map(async (socket, index) => {
      for (let n = 0; n < 199; n++) socket.send({ type: "subscribe", channel: `broadcast:many-${index}-${n}` });
      await subscribe(socket, "broadcast:all");
    }),
  );
  await until("all have begun", async () => (await overview()).subscriptions === 10_000);
  expect(await overview({ limit: 2 })).toMatchObject({
    total: 9_951,
    channels: [{ name: "broadcast:all", subscribers: 50 }, {}],
  });
  for (const socket of sockets) socket.terminate();
});

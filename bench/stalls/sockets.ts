import { fill, MIB, SERVICE_HEADERS, type StallArea, send } from "./area.ts";

const P = "/api/db/shared/tables";
/** Number of keys: with the one that the action adds, the maximum of an object in a state. */
const STATE_KEYS = 9_999;
const STATE_VALUE = "x".repeat(900);

const CONFIG = `import { defineConfig } from "platform";

export default defineConfig({
  auth: { anonymous: true },
  databases: { shared: { tables: { notes: { schema: { text: { type: "text" }, n: { type: "integer" } }, access: { read: true } } } } },
  rateLimits: { auth: { requests: 1000000, window: 60 }, signup: { requests: 1000000, window: 60 } },
  rooms: {
    large: {
      maxStateSize: 10485760,
      messageRate: 1000,
      maxPlayers: 1000,
      access: { join: true },
      onCreate(room) {
        room.setShared(Object.fromEntries(Array.from({ length: ${STATE_KEYS} }, (_, n) => ["k" + n, "${STATE_VALUE}"])));
      },
      actions: { add: (room) => { room.setShared((state) => ({ ...state, count: Number(state.count ?? 0) + 1 })); return null; } },
    },
  },
});
`;

export const socketStalls: StallArea = {
  name: "realtime, rooms",
  config: CONFIG,
  async prepare(server) {
    const { accessToken } = (await send(server, "POST", "/api/auth/signin/anonymous", {})) as { accessToken: string };
    await fill(server, `${P}/notes`, 10, (index) => ({ id: `n${index}`, text: "", n: 0 }));
    const auth = { type: "auth", token: accessToken };
    const subscribe = { type: "subscribe", channel: "realtime:shared:notes" };
    const idle = [{ path: "/api/health" }];
    const patch = (body: unknown) => ({
      method: "PATCH",
      path: `${P}/notes/n1`,
      headers: SERVICE_HEADERS,
      body: JSON.stringify(body),
    });
    const batch = {
      method: "POST",
      path: `${P}/notes/batch`,
      headers: SERVICE_HEADERS,
      body: JSON.stringify({ inserts: Array.from({ length: 500 }, (_, n) => ({ text: "x".repeat(1_000), n })) }),
    };
    return [
      {
        name: "1,000 subscribers that do not read, records of 1 MiB",
        requests: [patch({ text: "x".repeat(MIB - 2_000) })],
        clients: 1,
        sockets: { path: "/api/realtime", count: 1_000, hello: [auth, subscribe], reads: false },
      },
      {
        name: "1,000 subscribers, batches of 500 records",
        requests: [batch],
        clients: 1,
        sockets: { path: "/api/realtime", count: 1_000, hello: [auth, subscribe], reads: true },
      },
      {
        name: "100 clients that change their filters 20 times a second",
        requests: idle,
        clients: 1,
        sockets: {
          path: "/api/realtime",
          count: 100,
          hello: [auth, subscribe],
          reads: true,
          repeat: {
            type: "update_filters",
            channel: "realtime:shared:notes",
            filters: Array.from({ length: 5 }, () => [
              "text",
              "in",
              Array.from({ length: 1_000 }, (_, n) => `value ${n}`),
            ]),
          },
        },
      },
      {
        name: "100 clients that broadcast 125,000 numbers 20 times a second",
        requests: idle,
        clients: 1,
        sockets: {
          path: "/api/realtime",
          count: 100,
          hello: [auth],
          reads: true,
          repeat: { type: "broadcast", channel: "broadcast:b", event: "e", data: { list: Array(125_000).fill(1) } },
        },
      },
      {
        name: "100 players in a room of 9 MB, 20 actions a second each",
        requests: idle,
        clients: 1,
        sockets: {
          path: "/api/room?namespace=large&id=r1",
          count: 100,
          hello: [auth, { type: "join" }],
          reads: true,
          repeat: { type: "send", actionType: "add", requestId: "1" },
        },
      },
    ];
  },
};

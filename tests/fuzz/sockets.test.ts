import { afterAll, beforeAll, expect, test } from "bun:test";
import { isJsonObject, type JsonObject } from "../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../support/index.ts";
import { brokenBytes, mutated, ODD_TEXTS } from "../support/mutations.ts";
import { type Random, random, testSeed } from "../support/random.ts";
import { encodeFrame, OPCODE, openRawSocket, type RawSocket } from "../support/raw-socket.ts";

// Whatever a client sends over a WebSocket: the server keeps running, answers within the protocol, reveals no records or rooms
// of others, and logs nothing unexpected.

const SEED = testSeed(20_265);
const ROUNDS = 300 * Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
const MESSAGES_PER_ROUND = 12;
const ANSWER_MAX_MS = 15_000;
const CANARY = "the-secret-of-bob";
const NOTES = "/api/db/shared/tables/notes";

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
let cyd: SignedIn;

beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      databases: { shared: { tables: { notes: { schema: { owner: { type: "string" }, n: { type: "integer" }, text: { type: "text" } },
        access: { read: (auth) => auth === null ? false : [["owner", "==", auth.id]] } } } } },
      realtime: { messageRate: 1_000_000, authTimeout: 60_000, access: { presence: (auth, channel) => !channel.includes("bob"), broadcast: (auth, channel) => !channel.includes("bob") } },
      rooms: {
        game: { messageRate: 1_000_000, authTimeout: 60_000, access: { join: true }, actions: {
          echo: (room, player, payload) => payload,
          set: (room, player, payload) => { room.setShared(payload); return null; },
          own: (room, player, payload) => { room.setPlayer(player.userId, payload); return null; },
          say: (room, player, payload) => { room.send("said", payload); return null; },
          fail: () => { throw new Error("as it should"); },
          probe: () => ({ polluted: ({}).polluted ?? null, keys: Object.keys(Object.prototype) }),
        } },
        own: { messageRate: 1_000_000, authTimeout: 60_000, access: { join: (auth, id) => auth.id === id }, onCreate: (room) => { room.setShared({ secret: "${CANARY}" }); } },
      },
    }`,
  });
  ann = await signIn(platform);
  bob = await signIn(platform);
  cyd = await signIn(platform);
  await platform.service.post(`${NOTES}/batch`, {
    inserts: [
      { id: "a1", owner: ann.id, n: 1, text: "mine" },
      { id: "b1", owner: bob.id, n: 1, text: CANARY },
    ],
  });
});
afterAll(() => platform.stop());

interface Protocol {
  path: () => string;
  /** Properties of a connection that is worth attacking. */
  greeting: (token: string) => JsonObject[];
  messages: () => JsonObject[];
  types: readonly string[];
}

const ERRORS = ["error", "pong"];
const ROOM_TYPES = ["auth_success", "auth_refreshed", "sync", "shared_delta", "player_delta", "action_result"];
const ROOM: Omit<Protocol, "path"> = {
  greeting: (token) => [{ type: "auth", token }, { type: "join" }],
  messages: () => [
    { type: "auth", token: ann.token },
    { type: "auth", token: cyd.token },
    { type: "join", lastSharedState: { a: 1 }, lastSharedVersion: 3, lastPlayerState: {}, lastPlayerVersion: 0 },
    ...["echo", "set", "own", "say", "fail", "nothing"].map((actionType) => ({
      ...{ type: "send", actionType, requestId: "r1" },
      payload: { a: { b: { c: { d: { e: { f: 1 } } } } }, list: [1, 2, { x: null }], text: "x" },
    })),
    { type: "ping" },
  ],
  types: [...ROOM_TYPES, "action_error", "message", ...ERRORS],
};
const channels = () => [
  ...["realtime:shared:notes", "realtime:shared:notes:b1", "realtime:shared:notes:a1", "realtime:shared:nothing"],
  ...["presence:lobby", "presence:bob", "broadcast:news", "broadcast:bob", "realtime:spaces:one:notes"],
];
const REALTIME: Protocol = {
  path: () => "/api/realtime?channel=presence:lobby",
  greeting: (token) => [
    { type: "auth", token },
    { type: "subscribe", channel: "realtime:shared:notes" },
  ],
  messages: () =>
    channels().flatMap((channel): JsonObject[] => [
      { type: "subscribe", channel, filters: [["n", ">", 0]], orFilters: [["text", "contains", "e"]], since: 0 },
      { type: "subscribe", channel },
      { type: "update_filters", channel, filters: [["owner", "==", bob.id]], orFilters: null },
      { type: "unsubscribe", channel },
      { type: "track", channel, state: { status: "here" } },
      { type: "untrack", channel },
      { type: "broadcast", channel, event: "e", data: { x: 1 }, excludeSelf: false },
      { type: "auth", token: ann.token },
    ]),
  types: [
    ...["auth_success", "auth_refreshed", "auth_error", "subscribed", "filters_updated", "db_change", "batch_changes"],
    ...["presence_sync", "presence_join", "presence_update", "presence_leave", "broadcast_event", ...ERRORS],
  ],
};

const text = (value: string | JsonObject): Buffer =>
  encodeFrame({ opcode: OPCODE.text, payload: Buffer.from(typeof value === "string" ? value : JSON.stringify(value)) });

/** Frames that a round sends: mostly whole frames with odd messages, sometimes odd frames. */
function attack(r: Random, protocol: Protocol): Uint8Array {
  const message = r.pick(protocol.messages());
  const json = JSON.stringify(message);
  const payload = Buffer.from(json);
  switch (r.below(14)) {
    case 0:
      return encodeFrame({ opcode: OPCODE.text, payload: brokenBytes(r, json) });
    case 1:
      return encodeFrame({ opcode: OPCODE.binary, payload });
    case 2: {
      const at = r.below(payload.byteLength);
      return Buffer.concat([
        encodeFrame({ opcode: OPCODE.text, payload: payload.subarray(0, at), isFinal: false }),
        encodeFrame({ opcode: OPCODE.ping, payload: Buffer.from("between") }),
        encodeFrame({ opcode: OPCODE.continuation, payload: payload.subarray(at) }),
      ]);
    }
    case 3:
      return oddFrame(r, payload);
    case 4:
      return text(r.pick(["null", "1", '"text"', "[]", "[[[", "{}", " ", "{", '{"type":', `"${r.pick(ODD_TEXTS)}"`]));
    case 5:
      // The same member twice: the last one counts.
      return text(json.replace("{", '{"type":"ping",'));
    case 6:
      return text(
        r.chance(0.8) ? message : json.replace(/\}$/, `,"payload":${"[".repeat(40_000)}${"]".repeat(40_000)}}`),
      );
    default:
      return text(mutated(r, message));
  }
}

function oddFrame(r: Random, payload: Uint8Array): Uint8Array {
  switch (r.below(7)) {
    case 0:
      return encodeFrame({ opcode: r.pick([3, 4, 7, 11, 15]), payload });
    case 1:
      return encodeFrame({ opcode: OPCODE.text, payload, reserved: 1 + r.below(7) });
    case 2:
      return encodeFrame({ opcode: OPCODE.text, payload, isMasked: false });
    case 3:
      return encodeFrame({ opcode: OPCODE.continuation, payload });
    case 4:
      return encodeFrame({ opcode: OPCODE.ping, payload: Buffer.alloc(126 + r.below(100)) });
    case 5:
      return encodeFrame({ opcode: OPCODE.text, payload, claimedLength: r.pick([2 ** 31, 2 ** 40, 2 ** 52]) });
    default:
      return encodeFrame({
        opcode: OPCODE.close,
        payload: Buffer.from(r.pick([[], [3], [3, 232], [0, 0], [255, 255]])),
      });
  }
}

function checkSaid(protocol: Protocol, socket: RawSocket, about: JsonObject): void {
  for (const said of socket.texts) {
    expect({ ...about, leaked: said.includes(CANARY) }).toEqual({ ...about, leaked: false });
    const message: unknown = JSON.parse(said);
    if (!isJsonObject(message)) throw new Error(`not a message: ${said}`);
    const { type, code } = message;
    const isKnown = protocol.types.includes(String(type)) && (type !== "error" || /^[A-Z_]+$/.test(String(code)));
    expect({ ...about, said: said.slice(0, 200), isKnown }).toEqual({
      ...about,
      said: said.slice(0, 200),
      isKnown: true,
    });
    // An unexpected failure is INTERNAL.
    expect({ ...about, code: code ?? null }).not.toEqual({ ...about, code: "INTERNAL" });
  }
}

async function run(r: Random, protocol: Protocol, round: number): Promise<void> {
  const socket = await openRawSocket(`${platform.wsUrl}${protocol.path()}`);
  // Some rounds attack before authentication.
  const isKnown = r.chance(0.85);
  if (isKnown) for (const message of protocol.greeting(ann.token)) socket.write(text(message));
  const sent: Uint8Array[] = Array.from({ length: MESSAGES_PER_ROUND }, () => attack(r, protocol));
  for (const bytes of sent) socket.write(bytes);
  await platform.service.patch(`${NOTES}/b1`, { n: round, text: `${CANARY} ${round}` });
  socket.write(text({ type: "ping" }));
  await socket.until('"pong"', 200);
  checkSaid(protocol, socket, { seed: SEED, round, path: protocol.path() });
  socket.close();
}

async function expectSane(): Promise<void> {
  expect((await platform.get("/api/health")).body).toMatchObject({ status: "ok" });
  const errors = `${platform.stdout()}\n${platform.stderr()}`
    .split("\n")
    .filter((line) => /"level":"(?:ERROR|FATAL)"/.test(line));
  expect(errors).toEqual([]);
}

test(`[SK11] rooms accept or refuse whatever comes (seed ${SEED})`, async () => {
  const r = random(SEED);
  const owner = await openRawSocket(`${platform.wsUrl}/api/room?namespace=own&id=${bob.id}`);
  for (const message of ROOM.greeting(bob.token)) owner.write(text(message));
  expect(await owner.until(CANARY, ANSWER_MAX_MS)).toBe(true);
  const paths = ["game&id=g1", "game&id=g2", `own&id=${bob.id}`];
  for (let round = 0; round < ROUNDS; round++) {
    const place = r.pick(paths);
    await run(r, { ...ROOM, path: () => `/api/room?namespace=${place}` }, round);
  }
  await expectSane();
  const socket = await openRawSocket(`${platform.wsUrl}/api/room?namespace=game&id=fresh`);
  for (const message of ROOM.greeting(ann.token)) socket.write(text(message));
  socket.write(text({ type: "send", actionType: "probe", requestId: "p", payload: {} }));
  expect(await socket.until('"action_result"', ANSWER_MAX_MS)).toBe(true);
  expect(socket.texts.at(-1)).toContain('{"polluted":null,"keys":[]}');
  socket.close();
  owner.close();
}, 600_000);

test(`[SK11] realtime accepts or refuses whatever comes (seed ${SEED})`, async () => {
  const r = random(SEED + 1);
  for (let round = 0; round < ROUNDS; round++) await run(r, REALTIME, round);
  await expectSane();
  const socket = await openRawSocket(`${platform.wsUrl}/api/realtime`);
  for (const message of REALTIME.greeting(bob.token)) socket.write(text(message));
  expect(await socket.until('"subscribed"', ANSWER_MAX_MS)).toBe(true);
  await platform.service.patch(`${NOTES}/b1`, { n: -1 });
  // The owner gets it: the check above can find it.
  expect(await socket.until(CANARY, ANSWER_MAX_MS)).toBe(true);
  socket.close();
}, 600_000);

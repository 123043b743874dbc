import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  openSocket,
  type SignedIn,
  signIn,
  signToken,
  type TestPlatform,
  type TestSocket,
  testPlatform,
  until,
} from "../../support/index.ts";
import { encodeFrame, OPCODE, openRawSocket } from "../../support/raw-socket.ts";

// What all WebSockets have in common, tried on each area.

const CONFIG = `{
  databases: { shared: { tables: { posts: { schema: { title: { type: "string" } }, access: { read: true } } } } },
  realtime: { messageRate: 50, pendingPerAddress: 8,
    access: { presence: (auth, channel) => channel !== "presence:slow" || new Promise(() => {}) } },
  rooms: { game: { messageRate: 50, pendingPerAddress: 8, maxStateSize: 262_144,
    access: { join: (auth, id) => id !== "slow" || new Promise(() => {}) },
    actions: { echo: (room, player, payload) => payload } } },
}`;

interface Area {
  name: string;
  path: string;
  /** Sent after `auth`, so that other messages are accepted; answered by `greeted`. */
  greeting: JsonObject;
  greeted: JsonObject;
  /** A message that needs authentication, and its answer. */
  message: JsonObject;
  answer: JsonObject;
  /** One with such a payload. */
  withPayload(payload: string): string;
  /** A message whose rule takes 5 s, and where it is sent. */
  slow: { path: string; message: JsonObject };
  authFailed: JsonObject;
  tooLarge: string;
}

const AREAS: readonly Area[] = [
  {
    name: "realtime",
    path: "/api/realtime",
    greeting: { type: "subscribe", channel: "realtime:shared:posts" },
    greeted: { type: "subscribed" },
    message: { type: "subscribe", channel: "broadcast:a" },
    answer: { type: "subscribed", channel: "broadcast:a" },
    withPayload: (payload) => `{"type":"broadcast","channel":"broadcast:b","event":"e","data":${payload}}`,
    slow: { path: "/api/realtime", message: { type: "subscribe", channel: "presence:slow" } },
    authFailed: { type: "auth_error" },
    tooLarge: "MESSAGE_TOO_LARGE",
  },
  {
    name: "rooms",
    path: "/api/room?namespace=game&id=r1",
    greeting: { type: "join" },
    greeted: { type: "sync" },
    message: { type: "send", actionType: "echo", requestId: "r", payload: 1 },
    answer: { type: "action_result", requestId: "r", result: 1 },
    withPayload: (payload) => `{"type":"send","actionType":"echo","requestId":"p","payload":${payload}}`,
    slow: { path: "/api/room?namespace=game&id=slow", message: { type: "join" } },
    authFailed: { type: "error", code: "AUTH_FAILED" },
    tooLarge: "INVALID_MESSAGE",
  },
];

let platform: TestPlatform;
let user: SignedIn;
let other: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [user, other] = [await signIn(platform), await signIn(platform)];
});
afterAll(() => platform.stop());

const open = ({ path }: Area, own: TestPlatform = platform): Promise<TestSocket> => openSocket(`${own.wsUrl}${path}`);

async function authenticate(area: Area, who: SignedIn = user, own: TestPlatform = platform): Promise<TestSocket> {
  const socket = await open(area, own);
  socket.send({ type: "auth", token: who.token });
  await socket.expect({ type: "auth_success", userId: who.id });
  return socket;
}

async function enter(area: Area, who: SignedIn = user): Promise<TestSocket> {
  const socket = await authenticate(area, who);
  socket.send(area.greeting);
  await socket.nextOf(String(area.greeted["type"]));
  return socket;
}

async function expectAlive(area: Area, socket: TestSocket): Promise<void> {
  socket.send(area.message);
  let answer = await socket.next();
  while (answer["type"] !== area.answer["type"]) answer = await socket.next();
  expect(answer).toMatchObject(area.answer);
}

async function expectClosed(socket: TestSocket, code: string, closeCode: number): Promise<void> {
  let message = await socket.next();
  while (message["type"] !== "error") message = await socket.next();
  expect(message).toMatchObject({ type: "error", code });
  expect((await socket.closed).code).toBe(closeCode);
}

for (const area of AREAS) {
  describe(area.name, () => {
    test("[SK3] [SK4] upgrades only, and a bounded number of unauthenticated connections, whose places become free", async () => {
      expect((await platform.get(area.path)).status).toBe(400);
      const authenticated = await authenticate(area);
      const sockets = await Promise.all(Array.from({ length: 8 }, () => open(area)));
      await expect(open(area)).rejects.toThrow();
      // One waits until another authenticates, and one until another closes.
      const waiting = [open(area), open(area)];
      sockets[0]?.send({ type: "auth", token: user.token });
      await sockets[0]?.expect({ type: "auth_success" });
      await sockets[1]?.close();
      const further = await Promise.all(waiting);
      await Promise.all([authenticated, ...sockets, ...further].map((socket) => socket.close()));
    });

    test("[SK6] a refused token may be followed by another one", async () => {
      const socket = await open(area);
      const ended = await signToken({ sub: user.id, sid: "ended" });
      const expired = await signToken({ sub: user.id, sid: "ended" }, { expiresInSeconds: -5 });
      for (const token of ["nonsense", ended, expired, 5, null]) {
        socket.send({ type: "auth", token });
        await socket.expect(area.authFailed);
      }
      socket.send({ type: "auth", token: user.token });
      await socket.expect({ type: "auth_success", userId: user.id });
      await socket.close();
    });

    test("[SK6] before auth anything but ping closes with 4000", async () => {
      const tooLong = JSON.stringify({ type: "auth", token: "x".repeat(40_000) });
      for (const message of [area.message, { type: "x" }, {}, 5, null, [], tooLong]) {
        const socket = await open(area);
        socket.send({ type: "ping" });
        await socket.expect({ type: "pong" });
        socket.send(message);
        await expectClosed(socket, "NOT_AUTHENTICATED", 4000);
      }
    });

    test("[SK6] messages that follow auth wait for its answer", async () => {
      const socket = await open(area);
      socket.send({ type: "auth", token: user.token });
      socket.send(area.greeting);
      socket.send(area.message);
      await socket.expect({ type: "auth_success" });
      await socket.expect(area.greeted);
      await expectAlive(area, socket);
      await socket.close();
      const refused = await open(area);
      refused.send({ type: "auth", token: "nonsense" });
      refused.send(area.message);
      await refused.expect(area.authFailed);
      await expectClosed(refused, "NOT_AUTHENTICATED", 4000);
    });

    test("[SK8] another auth refreshes; an invalid token, or another user's, changes nothing", async () => {
      const socket = await authenticate(area);
      for (const token of ["nonsense", other.token, 5]) {
        socket.send({ type: "auth", token });
        await socket.expect({ type: "error", code: "AUTH_REFRESH_FAILED" });
      }
      socket.send({ type: "auth", token: user.token });
      await socket.expect({ type: "auth_refreshed", userId: user.id });
      await socket.close();
    });

    test("[SK9] a session that ends closes its connections with 4003, and no others", async () => {
      const bystander = await enter(area);
      for (const end of [
        (victim: SignedIn) => platform.service.post(`/api/auth/admin/users/${victim.id}/revoke`),
        (victim: SignedIn) => platform.service.patch(`/api/auth/admin/users/${victim.id}`, { disabled: true }),
        (victim: SignedIn) => platform.service.delete(`/api/auth/admin/users/${victim.id}`),
        (victim: SignedIn) => victim.post("/api/auth/signout", {}),
      ]) {
        const victim = await signIn(platform);
        const socket = await enter(area, victim);
        expect((await end(victim)).status).toBe(200);
        await expectClosed(socket, "SESSION_REVOKED", 4003);
      }
      await expectAlive(area, bystander);
      await bystander.close();
    });

    test("[SK10] what is not JSON closes with 4000, before auth and after", async () => {
      for (const text of ["{", "nonsense", "", "[".repeat(5_000)]) {
        for (const socket of [await open(area), await enter(area)]) {
          socket.send(text);
          await expectClosed(socket, "INVALID_JSON", 4000);
        }
      }
      const long = await enter(area);
      long.send(`[${"1,".repeat(80_000)}`);
      await expectClosed(long, "INVALID_JSON", 4000);
    });

    test("[SK11] JSON that is no message is INVALID_MESSAGE, and the connection stays open", async () => {
      const socket = await enter(area);
      const list = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
      const payload = (value: string) => area.withPayload(`{"x":${value}}`);
      const numbers = `[${"1,".repeat(100_000)}12345678901234567891]`;
      for (const text of [
        ...["[]", "null", '"x"', "1", "{}", '{"type":"sing"}', '{"type":7}', '{"type":"constructor"}'],
        ...[payload(list(64)), payload("1e400"), payload('"\\ud83d"'), payload("9007199254740993"), payload(numbers)],
        ...[JSON.stringify({ ...area.message, surplus: 1 }), JSON.stringify({ ...area.message, __proto: 1 })],
      ]) {
        socket.send(text);
        let answer = await socket.next();
        while (answer["type"] !== "error") answer = await socket.next();
        expect({ text: text.slice(0, 80), code: answer["code"] }).toEqual({
          text: text.slice(0, 80),
          code: "INVALID_MESSAGE",
        });
      }
      socket.send(JSON.stringify({ ...area.message, surplus: 1 }));
      expect((await socket.nextOf("error"))["message"]).toContain("surplus");
      socket.send({ type: "ping", sentAt: 5 });
      await socket.nextOf("pong");
      await expectAlive(area, socket);
      await socket.close();
    });

    test("[SK11] a binary frame is INVALID_MESSAGE, and the connection stays open", async () => {
      const socket = await openRawSocket(`${platform.wsUrl}${area.path}`);
      const send = (opcode: number, message: JsonObject) =>
        socket.write(encodeFrame({ opcode, payload: Buffer.from(JSON.stringify(message)) }));
      send(OPCODE.text, { type: "auth", token: user.token });
      expect(await socket.until("auth_success", 5_000)).toBe(true);
      send(OPCODE.binary, { type: "ping" });
      expect(await socket.until("INVALID_MESSAGE", 5_000)).toBe(true);
      send(OPCODE.text, { type: "ping" });
      expect(await socket.until("pong", 5_000)).toBe(true);
      socket.close();
    });

    test("[SK12] a message that is too long is refused, and the connection stays open", async () => {
      const socket = await enter(area);
      socket.send(area.withPayload(`{"text":"${"x".repeat(400_000)}"}`));
      expect((await socket.nextOf("error"))["code"]).toBe(area.tooLarge);
      await expectAlive(area, socket);
      await socket.close();
    });

    test("[SK13] messages over the rate are dropped, and the connection stays open", async () => {
      const socket = await enter(area);
      const count = 200;
      for (let sent = 0; sent < count; sent++) socket.send({ type: "ping" });
      const answers: JsonObject[] = [];
      while (answers.length < count) answers.push(await socket.next());
      const dropped = answers.filter(({ code }) => code === "RATE_LIMITED");
      expect(answers.filter(({ type }) => type === "pong").length).toBe(count - dropped.length);
      // A slow machine may let through some more.
      expect(dropped.length).toBeGreaterThan(0);
      await until("messages are accepted again", async () => {
        socket.send({ type: "ping" });
        return (await socket.next())["type"] === "pong";
      });
      await socket.close();
    });

    test("[SK222] a connection may have thousands of messages dropped at once, and a flood closes it with 1008", async () => {
      const socket = await enter(area);
      const count = 3_000;
      for (let sent = 0; sent < count; sent++) socket.send("{}");
      for (let heard = 0; heard < count; heard++) await socket.expect({ type: "error" });
      for (let sent = 0; sent < 20_000; sent++) socket.send("{}");
      expect((await socket.closed).code).toBe(1008);
      expect(socket.pending.length).toBeLessThan(20_000);
      expect(socket.pending.at(-1)).toMatchObject({ type: "error", code: "RATE_LIMITED" });
    });

    test("[SK14] [SK13] a ping, and a message over the rate, do not wait for what is under way", async () => {
      const early = await open(area);
      early.send({ type: "ping" });
      await early.expect({ type: "pong" });
      await early.close();
      const socket = await authenticate({ ...area, path: area.slow.path });
      socket.send(area.slow.message);
      const count = 200;
      for (let sent = 0; sent < count; sent++) socket.send({ type: "ping" });
      const answers = new Set<unknown>();
      for (let heard = 0; heard < count; heard++) {
        const { type, code } = await socket.next();
        answers.add(code ?? type);
      }
      expect(answers).toEqual(new Set(["pong", "RATE_LIMITED"]));
      await socket.close();
    });
  });
}

test("[SK222] a flood of ping frames closes the connection with 1008", async () => {
  const url = `${platform.wsUrl}${AREAS[0]?.path}`;
  const [pinging, flooding] = [await openRawSocket(url), await openRawSocket(url)];
  const ping = encodeFrame({ opcode: OPCODE.ping, payload: new Uint8Array() });
  const pings = (count: number) => Buffer.concat(Array.from({ length: count }, () => ping));
  pinging.write(pings(900));
  pinging.write(encodeFrame({ opcode: OPCODE.text, payload: Buffer.from('{"type":"ping"}') }));
  expect(await pinging.until("pong", 10_000)).toBe(true);
  flooding.write(pings(50_000));
  await until("it is closed", () => flooding.isClosed);
  expect(flooding.closeCode).toBe(1008);
  expect(pinging.isClosed).toBe(false);
  pinging.close();
});

test("[SK7] [SK17] AUTH_TIMEOUT closes with 4000, and a server that stops with 1001", async () => {
  const config = `{ realtime: { authTimeout: 400 }, rooms: { game: { authTimeout: 400, access: { join: true } } } }`;
  const own = await testPlatform({ config });
  const who = await signIn(own);
  const timely = await Promise.all(AREAS.map((area) => authenticate(area, who, own)));
  for (const area of AREAS) await expectClosed(await open(area, own), "AUTH_TIMEOUT", 4000);
  for (const socket of timely) {
    socket.send({ type: "ping" });
    await socket.expect({ type: "pong" });
  }
  await own.restart();
  for (const socket of timely) expect((await socket.closed).code).toBe(1001);
  const unauthenticated = await Promise.all(AREAS.map((area) => open(area, own)));
  const closing = own.stop();
  for (const socket of unauthenticated) expect([1001, 4000]).toContain((await socket.closed).code);
  await closing;
});

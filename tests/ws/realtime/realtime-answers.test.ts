import { afterAll, beforeAll, expect, test } from "bun:test";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { connect } from "./realtime-support.ts";

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{ realtime: { messageRate: 20, access: {
      presence: (auth, channel) => channel !== "presence:staff",
      broadcast: async (auth, channel, event) => event !== "forbidden",
    } } }`,
  });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

test("[RT240] track, untrack and broadcast with a requestId are answered, done or refused", async () => {
  const socket = await connect(platform, user);
  socket.send({ type: "track", channel: "presence:lobby", state: {}, requestId: "1" });
  expect(await socket.next()).toEqual({ type: "done", requestId: "1" });
  socket.send({ type: "track", channel: "presence:lobby", state: { text: "x".repeat(2_000) }, requestId: "2" });
  await socket.expect({ type: "error", code: "STATE_TOO_LARGE", channel: "presence:lobby", requestId: "2" });
  socket.send({ type: "track", channel: "presence:staff", state: {}, requestId: "3" });
  await socket.expect({ type: "error", code: "ACCESS_DENIED", requestId: "3" });
  socket.send({ type: "untrack", channel: "presence:lobby", requestId: "4" });
  expect(await socket.next()).toEqual({ type: "done", requestId: "4" });
  const broadcast = { type: "broadcast", channel: "broadcast:chat", data: {} };
  socket.send({ ...broadcast, event: "hello", requestId: "5" });
  expect(await socket.next()).toEqual({ type: "done", requestId: "5" });
  socket.send({ ...broadcast, event: "forbidden", requestId: "6" });
  await socket.expect({ type: "error", code: "ACCESS_DENIED", requestId: "6" });
  socket.send({ ...broadcast, event: "hello", requestId: 7 });
  expect(await socket.next()).not.toHaveProperty("requestId");
  await socket.close();
});

test("[RT240] a message over the rate is refused with its requestId", async () => {
  const socket = await connect(platform, user);
  for (let index = 0; index < 100; index++) {
    socket.send({ type: "untrack", channel: "presence:lobby", requestId: String(index) });
  }
  const answers = [];
  for (let index = 0; index < 100; index++) answers.push(await socket.next());
  expect(new Set(answers.map((answer) => (answer as { requestId: string }).requestId)).size).toBe(100);
  const refused = answers.filter((answer) => answer["type"] === "error");
  expect(refused.length).toBeGreaterThan(50);
  expect(new Set(refused.map((answer) => answer["code"]))).toEqual(new Set(["RATE_LIMITED"]));
  await socket.close();
});

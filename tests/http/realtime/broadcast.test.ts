import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { connect, settled, subscribe } from "../../ws/realtime/realtime-support.ts";

const PATH = "/api/realtime/broadcast";
const GOOD = { channel: "broadcast:news", event: "breaking", payload: { headline: "x", n: [1, null] } };

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{ serviceKeys: {
      speaker: { key: "speaker-0123456789abcdef", scopes: ["realtime:*:*:broadcast"] },
      reader: { key: "reader-0123456789abcdef", scopes: ["storage:*:*:read"] },
    } }`,
  });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

test("[RT35] a broadcast reaches every subscriber of its channel and nobody else", async () => {
  const [one, two, elsewhere] = [
    await connect(platform, user),
    await connect(platform, user),
    await connect(platform, user),
  ];
  for (const socket of [one, two]) await subscribe(socket, GOOD.channel);
  await subscribe(elsewhere, "broadcast:newsroom");
  for (const caller of [platform.service, platform.withKey("speaker-0123456789abcdef")]) {
    const answer = await caller.post(PATH, GOOD);
    expect([answer.status, answer.body]).toEqual([200, { ok: true }]);
    for (const socket of [one, two]) {
      expect(await socket.next()).toEqual({
        ...{ type: "broadcast_event", channel: GOOD.channel, event: GOOD.event, data: GOOD.payload },
      });
    }
  }
  await settled(elsewhere);
  await Promise.all([one, two, elsewhere].map((socket) => socket.close()));
});

test("[RT35] no key is 401, a wrong one 403, one without the scope 403", async () => {
  expect((await platform.post(PATH, GOOD)).status).toBe(401);
  expect((await user.post(PATH, GOOD)).status).toBe(401);
  expect((await platform.withKey("wrong").post(PATH, GOOD)).status).toBe(403);
  expect((await platform.withKey("reader-0123456789abcdef").post(PATH, GOOD)).status).toBe(403);
  expect((await platform.post(PATH, {})).status).toBe(401);
});

test("[RT35] missing and malformed members are 400 and named", async () => {
  for (const [member, value, code] of [
    ["channel", undefined, "required"],
    ["channel", 7, "invalid_type"],
    ["channel", "news", "invalid_value"],
    ["channel", "broadcast:", "invalid_value"],
    ["channel", "presence:news", "invalid_value"],
    ["channel", `broadcast:${"x".repeat(600)}`, "invalid_value"],
    ["event", undefined, "required"],
    ["event", "", "invalid_value"],
    ["event", {}, "invalid_type"],
    ["payload", undefined, "required"],
    ["payload", "text", "invalid_type"],
    ["payload", [1], "invalid_type"],
  ] as const) {
    const body = JSON.parse(JSON.stringify({ ...GOOD, [member]: value }));
    const answer = await platform.service.post<ErrorAnswer>(PATH, body);
    expect([answer.status, answer.body.data?.[member]?.code]).toEqual([400, code]);
  }
  const large = await platform.service.post(PATH, { ...GOOD, payload: { text: "x".repeat(300_000) } });
  expect(large.status).toBe(413);
  const text = await platform.service.fetch(PATH, { method: "POST", body: "text" });
  expect(text.status).toBe(415);
});

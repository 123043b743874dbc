import { afterAll, beforeAll, expect, test } from "bun:test";
import { mailedToken, signUp } from "../../http/auth/auth-support.ts";
import { openSocket, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      databases: { shared: { tables: { staff: {
        access: { insert: true, read: (auth) => auth?.emailVerified === true && auth.email.endsWith("@example.com") },
      } } } },
      storage: { buckets: { files: { access: { read: true, write: (auth) => auth?.emailVerified === true } } } },
      rooms: { game: { access: { join: (auth) => auth?.emailVerified === true } } },
      realtime: { access: { presence: (auth) => auth?.emailVerified === true } },
    }`,
  });
});
afterAll(() => platform.stop());

async function connected(path: string, token: string) {
  const socket = await openSocket(`${platform.wsUrl}${path}`);
  socket.send({ type: "auth", token });
  await socket.expect({ type: "auth_success" });
  return socket;
}

test("[AU106] rules see whether the address is verified: tables, files, realtime and rooms, at once and with the same token", async () => {
  const { user, accessToken } = await signUp(platform);
  const caller = platform.as(accessToken);
  const list = async () => (await caller.get("/api/db/shared/tables/staff")).status;
  const sign = async () => (await caller.post("/api/storage/files/signed-upload-url", { key: "a.txt" })).status;
  const realtime = await connected("/api/realtime", accessToken);
  const room = await connected("/api/room?namespace=game&id=one", accessToken);
  const subscribe = (channel: string) => realtime.send({ type: "subscribe", channel });

  expect([await list(), await sign()]).toEqual([403, 403]);
  subscribe("realtime:shared:staff");
  await realtime.expect({ type: "error", code: "SUBSCRIBE_DENIED" });
  subscribe("presence:lobby");
  await realtime.expect({ type: "error", code: "SUBSCRIBE_DENIED" });
  room.send({ type: "join" });
  await room.expect({ type: "error", code: "JOIN_DENIED" });

  await caller.post("/api/auth/request-email-verification");
  const token = mailedToken(platform, String(user.email));
  expect((await platform.post("/api/auth/verify-email", { token })).status).toBe(200);

  expect([await list(), await sign()]).toEqual([200, 200]);
  subscribe("realtime:shared:staff");
  await realtime.expect({ type: "subscribed", channel: "realtime:shared:staff" });
  subscribe("presence:lobby");
  await realtime.expect({ type: "subscribed", channel: "presence:lobby" });
  const again = await connected("/api/room?namespace=game&id=one", accessToken);
  again.send({ type: "join" });
  await again.expect({ type: "sync" });
  for (const socket of [realtime, room, again]) await socket.close();
});

test("[AU106] an imported address is verified if the import says so", async () => {
  const email = "imported@example.com";
  const imported = await platform.service.post<{ results: { id: string }[] }>("/api/admin/auth/users/import", {
    users: [
      { email, password: "correct horse battery", verified: true },
      { email: `un${email}`, password: "correct horse battery" },
    ],
  });
  expect(imported.status).toBe(200);
  const statusOf = async (address: string) => {
    const { body } = await platform.post<{ accessToken: string }>("/api/auth/signin", {
      email: address,
      password: "correct horse battery",
    });
    return (await platform.as(body.accessToken).get("/api/db/shared/tables/staff")).status;
  };
  expect([await statusOf(email), await statusOf(`un${email}`)]).toEqual([200, 403]);
});

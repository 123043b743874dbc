import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  createAdministrator,
  openSocket,
  SERVICE_KEY,
  signIn,
  type TestPlatform,
  type TestSocket,
  testPlatform,
} from "../../support/index.ts";

const SYSTEM_KEY = "system-reader-key-0123456789abcdefghijklm";
const OTHER_KEY = "key-value-only-key-0123456789abcdefghijk";
const CONFIG = `{
  databases: { shared: { tables: {
    broken: { access: { read: (auth, record) => { throw new Error("first failure"); } } },
    hooked: { hooks: { beforeInsert: (auth, record) => { throw new Error("second failure of " + record.name); } } },
  } } },
  serviceKeys: {
    system: { key: "${SYSTEM_KEY}", scopes: ["system:*:*:read"] },
    other: { key: "${OTHER_KEY}", scopes: ["kv:namespace:*:read"] },
  },
}`;

interface Line {
  at: string;
  level: string;
  message: string;
  facts: Record<string, unknown> | null;
}

let platform: TestPlatform;
const sockets: TestSocket[] = [];
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(async () => {
  for (const socket of sockets) socket.terminate();
  await platform.stop();
});

const fail = async (name: string): Promise<string | null> => {
  const answer = await platform.service.post("/api/db/shared/tables/hooked", { name });
  expect(answer.status).toBe(500);
  return answer.headers.get("x-request-id");
};
const lines = async (query = ""): Promise<Line[]> => {
  const answer = await platform.withKey(SYSTEM_KEY).get<{ lines: Line[] }>(`/api/admin/logs?${query}`);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body.lines;
};
const connect = async (key: string): Promise<TestSocket> => {
  const administrator = await createAdministrator(platform, key);
  const { body } = await administrator.post<{ ticket: string }>("/api/admin/socket-ticket");
  const socket = await openSocket(`${platform.wsUrl}/api/admin/logs/live`);
  sockets.push(socket);
  socket.send({ type: "auth", token: body.ticket });
  await socket.nextOf("auth_success");
  return socket;
};

test("[SY20] the last lines, newest first, by level and text", async () => {
  const first = await fail("alpha");
  await fail("beta");
  const found = await lines("level=error&limit=2");
  expect(found.map(({ level, message }) => [level, message])).toEqual([
    ["error", "request failed"],
    ["error", "request failed"],
  ]);
  expect(JSON.stringify(found[0])).toContain("second failure of beta");
  expect(new Date(found[0]?.at ?? "").toISOString()).toBe(found[0]?.at ?? "");
  const alpha = await lines("q=FAILURE%20OF%20ALPHA");
  expect(alpha.map(({ facts }) => facts?.["requestId"])).toEqual([first]);
  expect(await lines("q=nothing-like-this")).toEqual([]);
  expect((await lines("level=info&limit=1000")).length).toBeGreaterThanOrEqual((await lines("level=error")).length);
  for (const query of ["level=loud", "limit=0", "limit=1001", "unknown=1", `q=${"x".repeat(257)}`]) {
    expect((await platform.withKey(SYSTEM_KEY).get(`/api/admin/logs?${query}`)).status).toBe(400);
  }
});

test("[SY20] the log is for service keys with the scope", async () => {
  const user = await signIn(platform);
  expect((await platform.get("/api/admin/logs")).status).toBe(401);
  expect((await user.get("/api/admin/logs")).status).toBe(401);
  expect((await platform.withKey(OTHER_KEY).get("/api/admin/logs")).status).toBe(403);
  expect((await platform.withKey(SYSTEM_KEY).get("/api/admin/logs")).status).toBe(200);
});

test("[SY21] no key and no token of a request is in the log", async () => {
  const user = await signIn(platform);
  await user.get("/api/db/shared/tables/broken");
  await fail("gamma");
  const all = JSON.stringify(await lines("limit=1000"));
  expect(all).not.toContain(SERVICE_KEY);
  expect(all).not.toContain(SYSTEM_KEY);
  expect(all).not.toMatch(/eyJ[\w-]+\.eyJ/);
});

test("[SY22] who follows gets each line that passes the filter, until another filter replaces it", async () => {
  const socket = await connect(SYSTEM_KEY);
  socket.send({ type: "follow", level: "error", q: "of delta" });
  await socket.nextOf("following");
  await fail("other");
  await fail("delta");
  const message = await socket.nextOf("line");
  expect(JSON.stringify(message["line"])).toContain("second failure of delta");
  socket.send({ type: "follow", q: "epsilon" });
  await socket.nextOf("following");
  await fail("delta");
  await fail("epsilon");
  expect(JSON.stringify(await socket.nextOf("line"))).toContain("of epsilon");
});

test("[SY22] without the scope, as a user or as nobody, nothing is followed", async () => {
  const socket = await connect(OTHER_KEY);
  socket.send({ type: "follow" });
  expect(await socket.nextOf("error")).toMatchObject({ code: "ACCESS_DENIED" });
  const user = await signIn(platform);
  for (const auth of [{ token: user.token }, { anonymous: true }]) {
    const other = await openSocket(`${platform.wsUrl}/api/admin/logs/live`);
    sockets.push(other);
    other.send({ type: "auth", ...auth });
    await other.nextOf("auth_success");
    other.send({ type: "follow" });
    expect(await other.nextOf("error")).toMatchObject({ code: "ACCESS_DENIED" });
  }
  const wrong = await openSocket(`${platform.wsUrl}/api/admin/logs/live`);
  sockets.push(wrong);
  wrong.send({ type: "auth", token: SYSTEM_KEY });
  expect(await wrong.next()).toMatchObject({ type: "auth_error" });
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import { signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { fcmConfig, pushWorld, register, TITLED } from "../push/push-support.ts";

interface Entry {
  address: string | null;
  actor: { kind: string; name: string | null };
  action: string;
  target: string;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

const OPEN = "{ create: true, open: true }";
const configOf = (push: string) => `{
  databases: { shared: { tables: { slow: { hooks: { beforeInsert: async (_, record) => { await Bun.sleep(300); return record; } } } } }, clubs: { instance: true, access: ${OPEN}, tables: { notes: { access: { read: true, insert: true } } } } },
  vectorize: { texts: { dimensions: 2 } },
  push: { fcm: ${push} },
  jobs: {
    fails: { retries: 0, run() { throw new Error("no luck"); } },
    lasts: { run: ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))) },
    other: { run() {} },
  },
  routes: (api) => api.post("/enqueue/:name", ({ params, app }) => app.jobs.enqueue(params.name, null, params.name === "other" ? { delay: 3600 } : {}).then((id) => ({ id })), { access: true })
    .post("/vectors", ({ app }) => app.vectors("texts").upsert([{ id: "code", values: [1, 2] }]).then((count) => ({ count })), { access: true }),
  rateLimits: { signin: { requests: 1000, window: 60 }, auth: { requests: 1000, window: 60 } },
}`;

let world: Awaited<ReturnType<typeof pushWorld>>;
let platform: TestPlatform;
beforeAll(async () => {
  world = await pushWorld();
  platform = await testPlatform({ config: configOf(JSON.stringify(fcmConfig(world.fcm))) });
}, 60_000);
afterAll(async () => {
  await platform.stop();
  await world.stop();
});

const entries = async (query: string): Promise<Entry[]> =>
  (await platform.service.get<{ entries: Entry[] }>(`/api/admin/audit?limit=200&${query}`)).body.entries;
/** The newest first. */
const shown = async (query: string) =>
  (await entries(query)).map(({ action, target, before, after }) => [action, target, before, after]);
/** One more than `REFRESH_ROTATIONS_KEPT` of src/server/areas/auth/limits.ts. */
const ROTATIONS = 65;
const ROOT = { kind: "serviceKey", name: "root" };

test("[AL11] vectors, by their metadata and without their values", async () => {
  const index = "/api/vectorize/texts";
  const vector = (id: string, metadata: Record<string, string>) => ({ id, values: [1, 2], metadata });
  const upsert = (...vectors: JsonValue[]) => platform.service.post(index, { action: "upsert", vectors });
  expect((await upsert(vector("a", { topic: "one" }))).status).toBe(200);
  await upsert(vector("a", { topic: "two", apiKey: "hidden" }));
  await platform.service.post(index, { action: "delete", ids: ["a", "none"] });
  expect(await shown("target=vectorize/texts/a")).toEqual([
    ["vector.delete", "vectorize/texts/a", { topic: "two", apiKey: "[hidden]" }, null],
    ["vector.upsert", "vectorize/texts/a", { topic: "one" }, { topic: "two", apiKey: "[hidden]" }],
    ["vector.upsert", "vectorize/texts/a", null, { topic: "one" }],
  ]);
  expect(await entries("target=vectorize/texts/none")).toEqual([]);
  expect((await entries("action=vector"))[0]?.actor).toEqual(ROOT);
  const many = Array.from({ length: 101 }, (_, n) => vector(`many-${n}`, { topic: String(n) }));
  await upsert(...many);
  expect(await shown("action=vector.batch")).toEqual([["vector.batch", "vectorize/texts", null, { upsert: 101 }]]);
  await platform.service.post(index, { action: "delete", ids: many.slice(1).map(({ id }) => id) });
  expect((await shown("action=vector.delete")).slice(0, 100)).toEqual(
    many
      .slice(1)
      .map(({ id, metadata }) => ["vector.delete", `vectorize/texts/${id}`, metadata, null])
      .reverse(),
  );
  // A batch that is refused, and code of the config.
  const before = (await entries("action=vector")).length;
  await upsert(vector("b", {}), { id: "wrong", values: [1] });
  expect((await platform.post("/api/functions/vectors", {})).status).toBe(200);
  expect((await entries("action=vector")).length).toBe(before);
});

test("[AL11] entries of vectors survive SIGKILL with their changes, each once", async () => {
  const index = "/api/vectorize/texts";
  const upserts = Array.from({ length: 20 }, (_, n) =>
    platform.service.post(index, { action: "upsert", vectors: [{ id: `kept-${n}`, values: [1, 2] }] }),
  );
  await Promise.all(upserts);
  await platform.kill("SIGKILL");
  await platform.restart();
  const kept = (await entries("action=vector.upsert")).filter(({ target }) => target.includes("/kept-"));
  expect(new Set(kept.map(({ target }) => target)).size).toBe(20);
  expect(kept).toHaveLength(20);
});

test("[AL1] the address is that of the client, also if it has left when its request is judged or its change is written", async () => {
  const { hostname, port } = new URL(platform.url);
  const leave = async (path: string, body: JsonValue, headers = "") => {
    const text = JSON.stringify(body);
    const left = Promise.withResolvers<void>();
    const socket = connect({ host: hostname, port: Number(port), localAddress: "127.0.0.9" });
    socket.on("error", left.reject).on("close", () => left.resolve());
    const head = `POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\n${headers}`;
    socket.write(`${head}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`, () => socket.destroy());
    await left.promise;
  };
  await leave("/api/auth/signin", { email: "left@example.com", password: "a wrong password" });
  await leave("/api/db/shared/tables/slow", { id: "left" }, `x-platform-service-key: ${platform.serviceKey}\r\n`);
  const addresses = async () => [
    ...(await entries("action=signin.failed")).filter(({ after }) => after?.["email"] === "left@example.com"),
    ...(await entries("target=db/shared/slow/left")),
  ];
  await until("both are in the log", async () => (await addresses()).length === 2);
  expect((await addresses()).map(({ address }) => address)).toEqual(["127.0.0.9", "127.0.0.9"]);
});

test("[AL12] jobs that administrators retry, run and cancel", async () => {
  const enqueue = async (name: string) =>
    (await platform.post<{ id: string }>(`/api/functions/enqueue/${name}`, {})).body.id;
  const stateOf = async (id: string) => {
    const { jobs } = (await platform.service.get<{ jobs: { id: string; state: string }[] }>("/api/admin/jobs")).body;
    return jobs.find((job) => job.id === id)?.state;
  };
  const change = async (id: string, action: string) =>
    (await platform.service.post(`/api/admin/jobs/${id}/${action}`)).status;
  const [failed, running, waiting] = [await enqueue("fails"), await enqueue("lasts"), await enqueue("other")];
  await until("one has failed", async () => (await stateOf(failed)) === "failed");
  await until("one runs", async () => (await stateOf(running)) === "running");
  expect([await change(failed, "retry"), await change(running, "cancel"), await change(waiting, "run-now")]).toEqual([
    200, 200, 200,
  ]);
  const cancelled = await enqueue("other");
  expect([await change(cancelled, "cancel"), await change(cancelled, "cancel"), await change("none", "retry")]).toEqual(
    [200, 409, 404],
  );
  expect((await shown("action=job")).toReversed()).toEqual([
    ["job.retry", `jobs/fails/${failed}`, null, null],
    ["job.cancel", `jobs/lasts/${running}`, null, null],
    ["job.run-now", `jobs/other/${waiting}`, null, null],
    ["job.cancel", `jobs/other/${cancelled}`, null, null],
  ]);
});

test("[AL13] messages that a service key sends, and devices that it changes", async () => {
  const user = await signIn(platform);
  await register(user, "phone");
  const send = async (path: string, body: JsonValue) => {
    expect([path, (await platform.service.post(`/api/push/${path}`, body)).status]).toEqual([path, 200]);
  };
  await send("send", { userId: user.id, ...TITLED });
  await send("send-many", { userIds: [user.id], ...TITLED });
  await send("send-to-topic", { topic: "news", payload: TITLED });
  await send("broadcast", { payload: TITLED });
  await send("send-to-token", { token: "a-device-token", platform: "android", payload: TITLED });
  const refused = await platform.service.post("/api/push/send", { userId: "nobody", ...TITLED });
  expect(refused.status).toBe(404);
  const setting = { userId: user.id, deviceId: "phone", metadata: { colour: "red" } };
  expect((await platform.service.patch("/api/push/tokens", setting)).status).toBe(200);
  expect((await platform.service.patch("/api/push/tokens", { ...setting, deviceId: "none" })).status).toBe(404);
  const counts = { sent: 1, failed: 0 };
  expect((await shown("action=push")).toReversed()).toEqual([
    ["push.send", `push/users/${user.id}`, null, counts],
    ["push.send", "push/users", null, { users: [user.id], ...counts }],
    ["push.send", "push/topics/news", null, null],
    ["push.send", "push/topics/all", null, null],
    ["push.send", "push/tokens", null, counts],
    ["push.metadata", `push/users/${user.id}/phone`, expect.anything(), { colour: "red" }],
  ]);
  expect(JSON.stringify(await entries("action=push"))).not.toContain("a-device-token");
});

test("[AL14] a deleted instance", async () => {
  await platform.service.post("/api/db/clubs/chess/tables/notes", { text: "x" });
  expect((await platform.service.delete("/api/admin/instances/clubs/chess")).status).toBe(200);
  expect((await platform.service.delete("/api/admin/instances/clubs/chess")).status).toBe(404);
  expect(await shown("action=instance")).toEqual([["instance.delete", "db/clubs/chess", null, null]]);
});

test("[AL14] what was changed in an instance shortly before its deletion is in the log", async () => {
  const names = ["one", "two", "three", "four", "five"];
  for (const name of names) {
    await platform.service.post(`/api/db/clubs/${name}/tables/notes`, { text: "x" });
    expect((await platform.service.delete(`/api/admin/instances/clubs/${name}`)).status).toBe(200);
  }
  const logged = await Promise.all(names.map((name) => entries(`target=db/clubs/${name}/notes`)));
  expect(logged.map((list) => list.map(({ action }) => action))).toEqual(names.map(() => ["record.insert"]));
});

test("[AL15] sign-outs and ended sessions, with why", async () => {
  const email = "ends@example.com";
  const password = "correct horse battery";
  const person = await signIn(platform, { email, password });
  const again = async () => {
    const answer = await platform.post<{ accessToken: string; refreshToken: string }>("/api/auth/signin", {
      email,
      password,
    });
    expect(answer.status).toBe(200);
    return answer.body;
  };
  const ends = async () =>
    (await entries(`target=users/${person.id}&action=signout`)).map(({ actor, after }) => [actor.name, after]);
  const bySignOut = await again();
  await platform.post("/api/auth/signout", { refreshToken: bySignOut.refreshToken });
  await platform.post("/api/auth/signout", { refreshToken: bySignOut.refreshToken });
  expect(await ends()).toEqual([[person.id, { sessions: 1, reason: "asked" }]]);
  await again();
  const sessions = (await person.get<{ sessions: { id: string; current: boolean }[] }>("/api/auth/sessions")).body
    .sessions;
  const other = sessions.find(({ current }) => !current);
  expect((await person.delete(`/api/auth/sessions/${other?.id}`)).status).toBe(200);
  expect(await ends()).toHaveLength(2);
  // A refresh token that was used before.
  const copied = await again();
  const refresh = (refreshToken: string) =>
    platform.post<{ refreshToken: string }>("/api/auth/refresh", { refreshToken });
  // More often than old ones are still accepted within their time of grace.
  let newest = copied.refreshToken;
  for (let turn = 0; turn < ROTATIONS; turn++) newest = (await refresh(newest)).body.refreshToken;
  expect((await refresh(copied.refreshToken)).status).toBe(401);
  expect((await ends())[0]).toEqual([person.id, { sessions: 1, reason: "reused" }]);
  const changed = { currentPassword: password, newPassword: "another horse battery" };
  await again();
  expect((await person.post("/api/auth/change-password", changed)).status).toBe(200);
  expect(await ends()).toContainEqual([person.id, expect.objectContaining({ reason: "credentials" })]);
  // What an administrator does has its own entry.
  const before = (await ends()).length;
  await platform.service.post(`/api/auth/admin/users/${person.id}/revoke`);
  expect((await ends()).length).toBe(before);
});

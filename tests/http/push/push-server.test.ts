import { expect, test } from "bun:test";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { startFcmServer } from "../../support/fcm-server.ts";
import { platformCommand, signIn, temporaryDirectory, testEnvironment, testPlatform } from "../../support/index.ts";
import { fcmConfig, logsOf, pushWorld, register, TITLED, tokensOf, until } from "./push-support.ts";

// Starts, stops and crashes of a server with push, and `app.push`.

test("[PU29] answered changes survive a killed process and a restart", async () => {
  const { platform, fcm, stop } = await pushWorld();
  const ann = await signIn(platform);
  await register(ann, "kept");
  await register(ann, "dropped");
  await ann.post("/api/push/topic/subscribe", { topic: "news" });
  await ann.post("/api/push/unregister", { token: "dropped" });
  await platform.service.post("/api/push/send", { userId: ann.id, ...TITLED });
  for (const end of [() => platform.kill(), () => platform.kill("SIGTERM")]) {
    await end();
    await platform.restart();
    expect(await tokensOf(platform, ann.id)).toEqual(["kept"]);
    expect(await logsOf(platform, { userId: ann.id })).toMatchObject([{ status: "sent", ...TITLED }]);
  }
  await platform.service.post("/api/push/send-to-topic", { topic: "news", payload: TITLED });
  await until(() => fcm.taken("kept").length === 2, "the subscription was there");
  await stop();
});

test("[PU13, PU30] a message to a topic is answered before it is sent; a stop ends running calls, and a restart continues", async () => {
  const { platform, fcm, stop } = await pushWorld();
  const users = [await signIn(platform), await signIn(platform)];
  for (const [index, user] of users.entries()) {
    const tokens = Array.from({ length: 50 }, (_, device) => `hang-${index}-${device}`);
    await Promise.all(tokens.map((token) => register(user, token)));
  }
  expect((await platform.service.post("/api/push/broadcast", { payload: TITLED })).status).toBe(200);
  expect((await platform.service.post("/api/push/broadcast", { payload: TITLED })).status).toBe(200);
  await until(() => fcm.calls.length === 40, "calls are under way, and some are left to others");
  expect(await logsOf(platform)).toEqual([]);
  // A message to one token does not wait for the broadcasts.
  const direct = await platform.service.post("/api/push/send-to-token", { token: "quick", payload: TITLED });
  expect(direct.body).toEqual({ sent: 1, failed: 0 });
  const unanswered = platform.service.post("/api/push/send-to-token", { token: "hang-direct", payload: TITLED });
  await until(() => fcm.calls.length === 42, "this one is under way as well");
  expect(await platform.kill("SIGTERM")).toBe(0);
  expect((await unanswered).body).toEqual({ sent: 0, failed: 1 });
  const said = platform.stderr() + platform.stdout();
  expect(said.match(/push: stopped before a topic was done/g)?.length).toBe(2);
  expect(said.match(/devices\W+100/g)?.length).toBe(2);
  await platform.restart();
  const logs = await logsOf(platform, { limit: 1000 });
  const given = logs.filter(({ error }) => error === "The server stopped before the provider had answered");
  expect([logs.length, given.length]).toEqual([2, 1]);
  await until(() => fcm.calls.length === 82, "the first broadcast continues");
  await platform.kill();
  await stop();
});

test("[PU200] a message to a topic survives SIGKILLs: every device has it, and its job shows how far it is", async () => {
  const { platform, fcm, stop } = await pushWorld();
  const users = [await signIn(platform), await signIn(platform), await signIn(platform), await signIn(platform)];
  const all: string[] = [];
  for (const [index, user] of users.entries()) {
    const tokens = Array.from({ length: 50 }, (_, device) => `slow-kill-${index}-${device}`);
    await Promise.all(tokens.map((token) => register(user, token)));
    all.push(...tokens);
  }
  expect((await platform.service.post("/api/push/broadcast", { payload: TITLED })).status).toBe(200);
  for (const reached of [20, 90]) {
    await until(() => fcm.calls.length >= reached, "some are under way");
    await platform.kill();
    await platform.restart();
  }
  await until(() => all.every((token) => fcm.taken(token).length > 0), "every device has it");
  type Jobs = { jobs: { state: string; data: JsonObject; attempt: number }[] };
  const job = async () => (await platform.service.get<Jobs>("/api/admin/jobs?name=platform.push")).body.jobs[0];
  await until(async () => (await job())?.state === "done", "its job is done");
  expect(await job()).toMatchObject({ attempt: 3, data: { topic: "all", message: TITLED } });
  await stop();
}, 60_000);

test("[PU200] [JB31] a message to a topic whose job is cancelled reaches no further devices", async () => {
  const { platform, fcm, stop } = await pushWorld();
  const users = [await signIn(platform), await signIn(platform), await signIn(platform), await signIn(platform)];
  for (const [index, user] of users.entries()) {
    const tokens = Array.from({ length: 50 }, (_, device) => `slow-cancel-${index}-${device}`);
    await Promise.all(tokens.map((token) => register(user, token)));
  }
  const last = await signIn(platform);
  await register(last, "last");
  await last.post("/api/push/topic/subscribe", { topic: "news" });
  await platform.service.post("/api/push/broadcast", { payload: TITLED });
  await until(() => fcm.calls.length >= 20, "some are under way");
  const list = await platform.service.get<{ jobs: { id: string }[] }>("/api/admin/jobs?name=platform.push");
  expect((await platform.service.post(`/api/admin/jobs/${list.body.jobs[0]?.id}/cancel`)).status).toBe(200);
  // Messages are sent one after another: when this one comes, the first has ended.
  await platform.service.post("/api/push/send-to-topic", { topic: "news", payload: { ...TITLED, title: "next" } });
  await until(
    () => fcm.taken("last").some(({ notification }) => JSON.stringify(notification).includes("next")),
    "it came",
  );
  expect(fcm.calls.filter(({ token }) => token.startsWith("slow-cancel-")).length).toBeLessThan(150);
  await stop();
});

test("[PU200] [JB31] a message to a topic that is cancelled and retried reaches every device once", async () => {
  const { platform, fcm, stop } = await pushWorld();
  const users = [await signIn(platform), await signIn(platform)];
  const all: string[] = [];
  for (const [index, user] of users.entries()) {
    const tokens = Array.from({ length: 50 }, (_, device) => `slow-retry-${index}-${device}`);
    await Promise.all(tokens.map((token) => register(user, token)));
    all.push(...tokens);
  }
  await platform.service.post("/api/push/broadcast", { payload: TITLED });
  type Jobs = { jobs: { id: string; state: string }[] };
  const job = async () => (await platform.service.get<Jobs>("/api/admin/jobs?name=platform.push")).body.jobs[0];
  const change = async (action: string) =>
    (await platform.service.post(`/api/admin/jobs/${(await job())?.id}/${action}`)).status;
  const takenOnes = () => all.filter((token) => fcm.taken(token).length > 0).length;
  // Retried while its last calls are under way, and when they have been answered.
  for (const [reached, isAnswered] of [
    [10, () => true],
    [50, () => takenOnes() === fcm.calls.length],
  ] as const) {
    await until(() => fcm.calls.length >= reached, "some are under way");
    expect(await change("cancel")).toBe(200);
    await until(isAnswered, "they are answered");
    // 409 until its last calls have ended, so that it never runs twice at once.
    await until(async () => (await change("retry")) === 200, "it is retried");
  }
  await until(async () => (await job())?.state === "done", "its job is done");
  expect(fcm.calls.map(({ token }) => token).sort()).toEqual(all.sort());
  await stop();
});

test("[PU34] at most a thousand messages to topics are queued", async () => {
  const { platform, stop } = await pushWorld();
  const ann = await signIn(platform);
  await register(ann, "hang-ann");
  const post = () => platform.service.post("/api/push/broadcast", { payload: TITLED });
  const statuses = (await Promise.all(Array.from({ length: 1_010 }, post))).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200).length).toBe(1_000);
  expect(statuses.filter((status) => status === 503).length).toBe(10);
  await platform.kill();
  await stop();
});

test("[PU32] a hook sends through app.push, with the same checks", async () => {
  const fcm = await startFcmServer();
  const platform = await testPlatform({
    config: `{
      push: { fcm: ${JSON.stringify(fcmConfig(fcm))} },
      databases: { shared: { tables: { calls: {
        schema: { method: { type: "string" }, args: { type: "json" }, result: { type: "json" } },
        access: { insert: true, read: true },
        hooks: {
          async beforeInsert(auth, record, app) {
            try {
              return { ...record, result: (await app.push[record.method](...record.args)) ?? null };
            } catch (error) {
              return { ...record, result: { status: error.status ?? 0, fields: Object.keys(error.data ?? {}) } };
            }
          },
        },
      } } } },
    }`,
  });
  const ann = await signIn(platform);
  await register(ann, "hooked");
  const call = async (method: string, ...args: JsonObject[string][]) =>
    (await platform.post("/api/db/shared/tables/calls", { method, args })).body["result"];
  expect(await call("send", ann.id, TITLED)).toEqual({ sent: 1, failed: 0 });
  expect(await call("send", ann.id, { silent: true, data: { n: 1 } })).toEqual({ sent: 1, failed: 0 });
  expect(await call("send", "nobody", TITLED)).toEqual({ sent: 0, failed: 0 });
  expect(await call("sendMany", [ann.id, ann.id], TITLED)).toEqual({ sent: 1, failed: 0 });
  expect(await call("sendToToken", "bare", TITLED, { platform: "ios" })).toEqual({ sent: 1, failed: 0 });
  expect(await call("setMetadata", ann.id, "hooked", { model: "x" })).toBeNull();
  expect(await call("devices", ann.id)).toEqual([
    { id: "hooked", token: "hooked", platform: "android", metadata: { model: "x" }, createdAt: expect.any(String) },
  ]);
  expect(await call("sendToTopic", "nobody", TITLED)).toBeNull();
  expect(await call("broadcast", { ...TITLED, title: "last" })).toBeNull();
  await until(() => fcm.taken("hooked").length === 4, "the broadcast came");
  expect(await call("send", ann.id, { title: "alone" })).toEqual({ status: 400, fields: ["payload.body"] });
  expect(await call("sendToToken", "t", TITLED, { platform: "symbian" })).toMatchObject({ status: 400 });
  expect(await call("sendToTopic", "a b", TITLED)).toMatchObject({ status: 400 });
  expect(await call("setMetadata", ann.id, "other", {})).toMatchObject({ status: 404 });
  await platform.stop();
  await fcm.stop();
});

test("[PU33] the account may be in a file, and unusable credentials prevent the start", async () => {
  const fcm = await startFcmServer();
  const directory = temporaryDirectory();
  const account = join(directory, "account.json");
  await Bun.write(account, JSON.stringify({ ...fcm.serviceAccount, type: "service_account" }));
  const platform = await testPlatform({ config: { push: { fcm: { ...fcmConfig(fcm), serviceAccount: account } } } });
  const sent = await platform.service.post("/api/push/send-to-token", { token: "t", payload: TITLED });
  expect(sent.body).toEqual({ sent: 1, failed: 0 });
  await platform.stop();
  await fcm.stop();

  const config = join(directory, "platform.config.ts");
  const keys = { publicKey: "BPx_-1", privateKey: "c2VjcmV0" };
  const wrong: [push: JsonObject, problem: string][] = [
    [
      { fcm: { projectId: "p", serviceAccount: join(directory, "none.json") } },
      "push.fcm.serviceAccount: cannot be read",
    ],
    [{ webPush: { subject: "mailto:a@example.com", ...keys } }, "push.webPush.privateKey: must be a VAPID private key"],
  ];
  for (const [push, problem] of wrong) {
    await Bun.write(config, `export default ${JSON.stringify({ push })}`);
    const args = ["start", "--config", config, "--data", join(directory, "data"), "--port", "0"];
    const child = Bun.spawn([...platformCommand(), ...args], {
      env: testEnvironment(),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const said = await child.stderr.text();
    expect([await child.exited, said.includes(problem)]).toEqual([1, true]);
    expect(said).not.toContain("c2VjcmV0");
  }
});

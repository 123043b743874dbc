import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  type ErrorAnswer,
  openSocket,
  platformCommand,
  signIn,
  type TestPlatform,
  testPlatform,
} from "../../support/index.ts";

let platform: TestPlatform;
const members = (id: string) => `/api/db/clubs/${id}/tables/members`;
const ADMIN = "/api/admin/instances/clubs";
const folder = () => join(platform.dataDirectory, "databases", "clubs");
const filesOf = (id: string) => readdirSync(folder()).filter((name) => name.startsWith(`${id}.db`));

/** Files by which a rule of the config and a test wait for each other. */
const signs = mkdtempSync(join(tmpdir(), "signs-"));

beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      serviceKeys: {
        reader: { key: "key-reader-0123456789abcdef", scopes: ["db:clubs:*:read"] },
        deleter: { key: "key-deleter-0123456789abcdef", scopes: ["db:clubs:*:delete"] },
        ofTable: { key: "key-table-0123456789abcdef", scopes: ["db:clubs:members:read", "db:clubs:members:delete"] },
      },
      databases: {
        shared: { tables: {
          notes: { access: { read: true } },
          reports: { access: { read: (_auth, _record, { db }) => db("clubs", "vip").table("members").get("m0") !== null } },
          calls: { schema: { text: { type: "text" } }, hooks: { async beforeInsert(_auth, record, app) {
            const { instances } = app.db("clubs");
            if (record.text.startsWith("delete ")) return { text: String(await instances.delete(record.text.slice(7))) };
            if (record.text.startsWith("exists ")) return { text: String(await instances.exists(record.text.slice(7))) };
            return { text: JSON.stringify(await instances.list({ prefix: record.text, limit: 2 })) };
          } } },
        } },
        clubs: { instance: true,
          access: { create: (auth) => auth?.role === "admin", open: async (auth, id) => { if (id === "slow") { await Bun.write("${signs}/" + crypto.randomUUID() + ".asked", "x"); while (!(await Bun.file("${signs}/go").exists())) await Bun.sleep(5); } return auth !== null; } },
          tables: { members: { schema: { name: { type: "text" } }, access: { read: true, insert: true, update: true } } } },
      } }`,
  });
});
afterAll(async () => {
  await platform.stop();
  rmSync(signs, { recursive: true });
});

const fill = async (id: string, count = 1) => {
  const inserts = Array.from({ length: count }, (_, n) => ({ id: `m${n}`, name: `Member ${n}` }));
  expect((await platform.service.post(`${members(id)}/batch`, { inserts })).status).toBe(200);
};
type Listed = {
  instances: { id: string; bytes: number; createdAt: string; writtenAt: string }[];
  cursor: string | null;
};
const list = async (query: Record<string, string | number> = {}) => {
  const answer = await platform.service.get<Listed>(ADMIN, { query });
  expect(answer.status).toBe(200);
  return answer.body;
};
const totalOf = async (id: string) => (await platform.service.get<{ total: number }>(members(id))).body.total;

test("[TB440] the instances of a namespace are listed by id, with prefix, limit and cursor", async () => {
  expect(await list()).toEqual({ instances: [], cursor: null });
  const ids = Array.from({ length: 25 }, (_, n) => `list-${String(n).padStart(2, "0")}`);
  for (const id of [...ids, "other"]) await fill(id);
  const seen: string[] = [];
  let after = "";
  do {
    const page = await list({ prefix: "list-", limit: 10, ...(after === "" ? {} : { after }) });
    seen.push(...page.instances.map(({ id }) => id));
    after = page.cursor ?? "";
  } while (after !== "");
  expect(seen).toEqual(ids);
  expect((await list({ limit: 5_000 })).instances.length).toBe(26);
  const [other] = (await list({ prefix: "other" })).instances;
  expect(other?.bytes).toBeGreaterThan(4_096);
  expect(Date.parse(other?.createdAt ?? "")).toBeLessThanOrEqual(Date.parse(other?.writtenAt ?? ""));
  const before = Date.now();
  while (Date.now() <= before) await Bun.sleep(1);
  expect((await platform.service.patch(`${members("other")}/m0`, { name: "x".repeat(100_000) })).status).toBe(200);
  const [written] = (await list({ prefix: "other" })).instances;
  expect(Date.parse(written?.writtenAt ?? "")).toBeGreaterThan(Date.parse(other?.writtenAt ?? ""));
  expect(written?.bytes).toBeGreaterThan(other?.bytes ?? 0);
  for (const query of ["limit=0", "nope=1"]) expect((await platform.service.get(`${ADMIN}?${query}`)).status).toBe(400);
});

test("[TB441] instances need a service key for the whole namespace", async () => {
  await fill("guarded");
  const reader = platform.withKey("key-reader-0123456789abcdef");
  const deleter = platform.withKey("key-deleter-0123456789abcdef");
  const ofTable = platform.withKey("key-table-0123456789abcdef");
  const user = await signIn(platform);
  const statuses = async (path: string, method: "get" | "delete") =>
    Promise.all([platform, user, ofTable, reader, deleter].map(async (client) => (await client[method](path)).status));
  expect(await statuses(`${ADMIN}?prefix=guarded`, "get")).toEqual([401, 401, 403, 200, 403]);
  expect(await statuses(`${ADMIN}/guarded`, "delete")).toEqual([401, 401, 403, 403, 200]);
  for (const [path, status] of [
    ["/api/admin/instances/nope", 404],
    ["/api/admin/instances/shared", 404],
  ] as const) {
    expect((await platform.service.get(path)).status).toBe(status);
    expect((await platform.service.delete(`${path}/x`)).status).toBe(status);
  }
  expect((await platform.service.delete(`${ADMIN}/not.an.id`)).status).toBe(400);
  expect((await platform.service.delete(`${ADMIN}/missing`)).status).toBe(404);
});

test("[TB442] a deleted instance is gone at once and after a restart; a new one of its id is empty", async () => {
  await fill("gone", 20);
  expect(await platform.service.delete(`${ADMIN}/gone`)).toMatchObject({ status: 200, body: { ok: true } });
  expect(filesOf("gone")).toEqual([]);
  expect(await totalOf("gone")).toBe(0);
  expect((await platform.service.get(`${members("gone")}/m1`)).status).toBe(404);
  expect((await list({ prefix: "gone" })).instances).toEqual([]);
  expect((await platform.service.delete(`${ADMIN}/gone`)).status).toBe(404);
  await fill("gone", 2);
  expect(await totalOf("gone")).toBe(2);
  await fill("kept", 3);
  expect((await platform.service.delete(`${ADMIN}/gone`)).status).toBe(200);
  await platform.kill();
  await platform.restart();
  expect(existsSync(join(folder(), "gone.db"))).toBe(false);
  expect([await totalOf("gone"), await totalOf("kept")]).toEqual([0, 3]);
});

test("[TB443] deleting ends the subscriptions to the instance, and a new one of its id does not reach them", async () => {
  await fill("watched", 1);
  await fill("beside", 1);
  const user = await signIn(platform);
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`, { authorization: `Bearer ${user.token}` });
  socket.send({ type: "auth", token: user.token });
  const channels = ["watched", "beside"].map((id) => `realtime:clubs:${id}:members`);
  for (const channel of channels) {
    socket.send({ type: "subscribe", channel });
    await socket.nextOf("subscribed");
  }
  expect((await platform.service.delete(`${ADMIN}/watched`)).status).toBe(200);
  expect(await socket.nextOf("auth_refreshed")).toMatchObject({ revokedChannels: [channels[0]] });
  await fill("watched", 1);
  expect((await platform.service.post(members("beside"), { id: "b", name: "b" })).status).toBe(201);
  expect(await socket.next()).toMatchObject({ channel: channels[1] });
  socket.send({ type: "subscribe", channel: channels[0] ?? "", since: 1 });
  expect(await socket.nextOf("subscribed")).toMatchObject({ resync: true });
  await socket.close();
});

test("[TB443] deleting ends subscriptions elsewhere whose rules looked at the instance", async () => {
  await fill("vip");
  const user = await signIn(platform);
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`);
  socket.send({ type: "auth", token: user.token });
  socket.send({ type: "subscribe", channel: "realtime:shared:reports" });
  await socket.nextOf("subscribed");
  expect((await platform.service.delete(`${ADMIN}/vip`)).status).toBe(200);
  expect(await socket.nextOf("auth_refreshed")).toMatchObject({ revokedChannels: ["realtime:shared:reports"] });
  await socket.close();
});

test("[TB444] queries under way end, and requests that began before see nothing of the next instance", async () => {
  await fill("busy", 500);
  for (let part = 0; part < 20; part++) {
    const inserts = Array.from({ length: 500 }, () => ({ name: "a".repeat(1_000) }));
    expect((await platform.service.post(`${members("busy")}/batch`, { inserts })).status).toBe(200);
  }
  const contains = Array.from({ length: 5 }, (_, n) => ["name", "contains", `${"a".repeat(900)}${n}`]);
  const slow = platform.service.get<ErrorAnswer>(`${members("busy")}/count`, {
    query: { orFilter: JSON.stringify(contains) },
  });
  const running = async () =>
    /^platform_long_reads_running (\d+)$/m.exec(await (await platform.service.fetch("/metrics")).text())?.[1];
  while ((await running()) !== "1") await Bun.sleep(5);
  expect((await platform.service.delete(`${ADMIN}/busy`)).status).toBe(200);
  expect((await slow).status).toBe(404);
  expect(filesOf("busy")).toEqual([]);

  // Its open rule is awaited while the instance is deleted: the write may not create another one.
  await fill("slow");
  const user = await signIn(platform);
  const late = user.post(members("slow"), { name: "late" });
  const read = user.get<{ total: number }>(members("slow"));
  while (readdirSync(signs).length < 2) await Bun.sleep(5);
  expect((await platform.service.delete(`${ADMIN}/slow`)).status).toBe(200);
  await fill("slow", 3);
  writeFileSync(join(signs, "go"), "");
  expect((await late).status).toBe(404);
  expect((await read).status).toBe(404);
  expect(await totalOf("slow")).toBe(3);
});

test("[TB445] deletions, reads and writes of one instance at once leave it whole or gone", async () => {
  for (let round = 0; round < 15; round++) {
    const write = (n: number) =>
      platform.service.post<JsonObject>(members("race"), { id: `w${round}-${n}`, name: "x" });
    const answers = await Promise.all([
      write(0),
      platform.service.delete(`${ADMIN}/race`),
      write(1),
      platform.service.get(members("race")),
      write(2),
      platform.service.delete(`${ADMIN}/race`),
      write(3),
    ]);
    const statuses = answers.map(({ status }) => status);
    expect([round, statuses.filter((status) => ![200, 201, 404].includes(status))]).toEqual([round, []]);
    await write(4);
    const ids = (await platform.service.get<{ items: JsonObject[] }>(members("race"))).body.items.map(({ id }) => id);
    expect(ids).toContain(`w${round}-4`);
    // Nothing of a round before survives two deletions, unless neither of them found the instance.
    if (statuses[1] === 200 || statuses[5] === 200)
      expect(ids.every((id) => String(id).startsWith(`w${round}-`))).toBe(true);
  }
  expect((await list({ prefix: "race" })).instances.map(({ id }) => id)).toEqual(["race"]);
});

test("[TB446] app.db(namespace).instances lists, finds and deletes", async () => {
  for (const id of ["app-a", "app-b", "app-c"]) await fill(id);
  const call = async (text: string) =>
    (await platform.service.post<{ text: string }>("/api/db/shared/tables/calls", { text })).body.text;
  expect(JSON.parse(await call("app-"))).toMatchObject({
    instances: [{ id: "app-a" }, { id: "app-b" }],
    cursor: "app-b",
  });
  expect([
    await call("exists app-a"),
    await call("delete app-a"),
    await call("exists app-a"),
    await call("delete app-a"),
  ]).toEqual(["true", "true", "false", "false"]);
  expect(filesOf("app-a")).toEqual([]);
});

test("[TB447] a backup while instances are deleted is complete", async () => {
  for (let n = 0; n < 30; n++) await fill(`backup-${n}`);
  const command = [...platformCommand(), "backup", join(signs, "backup.tar"), "--data", platform.dataDirectory];
  const backup = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  for (let n = 0; n < 30; n++) expect((await platform.service.delete(`${ADMIN}/backup-${n}`)).status).toBe(200);
  expect([await backup.stderr.text(), await backup.exited]).toEqual([expect.any(String), 0]);
});

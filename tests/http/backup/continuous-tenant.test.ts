import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { signIn, type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { type ChangeEvent, connect, subscribe } from "../../ws/realtime/realtime-support.ts";
import { until } from "../storage/storage-support.ts";
import { type RecordFile, sendForm, textOf } from "../tables/tables-files-support.ts";
import { historyOf, numbersIn, restored, untilPassed, untilWhole, upTo } from "./continuous-support.ts";

const TIMEOUT_MS = 120_000;
const KEY = "restorer-key-0123456789";

const config = (folder: string) => `{
  databases: {
    shared: { tables: { notes: { schema: { n: { type: "integer" } } } } },
    clubs: {
      instance: true,
      access: { create: true, open: true },
      tables: {
        members: { schema: { n: { type: "integer" }, text: { type: "text" } }, fts: ["text"], access: { read: true } },
        visits: { schema: { member: { type: "text", references: "members", onDelete: "cascade" } } },
        duties: { schema: { noteId: { references: "shared/notes", onDelete: "setNull" } } },
        papers: { schema: { file: { type: "file", bucket: "files" } }, access: { read: true } },
      },
    },
  },
  storage: { buckets: { files: {} } },
  serviceKeys: { restorer: { key: "${KEY}", scopes: ["*:*:*:*"] } },
  backups: { continuous: { to: { folder: ${JSON.stringify(folder)} }, everyMs: 250, verify: false } },
}`;

let platform: TestPlatform;
let place: string;
beforeAll(async () => {
  place = join(temporaryDirectory(), "store");
  platform = await testPlatform({ config: config(place) });
  await add("first", 0);
  await untilWhole(place);
}, TIMEOUT_MS);
afterAll(() => platform.stop());

const tablesOf = (id: string) => `/api/db/clubs/${id}/tables`;
const restore = (id: string, body: object) =>
  platform.service.post<{ at: string; tables: Counts }>(`/api/admin/instances/clubs/${id}/restore`, body as never);

async function add(id: string, n: number): Promise<string> {
  const { status, body } = await platform.service.post<{ id: string }>(`${tablesOf(id)}/members`, {
    n,
    text: `word${n}`,
  });
  expect(status).toBe(201);
  expect((await platform.service.post(`${tablesOf(id)}/visits`, { member: body.id })).status).toBe(201);
  return body.id;
}

async function numbersOf(id: string): Promise<number[]> {
  const { body } = await platform.service.get<{ items: { n: number }[] }>(`${tablesOf(id)}/members?sort=n&limit=100`);
  return body.items.map(({ n }) => n);
}

type Counts = Record<string, { then: number; now: number }>;

/** Lists tables with their records at a moment and before the restore. */
const listed = (tables: Counts) => Object.entries(tables).map(([name, counts]) => [name, counts.then, counts.now]);

/** Returns a moment between what was answered before and what is asked later. */
async function moment(): Promise<string> {
  await Bun.sleep(5);
  const at = new Date().toISOString();
  await Bun.sleep(5);
  return at;
}

test(
  "[BK360] an instance gets the content of a moment, and a preview says how many records each table has and changes nothing",
  async () => {
    for (const n of upTo(5)) await add("a", n);
    const at = await moment();
    const { body: page } = await platform.service.get<{ items: { id: string }[] }>(
      `${tablesOf("a")}/members?limit=100`,
    );
    for (const { id } of page.items) await platform.service.delete(`${tablesOf("a")}/members/${id}`);
    await add("a", 100);
    const later = await moment();
    const preview = await restore("a", { at, preview: true });
    expect([preview.status, preview.body.at]).toEqual([200, at]);
    expect(listed(preview.body.tables)).toEqual([
      ["members", 5, 1],
      ["visits", 5, 1],
      ["duties", 0, 0],
      ["papers", 0, 0],
    ]);
    expect(await numbersOf("a")).toEqual([100]);
    expect((await restore("a", { at })).body).toEqual(preview.body);
    expect(await numbersOf("a")).toEqual(upTo(5));
    const { body: found } = await platform.service.get<{ items: unknown[] }>(`${tablesOf("a")}/members/search?q=word3`);
    expect(found.items).toHaveLength(1);
    await add("a", 5);
    // What it replaced is in the history too.
    expect(listed((await restore("a", { at: later })).body.tables)[0]).toEqual(["members", 1, 6]);
    expect(await numbersOf("a")).toEqual([100]);
  },
  TIMEOUT_MS,
);

test(
  "[BK361] a subscription gets resync, and a client that comes back from before too",
  async () => {
    for (const n of upTo(3)) await add("b", n);
    const at = await moment();
    await add("b", 3);
    const channel = "realtime:clubs:b:members";
    const user = await signIn(platform);
    const socket = await connect(platform, user);
    const first = await subscribe(socket, channel);
    await add("b", 4);
    const change = await socket.nextOf<ChangeEvent>("db_change");
    expect((await restore("b", { at })).status).toBe(200);
    const again = await socket.nextOf<{ seq: number }>("subscribed");
    expect(again).toMatchObject({ channel, resync: true });
    expect(again.seq).toBeGreaterThan(first.seq);
    await add("b", 5);
    expect(await socket.nextOf("db_change")).toMatchObject({ data: { n: 5 } });
    for (const since of [first.seq, change.seq]) {
      const other = await connect(platform, user);
      other.send({ type: "subscribe", channel, since });
      expect(await other.nextOf("subscribed")).toMatchObject({ resync: true });
      await other.close();
    }
    const other = await connect(platform, user);
    other.send({ type: "subscribe", channel, since: again.seq });
    expect(await other.nextOf("subscribed")).not.toHaveProperty("resync");
    expect(await other.nextOf("db_change")).toMatchObject({ data: { n: 5 } });
    expect(await numbersOf("b")).toEqual([0, 1, 2, 5]);
  },
  TIMEOUT_MS,
);

test(
  "[BK362] an instance that was deleted is made again, with the files of its records",
  async () => {
    await add("c", 1);
    const { body: paper } = await sendForm<{ id: string; file: RecordFile }>(
      platform.service,
      `${tablesOf("c")}/papers`,
      {
        record: { id: "p" },
        files: [{ field: "file", content: "paper", name: "p.txt" }],
      },
    );
    const at = await moment();
    expect((await platform.service.delete("/api/admin/instances/clubs/c")).status).toBe(200);
    // The bytes are removed a second after their record.
    const file = join(platform.dataDirectory, "storage", "objects", paper.file.id.slice(-2), paper.file.id);
    await until("the bytes are gone", () => !existsSync(file));
    const { body } = await restore("c", { at });
    expect(listed(body.tables)).toEqual([
      ["members", 1, 0],
      ["visits", 1, 0],
      ["duties", 0, 0],
      ["papers", 1, 0],
    ]);
    expect(await numbersOf("c")).toEqual([1]);
    const { body: again } = await platform.service.get<{ file: RecordFile }>(`${tablesOf("c")}/papers/p`);
    expect(await textOf(platform.service, again.file.url)).toBe("paper");
    // A file that came after the moment goes with its record.
    const { body: late } = await sendForm<{ file: RecordFile }>(platform.service, `${tablesOf("c")}/papers`, {
      record: { id: "late" },
      files: [{ field: "file", content: "late", name: "l.txt" }],
    });
    expect((await restore("c", { at })).status).toBe(200);
    const lateFile = join(platform.dataDirectory, "storage", "objects", late.file.id.slice(-2), late.file.id);
    await until("the later bytes are gone", () => !existsSync(lateFile));
    expect(await textOf(platform.service, again.file.url)).toBe("paper");
  },
  TIMEOUT_MS,
);

test(
  "[BK362] references to records of another file that are gone by now end",
  async () => {
    for (const id of ["kept", "gone"]) {
      expect((await platform.service.post("/api/db/shared/tables/notes", { id, n: 1 })).status).toBe(201);
      expect((await platform.service.post(`${tablesOf("f")}/duties`, { id, noteId: id })).status).toBe(201);
    }
    const at = await moment();
    expect((await platform.service.delete("/api/db/shared/tables/notes/gone")).status).toBe(200);
    expect((await restore("f", { at })).status).toBe(200);
    const { body } = await platform.service.get<{ items: { id: string; noteId: string | null }[] }>(
      `${tablesOf("f")}/duties?sort=id`,
    );
    expect(body.items.map(({ id, noteId }) => [id, noteId])).toEqual([
      ["gone", null],
      ["kept", "kept"],
    ]);
  },
  TIMEOUT_MS,
);

test(
  "[BK363] only the root key restores, and moments, instances and namespaces that there are not are refused",
  async () => {
    await add("d", 1);
    const at = await moment();
    const path = "/api/admin/instances/clubs/d/restore";
    expect((await platform.post(path, { at })).status).toBe(401);
    expect((await platform.withKey(KEY).post(path, { at })).status).toBe(403);
    for (const wrong of ["yesterday", "2026-11-26T14:03:19", "2026-13-26T14:03:19Z", 5, null]) {
      expect([wrong, (await restore("d", { at: wrong })).status]).toEqual([wrong, 400]);
    }
    expect((await restore("d", {})).status).toBe(400);
    expect((await restore("d", { at, other: 1 })).status).toBe(400);
    expect((await restore("d", { at: "2020-01-01T00:00:00Z" })).status).toBe(404);
    expect((await restore("never", { at })).status).toBe(404);
    expect((await platform.service.post("/api/admin/instances/shared/d/restore", { at })).status).toBe(404);
    expect((await platform.service.post("/api/admin/instances/nothing/d/restore", { at })).status).toBe(404);
    const later = await restore("d", { at: "2999-01-01T00:00:00Z", preview: true });
    expect(later.status).toBe(200);
    expect(Date.parse(later.body.at)).toBeLessThanOrEqual(Date.now());
    const both = await Promise.all([restore("d", { at }), restore("d", { at })]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    const { body: log } = await platform.service.get<{ entries: { action: string; target: string }[] }>(
      "/api/admin/audit?action=instance.restore",
    );
    expect(log.entries[0]).toMatchObject({ action: "instance.restore", target: "db/clubs/d" });
  },
  TIMEOUT_MS,
);

test(
  "[BK360] writes that come meanwhile wait and follow, and the history has every state, without a gap",
  async () => {
    for (const n of upTo(3)) await add("e", n);
    const at = await moment();
    for (const n of [3, 4]) await add("e", n);
    const before = await moment();
    const [answer, ...added] = await Promise.all([restore("e", { at }), add("e", 5), add("e", 6), add("e", 7)]);
    expect(answer.status).toBe(200);
    expect(added).toHaveLength(3);
    const after = await numbersOf("e");
    expect(after.slice(0, 3)).toEqual([0, 1, 2]);
    expect(after).not.toContain(4);
    await untilPassed(platform);
    expect((await historyOf(place)).gaps).toEqual([]);
    const copy = await restored(place, "--at", before, "--only", "clubs/e");
    expect(numbersIn(copy, "databases/clubs/e", "members")).toEqual(upTo(5));
    expect(numbersIn(await restored(place, "--only", "clubs/e"), "databases/clubs/e", "members")).toEqual(after);
  },
  TIMEOUT_MS,
);

test(
  "[BK363] a store that is away is 503, a drill too, and without a continuous backup there is nothing to restore",
  async () => {
    const own = join(temporaryDirectory(), "store");
    const server = await testPlatform({ config: config(own) });
    await server.service.post("/api/db/clubs/x/tables/members", { n: 1 });
    await untilWhole(own);
    const at = await moment();
    const path = "/api/admin/instances/clubs/x/restore";
    renameSync(own, `${own}.away`);
    writeFileSync(own, "");
    expect((await server.service.post(path, { at })).status).toBe(503);
    rmSync(own);
    renameSync(`${own}.away`, own);
    expect((await server.service.post(path, { at })).status).toBe(200);
    await server.kill("SIGTERM");
    const drill = await testPlatform({ config: config(own), args: ["--drill"] });
    expect((await drill.service.post(path, { at })).status).toBe(503);
    await drill.stop();
    await server.stop();
    const without = await testPlatform({
      config: "{ databases: { clubs: { instance: true, tables: { members: {} } } } }",
    });
    expect((await without.service.post(path, { at })).status).toBe(404);
    await without.stop();
  },
  TIMEOUT_MS,
);

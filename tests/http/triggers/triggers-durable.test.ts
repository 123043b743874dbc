import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform, until } from "../../support/index.ts";

const TABLES = `
  const open = { read: true, insert: true, update: true, delete: true };
  const log = { tables: { runs: {} } };
  const schema = { n: { type: "integer" }, text: { type: "text" } };`;

const CONFIG = `
  import { defineConfig } from "platform";
  ${TABLES}
  const note = (app, data) => app.db("log").table("runs").insert(data);
  export default defineConfig({
    databases: {
      log,
      shared: { tables: { items: { schema, access: open }, loops: { schema, access: open }, quiet: { schema, access: open }, spread: { schema, access: open } } },
      spaces: { instance: true, access: { create: true, open: true }, tables: { items: { schema, access: open } } },
      silent: { tables: { items: { schema, access: open } } },
    },
    triggers: {
      ordered: { on: { table: "shared.items" }, retries: 3, run: async ({ app, after, before, attempt }) => {
        const { id, n, text } = after ?? before;
        if (text === "fails once" && attempt === 1) throw new Error("not yet");
        if (text === "fails") throw new Error("never");
        await note(app, { trigger: "ordered", about: id, n, attempt });
      } },
      loop: { on: { table: "shared.loops", events: ["insert", "update"] }, run: async ({ app, after }) => {
        await note(app, { trigger: "loop", about: after.id, n: after.n });
        await app.db("shared").table("loops").update(after.id, { n: after.n + 1 });
      } },
      spread: { on: { table: "shared.spread", events: ["insert"] }, run: ({ app, after }) => {
        if (after.n === 0) return;
        return app.db("shared").transaction((tx) => {
          for (let count = 0; count < after.n; count++) tx.table("spread").insert({ n: 0 });
        });
      } },
      hangs: { on: { table: "shared.quiet" }, retries: 1, timeout: 1, run: async ({ app, after, attempt, signal }) => {
        await note(app, { trigger: "hangs", about: after.id, attempt });
        if (after.text === "hangs") await new Promise(() => {});
      } },
      spaces: { on: { table: "spaces.items" }, run: ({ app, after, instanceId }) =>
        note(app, { trigger: "spaces", about: after.id, instance: instanceId }) },
    },
  });`;

/** Config without triggers. */
const PLAIN = `
  import { defineConfig } from "platform";
  ${TABLES}
  export default defineConfig({ databases: { log,
    shared: { tables: { items: { schema, access: open }, loops: { schema, access: open }, quiet: { schema, access: open }, spread: { schema, access: open } } },
    spaces: { instance: true, access: { create: true, open: true }, tables: { items: { schema, access: open } } },
    silent: { tables: { items: { schema, access: open } } } } });`;

let platform: TestPlatform;
const ITEMS = "/api/db/shared/tables/items";

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

async function runs(about: string, of: TestPlatform = platform): Promise<JsonObject[]> {
  const filter = encodeURIComponent(JSON.stringify([["about", "==", about]]));
  const { body } = await of.service.get<{ items: JsonObject[] }>(
    `/api/db/log/tables/runs?limit=1000&sort=createdAt&filter=${filter}`,
  );
  return body.items;
}

async function ran(about: string, count: number, of: TestPlatform = platform): Promise<JsonObject[]> {
  await until(`${count} runs about ${about}`, async () => (await runs(about, of)).length >= count);
  return runs(about, of);
}

/** Opens a file of the server beside it, for reading. */
function tableNames(path: string): string[] {
  using sqlite = new Database(join(platform.dataDirectory, path), { readonly: true });
  return sqlite
    .query<{ name: string }, []>("SELECT name FROM sqlite_master")
    .all()
    .map(({ name }) => name);
}

test("[TG11] runs of one record go in the order of its commits, however many come at once", async () => {
  await platform.post(ITEMS, { id: "o", n: 0 });
  const changes = Array.from({ length: 40 }, (_, index) => platform.patch(`${ITEMS}/o`, { n: index + 1 }));
  const answers = await Promise.all(changes);
  expect(answers.every(({ status }) => status === 200)).toBe(true);
  const order = (await ran("o", 41)).map(({ n }) => n);
  expect(order).toEqual(Array.from({ length: 41 }, (_, n) => n));
});

test("[TG11] a failing run holds back the later ones of its record, and no other", async () => {
  await platform.post(ITEMS, { id: "h", n: 1, text: "fails once" });
  await platform.patch(`${ITEMS}/h`, { n: 2, text: "" });
  await platform.post(ITEMS, { id: "other", n: 1 });
  await ran("other", 1);
  const held = await ran("h", 2);
  expect(held.map(({ n, attempt }) => [n, attempt])).toEqual([
    [1, 2],
    [2, 1],
  ]);
});

test("[JB9] [TG11] cancelling a run that waits behind another one lets no third one begin beside that", async () => {
  const config = `
    import { defineConfig } from "platform";
    const open = { read: true, insert: true, update: true, delete: true };
    export default defineConfig({
      databases: { log: { tables: { runs: {} } }, shared: { tables: { items: { schema: { n: { type: "integer" } }, access: open } } } },
      triggers: { held: { on: { table: "shared.items" }, retries: 0, run: async ({ app, id, after, signal }) => {
        await app.db("log").table("runs").insert({ about: "held", n: after.n });
        if (after.n === 1) throw new Error("no luck");
        if (after.n === 2) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      } } },
    });`;
  const own = await testPlatform({ config });
  try {
    type Listed = { id: string; state: string; data: { after: { n: number } } };
    const jobOf = async (n: number) =>
      (await own.service.get<{ jobs: Listed[] }>("/api/admin/jobs")).body.jobs.find(({ data }) => data.after.n === n);
    const inState = (n: number, state: string) =>
      until(`run ${n} is ${state}`, async () => (await jobOf(n))?.state === state);
    const change = async (n: number, action: string) =>
      (await own.service.post(`/api/admin/jobs/${(await jobOf(n))?.id}/${action}`, undefined)).status;

    await own.post(ITEMS, { id: "a", n: 1 });
    await inState(1, "failed");
    for (const [n, state] of [
      [2, "running"],
      [3, "waiting"],
    ] as const) {
      await own.patch(`${ITEMS}/a`, { n });
      await inState(n, state);
    }
    expect(await change(1, "retry")).toBe(200);
    expect(await change(3, "cancel")).toBe(200);
    // A run about another record, which begins and ends, shows that the queue has taken its steps.
    await own.post(ITEMS, { id: "b", n: 4 });
    await inState(4, "done");
    expect([(await jobOf(1))?.state, (await jobOf(2))?.state]).toEqual(["waiting", "running"]);
    expect(await change(2, "cancel")).toBe(200);
    await inState(1, "failed");
    expect((await ran("held", 4, own)).map(({ n }) => n)).toEqual([1, 2, 4, 1]);
  } finally {
    await own.stop();
  }
});

test("[TG16] a run that fails for good, or hangs, lets the next one of its record run after its retries", async () => {
  const quiet = "/api/db/shared/tables/quiet";
  await platform.post(quiet, { id: "hang", text: "hangs" });
  await platform.patch(`${quiet}/hang`, { text: "" });
  const list = await ran("hang", 3);
  expect(list.map(({ attempt }) => attempt)).toEqual([1, 2, 1]);
  expect((await platform.get(ITEMS)).status).toBe(200);
});

test("[TG22] a run that sets off more runs than a cause may is undone, fails, says so, and is not tried again", async () => {
  const count = async () =>
    (await platform.service.get<{ total: number }>("/api/db/shared/tables/spread?limit=1&total=true")).body.total;
  const failed = async () =>
    (await platform.service.get<{ jobs: JsonObject[] }>("/api/admin/jobs?name=trigger:spread&state=failed")).body.jobs;
  await platform.post("/api/db/shared/tables/spread", { id: "few", n: 100 });
  await until("a run has written as much as it may", async () => (await count()) === 101);
  await platform.post("/api/db/shared/tables/spread", { id: "many", n: 4_097 });
  await until("the other run has failed", async () => (await failed()).length > 0);
  expect(await count()).toBe(102);
  expect((await failed()).map(({ attempt, error }) => [attempt, error])).toEqual([
    [1, expect.stringContaining("One cause has set off 4096 runs of triggers by way of others")],
  ]);
});

test("[TG12] a trigger that sets itself off ends at depth 16 and says so", async () => {
  await platform.post("/api/db/shared/tables/loops", { id: "l", n: 0 });
  await ran("l", 16);
  const stored = async () => (await platform.get<{ n: number }>("/api/db/shared/tables/loops/l")).body.n;
  await until("the sixteenth write", async () => (await stored()) === 16);
  await platform.post("/api/db/shared/tables/loops", { id: "l2", n: 100 });
  await ran("l2", 16);
  expect((await runs("l")).map(({ n }) => n)).toEqual(Array.from({ length: 16 }, (_, n) => n));
  expect(await stored()).toBe(16);
});

test("[TG13] a namespace without triggers has no outbox; one with a trigger has it from the first change on", async () => {
  await platform.post("/api/db/silent/tables/items", { n: 1 });
  await platform.post(ITEMS, { id: "one-change" });
  await ran("one-change", 1);
  expect(tableNames("databases/silent.db").filter((name) => name.includes("outbox"))).toEqual([]);
  expect(tableNames("databases/shared.db")).toContain("_platform_outbox");
  expect(tableNames("system.db").filter((name) => name.includes("outbox"))).toEqual([]);
});

const occurrence = (id: string): string =>
  JSON.stringify({
    type: "x",
    event: "insert",
    before: null,
    after: { id },
    by: null,
    instanceId: "x",
    at: "",
    depth: 0,
  });

/** Leaves a row in the outbox of a file of a stopped server, as a crash before its way to the queue does. */
async function leaveRow(of: TestPlatform, file: string, row: { name: string; id: string; keepsWal: boolean }) {
  const code = `
    import { Database } from "bun:sqlite";
    const sqlite = new Database(${JSON.stringify(join(of.dataDirectory, "databases", file))});
    sqlite.run("PRAGMA wal_autocheckpoint = 0");
    sqlite.run('INSERT INTO "_platform_outbox" ("id", "names", "data") VALUES (?, ?, ?)',
      ["row-${row.id}", '["${row.name}"]', ${JSON.stringify(occurrence(row.id))}]);
    if (${row.keepsWal}) process.kill(process.pid, "SIGKILL");
    sqlite.close();`;
  await Bun.spawn([process.execPath, "-e", code], { stderr: "inherit" }).exited;
}

const hasWal = (of: TestPlatform, file: string) =>
  readdirSync(join(of.dataDirectory, "databases/spaces")).includes(file);

test("[TG8] [TG9] rows that a crash left in files run after the start, also of instances that nobody opens", async () => {
  const other = await testPlatform({ config: CONFIG });
  try {
    for (const id of ["a", "b", "c"]) await other.post(`/api/db/spaces/${id}/tables/items`, { id: `in-${id}` });
    await other.post(ITEMS, { id: "static" });
    for (const id of ["in-a", "in-b", "in-c", "static"]) await ran(id, 1, other);
    await other.kill("SIGTERM");
    await leaveRow(other, "spaces/a.db", { name: "trigger:spaces", id: "clean", keepsWal: false });
    await leaveRow(other, "spaces/b.db", { name: "trigger:spaces", id: "with-wal", keepsWal: true });
    await leaveRow(other, "shared.db", { name: "trigger:ordered", id: "in-static", keepsWal: true });
    expect(["a.db-wal", "b.db-wal"].map((file) => hasWal(other, file))).toEqual([false, true]);
    await other.restart();
    for (const id of ["clean", "with-wal", "in-static"]) await ran(id, 1, other);
    await other.kill("SIGKILL");
    await other.restart();
    for (const id of ["clean", "with-wal", "in-static"]) expect((await runs(id, other)).length).toBe(1);
  } finally {
    await other.stop();
  }
});

test("[TG15] what waits for a trigger that has left the config runs when the trigger is back", async () => {
  const other = await testPlatform({ config: CONFIG });
  try {
    await other.post(ITEMS, { id: "first" });
    await ran("first", 1, other);
    await other.kill("SIGTERM");
    await leaveRow(other, "shared.db", { name: "trigger:ordered", id: "later", keepsWal: false });
    await other.restart({ config: PLAIN });
    await other.post(ITEMS, { id: "unwatched" });
    await until("the row is in the queue", () => waitingJobs(other).length === 1);
    await other.restart({ config: CONFIG });
    await ran("later", 1, other);
    expect(await runs("unwatched", other)).toEqual([]);
  } finally {
    await other.stop();
  }
});

test("[TG9] without triggers, webhooks and jobs rows wait in files that nobody opens", async () => {
  const other = await testPlatform({ config: CONFIG });
  try {
    const namedAs = { name: "trigger:spaces", keepsWal: false };
    for (const id of ["a", "b"]) await other.post(`/api/db/spaces/${id}/tables/items`, { id: `in-${id}` });
    for (const id of ["in-a", "in-b"]) await ran(id, 1, other);
    await other.kill("SIGTERM");
    for (const id of ["a", "b"]) await leaveRow(other, `spaces/${id}.db`, { ...namedAs, id: `late-${id}` });
    await other.restart({ config: PLAIN });
    await other.get("/api/db/spaces/b/tables/items");
    await until("the row of the opened file is in the queue", () => waitingJobs(other).length > 0);
    await other.kill("SIGTERM");
    expect(waitingIds(other)).toEqual(["row-late-b"]);
    await other.restart({ config: CONFIG });
    for (const id of ["late-a", "late-b"]) await ran(id, 1, other);
  } finally {
    await other.stop();
  }
});

const waitingIds = (of: TestPlatform): string[] => waiting(of).map(({ id }) => id);
const waitingJobs = (of: TestPlatform): string[] => waiting(of).map(({ name }) => name);

/** The jobs of jobs.db that wait. */
function waiting(of: TestPlatform): { id: string; name: string }[] {
  using sqlite = new Database(join(of.dataDirectory, "jobs.db"), { readonly: true });
  sqlite.run("PRAGMA busy_timeout = 5000");
  return sqlite.query<{ id: string; name: string }, []>("SELECT id, name FROM jobs WHERE state = 0").all();
}

test("[TG14] in a drill what changes set off waits, and nothing runs", async () => {
  const drill = await testPlatform({ config: CONFIG, args: ["--drill"] });
  try {
    await drill.post(ITEMS, { id: "drilled" });
    await until(
      "the job waits",
      () => existsSync(join(drill.dataDirectory, "jobs.db")) && waitingJobs(drill).length === 1,
    );
    await drill.restart();
    expect(waitingJobs(drill)).toEqual(["trigger:ordered"]);
    expect(await runs("drilled", drill)).toEqual([]);
  } finally {
    await drill.stop();
  }
});

test("[TG10] while the queue cannot take jobs, rows wait in their files", async () => {
  const other = await testPlatform({ config: CONFIG });
  try {
    // The queue's file is made for the first job: a directory in its place keeps it from being opened.
    const path = join(other.dataDirectory, "jobs.db");
    mkdirSync(path);
    expect((await other.post(ITEMS, { id: "waits", n: 1 })).status).toBe(201);
    expect((await other.patch(`${ITEMS}/waits`, { n: 2 })).status).toBe(200);
    await until(
      "the log says so",
      () =>
        other.stderr().includes("cannot be passed to the queue") ||
        other.stdout().includes("cannot be passed to the queue"),
    );
    rmdirSync(path);
    expect((await ran("waits", 2, other)).map(({ n }) => n)).toEqual([1, 2]);
  } finally {
    await other.stop();
  }
});

test("[TG17] a filter whose values do not fit the table fails the start, named by its path", async () => {
  const config = CONFIG.replace("retries: 3,", 'retries: 3, filter: [["n", "==", "text"]],');
  await expect(testPlatform({ config })).rejects.toThrow("triggers.ordered.filter.0: n == takes a number");
});

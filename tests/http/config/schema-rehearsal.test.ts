import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  configSource,
  platformCommand,
  type TestPlatform,
  testEnvironment,
  testPlatform,
  until,
} from "../../support/index.ts";

setDefaultTimeout(60_000);

let platform: TestPlatform | null = null;
afterEach(async () => {
  await platform?.stop();
  platform = null;
});

const config = (schema: string, more = "") => `{ databases: {
  spaces: {
    instance: true,
    access: { create: true, open: true },
    tables: { tasks: { schema: { ${schema} }, access: { read: true, insert: true } ${more} } },
  },
  shared: { tables: { notes: { schema: { text: { type: "string" } } } } },
} }`;
const BEFORE = config('title: { type: "string" }, points: { type: "integer" }');
const RENAMED = config('headline: { type: "string" }, points: { type: "integer" }');
const RENAME = `ALTER TABLE "tasks" RENAME COLUMN "title" TO "headline"`;
const MIGRATED = config(
  'headline: { type: "string" }, points: { type: "integer" }',
  `, migrations: [{ version: 1, description: "rename", up: '${RENAME}' }]`,
);
const P = (instance: string) => `/api/db/spaces/${instance}/tables/tasks`;

/** Three instances with a record each, and one whose table is empty. */
async function withInstances(): Promise<TestPlatform> {
  platform = await testPlatform({ config: BEFORE });
  for (const id of ["acme", "beta", "gamma"]) {
    expect((await platform.service.post(P(id), { id: "a", title: id, points: 1 })).status).toBe(201);
  }
  await platform.service.post(P("empty"), { id: "a", title: "x" });
  await platform.service.delete(`${P("empty")}/a`);
  return platform;
}

async function check(of: TestPlatform, text: string, args: readonly string[] = []) {
  return ended(spawnCheck(of, text, args));
}

function spawnCheck(of: TestPlatform, text: string, args: readonly string[] = []) {
  const file = `${of.configFile}.next.ts`;
  writeFileSync(file, configSource(text));
  return Bun.spawn([...platformCommand(), "check", "--config", file, "--data", of.dataDirectory, ...args], {
    env: testEnvironment(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

async function ended(child: ReturnType<typeof spawnCheck>) {
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

/** Whether a process has a file open; false: it has ended. */
function hasOpened(pid: number, file: string): boolean {
  const link = (descriptor: string) => readlinkSync(`/proc/${pid}/fd/${descriptor}`, { encoding: "utf8" });
  try {
    return readdirSync(`/proc/${pid}/fd`).some((descriptor) => link(descriptor) === file);
  } catch {
    // It has ended, or closed one meanwhile.
    return false;
  }
}

const contentOf = (of: TestPlatform) => {
  const folder = join(of.dataDirectory, "databases", "spaces");
  return readdirSync(folder)
    .sort()
    .map((name) => [name, Bun.hash(readFileSync(join(folder, name)))]);
};

test("[CL110] check --data names the instances that would not open, and the migration that they need", async () => {
  const one = await withInstances();
  const whileRunning = await check(one, RENAMED);
  await one.kill("SIGTERM");
  const before = contentOf(one);
  const stopped = await check(one, RENAMED);
  for (const { code, stderr } of [whileRunning, stopped]) {
    expect([code, stderr]).toEqual([1, expect.stringContaining("3 of 5 database files")]);
    expect(stderr).toContain("databases.spaces, 3 instances (acme, beta, gamma):");
    expect(stderr).toContain("spaces.tasks.title: is no longer declared, and its values would be lost; if headline");
    expect(stderr).toContain(RENAME);
  }
  for (const text of [BEFORE, MIGRATED]) {
    const fine = await check(one, text);
    expect([fine.code, fine.stderr]).toEqual([0, expect.any(String)]);
    expect(fine.stdout).toContain("It fits the 5 database files");
  }
  // Nothing was migrated, and nothing was left beside the files.
  expect(contentOf(one)).toEqual(before);
});

test("[CL110] check --data waits for a file that is locked at the moment, as by a server that opens it", async () => {
  const one = await withInstances();
  await one.kill("SIGKILL");
  const file = join(one.dataDirectory, "databases", "spaces", "acme.db");
  const lock = `const { Database } = require("bun:sqlite");
    const sqlite = new Database(process.argv[1]);
    sqlite.run("PRAGMA locking_mode = EXCLUSIVE");
    sqlite.query("SELECT count(*) FROM tasks").get();
    sqlite.run("UPDATE tasks SET points = 2");
    console.log("locked");
    await Bun.stdin.text();
    process.exit(0);`;
  const holder = Bun.spawn([process.execPath, "-e", lock, file], { stdin: "pipe", stdout: "pipe" });
  await holder.stdout.getReader().read();
  const child = spawnCheck(one, BEFORE);
  await until("it waits for the file", () => hasOpened(child.pid, file));
  await holder.stdin.end();
  const { code, stdout, stderr } = await ended(child);
  expect([code, stderr]).toEqual([0, expect.not.stringContaining("was not tried")]);
  expect(stdout).toContain("It fits the 5 database files");
});

test.each([
  ["a field that went", 'points: { type: "integer" }', "", "spaces.tasks.title"],
  ["a field of another type", 'title: { type: "string" }, points: { type: "string" }', "", "spaces.tasks.points"],
  [
    "a required field without a default",
    'title: { type: "string" }, points: { type: "integer" }, due: { type: "datetime", required: true }',
    "",
    "spaces.tasks.due",
  ],
  [
    "a migration that fails",
    'title: { type: "string" }, points: { type: "integer" }',
    `, migrations: [{ version: 1, description: "broken", up: "UPDATE nowhere SET x = 1" }]`,
    "Migration 1 of spaces.tasks",
  ],
])("[CL110] %s is named by check --data, and by a 503", async (_, schema, more, words) => {
  const one = await withInstances();
  const { code, stderr } = await check(one, config(schema, more));
  expect([code, stderr]).toEqual([1, expect.stringContaining(words)]);
  await one.restart({ config: config(schema, more) });
  const refused = await one.get<{ message: string }>(P("acme"));
  expect([refused.status, refused.body.message]).toEqual([503, expect.stringContaining(words)]);
});

test("[CL110] unique over duplicates is named by check --data", async () => {
  const one = await withInstances();
  await one.service.post(P("acme"), { id: "b", title: "acme", points: 2 });
  const unique = config('title: { type: "string", unique: true }, points: { type: "integer" }');
  const { code, stderr } = await check(one, unique);
  expect([code, stderr]).toEqual([1, expect.stringContaining("databases.spaces, 1 instance (acme):")]);
  expect(stderr).toContain("spaces.tasks.title: is unique now, and 1 values occur more than once");
});

test("[CL111][DB162] a start names the instances that the config does not fit; they alone are 503", async () => {
  const one = await withInstances();
  await one.restart({ config: RENAMED });
  await until("the log says how many", () => one.stderr().includes("3 of 4 instances do not fit the config"));
  for (const id of ["acme", "beta", "gamma"]) expect(one.stderr()).toContain(`the instance \\"${id}\\" does not fit`);
  const filter = encodeURIComponent(JSON.stringify([["headline", "==", "x"]]));
  const answers = [
    await one.get(P("acme")),
    await one.get(`${P("acme")}/a`),
    await one.get(`${P("acme")}/count?filter=${filter}`),
    await one.service.post(P("acme"), { headline: "new" }),
    await one.service.patch(`${P("acme")}/a`, { headline: "new" }),
    await one.service.delete(`${P("acme")}/a`),
  ];
  for (const { status, body } of answers) {
    expect([status, body]).toEqual([
      503,
      {
        code: 503,
        message: expect.stringContaining('The instance "acme" does not fit what is declared: spaces.tasks.title'),
      },
    ]);
  }
  expect((await one.get(P("empty"))).status).toBe(200);
  expect((await one.service.post(P("new"), { headline: "x" })).status).toBe(201);
  await one.restart({ config: MIGRATED });
  for (const id of ["acme", "beta", "gamma"]) {
    expect((await one.get(`${P(id)}/a`)).body).toMatchObject({ headline: id });
  }
  // These have had the new name before there was a migration.
  expect((await one.service.post(P("empty"), { headline: "y" })).status).toBe(201);
  expect((await one.get(P("new"))).body).toMatchObject({ items: [{ headline: "x" }] });
  expect(one.stderr()).not.toContain("does not fit");
});

test("[CL200] dev names every file that does not fit, and the migrations, when the config changes", async () => {
  platform = await testPlatform({ config: BEFORE, command: "dev" });
  const { configFile, service } = platform;
  for (const id of ["acme", "beta"]) {
    expect((await service.post(P(id), { id: "a", title: id, points: 1 })).status).toBe(201);
  }
  expect((await service.post("/api/db/shared/tables/notes", { text: "kept" })).status).toBe(201);
  const dev = platform;
  const shows = async (text: string) => {
    const until = Date.now() + 30_000;
    while (!dev.stderr().includes(text) && Date.now() < until) await Bun.sleep(10);
    expect(dev.stderr()).toContain(text);
  };
  const headline = RENAMED.replace("text: {", "words: {");
  writeFileSync(configFile, configSource(headline));
  await shows("3 of 3 database files");
  await shows("databases.spaces, 2 instances (acme, beta):");
  await shows(RENAME);
  await shows(`RENAME COLUMN "text" TO "words"`);
  // Only instances: the server starts.
  writeFileSync(configFile, configSource(RENAMED));
  await shows(`the instance \\"acme\\" does not fit the config`);
});

import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "platform";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { HOUR_MS } from "../../../src/kernel/time/duration.ts";
import { temporaryDirectory, testPlatform, until } from "../../support/index.ts";
import { timedPlatform } from "../../support/timed-platform.ts";

const OPEN = { read: true, insert: true, update: true, delete: true } as const;
const config = defineConfig({
  databases: {
    shared: { tables: { people: { schema: {}, access: OPEN } } },
    boards: {
      instance: true,
      access: { create: true, open: true },
      tables: { tasks: { schema: { ownerId: { references: "shared/people", onDelete: "setNull" } }, access: OPEN } },
    },
  },
});
const PEOPLE = "/api/db/shared/tables/people";
const tasks = (board: string) => `/api/db/boards/${board}/tables/tasks`;

/** Returns the path of a database file in a data directory. */
async function pathOf(directory: string, name: string): Promise<string> {
  const [found = ""] = await Array.fromAsync(new Bun.Glob(`**/${name}`).scan(directory));
  return join(directory, found);
}

async function ownerIn(directory: string, board: string): Promise<string | null> {
  using sqlite = new Database(await pathOf(directory, `${board}.db`), { readonly: true });
  return sqlite.query<{ ownerId: string | null }, []>(`SELECT "ownerId" FROM "tasks"`).get()?.ownerId ?? null;
}

test("[TB914] a sweep within a day ends references in instances that nobody asks for", async () => {
  const dataDirectory = temporaryDirectory();
  const first = await timedPlatform(config, { dataDirectory });
  for (const id of ["ann", "ben"]) await first.post(PEOPLE, { id });
  for (const [board, ownerId] of [
    ["one", "ann"],
    ["two", "ben"],
  ] as const) {
    expect((await first.post(tasks(board), { ownerId })).status).toBe(201);
  }
  await first.stop();
  const second = await timedPlatform(config, { dataDirectory });
  expect((await second.delete(`${PEOPLE}/ann`)).status).toBe(200);
  expect(await ownerIn(dataDirectory, "one")).toBe("ann");
  second.clock.advance(HOUR_MS);
  await until("the sweep has come", async () => {
    second.clock.advance(100);
    return (await ownerIn(dataDirectory, "one")) === null;
  });
  expect(await ownerIn(dataDirectory, "two")).toBe("ben");
  await second.stop();
}, 60_000);

/** The config as text, with `people` and the field of tasks as given. */
const source = (people: string, ownerId = `{ references: "shared/people", onDelete: "setNull" }`) => `{
  databases: {
    shared: { tables: { people: { schema: {}, ${people} access: { read: true, insert: true, delete: true } } } },
    boards: {
      instance: true,
      access: { create: true, open: true },
      tables: { tasks: { schema: { ownerId: ${ownerId} }, access: { read: true, insert: true, delete: true } } },
    },
  },
}`;

/** Returns the owners of a board's tasks, by the task. */
async function owners(platform: { get<T>(path: string): Promise<{ body: T }> }, board: string) {
  const { items } = (await platform.get<{ items: JsonObject[] }>(tasks(board))).body;
  return Object.fromEntries(items.map(({ id, ownerId }) => [id, ownerId]));
}

test("[TB916] a file that was put back from before, and a log that was cut, are made up for by a comparison", async () => {
  const platform = await testPlatform({ config: source("") });
  const { dataDirectory } = platform;
  const stopped = async (work: (path: string) => void) => {
    await platform.kill("SIGTERM");
    work(await pathOf(dataDirectory, "shared.db"));
    await platform.restart();
  };
  await platform.post(PEOPLE, { id: "early" });
  await platform.post(tasks("one"), { id: "t1", ownerId: "early" });
  await stopped((path) => copyFileSync(path, `${path}.kept`));
  await platform.post(PEOPLE, { id: "late" });
  await platform.post(tasks("one"), { id: "t2", ownerId: "late" });
  await platform.post(tasks("two"), { id: "t3", ownerId: "late" });
  await stopped((path) => {
    copyFileSync(`${path}.kept`, path);
    rmSync(`${path}-wal`, { force: true });
  });
  expect(await owners(platform, "one")).toEqual({ t1: "early", t2: null });
  // The file goes on: it has deletions again before the other instance is asked for.
  await platform.post(PEOPLE, { id: "other" });
  await platform.delete(`${PEOPLE}/other`);
  expect(await owners(platform, "two")).toEqual({ t3: null });

  for (const id of ["a", "b", "c"]) await platform.post(PEOPLE, { id });
  for (const id of ["a", "b", "c"]) await platform.post(tasks("three"), { id, ownerId: id });
  await stopped((path) => {
    using sqlite = new Database(path);
    sqlite.run(`DELETE FROM "people" WHERE "id" IN ('a', 'b')`);
    sqlite.run(`DELETE FROM "_platform_tombstones" WHERE "seq" < (SELECT max("seq") FROM "_platform_tombstones")`);
  });
  expect(await owners(platform, "three")).toEqual({ a: null, b: null, c: "c" });
  await platform.stop();
}, 60_000);

test("[TB916] references end where a migration has deleted the record", async () => {
  const platform = await testPlatform({ config: source("") });
  for (const id of ["stays", "goes"]) {
    await platform.post(PEOPLE, { id });
    await platform.post(tasks("one"), { id, ownerId: id });
  }
  const up = `DELETE FROM people WHERE id = 'goes'`;
  await platform.restart({ config: source(`migrations: [{ version: 1, description: "one goes", up: "${up}" }],`) });
  expect(await owners(platform, "one")).toEqual({ stays: "stays", goes: null });
  await platform.stop();
}, 60_000);

test("[TB917] a field that becomes a reference keeps ids of records that do not exist, and the log names it", async () => {
  const platform = await testPlatform({ config: source("", `{ type: "string" }`) });
  await platform.post(PEOPLE, { id: "ann" });
  for (const id of ["ann", "nobody"]) await platform.post(tasks("one"), { id, ownerId: id });
  await platform.restart({ config: source("") });
  expect(await owners(platform, "one")).toEqual({ ann: "ann", nobody: "nobody" });
  await until("the log has it", () => platform.stderr().includes("databases.boards.tasks.ownerId: refers to records"));
  expect((await platform.post(tasks("one"), { ownerId: "nobody" })).status).toBe(400);
  await platform.delete(`${PEOPLE}/ann`);
  await until("the reference has ended", async () => (await owners(platform, "one"))["ann"] === null);
  expect(await owners(platform, "one")).toEqual({ ann: null, nobody: "nobody" });
  await platform.stop();
}, 60_000);

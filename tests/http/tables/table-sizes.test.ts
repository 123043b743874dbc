import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { type ErrorAnswer, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

const key = (name: string) => `${name}-key-0123456789abcdefghijklmnopqrstuv`;
let platform: TestPlatform;
beforeAll(async () => {
  const notes = { schema: { text: { type: "string" } }, access: { read: true } };
  platform = await testPlatform({
    config: {
      databases: {
        shared: { tables: { notes, many: notes } },
        teams: { instance: true, access: { open: true, create: true }, tables: { notes } },
      },
      serviceKeys: {
        notes: { key: key("notes"), scopes: ["db:shared:notes:read"] },
        writer: { key: key("writer"), scopes: ["db:shared:notes:insert", "db:teams:notes:read"] },
      },
    },
  });
});
afterAll(() => platform.stop());

const sizeOf = (table: string, query = {}) => `/api/admin/tables/${table}/size?${new URLSearchParams(query)}`;
const size = async (table: string, query = {}) =>
  (await platform.service.get<{ rows: number; bytes: number; fileBytes: number }>(sizeOf(table, query))).body;

test("[TB466] has the records, about their bytes, and the bytes of the file, also of a large table", async () => {
  expect(await size("shared/notes")).toMatchObject({ rows: 0, bytes: 0 });
  const text = "x".repeat(100);
  await platform.service.post("/api/db/shared/tables/notes", { text });
  const { rows, bytes, fileBytes } = await size("shared/notes");
  expect(rows).toBe(1);
  expect(bytes).toBeGreaterThan(150);
  expect(bytes).toBeLessThan(300);
  expect(fileBytes).toBe(statSync(join(platform.dataDirectory, "databases/shared.db")).size);
  // More than those whose sizes are known one by one.
  for (let batch = 0; batch < 12; batch++) {
    await platform.service.post("/api/db/shared/tables/many/batch", {
      inserts: Array.from({ length: 500 }, () => ({ text })),
    });
  }
  const many = await size("shared/many");
  expect(many.rows).toBe(6000);
  expect(many.bytes / many.rows).toBeGreaterThan(150);
  expect(many.bytes / many.rows).toBeLessThan(300);
});

test("[TB466] of an instance, which is not created", async () => {
  expect(await size("teams/notes", { instanceId: "red" })).toEqual({ rows: 0, bytes: 0, fileBytes: 0 });
  expect(existsSync(join(platform.dataDirectory, "databases/teams/red.db"))).toBe(false);
  await platform.service.post("/api/db/teams/red/tables/notes", { id: "one", text: "hello" });
  const red = await size("teams/notes", { instanceId: "red" });
  expect(red.rows).toBe(1);
  expect(red.fileBytes).toBeGreaterThan(0);
  await platform.service.delete("/api/db/teams/red/tables/notes/one");
  expect(await size("teams/notes", { instanceId: "red" })).toMatchObject({ rows: 0, bytes: 0 });
  const refused = async (table: string, query = {}) =>
    (await platform.service.get<ErrorAnswer>(sizeOf(table, query))).status;
  expect(await refused("teams/notes")).toBe(404);
  expect(await refused("teams/notes", { instanceId: "../shared" })).toBe(400);
  expect(await refused("shared/notes", { instanceId: "red" })).toBe(404);
  expect(await refused("shared/none")).toBe(404);
  expect(await refused("shared/notes", { other: "1" })).toBe(400);
});

test("[TB466] is for service keys with the right to read the table", async () => {
  const user = await signIn(platform);
  const status = async (client: { get: TestPlatform["get"] }, path: string) => (await client.get(path)).status;
  const notes = sizeOf("shared/notes");
  expect(await status(platform.withKey(key("notes")), notes)).toBe(200);
  expect(await status(platform.withKey(key("notes")), sizeOf("shared/many"))).toBe(403);
  expect(await status(platform.withKey(key("writer")), notes)).toBe(403);
  expect(await status(platform, notes)).toBe(401);
  expect(await status(user, notes)).toBe(401);
});

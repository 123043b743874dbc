import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

// Which records refer to one, in its own file and in others.

const key = (name: string) => `${name}-key-0123456789abcdefghijklmnopqrstuv`;
let platform: TestPlatform;
beforeAll(async () => {
  const access = { read: true } as const;
  const toUsers = { references: "shared/users", onDelete: "setNull" } as const;
  platform = await testPlatform({
    config: {
      auth: { users: { in: "shared" } },
      databases: {
        shared: {
          tables: {
            teams: {
              schema: { code: { type: "string", unique: true }, leadId: { references: "users", onDelete: "setNull" } },
              access,
            },
            seats: { schema: { team: { type: "string", references: { table: "teams", column: "code" } } }, access },
          },
        },
        far: {
          tables: {
            notes: {
              schema: {
                byId: toUsers,
                teamIds: { type: "references", references: "shared/teams", onDelete: "remove" },
              },
              access,
            },
          },
        },
        boards: {
          instance: true,
          access: { open: true, create: true },
          tables: {
            cards: {
              schema: {
                byId: toUsers,
                guestIds: { type: "references", references: "shared/users", onDelete: "remove" },
              },
              access,
            },
            lines: { schema: { cardId: { references: "cards", onDelete: "cascade" } }, access },
          },
        },
      },
      serviceKeys: {
        users: { key: key("users"), scopes: ["db:shared:users:read", "db:boards:cards:read"] },
        notes: { key: key("notes"), scopes: ["db:far:notes:read"] },
      },
    },
  });
});
afterAll(() => platform.stop());

interface Answer {
  items: { namespace: string; instanceId: string | null; table: string; field: string; records: number }[];
  cursor: string | null;
}
const path = (table: string, query: Record<string, string>) =>
  `/api/admin/tables/${table}/referrers?${new URLSearchParams(query)}`;
const referrers = async (table: string, query: Record<string, string>, by = platform.service) => {
  const { status, body } = await by.get<Answer>(path(table, query));
  expect(status).toBe(200);
  const items = body.items.map(({ namespace, instanceId, table: of, field, records }) => [
    [namespace, ...(instanceId === null ? [] : [instanceId]), of, field].join("/"),
    records,
  ]);
  return { items: Object.fromEntries(items) as Record<string, number>, cursor: body.cursor };
};
const insert = async (at: string, record: JsonObject): Promise<void> => {
  const [table, file] = [at.slice(at.lastIndexOf("/") + 1), at.slice(0, at.lastIndexOf("/"))];
  expect((await platform.service.post(`/api/db/${file}/tables/${table}`, record)).status).toBe(201);
};

test("[TB920] counts the records that refer to one: of its file, of other namespaces, of open and closed instances", async () => {
  const user = await signIn(platform);
  expect(await referrers("shared/users", { id: user.id })).toEqual({ items: {}, cursor: null });
  await insert("shared/teams", { id: "t", code: "T", leadId: user.id });
  await insert("shared/seats", { team: "T" });
  await insert("far/notes", { byId: user.id, teamIds: ["t"] });
  await insert("far/notes", { byId: user.id, teamIds: ["t"] });
  await insert("boards/red/cards", { id: "c", byId: user.id, guestIds: [user.id] });
  await insert("boards/red/lines", { cardId: "c" });
  await insert("boards/blue/cards", {});
  const expected = {
    "shared/teams/leadId": 1,
    "far/notes/byId": 2,
    "boards/red/cards/byId": 1,
    "boards/red/cards/guestIds": 1,
  };
  expect(await referrers("shared/users", { id: user.id })).toEqual({ items: expected, cursor: null });
  await platform.restart();
  expect(await referrers("shared/users", { id: user.id })).toEqual({ items: expected, cursor: null });
  // By a unique field as well as by the id.
  expect((await referrers("shared/teams", { id: "t" })).items).toEqual({
    "shared/seats/team": 1,
    "far/notes/teamIds": 2,
  });
  expect((await referrers("boards/cards", { id: "c", instanceId: "red" })).items).toEqual({
    "boards/red/lines/cardId": 1,
  });
  expect((await referrers("boards/cards", { id: "c", instanceId: "none" })).items).toEqual({});
});

test("[TB920] a key counts in tables that it may read, of a record that it may read", async () => {
  const user = await signIn(platform);
  await insert("far/notes", { byId: user.id });
  await insert("boards/green/cards", { byId: user.id });
  await insert("shared/teams", { code: "K", leadId: user.id });
  const own = platform.withKey(key("users"));
  expect((await referrers("shared/users", { id: user.id }, own)).items).toEqual({ "boards/green/cards/byId": 1 });
  expect((await platform.withKey(key("notes")).get(path("shared/users", { id: user.id }))).status).toBe(403);
  expect((await user.get(path("shared/users", { id: user.id }))).status).toBe(401);
});

test("[TB920] a hundred fields an answer, and 1,000 records of each; the cursor goes on with the next instance", async () => {
  const user = await signIn(platform);
  for (const part of [0, 1, 2]) {
    const inserts = Array.from({ length: 500 }, () => ({ byId: user.id }));
    expect((await platform.service.post("/api/db/far/tables/notes/batch", { inserts })).status).toBe(200);
    const boards = Array.from({ length: 40 }, (_, at) => `m${String(part * 40 + at).padStart(3, "0")}`);
    await Promise.all(boards.map((board) => insert(`boards/${board}/cards`, { byId: user.id })));
  }
  const first = await referrers("shared/users", { id: user.id });
  expect(first.items["far/notes/byId"]).toBe(1000);
  expect([Object.keys(first.items).length, first.cursor]).toEqual([100, "boards/m098"]);
  const second = await referrers("shared/users", { id: user.id, cursor: "boards/m098" });
  expect(Object.keys(second.items)).toEqual(
    Array.from({ length: 21 }, (_, at) => `boards/m${String(99 + at).padStart(3, "0")}/cards/byId`),
  );
  expect(second.cursor).toBe(null);
});

test("[TB920] what is wrong is named", async () => {
  const status = async (table: string, query: Record<string, string>) =>
    (await platform.service.get(path(table, query))).status;
  expect(await status("shared/users", {})).toBe(400);
  expect(await status("shared/users", { id: "x", cursor: "far/x" })).toBe(400);
  expect(await status("shared/users", { id: "x", cursor: "none/x" })).toBe(400);
  expect(await status("shared/users", { id: "x", limit: "1" })).toBe(400);
  expect(await status("shared/none", { id: "x" })).toBe(404);
  expect(await status("boards/cards", { id: "x" })).toBe(404);
});

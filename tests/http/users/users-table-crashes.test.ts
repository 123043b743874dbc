import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { copyFileSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ListAnswer, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

// The table of users after crashes, restores and other configs.

const platforms: TestPlatform[] = [];
afterAll(() => Promise.all(platforms.map((one) => one.stop())));

interface Options {
  users?: JsonObject | null;
  tables?: JsonObject;
}
const configOf = ({ users = {}, tables = {} }: Options = {}): JsonObject => ({
  auth: users === null ? {} : { users: { in: "shared", schema: { bio: { type: "text" } }, ...users } },
  databases: { shared: { tables } },
});

async function started(options?: Options): Promise<TestPlatform> {
  const platform = await testPlatform({ config: configOf(options) });
  platforms.push(platform);
  return platform;
}

/** Returns the records, by id, as the root key sees them. */
async function recordsOf({ service }: TestPlatform, path = "shared/tables/users"): Promise<Map<unknown, JsonObject>> {
  const { status, body } = await service.get<ListAnswer>(`/api/db/${path}`, { query: { limit: 500 } });
  expect(status).toBe(200);
  return new Map(body.items.map((item) => [item["id"], item]));
}

async function expectAlike(platform: TestPlatform, path?: string): Promise<Map<unknown, JsonObject>> {
  const records = await recordsOf(platform, path);
  const accounts = new Database(join(platform.dataDirectory, "system.db"), { readonly: true });
  const rows = accounts.query<JsonObject, []>("SELECT id, displayName, email FROM users").all();
  const marks = accounts.query("SELECT * FROM user_marks").all();
  accounts.close();
  for (const { id, ...members } of rows) expect(records.get(id)).toMatchObject(members);
  expect([records.size, marks]).toEqual([rows.length, []]);
  return records;
}

test("[AU313] SIGKILL at any moment of sign-ups, changes and deletions: both agree when the next start answers", async () => {
  const platform = await started();
  const keeper = await signIn(platform);
  for (let round = 0; round < 6; round++) {
    const users = Array.from({ length: 40 }, (_, at) => ({
      id: `r${round}-${at}`,
      email: `r${round}-${at}@example.com`,
    }));
    const answered = new Set<string>();
    const gone = new Set<string>();
    const asked = users.map(async (user, at) => {
      const imported = await platform.service.post("/api/admin/auth/users/import", { users: [user] });
      if (imported.status !== 200) return;
      answered.add(user.id);
      const path = `/api/auth/admin/users/${user.id}`;
      if (at % 2 === 0) await platform.service.patch(path, { displayName: `name ${at}` });
      else if ((await platform.service.delete(path)).status === 200) gone.add(user.id);
    });
    const work = Promise.allSettled(asked);
    await Bun.sleep(3 + round * 9);
    await platform.kill("SIGKILL");
    await work;
    await platform.restart();
    const records = await expectAlike(platform);
    for (const id of answered)
      if (!gone.has(id) && Number(id.split("-")[1]) % 2 === 0) expect(records.has(id)).toBe(true);
    for (const id of gone) expect(records.has(id)).toBe(false);
    expect(records.has(keeper.id)).toBe(true);
  }
}, 120_000);

/** Stops the server before the record of a change is written, and after it: what a crash between two commits leaves. */
test("[AU313] a mark that a crash has left is copied before anything is answered", async () => {
  const platform = await started();
  const [ann, bob, cem] = [await signIn(platform), await signIn(platform), await signIn(platform)];
  await platform.kill();
  const system = new Database(join(platform.dataDirectory, "system.db"));
  const mark = (id: string) => {
    system.run(`UPDATE user_records SET lastMark = lastMark + 1`);
    system.run(`INSERT INTO user_marks SELECT ?, lastMark FROM user_records`, [id]);
  };
  system.run("UPDATE users SET displayName = 'Ann' WHERE id = ?", [ann.id]);
  mark(ann.id);
  // Its record is written already.
  mark(bob.id);
  system.run("PRAGMA foreign_keys = ON");
  system.run("DELETE FROM users WHERE id = ?", [cem.id]);
  mark(cem.id);
  system.close();
  await platform.restart();
  const records = await expectAlike(platform);
  expect([records.get(ann.id)?.["displayName"], records.has(cem.id)]).toEqual(["Ann", false]);
});

test("[AU327] SIGKILL at any moment of updates of records and accounts: both agree when the next start answers", async () => {
  const platform = await started();
  const people = await Promise.all(Array.from({ length: 8 }, () => signIn(platform)));
  for (let round = 0; round < 6; round++) {
    const last = new Map<string, string>();
    const change = async ({ id }: { id: string }, at: number) => {
      for (let times = 0; times < 50; times++) {
        const displayName = `${round} ${times}`;
        const path = (at + times) % 2 === 0 ? `/api/db/shared/tables/users/${id}` : `/api/auth/admin/users/${id}`;
        if ((await platform.service.patch(path, { displayName })).status !== 200) return;
        last.set(id, displayName);
      }
    };
    const work = Promise.allSettled(people.map(change));
    await Bun.sleep(5 + round * 25);
    await platform.kill("SIGKILL");
    await work;
    await platform.restart();
    const records = await expectAlike(platform);
    for (const [id, displayName] of last) {
      const [, times = ""] = String(records.get(id)?.["displayName"]).split(" ");
      // The one that was not answered may have come as well.
      expect(Number(times)).toBeGreaterThanOrEqual(Number(displayName.split(" ")[1]));
    }
    const data = new Database(join(platform.dataDirectory, "databases", "shared.db"), { readonly: true });
    expect(data.query("SELECT * FROM _platform_meta WHERE name LIKE 'users_asked:%'").all()).toEqual([]);
    data.close();
  }
}, 120_000);

test("[AU327] an update that a crash has left half done is done once, before anything is answered", async () => {
  const platform = await started();
  const [ann, bob, cem] = [await signIn(platform), await signIn(platform), await signIn(platform)];
  await platform.service.patch(`/api/db/shared/tables/users/${cem.id}`, { displayName: "Cem" });
  await platform.kill();
  const data = new Database(join(platform.dataDirectory, "databases", "shared.db"));
  const ask = (seq: number, id: string, displayName: string) => {
    const { birth } = data.query("SELECT _platform_birth AS birth FROM users WHERE id = ?").get(id) as {
      birth: number;
    };
    if (seq > 1) data.run("UPDATE users SET displayName = ? WHERE id = ?", [displayName, id]);
    const asked = JSON.stringify({ seq, id, birth, changes: { displayName } });
    data.run("INSERT INTO _platform_meta VALUES (?, ?)", [`users_asked:${String(seq).padStart(16, "0")}`, asked]);
    data.run("UPDATE _platform_meta SET value = ? WHERE name = 'users_asked'", [String(Math.max(seq, 2))]);
  };
  ask(2, ann.id, "Ann");
  // The account has had this one, and another name since.
  ask(1, bob.id, "Bob");
  data.close();
  await platform.restart();
  const records = await expectAlike(platform);
  expect([ann, bob, cem].map(({ id }) => records.get(id)?.["displayName"])).toEqual(["Ann", null, "Cem"]);
  expect((await ann.get("/api/auth/me")).body).toMatchObject({ user: { displayName: "Ann" } });
});

test("[AU314] a table that is declared later has a record for each account, before the migrations of its file", async () => {
  const docs = { schema: { authorId: { type: "string" }, author: { type: "string" } } };
  const platform = await started({ users: null, tables: { docs } });
  const ann = await signIn(platform);
  await ann.patch("/api/auth/me", { displayName: "Ann" });
  await platform.service.post("/api/db/shared/tables/docs", { id: "d", authorId: ann.id });
  const up = `UPDATE docs SET author = (SELECT displayName FROM users WHERE users.id = authorId)`;
  const migrations = [{ version: 1, description: "names", up }];
  // Its own migrations are not run on a table that is new.
  const users = { migrations: [{ version: 1, description: "never", up: "DELETE FROM users" }] };
  await platform.restart({ config: configOf({ users, tables: { docs: { ...docs, migrations } } }) });
  expect((await expectAlike(platform)).get(ann.id)).toMatchObject({ displayName: "Ann", bio: null });
  const { body } = await platform.service.get("/api/db/shared/tables/docs/d");
  expect(body["author"]).toBe("Ann");
  const { body: count } = await platform.service.get("/api/db/shared/tables/users/count");
  expect(count["total"]).toBe(1);
});

test("[AU316] a table of that name with records of its own is refused, and stays", async () => {
  const own = { schema: { nick: { type: "string" } } };
  const platform = await started({ users: null, tables: { users: own } });
  const ann = await signIn(platform);
  await platform.service.post("/api/db/shared/tables/users", { id: ann.id, nick: "ann" });
  await expect(platform.restart({ config: configOf() })).rejects.toThrow("with records of its own");
  const up = "ALTER TABLE users RENAME TO profiles";
  const profiles = { ...own, migrations: [{ version: 1, description: "another name", up }] };
  await platform.restart({ config: configOf({ tables: { profiles } }) });
  expect((await platform.service.get(`/api/db/shared/tables/profiles/${ann.id}`)).body["nick"]).toBe("ann");
  await expectAlike(platform);
});

test.each(["nowhere", "elsewhere"])(
  "[AU314] accounts that changed while their table was %s are compared",
  async (where) => {
    const platform = await started();
    const [ann, bob] = [await signIn(platform), await signIn(platform)];
    await platform.service.patch(`/api/db/shared/tables/users/${ann.id}`, { bio: "kept" });
    const auth: JsonObject = where === "nowhere" ? {} : { users: { in: "other" } };
    await platform.restart({ config: { auth, databases: { other: { tables: {} } } } });
    await ann.patch("/api/auth/me", { displayName: "Ann" });
    await platform.service.delete(`/api/auth/admin/users/${bob.id}`);
    const cem = await signIn(platform);
    if (where === "elsewhere") await expectAlike(platform, "other/tables/users");
    await platform.restart({ config: configOf() });
    const records = await expectAlike(platform);
    expect([...records.keys()].sort()).toEqual([ann.id, cem.id].sort());
    expect(records.get(ann.id)).toMatchObject({ displayName: "Ann", bio: "kept" });
  },
);

test("[AU315] files of different backups are compared, whichever is older", async () => {
  const platform = await started();
  const files = [
    join(platform.dataDirectory, "system.db"),
    join(platform.dataDirectory, "databases", "shared.db"),
  ] as const;
  const ann = await signIn(platform);
  await platform.kill("SIGTERM");
  for (const file of files) copyFileSync(file, `${file}.kept`);
  await platform.restart();
  const bob = await signIn(platform);
  await ann.patch("/api/auth/me", { displayName: "Ann" });
  for (const [older, wanted] of [
    [files[1], [ann.id, bob.id]],
    [files[0], [ann.id]],
  ] as const) {
    await platform.kill("SIGTERM");
    for (const ending of ["-wal", "-shm"]) if (existsSync(older + ending)) rmSync(older + ending);
    copyFileSync(`${older}.kept`, older);
    await platform.restart();
    expect([...(await expectAlike(platform)).keys()].sort()).toEqual([...wanted].sort());
  }
});

import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  ANN,
  BOB,
  FORMS,
  INSTANT,
  LOCAL,
  type Made,
  PATHS,
  PICTURE,
  READS,
} from "../../fixtures/second-release/contents.ts";
import { type ListAnswer, type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { random as seeded, testSeed } from "../../support/random.ts";
import { attemptStart } from "../../support/start-attempt.ts";

// A data directory that 0.2.0 made (tests/fixtures/second-release/make.ts), upgraded together with a config that uses what has come
// since: users as records, references to them, several references, files of records, views.

const FIXTURE = resolve(import.meta.dir, "../../fixtures/second-release");
const CONFIG = `export { present as default } from ${JSON.stringify(join(FIXTURE, "config.ts"))};`;
const FILES = ["system.db", "databases/shared.db", "databases/spaces/a.db"];
const ROUNDS = Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 3);
const SEED = testSeed(9_020);

const made: Made = await Bun.file(join(FIXTURE, "made.json")).json();
let platform: TestPlatform | null = null;
afterEach(async () => {
  await platform?.stop();
  platform = null;
});

function unpacked(): string {
  const directory = temporaryDirectory();
  const tar = Bun.spawnSync(["tar", "xzf", join(FIXTURE, "data.tar.gz"), "-C", directory]);
  if (!tar.success) throw new Error(tar.stderr.toString());
  return directory;
}

const signedIn = async (server: TestPlatform, { email, password }: typeof ANN | typeof BOB) => {
  const { body } = await server.post<{ accessToken: string }>("/api/auth/signin", { email, password });
  return server.as(body.accessToken);
};

/** A record as 0.2.0 answered it, with its datetimes as they are now, and with the fields that have come since. */
function upgraded(record: JsonObject, path: string): JsonObject {
  const inUtc = (value: JsonObject[string] | undefined) =>
    FORMS.some((form) => form === value) ? INSTANT : (value ?? null);
  const { at, key } = record;
  // Of two values that are one instant, the later one stays.
  const instants = { at: inUtc(at), key: record["id"] === "second" ? (key ?? null) : inUtc(key) };
  const since = { picture: null, ...(path === PATHS.static && { seats: [] }) };
  return { ...record, ...instants, ...since };
}

/** Asks everything of an upgraded server. */
async function expectWhole(server: TestPlatform): Promise<void> {
  const ann = await signedIn(server, ANN);
  for (const path of READS) {
    const { status, body } = await ann.get<ListAnswer & JsonObject>(path);
    expect([path, status]).toEqual([path, 200]);
    const before = made.answers[path] as ListAnswer & JsonObject;
    const root = Object.values(PATHS).find((one) => path.startsWith(`${one}/events?`));
    if (root === undefined && !path.includes("/search")) expect(body).toMatchObject(before);
    if (root === undefined) continue;
    expect(body.items).toEqual(before.items?.map((record) => upgraded(record, root)));
  }
  const { body: found } = await ann.get<ListAnswer>(`${PATHS.static}/events/search`, { query: { q: "opening" } });
  expect(found.total).toBe(FORMS.length + LOCAL.length);
  expect(await (await ann.fetch(`/api/storage/attachments/${PICTURE.key}`)).text()).toBe(PICTURE.text);
  const { body: users } = await ann.get<ListAnswer>(`${PATHS.static}/users`, { query: { sort: "createdAt" } });
  const account = (id: string, displayName: string | null, email: string | null) =>
    expect.objectContaining({ id, displayName, email, bio: null, isAnonymous: displayName === null });
  expect(users.items).toEqual([
    account(made.ann, ANN.displayName, ANN.email),
    account(made.bob, BOB.displayName, BOB.email),
    account(made.guest, null, null),
  ]);
  const { body: expanded } = await ann.get(`${PATHS.static}/events/e0`, { query: { expand: "byId" } });
  expect(expanded).toMatchObject({ byId: made.ann, expand: { byId: { displayName: ANN.displayName } } });
  const { body: busy } = await server.get<ListAnswer>(`${PATHS.static}/busy`, { query: { sort: "seats:desc" } });
  expect(busy.items).toEqual([
    { id: "e0", seats: 2 },
    { id: "e1", seats: 1 },
  ]);
}

test("[TB900] everything in a directory of 0.2.0 is there, and works with what has come since", async () => {
  platform = await testPlatform({ config: CONFIG, data: unpacked() });
  await expectWhole(platform);
  const where = "databases.shared.events";
  expect(platform.stderr()).toContain(`${where}.at: ${LOCAL.length} datetimes have no offset and stay as they were`);
  expect(platform.stderr()).toContain("second");

  const ann = await signedIn(platform, ANN);
  const form = new FormData();
  form.append("record", JSON.stringify({ seats: ["b", "a"], at: FORMS[1] }));
  form.append("picture", new Blob(["bytes"], { type: "text/plain" }), "new.txt");
  const changed = await ann.fetch(`${PATHS.static}/events/e1`, { method: "PATCH", body: form });
  expect([changed.status, await changed.json()]).toMatchObject([
    200,
    { seats: ["b", "a"], at: INSTANT, picture: { name: "new.txt", size: 5 } },
  ]);
  // A deletion of 0.2.0's account ends what refers to it.
  const bob = await signedIn(platform, BOB);
  expect((await bob.delete("/api/auth/me")).status).toBe(200);
  expect((await ann.get(`${PATHS.static}/users/${made.bob}`)).status).toBe(404);
  const { body } = await ann.get<ListAnswer>(`${PATHS.static}/events`, {
    query: { filter: '[["id","in",["e1","e4"]]]' },
  });
  expect(body.items?.map(({ byId }) => byId)).toEqual([null, null]);
});

/** Adds so many records of 0.2.0 that another process rewrites them. */
const MANY = 25_000;
function enlarge(directory: string): void {
  for (const file of ["databases/shared.db", "databases/spaces/a.db"]) {
    using sqlite = new Database(join(directory, file), { readwrite: true });
    sqlite.run(`WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${MANY})
      INSERT INTO events (id, at, title, createdAt, updatedAt)
      SELECT 'z' || n, '2024-05-06T06:00:00+02:00', 'many', '${OLD}', '${OLD}' FROM c`);
    sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
  }
}
const OLD = "2020-01-01T00:00:00.000Z";

test(`[TB901] an upgrade from 0.2.0 that is killed at random moments comes to its end (seed ${SEED}, ${ROUNDS} rounds)`, async () => {
  const random = seeded(SEED);
  for (let round = 0; round < ROUNDS; round++) {
    const dataDirectory = unpacked();
    enlarge(dataDirectory);
    const configFile = join(temporaryDirectory(), "platform.config.ts");
    await Bun.write(configFile, CONFIG);
    await attemptStart({ configFile, dataDirectory, killAfterMs: 50 + random.below(1200) });
    const server = await testPlatform({ config: CONFIG, data: dataDirectory });
    platform = server;
    // An instance is upgraded by its first request.
    const asked = server.get(`${PATHS.instance}/events/z1`).catch(() => null);
    await Bun.sleep(random.below(600));
    await server.kill();
    await asked;
    await server.restart();
    for (const path of Object.values(PATHS)) {
      const last = await server.get(`${path}/events/z${MANY}`);
      expect(last.body).toMatchObject({ at: INSTANT, updatedAt: OLD });
      const filter = `[["at","==","${INSTANT}"],["title","==","many"]]`;
      const { body } = await server.get<{ total: number }>(`${path}/events/count`, { query: { filter } });
      expect(body.total).toBe(MANY);
    }
    await expectWhole(server);
    await server.stop();
    expectCopies(dataDirectory, { isEnlarged: true });
  }
});

test("[TB902] the copies that an upgrade from 0.2.0 makes are the files of 0.2.0, and lead back", async () => {
  const data = unpacked();
  platform = await testPlatform({ config: CONFIG, data });
  await expectWhole(platform);
  expect((await platform.service.delete(`${PATHS.static}/events/e0`)).status).toBe(200);
  await platform.stop();
  expectCopies(data, { isEnlarged: false });
  // As the guide says: the copies take the place of the files.
  for (const path of new Bun.Glob("**/*.db.v*").scanSync(data)) {
    const file = join(data, path.replace(/\.v\d+$/, ""));
    for (const name of [file, `${file}-wal`, `${file}-shm`]) rmSync(name, { force: true });
    renameSync(join(data, path), file);
  }
  // What has been put back is upgraded as it was the first time.
  platform = await testPlatform({ config: CONFIG, data });
  await expectWhole(platform);
});

/** Expects a copy of each file that was upgraded, with the content that 0.2.0 gave it. */
function expectCopies(directory: string, { isEnlarged }: { isEnlarged: boolean }): void {
  const original = unpacked();
  if (isEnlarged) enlarge(original);
  for (const file of FILES) {
    const copies = [...new Bun.Glob(`${file}.v*`).scanSync(directory)];
    expect([file, copies.length]).toEqual([file, 1]);
    expect(contentOf(join(directory, copies[0] ?? ""))).toEqual(contentOf(join(original, file)));
  }
}

/** Returns the version of a file, its schema, and a hash of the rows of each table. */
function contentOf(path: string): Record<string, unknown> {
  using sqlite = new Database(path, { readonly: true });
  const tables = sqlite
    .query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_schema ORDER BY name")
    .all();
  const rows = tables
    .filter(({ sql }) => sql?.startsWith("CREATE TABLE"))
    .map(({ name }) => [name, Bun.hash(JSON.stringify(sqlite.query(`SELECT * FROM "${name}"`).values()))]);
  return { version: sqlite.query("PRAGMA user_version").values(), tables, rows };
}

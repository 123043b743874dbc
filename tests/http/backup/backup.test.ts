import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  type HttpClient,
  type ListAnswer,
  openSocket,
  type SignedIn,
  signIn,
  type TestPlatform,
  temporaryDirectory,
  testPlatform,
} from "../../support/index.ts";
import { path, randomBytes, until, upload } from "../storage/storage-support.ts";
import { runCommand } from "./backup-support.ts";

const CONFIG = `{
  databases: {
    shared: { tables: { notes: { schema: { n: { type: "integer" }, text: { type: "text" } }, fts: ["text"] } } },
    clubs: { instance: true, tables: { members: { schema: { n: { type: "integer" } } } } },
  },
  storage: { buckets: { files: {} } },
  kv: { cache: {} },
  d1: { reports: {} },
  vectorize: { words: { dimensions: 4 } },
  rooms: { game: {
    access: { join: true },
    actions: { name: async (room, player, payload) => { room.setMetadata({ name: payload }); await room.save(); } },
  } },
}`;
const INSTANCES = 7;
const OVERWRITTEN_KEYS = 5;
const ROUNDS_BEFORE = 6;
/** Bound of the lists below, which they give at once. */
const ROUNDS_MEANWHILE_MAX = 900;
const ROUNDS_AFTER = 3;

/** One kind of thing that a server keeps: made under a number, and listed by number. */
interface Kind {
  name: string;
  add(client: HttpClient, n: number): Promise<{ status: number }>;
  list(client: HttpClient, count: number): Promise<number[]>;
}

const notes = "/api/db/shared/tables/notes";
const members = (n: number) => `/api/db/clubs/club-${n % INSTANCES}/tables/members`;
const numbers = (items: readonly JsonObject[]) => items.map((item) => Number(item["n"]));
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

async function pages(client: HttpClient, table: string): Promise<JsonObject[]> {
  const items: JsonObject[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const query: Record<string, string | number> = after === "" ? { limit: 1000 } : { limit: 1000, after };
    const { body }: { body: ListAnswer } = await client.get<ListAnswer>(table, { query });
    items.push(...body.items);
    after = body.cursor;
  }
  return items;
}

const KINDS: readonly Kind[] = [
  {
    name: "records of a static table",
    add: (client, n) => client.post(notes, { n, text: `note number${n}` }),
    list: async (client) => numbers(await pages(client, notes)),
  },
  {
    name: "records of instances",
    add: (client, n) => client.post(members(n), { n }),
    list: async (client) =>
      numbers((await Promise.all(upTo(INSTANCES).map((instance) => pages(client, members(instance))))).flat()),
  },
  {
    name: "keys",
    add: (client, n) => client.post("/api/kv/cache", { action: "set", key: `k${n}`, value: n }),
    async list(client, count) {
      const values = await Promise.all(
        upTo(count).map((n) => client.post<{ value: number | null }>("/api/kv/cache", { action: "get", key: `k${n}` })),
      );
      return values.flatMap(({ body }) => (body.value === null ? [] : [body.value]));
    },
  },
  {
    name: "rows of an SQL database",
    add: (client, n) => client.post("/api/d1/reports", { query: "INSERT INTO t VALUES (?)", params: [n] }),
    list: async (client) =>
      numbers(
        (await client.post<{ results: JsonObject[] }>("/api/d1/reports", { query: "SELECT n FROM t" })).body.results,
      ),
  },
  {
    name: "vectors",
    add: (client, n) =>
      client.post("/api/vectorize/words", {
        action: "upsert",
        vectors: [{ id: `v${n}`, values: [1, n, 2, 3], metadata: { n } }],
      }),
    async list(client, count) {
      const ids = upTo(count).map((n) => `v${n}`);
      const { body } = await client.post<{ vectors: { metadata: JsonObject }[] }>("/api/vectorize/words", {
        ...{ action: "getByIds", ids },
      });
      return numbers(body.vectors.map(({ metadata }) => metadata));
    },
  },
  {
    name: "files",
    add: (client, n) => upload(client, "files", `new/${n}`, `content ${n}`),
    async list(client) {
      const { body } = await client.get<{ objects: { key: string }[] }>("/api/storage/files", {
        query: { prefix: "new/", limit: 1000 },
      });
      const keys = body.objects.map(({ key }) => key);
      const contents = await Promise.all(keys.map(async (key) => (await client.fetch(path("files", key))).text()));
      return contents.map((content) => Number(content.replace("content ", "")));
    },
  },
];

/** Requests of one kind, sent and acknowledged. */
class Writes {
  readonly kind: Kind;
  readonly acknowledged = new Set<number>();
  sent = 0;

  constructor(kind: Kind) {
    this.kind = kind;
  }

  async next(client: HttpClient): Promise<void> {
    const n = this.sent++;
    const { status } = await this.kind.add(client, n);
    if (status !== 200 && status !== 201) throw new Error(`${this.kind.name}: ${status}`);
    this.acknowledged.add(n);
  }
}

async function nameRoom(platform: TestPlatform, user: SignedIn): Promise<void> {
  const socket = await openSocket(`${platform.wsUrl}/api/room?namespace=game&id=one`);
  socket.send({ type: "auth", token: user.token });
  await socket.nextOf("auth_success");
  socket.send({ type: "join" });
  await socket.nextOf("sync");
  socket.send({ type: "send", actionType: "name", payload: "den", requestId: "1" });
  await socket.nextOf("action_result");
  await socket.close();
}

const databasesIn = (directory: string): string[] =>
  readdirSync(directory, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith(".db"))
    .sort();

async function eventCount(platform: TestPlatform): Promise<number> {
  const { body } = await platform.service.get<{ totalEvents: number }>("/api/analytics/events?metric=count");
  return body.totalEvents;
}

describe("a server that is written to", () => {
  let platform: TestPlatform;
  let restored: TestPlatform;
  let user: SignedIn;
  const writes = KINDS.map((kind) => new Writes(kind));
  let before: Set<number>[] = [];
  const overwrites = { acknowledged: new Array<number>(OVERWRITTEN_KEYS).fill(0), before: [] as number[], sent: 0 };
  const big = randomBytes(3_000_000);
  const file = join(temporaryDirectory(), "backup.tar.zst");
  const directory = join(temporaryDirectory(), "data");

  /** Replaces the same few files again and again, and makes and removes another. */
  async function overwrite(): Promise<void> {
    const n = ++overwrites.sent;
    expect((await upload(platform.service, "files", `same/${n % OVERWRITTEN_KEYS}`, `${n}`)).status).toBe(201);
    overwrites.acknowledged[n % OVERWRITTEN_KEYS] = n;
    await upload(platform.service, "files", "gone", "soon");
    await platform.service.delete(path("files", "gone"));
  }

  beforeAll(async () => {
    platform = await testPlatform({ config: CONFIG });
    user = await signIn(platform);
    await platform.service.post("/api/d1/reports", { query: "CREATE TABLE t (n INTEGER)" });
    await upload(platform.service, "files", "big", big);
    await nameRoom(platform, user);
    await platform.service.post("/api/analytics/track", { events: [{ name: "one" }, { name: "two" }] });
    await until("events are on disk", async () => (await eventCount(platform)) === 2);
    const step = () => Promise.all([...writes.map((one) => one.next(platform.service)), overwrite()]);
    for (let round = 0; round < ROUNDS_BEFORE; round++) await step();
    before = writes.map(({ acknowledged }) => new Set(acknowledged));
    overwrites.before = [...overwrites.acknowledged];

    let isOver = false;
    const writing = (async () => {
      for (let round = 0; round < ROUNDS_MEANWHILE_MAX && !isOver; round++) await step();
      for (let round = 0; round < ROUNDS_AFTER; round++) await step();
    })();
    const backedUp = await runCommand(["backup", file, "--data", platform.dataDirectory]);
    isOver = true;
    await writing;
    expect(backedUp).toMatchObject({ code: 0, stdout: "" });

    expect(await runCommand(["restore", file, "--data", directory])).toMatchObject({ code: 0 });
    restored = await testPlatform({ config: CONFIG, args: ["--data", directory] });
  });
  afterAll(() => Promise.all([platform.stop(), restored.stop()]));

  for (const [index, kind] of KINDS.entries()) {
    test(`[BK1][BK10] ${kind.name}: all acknowledged before the backup, and none that was not written`, async () => {
      const { acknowledged, sent } = writes[index] ?? new Writes(kind);
      const found = await kind.list(restored.service, sent);
      expect(new Set(found).size).toBe(found.length);
      expect([...(before[index] ?? [])].filter((n) => !found.includes(n))).toEqual([]);
      expect(found.filter((n) => !acknowledged.has(n))).toEqual([]);
    });
  }

  test("[BK4] a file that was being replaced is one of its versions, complete", async () => {
    for (const slot of upTo(OVERWRITTEN_KEYS)) {
      const n = Number(await (await restored.service.fetch(path("files", `same/${slot}`))).text());
      expect(n % OVERWRITTEN_KEYS).toBe(slot);
      expect(n).toBeGreaterThanOrEqual(overwrites.before[slot] ?? 0);
      expect(n).toBeLessThanOrEqual(overwrites.acknowledged[slot] ?? 0);
    }
    const bytes = await (await restored.service.fetch(path("files", "big"))).bytes();
    expect(Buffer.from(bytes).equals(big)).toBe(true);
  });

  test("[BK10] users sign in, and their sessions continue", async () => {
    expect((await restored.as(user.token).get("/api/auth/me")).status).toBe(200);
    const { email, password, refreshToken } = user;
    expect((await restored.post("/api/auth/signin", { email, password })).status).toBe(200);
    expect((await restored.post("/api/auth/refresh", { refreshToken })).status).toBe(200);
  });

  test("[BK10] events are counted", async () => {
    expect(await eventCount(restored)).toBe(2);
  });

  test("[BK10] search, counts and names of rooms are as before", async () => {
    const found = await restored.service.get<ListAnswer>(`${notes}/search`, { query: { q: "number3" } });
    // And every other one that begins so: as many as were written.
    expect(found.body.items.map((item) => item["n"])).toContain(3);
    const all = await pages(restored.service, notes);
    expect((await restored.service.get(`${notes}/count`)).body).toEqual({ total: all.length });
    expect((await restored.get("/api/room/metadata?namespace=game&id=one")).body).toEqual({ name: "den" });
    const nearest = await restored.service.post<{ matches: { id: string }[] }>("/api/vectorize/words", {
      ...{ action: "search", vector: [1, 4, 2, 3], topK: 1 },
    });
    expect(nearest.body.matches[0]?.id).toBe("v4");
  });

  test("[BK2] every database passes SQLite's integrity check, and the contents of all files exist", async () => {
    await restored.kill("SIGTERM");
    const databases = databasesIn(directory);
    expect(databases).toEqual(databasesIn(platform.dataDirectory));
    expect(databases.length).toBeGreaterThan(INSTANCES + 5);
    for (const name of databases) {
      const sqlite = new Database(join(directory, name), { readonly: true });
      expect([name, sqlite.query("PRAGMA integrity_check").values()]).toEqual([name, [["ok"]]]);
      expect([name, sqlite.query("PRAGMA foreign_key_check").values()]).toEqual([name, []]);
      if (name === "system.db") {
        const rows = sqlite.query<{ fileId: string; size: number }, []>("SELECT fileId, size FROM storage_objects");
        for (const { fileId, size } of rows.all()) {
          const content = join(directory, "storage/objects", fileId.slice(-2), fileId);
          expect([fileId, existsSync(content) && statSync(content).size]).toEqual([fileId, size]);
        }
      }
      sqlite.close();
    }
    await restored.restart();
  });
});

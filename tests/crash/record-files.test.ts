import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type RecordFile, sendForm, textOf } from "../http/tables/tables-files-support.ts";
import { type TestPlatform, testPlatform, until } from "../support/index.ts";
import { random as seeded, testSeed } from "../support/random.ts";

// Records with files are inserted, changed and deleted, in a static namespace and in instances, on a server that is killed at random
// moments.

const ROUNDS = Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 4);
const SEED = testSeed(7_290);
/** Changes of a round before its kill. */
const CHANGES_MIN = 12;
const LOAD_SPREAD_MS = 200;
const CLIENTS = 4;
const INSTANCES = ["a", "b"];

interface Doc {
  id: string;
  cover: RecordFile | null;
  all: RecordFile[];
}

const config = `{
  storage: { buckets: { files: { quota: { total: 100_000_000 } } } },
  rateLimits: { global: { requests: 1_000_000, window: 1 } },
  databases: Object.fromEntries(["shared", "spaces"].map((name) => [name, {
    ...(name === "spaces" ? { instance: true, access: { create: true, open: true } } : {}),
    tables: {
      parents: { access: { read: true, insert: true, delete: true }, schema: { name: { type: "text" } } },
      docs: {
        access: { read: true, insert: true, update: true, delete: true },
        schema: {
          parentId: { references: "parents", onDelete: "cascade" },
          cover: { type: "file", bucket: "files" },
          all: { type: "file", bucket: "files", many: 4 },
        },
      },
    },
  }])),
}`;

const bases = ["/api/db/shared/tables", ...INSTANCES.map((id) => `/api/db/spaces/${id}/tables`)];

/** Returns every record that there is. */
async function recordsOf(platform: TestPlatform): Promise<Doc[]> {
  const lists = await Promise.all(bases.map((base) => platform.get<{ items: Doc[] }>(`${base}/docs?limit=1000`)));
  return lists.flatMap(({ body }) => body.items);
}

function bytesOf({ dataDirectory }: TestPlatform): string[] {
  const folder = join(dataDirectory, "storage", "objects");
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((one) =>
    one.isFile() ? [one.name] : [],
  );
}

function claimsOf({ dataDirectory }: TestPlatform): { fileId: string; size: number }[] {
  using sqlite = new Database(join(dataDirectory, "system.db"), { readonly: true });
  return sqlite.query<{ fileId: string; size: number }, []>("SELECT fileId, size FROM storage_claims").all();
}

const filesOf = ({ cover, all }: Doc): RecordFile[] => [...(cover === null ? [] : [cover]), ...all];

test(`[TB729] [ST362] a SIGKILL loses no file of a record, and leaves none without one (${ROUNDS} rounds, seed ${SEED})`, async () => {
  const platform = await testPlatform({ config });
  const random = seeded(SEED);
  /** Acknowledged records by path, with the contents of their files; those that a request was under way for are left out. */
  const acknowledged = new Map<string, string[]>();
  const parents = new Map<string, string>();
  let next = 0;
  let done = 0;
  const content = (): string => `${next++}-${"x".repeat(random.below(3_000))}`;

  for (let round = 0; round < ROUNDS; round++) {
    let isRunning = true;
    const client = async (): Promise<void> => {
      while (isRunning) {
        const base = bases[random.below(bases.length)] ?? "";
        const known = [...acknowledged.keys()].filter((path) => path.startsWith(base));
        const path = known[random.below(Math.max(1, known.length))];
        const [one, two] = [content(), content()];
        const files = [
          { field: "cover", content: one },
          { field: "all", content: two },
        ];
        try {
          const action = random.below(3);
          if (path === undefined || action === 0) {
            const id = `r${next++}`;
            const parentId = random.chance(0.3) ? `p${next++}` : null;
            if (parentId !== null) await platform.post(`${base}/parents`, { id: parentId });
            const answer = await sendForm<Doc>(platform, `${base}/docs`, { record: { id, parentId }, files });
            expect(answer.status).toBe(201);
            acknowledged.set(`${base}/docs/${id}`, [one, two]);
            if (parentId !== null) parents.set(`${base}/docs/${id}`, `${base}/parents/${parentId}`);
          } else if (action === 1) {
            acknowledged.delete(path);
            const answer = await sendForm<Doc>(platform, path, { method: "PATCH", record: { all: [] }, files });
            expect([200, 404]).toContain(answer.status);
            if (answer.status === 200) acknowledged.set(path, [one, two]);
          } else {
            acknowledged.delete(path);
            // A parent takes the record with it.
            expect([200, 404]).toContain((await platform.delete(parents.get(path) ?? path)).status);
          }
          done++;
        } catch (cause) {
          if (cause instanceof TypeError || (cause as { code?: string }).code !== undefined) return;
          throw cause;
        }
      }
    };
    const clients = Array.from({ length: CLIENTS }, client);
    const enough = done + CHANGES_MIN;
    await until("some changes are done", () => done >= enough);
    await Bun.sleep(random.below(LOAD_SPREAD_MS));
    await platform.kill("SIGKILL");
    isRunning = false;
    await Promise.all(clients);
    await platform.restart();

    for (const [path, contents] of acknowledged) {
      const { status, body } = await platform.get<Doc>(path);
      expect([path, status]).toEqual([path, 200]);
      const read = await Promise.all(filesOf(body).map(({ url }) => textOf(platform, url)));
      expect([path, read]).toEqual([path, contents]);
    }
    // What a request under way has written is whole too.
    const records = await recordsOf(platform);
    for (const doc of records) {
      for (const { url, size } of filesOf(doc)) expect((await textOf(platform, url)).length).toBe(size);
    }
    const ids = records.flatMap((doc) => filesOf(doc).map(({ id }) => id)).toSorted();
    await until("no bytes and no claim are without a record", () => {
      const claims = claimsOf(platform).map(({ fileId }) => fileId);
      return Bun.deepEquals(claims.toSorted(), ids) && Bun.deepEquals(bytesOf(platform).toSorted(), ids);
    });
    const used = await platform.service.get<{ quota: { used: number } }>("/api/admin/storage/files");
    expect(used.body.quota.used).toBe(claimsOf(platform).reduce((sum, { size }) => sum + size, 0));
  }

  // An instance that is deleted just before a crash leaves none of its files.
  await platform.service.delete("/api/admin/instances/spaces/a");
  await platform.kill("SIGKILL");
  await platform.restart();
  const left = (await recordsOf(platform)).flatMap((doc) => filesOf(doc).map(({ id }) => id)).toSorted();
  await until("the files of the instance are gone", () => Bun.deepEquals(bytesOf(platform).toSorted(), left));
  await platform.stop();
}, 180_000);

import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { signIn, testPlatform } from "../support/index.ts";
import { random as seeded, testSeed } from "../support/random.ts";

// Users create and delete instances, up to their quota, on a server that is killed at random moments.

const ROUNDS = Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 4);
const SEED = testSeed(4_520);
const QUOTA = 8;
const LOAD_MIN_MS = 30;
const LOAD_SPREAD_MS = 400;
const CLIENTS = 4;

test(`[TB452] a SIGKILL between instance and count loses and doubles none (${ROUNDS} rounds, seed ${SEED})`, async () => {
  const access = { create: true, open: true };
  const tables = { notes: { access: { read: true, insert: true } } };
  const platform = await testPlatform({
    config: {
      databases: { spaces: { instance: true, access, tables, quota: { instancesPerUser: QUOTA } } },
      rateLimits: { global: { requests: 1_000_000, window: 1 } },
    },
  });
  const user = await signIn(platform);
  const random = seeded(SEED);
  const folder = join(platform.dataDirectory, "databases", "spaces");
  const files = (): string[] =>
    existsSync(folder)
      ? readdirSync(folder)
          .filter((name) => name.endsWith(".db"))
          .map((name) => name.slice(0, -".db".length))
      : [];
  const counted = (): string[] => {
    using sqlite = new Database(join(platform.dataDirectory, "system.db"), { readonly: true });
    return sqlite
      .query<{ instanceId: string }, []>("SELECT instanceId FROM instance_creators")
      .all()
      .map(({ instanceId }) => instanceId);
  };
  const create = async (id: string): Promise<number> =>
    (await user.post(`/api/db/spaces/${id}/tables/notes`, { text: "x" })).status;
  let next = 0;
  for (let round = 0; round < ROUNDS; round++) {
    let isRunning = true;
    const client = async (): Promise<void> => {
      while (isRunning) {
        const [known] = files();
        const work =
          known !== undefined && random.chance(0.5)
            ? platform.service.delete(`/api/admin/instances/spaces/${known}`).then(({ status }) => status)
            : create(`i${next++}`);
        const status = await work.catch(() => null);
        if (status === null) return;
        expect([200, 201, 404, 413]).toContain(status);
        expect(files().length).toBeLessThanOrEqual(QUOTA);
      }
    };
    const clients = Array.from({ length: CLIENTS }, client);
    await Bun.sleep(LOAD_MIN_MS + random.below(LOAD_SPREAD_MS));
    await platform.kill("SIGKILL");
    isRunning = false;
    await Promise.all(clients);
    await platform.restart();
    // No instance is without its count, and no count keeps the user from what the quota allows.
    expect(files().filter((id) => !counted().includes(id))).toEqual([]);
    for (let held = files().length; held < QUOTA; held++)
      expect([round, held, await create(`i${next++}`)]).toEqual([round, held, 201]);
    expect(await create("over")).toBe(413);
    expect(counted().toSorted()).toEqual(files().toSorted());
    for (const id of files().slice(0, QUOTA / 2)) await platform.service.delete(`/api/admin/instances/spaces/${id}`);
  }
  await platform.stop();
}, 120_000);

import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Archive, loadArchive } from "../../src/server/areas/backup/continuous/format/archive.ts";
import { temporaryDirectory } from "../support/index.ts";
import { random as randomOf, testSeed } from "../support/random.ts";
import { restoreBy } from "./continuous-model/judge.ts";
import { areEqual } from "./continuous-model/simulated-file.ts";
import { SimulatedServer } from "./continuous-model/simulated-server.ts";

// A store whose segments are removed as far as merged objects stand for them, so that whoever restores has to read those.

const STEPS = 400;
const READER = resolve(import.meta.dir, "../http/backup/read-continuous.py");
const seed = testSeed(1);

let server: SimulatedServer;
let archive: Archive;
let removed = 0;
let path = "";

beforeAll(async () => {
  const random = randomOf(seed);
  server = new SimulatedServer(random, null);
  for (let step = 0; step < STEPS; step++) {
    server.step();
    if (random.chance(0.5)) await server.pass({ isLast: false });
  }
  server.heal();
  while ((await server.pass({ isLast: false })) !== false) {}
  await server.stop();
  const { store } = server;
  const stored = await loadArchive(store);
  if (stored === null) throw new Error("nothing is stored");
  const { merged, segments } = stored.manifest;
  const live = stored.manifest.files.filter((file) => file.removed === null);
  const baseOf = ({ fulls }: (typeof live)[number]): number => fulls.at(-1)?.place ?? 0;
  // The file that needs most segments.
  const file = live.reduce((least, one) => (baseOf(one) < baseOf(least) ? one : least));
  path = file.path;
  archive = new Archive({ ...stored.manifest, files: [file] });
  const oldest = baseOf(file);
  for (const { first, last } of merged.filter(({ firstPlace }) => firstPlace > oldest)) {
    for (const { counter, key } of segments) {
      if (counter >= first && counter <= last && store.objects.delete(key)) removed++;
    }
  }
});

test(`[BK380] the newest moment is restored by merged objects where segments are missing (seed ${seed})`, async () => {
  expect(removed).toBeGreaterThan(10);
  const restored = await restoreBy(server.store, archive, null);
  expect(areEqual(restored.get(path)?.pages ?? [], server.files.get(path)?.pages ?? [])).toBe(true);
});

test(`[BK381] the reader in another language knows merged objects by the description of the format (seed ${seed})`, () => {
  const folder = temporaryDirectory();
  for (const [key, bytes] of server.store.objects) {
    mkdirSync(dirname(join(folder, key)), { recursive: true });
    writeFileSync(join(folder, key), bytes);
  }
  const copy = join(folder, "copy");
  const { exitCode, stderr } = Bun.spawnSync(["python3", READER, folder, path, copy]);
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  expect(readFileSync(copy).equals(Buffer.concat(server.files.get(path)?.pages ?? []))).toBe(true);
});

afterAll(() => server.store.objects.clear());

import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { silentLogger } from "../../../kernel/logger.ts";
import { createStorageEngine, type DatabaseFile, type StorageEngine } from "../../db/index.ts";
import { extensionFile } from "../../db/vectors/extension.ts";
import { loadVectorExtension } from "../../db/vectors/load.ts";
import { COMPACT_AFTER_DELETIONS } from "./limits.ts";
import { chunkVectors, createCompaction, createVectorStore, migrateIndex, type VectorStore } from "./store.ts";
import type { IndexDefinition, StoredVector } from "./types.ts";

const INDEX: IndexDefinition = { name: "a", dimensions: 1, metric: "euclidean" };
const CHUNK_VECTORS = chunkVectors(INDEX.dimensions);

let directory = "";
let engine: StorageEngine;
let file: DatabaseFile;
let store: VectorStore;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "compaction-"));
  const { path: extensionPath } = await extensionFile(directory);
  engine = createStorageEngine({ clock: systemClock });
  file = engine.open(join(directory, "a.db"), {
    migrate(sqlite) {
      loadVectorExtension(sqlite, extensionPath);
      migrateIndex(sqlite, INDEX);
    },
  });
  store = createVectorStore(file, INDEX);
});
afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

const vector = (number: number): StoredVector => ({
  id: `${number}`,
  values: Float32Array.of(number),
  metadata: "{}",
});
const chunkCount = () => file.sqlite.query<{ n: number }, []>("SELECT count(*) AS n FROM vectors_chunks").get()?.n;
const storedNumbers = () =>
  file.sqlite
    .query<{ id: string; embedding: Uint8Array }, []>(
      "SELECT items.id, vectors.embedding FROM items JOIN vectors ON vectors.rowid = items.rowid ORDER BY items.rowid",
    )
    .all()
    .map(({ id, embedding }) => [Number(id), new Float32Array(embedding.slice().buffer)[0]]);

test("[VZ14] sparse chunks are emptied into the newest one, and their vectors do not change", async () => {
  await store.upsert(Array.from({ length: CHUNK_VECTORS * 4 }, (_, number) => vector(number)));
  expect(chunkCount()).toBe(4);
  const gone = Array.from({ length: CHUNK_VECTORS * 4 }, (_, number) => number).filter((number) => number % 16 !== 0);
  const deletedCount = await store.delete(gone.map(String));
  expect([deletedCount, chunkCount()]).toEqual([gone.length, 4]);

  const compaction = createCompaction({ file, chunkVectors: CHUNK_VECTORS, logger: silentLogger });
  compaction.afterDeletions(COMPACT_AFTER_DELETIONS - 1);
  await Bun.sleep(20);
  expect(chunkCount()).toBe(4);
  compaction.afterDeletions(1);
  for (let turn = 0; turn < 500 && chunkCount() !== 1; turn++) await Bun.sleep(5);
  expect(chunkCount()).toBe(1);
  await compaction.stop();
  const kept = Array.from({ length: CHUNK_VECTORS / 4 }, (_, number) => number * 16);
  expect(storedNumbers()).toEqual(kept.map((number) => [number, number]));
});

test("[VZ1] an upsert that fails in the middle leaves nothing", async () => {
  await store.upsert([vector(1)]);
  const broken = { ...vector(2), values: Float32Array.of(1, 2) };
  await expect(store.upsert([vector(3), { ...vector(1), values: Float32Array.of(9) }, broken])).rejects.toThrow();
  expect(storedNumbers()).toEqual([[1, 1]]);
  await store.upsert([vector(4)]);
  expect(storedNumbers()).toEqual([
    [1, 1],
    [4, 4],
  ]);
});

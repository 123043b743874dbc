import { Database } from "bun:sqlite";
import { join } from "node:path";
import { getLoadablePath } from "sqlite-vec";
import { EMBEDDING_DIMENSIONS, type Embedding, makeEmbeddings } from "../../tests/support/embeddings.ts";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../../tests/support/index.ts";
import { quantile } from "../support/statistics.ts";

const VECTORS = 50_000;
const UPSERT_VECTORS = 1_000;
const SEARCHES = 100;
const TOP_K = 10;
const GROUPS = 20;
const SEARCHES_AT_ONCE = 8;
const HEALTH_SECONDS = 5;

export interface VectorFigures {
  /** Latency of sequential searches, over HTTP and as the bare query on a separate file, in milliseconds. */
  searchP50Ms: number;
  bareP50Ms: number;
  filteredP50Ms: number;
  productP50Ms: number;
  upsertedPerSecond: number;
  /** Latency of GET /api/health during eight concurrent searches. */
  healthP99Ms: number;
}

const CONFIG = {
  vectorize: {
    words: { dimensions: EMBEDDING_DIMENSIONS },
    products: { dimensions: EMBEDDING_DIMENSIONS, metric: "dot-product" },
  },
};

const bytesOf = (values: readonly number[]): Uint8Array => new Uint8Array(Float32Array.from(values).buffer);

/** Returns a search with plain sqlite-vec. */
function bareSearch(embeddings: readonly Embedding[]): (values: readonly number[]) => void {
  const database = new Database(join(temporaryDirectory(), "bare.db"), { create: true });
  database.loadExtension(getLoadablePath());
  database.run(
    `CREATE VIRTUAL TABLE vectors USING vec0(embedding float[${EMBEDDING_DIMENSIONS}] distance_metric=cosine)`,
  );
  const insert = database.prepare("INSERT INTO vectors (rowid, embedding) VALUES (?, ?)");
  database.transaction(() => {
    for (const [row, { values }] of embeddings.entries()) insert.run(row + 1, bytesOf(values));
  })();
  const search = database.prepare(`SELECT rowid, distance FROM vectors WHERE embedding MATCH ? AND k = ${TOP_K}`);
  return (values) => void search.values(bytesOf(values));
}

async function ask(platform: TestPlatform, index: string, body: object): Promise<void> {
  const response = await platform.service.fetch(`/api/vectorize/${index}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
}

async function fill(platform: TestPlatform, index: string, embeddings: readonly Embedding[]): Promise<number> {
  const startedAt = performance.now();
  for (let from = 0; from < VECTORS; from += UPSERT_VECTORS) {
    const part = embeddings.slice(from, from + UPSERT_VECTORS);
    const vectors = part.map(({ word, values }, row) => ({ id: word, values, metadata: { group: row % GROUPS } }));
    await ask(platform, index, { action: "upsert", vectors });
  }
  return VECTORS / ((performance.now() - startedAt) / 1_000);
}

async function timed(work: () => Promise<void> | void): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function healthBesideSearches(platform: TestPlatform, embeddings: readonly Embedding[]): Promise<number> {
  const endsAt = performance.now() + HEALTH_SECONDS * 1_000;
  const searching = Array.from({ length: SEARCHES_AT_ONCE }, async (_, seed) => {
    for (let turn = seed; performance.now() < endsAt; turn += SEARCHES_AT_ONCE) {
      await ask(platform, "words", { action: "search", vector: embeddings[turn % VECTORS]?.values, topK: TOP_K });
    }
  });
  const times: number[] = [];
  while (performance.now() < endsAt) {
    times.push(await timed(async () => void (await (await platform.fetch("/api/health")).text())));
    await Bun.sleep(1);
  }
  await Promise.all(searching);
  return quantile(times, 0.99);
}

/** Measures 50,000 vectors of 100 dimensions, topK 10. */
export async function measureVectors(): Promise<VectorFigures> {
  const embeddings = makeEmbeddings(VECTORS);
  const bare = bareSearch(embeddings);
  const platform = await testPlatform({ config: CONFIG });
  try {
    const upsertedPerSecond = await fill(platform, "words", embeddings);
    await fill(platform, "products", embeddings);
    const [plain, bareTimes, filtered, product]: [number[], number[], number[], number[]] = [[], [], [], []];
    for (let turn = 0; turn < SEARCHES; turn++) {
      const vector = embeddings[(turn * 7_919) % VECTORS]?.values ?? [];
      const search = { action: "search", vector, topK: TOP_K };
      bareTimes.push(await timed(() => bare(vector)));
      plain.push(await timed(() => ask(platform, "words", search)));
      filtered.push(await timed(() => ask(platform, "words", { ...search, filter: { group: turn % GROUPS } })));
      product.push(await timed(() => ask(platform, "products", search)));
    }
    return {
      ...{ searchP50Ms: quantile(plain, 0.5), bareP50Ms: quantile(bareTimes, 0.5) },
      ...{ filteredP50Ms: quantile(filtered, 0.5), productP50Ms: quantile(product, 0.5), upsertedPerSecond },
      healthP99Ms: await healthBesideSearches(platform, embeddings),
    };
  } finally {
    await platform.stop();
  }
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(await measureVectors(), null, 2)}\n`);

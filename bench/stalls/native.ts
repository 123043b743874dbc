import { MIB, SERVICE_HEADERS, type StallArea, send } from "./area.ts";
import type { OperationRequest } from "./measure.ts";

const KEYS = 20_000;
const KEY_PADDING = "k".repeat(500);
const DIMENSIONS = 1_536;
const VECTORS_MAX = 1_000;
const SLOW_SQL = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c WHERE n < 0";
const WIDE_SQL =
  "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 1000000) SELECT n, 'some text' AS t FROM c";

const LARGE_SQL =
  "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 31) SELECT hex(zeroblob(500000)) AS x FROM c";

const CONFIG = `import { defineConfig } from "platform";

export default defineConfig({
  kv: { cache: {} },
  d1: { main: {} },
  vectorize: { near: { dimensions: ${DIMENSIONS} }, long: { dimensions: 4 } },
});
`;

const post = (path: string, body: unknown): OperationRequest => ({
  method: "POST",
  path,
  headers: SERVICE_HEADERS,
  body: JSON.stringify(body),
});

/** Returns numbers between 0 and 1 with few digits, so that many vectors fit into one body. */
const vector = (seed: number): number[] =>
  Array.from({ length: DIMENSIONS }, (_, index) => ((index * 7_919 + seed * 104_729) % 1_000) / 1_000);

/** Filter with the maximum number of conditions and values. */
const LARGEST_FILTER = Object.fromEntries(
  Array.from({ length: 50 }, (_, n) => [`f${n}`, { $in: Array.from({ length: 1_000 }, (__, value) => value) }]),
);

function upsertOf(count: number, turn: number): unknown {
  const vectors = Array.from({ length: count }, (_, index) => ({
    id: `v${turn}-${index}`,
    values: vector(turn * count + index),
    metadata: { n: index },
  }));
  return { action: "upsert", vectors };
}

/** Metadata of the maximum size of a vector's. */
const LONG_METADATA = { text: "m".repeat(64 * 1024 - 100) };
const LONG_PER_REQUEST = 100;

/** Returns requests that store many vectors with long metadata, and a short one that replaces or deletes them together. */
function longMetadata(change: object): OperationRequest[] {
  const values = [1, 2, 3, 4];
  const filling = Array.from({ length: VECTORS_MAX / LONG_PER_REQUEST }, (_, turn) => ({
    action: "upsert",
    vectors: Array.from({ length: LONG_PER_REQUEST }, (__, index) => ({
      ...{ id: `long${turn * LONG_PER_REQUEST + index}`, values, metadata: LONG_METADATA },
    })),
  }));
  return [...filling, change].map((body) => post("/api/vectorize/long", body));
}

const LONG_IDS = Array.from({ length: VECTORS_MAX }, (_, index) => `long${index}`);
const replacing = { action: "upsert", vectors: LONG_IDS.map((id) => ({ id, values: [4, 3, 2, 1], metadata: {} })) };

export const nativeStalls: StallArea = {
  name: "kv, SQL, vectors",
  config: CONFIG,
  async prepare(server) {
    const sql = `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT ${KEYS}) INSERT INTO t SELECT n, hex(randomblob(50)) FROM c`;
    await send(server, "POST", "/api/d1/main", { query: "CREATE TABLE t (n INTEGER, text TEXT)" });
    await send(server, "POST", "/api/d1/main", { query: sql });
    for (let index = 0; index < 2_000; index++) {
      await send(server, "POST", "/api/kv/cache", { action: "set", key: `${KEY_PADDING}${index}`, value: index });
    }
    for (let turn = 0; turn < 10; turn++)
      await send(server, "POST", "/api/vectorize/near", upsertOf(VECTORS_MAX, turn));
    // A large body may have at most 50,000 members.
    const value = Object.fromEntries(Array.from({ length: 49_000 }, (_, index) => [`member${index}`, index]));
    await send(server, "POST", "/api/kv/cache", { action: "set", key: "large", value: "x".repeat(MIB - 10) });
    return [
      { name: "kv set of 1 MiB", requests: [post("/api/kv/cache", { action: "set", key: "one", value })] },
      { name: "kv get of 1 MiB", requests: [post("/api/kv/cache", { action: "get", key: "large" })] },
      {
        name: "kv list, 1,000 keys of 500 characters",
        requests: [post("/api/kv/cache", { action: "list", limit: 1_000 })],
      },
      {
        name: "SQL of 1,000,000 characters",
        requests: [post("/api/d1/main", { query: `SELECT ${"a,".repeat(499_990)}a` })],
      },
      {
        name: "SQL, results of 31 MiB",
        requests: [post("/api/d1/main", { query: LARGE_SQL })],
        clients: 32,
      },
      { name: "SQL that never ends", requests: [post("/api/d1/main", { query: SLOW_SQL })], clients: 32 },
      { name: "SQL, a result of 1,000,000 rows", requests: [post("/api/d1/main", { query: WIDE_SQL })] },
      {
        name: "SQL, a parameter of 9 MB",
        requests: [post("/api/d1/main", { query: "SELECT length(?) AS n", params: ["a".repeat(9 * MIB)] })],
      },
      {
        name: `upsert of ${VECTORS_MAX} vectors of ${DIMENSIONS}`,
        requests: [post("/api/vectorize/near", upsertOf(VECTORS_MAX, 1))],
      },
      {
        name: `${VECTORS_MAX} vectors with 64 KiB of metadata each, stored and deleted at once`,
        requests: longMetadata({ action: "delete", ids: LONG_IDS }),
        clients: 1,
      },
      {
        name: `${VECTORS_MAX} vectors with 64 KiB of metadata each, stored and replaced at once`,
        requests: longMetadata(replacing),
        clients: 1,
      },
      {
        name: "vector search, the largest filter",
        requests: [post("/api/vectorize/near", { action: "search", vector: vector(3), filter: LARGEST_FILTER })],
      },
      {
        name: "vector search, the 100 nearest with their values",
        requests: [post("/api/vectorize/near", { action: "search", vector: vector(5), topK: 100, returnValues: true })],
      },
    ];
  },
};

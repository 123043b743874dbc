import { Database } from "bun:sqlite";
import { unreachable } from "../../../kernel/errors.ts";
import { serveJobs } from "../../db/processes/program.ts";
import { sqliteFailure } from "../../db/processes/query-error.ts";
import { sendText } from "../../db/processes/text-answer.ts";
import { loadVectorExtension } from "../../db/vectors/load.ts";
import { MMAP_MAX_BYTES } from "./limits.ts";
import type { Bound, ProductJob, SearchJob, SearchPlace } from "./types.ts";

/**
 * Starts the program of a search process. It maps index files into memory, so all processes share the system's page cache. It uses
 * bun:sqlite, which reads the extension's virtual table without copying rows.
 */
export function start(): void {
  const databases = new Map<string, Database>();
  const open = ({ path, extensionPath }: SearchPlace): Database => {
    const known = databases.get(path);
    if (known !== undefined) return known;
    const database = new Database(path, { readonly: true });
    loadVectorExtension(database, extensionPath);
    database.run(`PRAGMA mmap_size = ${MMAP_MAX_BYTES}`);
    databases.set(path, database);
    return database;
  };
  serveJobs<SearchJob>({
    run: (job, context) => sendText(resultOf(open(job), job), context),
    failureOf: sqliteFailure,
  });
}

function resultOf(database: Database, job: SearchJob): string {
  switch (job.shape) {
    case "matches":
      return matchesJson(database.query(job.sql).values(...job.params));
    case "vectors":
      return vectorsJson(database.query(job.sql).values(...job.params));
    case "list":
      return listJson(database.query(job.sql).values(...job.params), job);
    case "products":
      return matchesJson(productRows(database, job));
    default:
      return unreachable(job);
  }
}

/** Serialises rows of a search as the JSON of its answer; QueryJob gives the order of columns. Metadata is JSON already. */
export function matchesJson(rows: readonly unknown[][]): string {
  const matches = rows.map(([id, score, metadata, values]) => {
    const tail = values instanceof Uint8Array ? `,"values":${valuesJson(values)}}` : "}";
    return `{"id":${JSON.stringify(id)},"score":${JSON.stringify(score)},"metadata":${String(metadata)}${tail}`;
  });
  return `{"matches":[${matches.join(",")}],"count":${matches.length}}`;
}

export function vectorsJson(rows: readonly unknown[][]): string {
  const vectors = rows.map(([id, metadata, values]) => {
    const list = values instanceof Uint8Array ? valuesJson(values) : "[]";
    return `{"id":${JSON.stringify(id)},"values":${list},"metadata":${String(metadata)}}`;
  });
  return `{"vectors":[${vectors.join(",")}]}`;
}

/** Serialises rows of ids and metadata as a page; a row beyond `limit` shows that there is a next page. */
export function listJson(rows: readonly unknown[][], { prefix, limit }: { prefix: string; limit: number }): string {
  const end = rows.findIndex(([id]) => !String(id).startsWith(prefix));
  const found = end < 0 ? rows : rows.slice(0, end);
  const page = found.slice(0, limit);
  const vectors = page.map(([id, metadata]) => `{"id":${JSON.stringify(id)},"metadata":${String(metadata)}}`);
  const cursor = found.length > limit ? page.at(-1)?.[0] : null;
  return `{"vectors":[${vectors.join(",")}],"cursor":${JSON.stringify(cursor)}}`;
}

function valuesJson(bytes: Uint8Array): string {
  // A blob may be unaligned for 32-bit floats, so it is copied.
  return `[${Array.from(new Float32Array(bytes.slice().buffer), shortestFloat).join(",")}]`;
}

/** Returns the shortest decimal for this 32-bit float: 0.1 is returned as 0.1, not as 0.10000000149011612. */
function shortestFloat(value: number): number {
  if (Number.isInteger(value)) return value;
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return Number(value.toPrecision(9));
}

interface Scored {
  rowid: number;
  score: number;
}

/** Returns rows of matches, greatest product first, then by id. One transaction, so that scan and rows come from one snapshot. */
export function productRows(database: Database, job: ProductJob): unknown[][] {
  return database.transaction(() => {
    const scores = new Map(greatestProducts(database, job).map(({ rowid, score }) => [rowid, score]));
    const found = database.query<unknown, [string]>(job.sql).values(JSON.stringify([...scores.keys()]));
    const rows = found.map(([rowid, id, metadata, values]) => ({
      score: scores.get(Number(rowid)) ?? 0,
      row: [id, scores.get(Number(rowid)), metadata, values],
    }));
    return rows.sort((one, other) => other.score - one.score).map(({ row }) => row);
  })();
}

/** Selects the chunks of sqlite-vec: which places are used, their rowids, and the vectors. */
const CHUNKS = `SELECT validity, rowids, vectors FROM vectors_chunks
  JOIN vectors_vector_chunks00 ON vectors_vector_chunks00.rowid = vectors_chunks.chunk_id`;
interface Chunk {
  /** One bit per place: whether it is used. */
  validity: Uint8Array;
  /** Rowids, 64 bits per place. */
  rowids: Uint8Array;
  vectors: Uint8Array;
}

/** Finds the vectors with the greatest dot product, which sqlite-vec lacks, computed in double precision. */
function greatestProducts(database: Database, { matching, vector, topK }: ProductJob): Scored[] {
  // In double precision the product of two 32-bit floats is exact.
  const wanted = Float64Array.from(vector);
  const nearest = createNearest(topK);
  const allowed =
    matching === null
      ? null
      : new Set(
          database
            .query<unknown, Bound[]>(matching.sql)
            .values(...matching.params)
            .map(([rowid]) => rowid),
        );
  for (const { validity, rowids, vectors } of database.query<Chunk, []>(CHUNKS).iterate()) {
    const numbers = aligned(vectors, Float32Array);
    const halves = aligned(rowids, Uint32Array);
    for (let place = 0; place < halves.length / 2; place++) {
      if (((validity[place >> 3] ?? 0) & (1 << (place & 7))) === 0) continue;
      const rowid = (halves[2 * place] ?? 0) + (halves[2 * place + 1] ?? 0) * 2 ** 32;
      if (allowed !== null && !allowed.has(rowid)) continue;
      nearest.offer(rowid, productOf(numbers, place * wanted.length, wanted));
    }
  }
  return nearest.list;
}

/** Returns the dot product with the vector that begins at `start`. */
function productOf(numbers: Float32Array, start: number, wanted: Float64Array): number {
  // Four independent sums, because each addition depends on the previous one of its sum. All indexes are within both arrays.
  const fours = wanted.length - (wanted.length % 4);
  let [first, second, third, fourth] = [0, 0, 0, 0];
  for (let at = 0; at < fours; at += 4) {
    first += (numbers[start + at] as number) * (wanted[at] as number);
    second += (numbers[start + at + 1] as number) * (wanted[at + 1] as number);
    third += (numbers[start + at + 2] as number) * (wanted[at + 2] as number);
    fourth += (numbers[start + at + 3] as number) * (wanted[at + 3] as number);
  }
  for (let at = fours; at < wanted.length; at++) first += (numbers[start + at] as number) * (wanted[at] as number);
  return first + second + third + fourth;
}

/** Returns a blob as a typed array; a blob that is unaligned for 32-bit floats is copied. */
function aligned<T>(bytes: Uint8Array, List: { new (buffer: ArrayBufferLike, start: number, length: number): T }): T {
  const whole = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  return new List(whole.buffer, whole.byteOffset, whole.byteLength / 4);
}

/** Creates a list that keeps the best items offered, at most `countMax`, best first; of equal ones the earlier. */
function createNearest(countMax: number) {
  const list: Scored[] = [];
  return {
    list,
    offer(rowid: number, score: number): void {
      const worst = list.at(-1);
      if (list.length === countMax && worst !== undefined && score <= worst.score) return;
      const place = list.findIndex((one) => score > one.score);
      list.splice(place === -1 ? list.length : place, 0, { rowid, score });
      if (list.length > countMax) list.pop();
    },
  };
}

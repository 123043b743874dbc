import type { Database } from "bun:sqlite";
import type { ProductJob } from "./types.ts";

interface Scored {
  rowid: number;
  score: number;
}

/** Rows of matches, greatest product first, then by id. In one transaction: what the scan finds is there when it is looked up. */
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

/** Each vector is multiplied in double precision: sqlite-vec knows no product. */
function greatestProducts(database: Database, { scanSql, scanParams, vector, topK }: ProductJob): Scored[] {
  // Doubles: the product of two numbers of 32 bits is exact in them.
  const wanted = Float64Array.from(vector);
  const nearest = createNearest(topK);
  const scan = database.query<{ rowid: number; embedding: Uint8Array }, ProductJob["scanParams"]>(scanSql);
  for (const { rowid, embedding } of scan.iterate(...scanParams)) {
    nearest.offer(rowid, productOf(floatsOf(embedding), wanted));
  }
  return nearest.list;
}

function productOf(vector: Float32Array, wanted: Float64Array): number {
  // Four sums at once, as each addition would wait for the one before. Within both lists, which are equally long.
  const fours = vector.length - (vector.length % 4);
  let [first, second, third, fourth] = [0, 0, 0, 0];
  for (let at = 0; at < fours; at += 4) {
    first += (vector[at] as number) * (wanted[at] as number);
    second += (vector[at + 1] as number) * (wanted[at + 1] as number);
    third += (vector[at + 2] as number) * (wanted[at + 2] as number);
    fourth += (vector[at + 3] as number) * (wanted[at + 3] as number);
  }
  for (let at = fours; at < vector.length; at++) first += (vector[at] as number) * (wanted[at] as number);
  return first + second + third + fourth;
}

/** A blob need not begin where a number of 32 bits may: it is copied then. */
function floatsOf(bytes: Uint8Array): Float32Array {
  const size = Float32Array.BYTES_PER_ELEMENT;
  return bytes.byteOffset % size === 0
    ? new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / size)
    : new Float32Array(bytes.slice().buffer);
}

/** The best so many of what is offered, best first; of equals the earlier. */
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

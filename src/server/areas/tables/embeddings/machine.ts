import { EMBEDDINGS_TABLE, quoteIdentifier, TOKEN } from "../../../db/index.ts";
import type { Statement } from "../../../db/types.ts";
import {
  EMBED_TRIES_EARLY,
  EMBED_TRIES_MAX,
  EMBEDDED_BYTES_MAX,
  EMBEDDED_LENGTH_MAX,
  WALKED_PER_STEP,
} from "../limits.ts";
import type { EmbeddingModel, TableModel } from "../model/model.ts";

// The steps by which records get their vectors. Triggers of the file note which records wait; each step here is one transaction, and
// nothing else says what has been done, so that a process may end between any two.

/** A transaction, or the connection of a test. */
export interface Statements {
  query<R>(sql: string): Pick<Statement<R>, "get" | "all" | "run">;
}

export type EmbeddedModel = Pick<TableModel, "name" | "sql"> & { embed: EmbeddingModel };

/** A record that waits, as it was when its text was read. */
export interface Waiting {
  row: number;
  token: number;
  text: string;
  digest: Uint8Array;
}

interface Noted {
  row: number;
  token: number;
  tries: number;
}

const STATE = `SELECT "dimensions", "walk", "vectors" FROM "${EMBEDDINGS_TABLE}" WHERE "table" = ?`;

/** State of a table's vectors. */
export interface EmbeddingState {
  /** Numbers of each vector; null: there is none yet. */
  dimensions: number | null;
  /** Row id above which records have to be looked at; null: none. */
  walk: number | null;
  vectors: number;
}

/** Returns the state; null before the file has been migrated. */
export const stateOf = (tx: Statements, { name }: { name: string }): EmbeddingState | null =>
  tx.query<EmbeddingState>(STATE).get(name);

/**
 * Records to try: `next` are those that have hardly failed, and all others to be looked at; `late` those that have failed several times.
 */
export type Which = "next" | "late";

const TRIES: Readonly<Record<Which, readonly [from: number, below: number]>> = {
  next: [0, EMBED_TRIES_EARLY],
  late: [EMBED_TRIES_EARLY, EMBED_TRIES_MAX],
};

/** Whether such records wait. */
export function isBehind(tx: Statements, model: EmbeddedModel, which: Which): boolean {
  const state = stateOf(tx, model);
  if (state === null || (which === "next" && state.walk !== null)) return state !== null;
  const one = `SELECT 1 FROM ${model.embed.waiting} WHERE "tries" >= ? AND "tries" < ? LIMIT 1`;
  return tx.query(one).get(...TRIES[which]) !== null;
}

/** Whether records are set aside. */
export const hasSetAside = (tx: Statements, { embed }: EmbeddedModel): boolean =>
  tx.query(`SELECT 1 FROM ${embed.waiting} WHERE "tries" >= ? LIMIT 1`).get(EMBED_TRIES_MAX) !== null;

/** Gives records that were set aside new tries. */
export const tryAgain = (tx: Statements, { embed }: EmbeddedModel): void =>
  void tx.query(`UPDATE ${embed.waiting} SET "tries" = 0 WHERE "tries" >= ?`).run(EMBED_TRIES_MAX);

/**
 * Returns the next records to get vectors, those with the fewest failures first; null: none is left. Fewer at once where an earlier
 * try has failed, so that a record whose text cannot be embedded ends up alone. Records without text, and those that have the
 * vector of their text, need none; where there were only such records, the list is empty.
 */
export function takeWaiting(tx: Statements, model: EmbeddedModel, which: Which): Waiting[] | null {
  const { embed } = model;
  const first = `SELECT "row", "token", "tries" FROM ${embed.waiting} WHERE "tries" >= ? AND "tries" < ? ORDER BY "tries", "row" LIMIT ?`;
  const noted = () => tx.query<Noted>(first).all(...TRIES[which], embed.batch);
  let next = noted();
  if (which === "next" && next[0]?.tries !== 0 && walkOn(tx, model)) next = noted();
  const tries = next[0]?.tries ?? null;
  if (tries === null) return isBehind(tx, model, which) ? [] : null;
  const countMax = tries === 0 ? embed.batch : tries === 1 ? Math.ceil(embed.batch / 8) : 1;
  return readTexts(tx, model, next.filter((one) => one.tries === tries).slice(0, countMax));
}

/** Puts records that have to be looked at on the list. false: there are none. */
function walkOn(tx: Statements, model: EmbeddedModel): boolean {
  const walk = stateOf(tx, model)?.walk ?? null;
  if (walk === null) return false;
  const next = `SELECT rowid AS "row" FROM ${model.sql} WHERE rowid > ? ORDER BY rowid LIMIT ?`;
  const rows = tx.query<{ row: number }>(next).all(walk, WALKED_PER_STEP);
  const add = tx.query(`INSERT OR IGNORE INTO ${model.embed.waiting} ("row", "token") VALUES (?, ${TOKEN})`);
  for (const { row } of rows) add.run(row);
  const at = rows.length < WALKED_PER_STEP ? null : (rows.at(-1)?.row ?? null);
  tx.query(`UPDATE "${EMBEDDINGS_TABLE}" SET "walk" = ? WHERE "table" = ?`).run(at, model.name);
  return true;
}

/**
 * Reads the texts of records, up to a number of bytes, and takes those from the list that need no vector. A vector of another text goes:
 * migrations change texts without triggers.
 */
function readTexts(tx: Statements, { name, sql, embed }: EmbeddedModel, noted: readonly Noted[]): Waiting[] {
  const fields = embed.fields.map(quoteIdentifier);
  const size = fields.map((field) => `ifnull(octet_length(${field}), 0)`).join(" + ");
  const sizes = tx.query<{ bytes: number }>(`SELECT ${size} AS "bytes" FROM ${sql} WHERE rowid = ?`);
  const texts = tx.query<Record<string, string | null>>(`SELECT ${fields.join(", ")} FROM ${sql} WHERE rowid = ?`);
  const known = tx.query<{ digest: Uint8Array }>(`SELECT "digest" FROM ${embed.vectors} WHERE "row" = ?`);
  const remove = tx.query(`DELETE FROM ${embed.vectors} WHERE "row" = ?`);
  const settle = tx.query(`DELETE FROM ${embed.waiting} WHERE "row" = ?`);
  const waiting: Waiting[] = [];
  let removed = 0;
  let bytes = 0;
  for (const { row, token } of noted) {
    bytes += sizes.get(row)?.bytes ?? 0;
    if (bytes > EMBEDDED_BYTES_MAX && waiting.length > 0) break;
    const record = texts.get(row);
    const text = record === null ? "" : textOf(embed.fields.map((field) => record[field] ?? null));
    const digest = digestOf(text);
    const before = known.get(row)?.digest;
    const isKnown = before !== undefined && Buffer.from(before).equals(digest);
    if (before !== undefined && !isKnown) {
      remove.run(row);
      removed++;
    }
    if (text === "" || isKnown) settle.run(row);
    else waiting.push({ row, token, text, digest });
  }
  if (removed > 0)
    tx.query(`UPDATE "${EMBEDDINGS_TABLE}" SET "vectors" = "vectors" - ? WHERE "table" = ?`).run(removed, name);
  return waiting;
}

/** Returns the text that stands for a record; empty where no field has any. */
export const textOf = (values: readonly (string | null)[]): string =>
  values
    .flatMap((value) => (value === null || value.trim() === "" ? [] : [value.slice(0, EMBEDDED_LENGTH_MAX)]))
    .join("\n\n")
    .slice(0, EMBEDDED_LENGTH_MAX)
    .toWellFormed();

const DIGEST_BYTES = 16;

const digestOf = (text: string): Uint8Array =>
  new Bun.CryptoHasher("sha256").update(text).digest().subarray(0, DIGEST_BYTES);

/**
 * Stores the vectors of records that have not changed since their texts were read; none of them has a vector yet. Errors: vectors of another length than those that
 * are stored.
 */
export function putVectors(
  tx: Statements,
  model: EmbeddedModel,
  waiting: readonly Waiting[],
  vectors: readonly Uint8Array[],
): void {
  const { embed } = model;
  const present = tx.query(`SELECT 1 FROM ${embed.waiting} WHERE "row" = ? AND "token" = ?`);
  const put = tx.query(`INSERT INTO ${embed.vectors} ("row", "digest", "vector") VALUES (?, ?, ?)`);
  const settle = tx.query(`DELETE FROM ${embed.waiting} WHERE "row" = ?`);
  const state = stateOf(tx, model);
  const dimensions = (vectors[0]?.byteLength ?? 0) / Float32Array.BYTES_PER_ELEMENT;
  if (state === null) return;
  if (state.dimensions !== null && state.dimensions !== dimensions) {
    const told = `vectors have ${dimensions} numbers, and those of ${model.name} have ${state.dimensions}`;
    throw new Error(`${told}; another embed.model makes all of them again`);
  }
  let added = 0;
  for (const [index, { row, token, digest }] of waiting.entries()) {
    const vector = vectors[index];
    if (vector === undefined || present.get(row, token) === null) continue;
    put.run(row, digest, vector);
    settle.run(row);
    added++;
  }
  tx.query(`UPDATE "${EMBEDDINGS_TABLE}" SET "dimensions" = ?, "vectors" = "vectors" + ? WHERE "table" = ?`).run(
    dimensions,
    added,
    model.name,
  );
}

/** Counts a failed try of records that have not changed meanwhile. Returns how many are set aside by it. */
export function noteFailure(tx: Statements, { embed }: EmbeddedModel, waiting: readonly Waiting[]): number {
  const note = tx.query<{ tries: number }>(
    `UPDATE ${embed.waiting} SET "tries" = "tries" + 1 WHERE "row" = ? AND "token" = ? RETURNING "tries"`,
  );
  return waiting.filter(({ row, token }) => (note.get(row, token)?.tries ?? 0) >= EMBED_TRIES_MAX).length;
}

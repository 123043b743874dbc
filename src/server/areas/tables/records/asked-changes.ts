import type { AskedChange, AskedMerge, ProfileChanges } from "../../../access/account-records.ts";
import { quoteIdentifier, type Transaction } from "../../../db/index.ts";
import { BIRTH_COLUMN, type TableModel } from "../model/model.ts";

// What updates of records ask of accounts, in the metadata of the file, in the transaction of the update.

type Queries = Pick<Transaction, "query">;

/** The number of the last change of an account that an update has asked for; the changes themselves have it behind a colon. */
const ASKED = "users_asked";

export function numberIn(queries: Queries, name: string): number {
  const row = queries.query<{ value: string }>(`SELECT "value" FROM "_platform_meta" WHERE "name" = ?`).get(name);
  return Number(row?.value ?? 0);
}

export function setMeta(tx: Transaction, name: string, value: string): void {
  tx.query(
    `INSERT INTO "_platform_meta" ("name", "value") VALUES (?, ?) ON CONFLICT ("name") DO UPDATE SET "value" = excluded."value"`,
  ).run(name, value);
}

export const birthOf = (queries: Queries, model: TableModel, id: string): number | null =>
  queries
    .query<{ birth: number }>(`SELECT ${quoteIdentifier(BIRTH_COLUMN)} AS "birth" FROM ${model.sql} WHERE "id" = ?`)
    .get(id)?.birth ?? null;

/** The name of a change of an account in the file's metadata. Names are in the order of numbers. */
const askedName = (seq: number): string => `${ASKED}:${String(seq).padStart(16, "0")}`;

/** Asks the account for what an update has changed in its record, in the transaction of that. */
export const askAccount = (tx: Transaction, model: TableModel, id: string, changes: ProfileChanges): void =>
  ask(tx, model, { id, changes });

/** Asks for an account to be merged into this one, in the transaction that moves what refers to it. */
export const askMerge = (tx: Transaction, model: TableModel, id: string, merge: AskedMerge): void =>
  ask(tx, model, { id, changes: {}, merge });

function ask(tx: Transaction, model: TableModel, asked: Omit<AskedChange, "seq" | "birth">): void {
  const seq = numberIn(tx, ASKED) + 1;
  setMeta(tx, ASKED, String(seq));
  const birth = birthOf(tx, model, asked.id) ?? 0;
  setMeta(tx, askedName(seq), JSON.stringify({ ...asked, seq, birth } satisfies AskedChange));
}

export const lastAskedIn = (queries: Queries): number => numberIn(queries, ASKED);

export const askedIn = (queries: Queries, limit: number): AskedChange[] =>
  queries
    .query<{ value: string }>(
      `SELECT "value" FROM "_platform_meta" WHERE "name" > ? AND "name" < ? ORDER BY "name" LIMIT ?`,
    )
    .all(askedName(0), `${ASKED};`, limit)
    // As `askAccount` has written it.
    .map(({ value }) => JSON.parse(value) as AskedChange);

/** Deletes the changes up to this number. */
export function settleAsked(tx: Transaction, seq: number): void {
  tx.query(`DELETE FROM "_platform_meta" WHERE "name" > ? AND "name" <= ?`).run(askedName(0), askedName(seq));
}

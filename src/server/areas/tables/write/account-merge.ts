import { conflict } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { AskedMerge } from "../../../access/account-records.ts";
import type { TableRecord } from "../../../config/types.ts";
import { type DatabaseFile, MOVES_TABLE, quoteIdentifier, type Transaction } from "../../../db/index.ts";
import { MERGE_COST_MAX, MOVES_MAX } from "../limits.ts";
import type { ReferenceEdge, TableModel } from "../model/model.ts";
import { constraintProblem } from "../model/problems.ts";
import { askMerge, birthOf } from "../records/asked-changes.ts";
import type { Table } from "../records/namespaces.ts";
import { serverChanges } from "./changes.ts";
import { leavingOf } from "./leaving.ts";
import { referringOf } from "./referring.ts";

const MOVES = quoteIdentifier(MOVES_TABLE);

interface Place {
  file: DatabaseFile;
  users: Table;
  tableOf(model: TableModel): Table;
}

/** Ends a preview: what it has moved is undone. */
class Undone extends Error {
  readonly counts: Record<string, number>;

  constructor(counts: Record<string, number>) {
    super("a preview is undone");
    this.counts = counts;
  }
}

/**
 * Makes everything that refers to one user refer to another, in one transaction, which also asks for the accounts to be merged. Returns
 * how many records it moves, by `namespace/table`. A preview is the same, undone. Errors: 409 for a value that a unique field of the
 * other user has already, for too many records, and for an account that is being deleted; nothing has moved then.
 */
export async function mergeReferences(
  place: Place & { now(): string },
  asked: AskedMerge & { into: string },
  { isPreview }: { isPreview: boolean },
): Promise<Record<string, number>> {
  const { file, users } = place;
  try {
    return await file.write((tx) => {
      const leaving = leavingOf(users);
      if (leaving.has(asked.into)) throw conflict("The account that stays is being deleted");
      const counts = moved(place, tx, asked);
      if (isPreview) throw new Undone(counts);
      const { into, ...merge } = asked;
      askMerge(tx, users.model, into, merge);
      if (users.model.isLogged) noteMove(tx, users.model, asked);
      tx.causedBy(asked.by);
      tx.audit(() => ({ action: "user.merge", target: `users/${into}`, after: { from: asked.from, records: counts } }));
      return counts;
    });
  } catch (cause) {
    if (cause instanceof Undone) return cause.counts;
    throw cause;
  }
}

function moved(
  place: Place & { now(): string },
  tx: Transaction,
  { into, from }: { into: string; from: string },
): Record<string, number> {
  const { users } = place;
  if (birthOf(tx, users.model, from) === null || birthOf(tx, users.model, into) === null) {
    throw conflict("One of the accounts has no record in the table of users yet");
  }
  const [own, other] = [users.store.get(tx, from), users.store.get(tx, into)];
  const counts: Record<string, number> = {};
  let cost = 0;
  for (const model of new Set(users.model.incoming.map((edge) => edge.from))) {
    const table = place.tableOf(model);
    const moves = users.model.incoming
      .filter((edge) => edge.from === model)
      .map((edge) => {
        const { name } = edge.toColumn;
        return { edge, before: own?.[name] ?? null, after: other?.[name] ?? null };
      })
      .filter(({ before }) => before !== null);
    const ids = new Set<string>();
    for (const { edge, before } of moves) {
      const found = { column: edge.column, value: users.store.codec.toValue(edge.toColumn, before) };
      cost += referringOf(table).cost(tx, "clear", found, MERGE_COST_MAX + 1);
      if (cost > MERGE_COST_MAX) throw tooMany();
      const page = { after: "", limit: MERGE_COST_MAX + 1 };
      for (const id of referringOf(table).ids(tx, found, page)) ids.add(id);
    }
    // The record of the account that goes, where it refers to itself.
    if (model === users.model) ids.delete(from);
    for (const id of ids) moveOne(tx, { table, moves, id }, place.now());
    if (ids.size > 0) counts[`${model.namespace}/${model.name}`] = ids.size;
  }
  return counts;
}

/** Notes that the references of other files move too. They do when the account that goes is deleted. */
function noteMove(tx: Transaction, { name }: TableModel, { from, into }: { from: string; into: string }): void {
  const oldest = `SELECT "seq" FROM ${MOVES} ORDER BY "seq" DESC LIMIT 1 OFFSET ?`;
  tx.query(`DELETE FROM ${MOVES} WHERE "seq" > 0 AND "seq" <= (${oldest})`).run(MOVES_MAX);
  const note = `INSERT OR REPLACE INTO ${MOVES} ("seq", "table", "id", "into") VALUES (0, ?, ?, ?)`;
  tx.query(note).run(name, from, into);
}

/** A reference, and what it has of the one user and of the other. */
export interface Move {
  edge: ReferenceEdge;
  before: JsonValue;
  after: JsonValue;
}

/** Redirects all references of one record to the other user, in one change. Errors: 409 where a constraint forbids it. */
export function moveOne(
  tx: Transaction,
  { table, moves, id }: { table: Table; moves: readonly Move[]; id: string },
  now: string,
): void {
  const { model, store } = table;
  const record = store.get(tx, id);
  if (record === null) return;
  const changes: TableRecord = serverChanges(model, now);
  for (const { edge, before, after } of moves) {
    const { name, links } = edge.column;
    const present = record[name] ?? null;
    const refers = links === null ? present === before : Array.isArray(present) && present.includes(before);
    if (!refers) continue;
    if (after === null) {
      throw conflict(
        `Records of ${model.name} refer by ${name}, and the account that stays has no ${edge.toColumn.name}`,
      );
    }
    changes[name] = Array.isArray(present) ? [...new Set(present.map((one) => (one === before ? after : one)))] : after;
  }
  const next = { ...record, ...changes };
  try {
    store.update(tx, id, changes, next);
  } catch (cause) {
    const problem = constraintProblem(model, cause);
    if (problem === null) throw cause;
    throw conflict(`A record of ${model.name} cannot be moved: ${problem.message}`);
  }
  tx.change({ table: model.name, id, before: record, after: next });
}

const tooMany = () =>
  conflict(
    `More refers to this account than one merge may move (${MERGE_COST_MAX / 2} records, and fewer where they are long or searched)`,
  );

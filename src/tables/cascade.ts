import type { TableRecord } from "../config/types.ts";
import type { Transaction } from "../db/index.ts";
import { conflict } from "../kernel/errors.ts";
import { serverChanges } from "./changes.ts";
import type { ReferenceEdge, TableModel } from "./model.ts";
import type { Table } from "./namespaces.ts";
import { constraintProblem } from "./problems.ts";

/** Records that one delete may take with it; more is a job for several requests. */
const CASCADE_RECORDS_MAX = 10_000;

interface Context {
  tx: Transaction;
  /** ISO 8601. */
  now: string;
  tableOf(model: TableModel): Table;
}

/** A record of those that a delete changes, and the references to it. */
interface Affected {
  table: Table;
  record: TableRecord;
  referring: { edge: ReferenceEdge; key: string }[];
  /** References of its own that it lets go of. */
  released: ReferenceEdge[];
}

/**
 * Deletes a record with what refers to it, by `onDelete`, whatever forms the references make: each record once, those that
 * refer before what they refer to. Errors: 409 by `restrict`, for too many, and where letting go breaks a check.
 */
export function deleteCascading(context: Context, table: Table, stored: TableRecord): void {
  const root = keyOf(table.model, stored);
  const { leaving, staying } = collect(context, table, stored);
  for (const [key, affected] of staying) {
    if (leaving.has(key)) continue;
    const restricting = affected.released.find(({ onDelete }) => onDelete === "restrict");
    if (restricting !== undefined) throw referred(restricting);
    letGo(context, affected);
  }
  for (const affected of inOrder(context, leaving, root)) {
    const id = String(affected.record["id"]);
    affected.table.store.delete(context.tx, id);
    context.tx.change({ table: affected.table.model.name, id, before: affected.record, after: null });
  }
}

/** Everything that `stored` takes along, and what else refers to that. In a ring one comes round to what is known already. */
function collect({ tx, tableOf }: Context, table: Table, stored: TableRecord) {
  const leaving = new Map<string, Affected>();
  const staying = new Map<string, Affected>();
  leaving.set(keyOf(table.model, stored), { table, record: stored, referring: [], released: [] });
  let count = 1;
  const add = (edge: ReferenceEdge, from: Table, record: TableRecord): string => {
    const key = keyOf(edge.from, record);
    const list = edge.onDelete === "cascade" ? leaving : staying;
    if (!leaving.has(key) && !staying.has(key) && ++count > CASCADE_RECORDS_MAX) {
      throw edge.onDelete === "restrict" ? referred(edge) : tooMany();
    }
    const affected = list.get(key) ?? { table: from, record, referring: [], released: [] };
    if (edge.onDelete !== "cascade") affected.released.push(edge);
    list.set(key, affected);
    return key;
  };
  // Grows while it is walked.
  for (const { table: to, record, referring } of leaving.values()) {
    for (const edge of to.model.incoming) {
      const value = record[edge.toColumn.name] ?? null;
      if (value === null) continue;
      const from = tableOf(edge.from);
      const bound = from.store.codec.toValue(edge.column, value);
      for (const found of from.store.referring(tx, edge.column, bound, CASCADE_RECORDS_MAX + 1)) {
        referring.push({ edge, key: add(edge, from, found) });
      }
    }
  }
  return { leaving, staying };
}

/** What refers comes before what it refers to, without recursion: a chain may be as long as the bound allows. */
function* inOrder({ tx }: Context, leaving: ReadonlyMap<string, Affected>, root: string): Generator<Affected> {
  const entered = new Set<string>();
  const left = new Set<string>();
  const path: { key: string; affected: Affected; next: number }[] = [];
  const enter = (key: string): void => {
    const affected = leaving.get(key);
    if (affected === undefined || entered.has(key)) return;
    entered.add(key);
    path.push({ key, affected, next: 0 });
  };
  enter(root);
  for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
    const reference = last.affected.referring[last.next++];
    if (reference === undefined) {
      path.pop();
      left.add(last.key);
      yield last.affected;
      continue;
    }
    const { key, edge } = reference;
    const isRing = entered.has(key) && !left.has(key) && key !== last.key;
    // The file's own cascade would follow the ring, which it can do for a thousand records.
    if (isRing && edge.column.isNullable) release(tx, leaving.get(key), edge);
    else enter(key);
  }
}

/** In the file alone: the record is about to go, and is told of as it was. */
function release(tx: Transaction, affected: Affected | undefined, { column }: ReferenceEdge): void {
  if (affected === undefined) return;
  const changes = { [column.name]: null };
  affected.table.store.update(tx, String(affected.record["id"]), changes, { ...affected.record, ...changes });
}

function letGo({ tx, now }: Context, { table, record, released }: Affected): void {
  const { model, store } = table;
  const names = released.map(({ column }) => column.name);
  const changes = { ...Object.fromEntries(names.map((name) => [name, null])), ...serverChanges(model, now) };
  const next = { ...record, ...changes };
  const id = String(record["id"]);
  try {
    store.update(tx, id, changes, next);
  } catch (cause) {
    const problem = constraintProblem(model, cause);
    if (problem === null) throw cause;
    throw conflict(
      `Records of ${model.name} refer to this one by ${names.join(" and ")} and cannot let go: ${problem.message}`,
    );
  }
  tx.change({ table: model.name, id, before: record, after: next });
}

const keyOf = (model: TableModel, record: TableRecord): string => `${model.name} ${String(record["id"])}`;

const tooMany = () => conflict(`This would change more than ${CASCADE_RECORDS_MAX} records that refer to it`);

export const referred = (edge: ReferenceEdge) =>
  conflict(`Records of ${edge.from.name} refer to this one by ${edge.column.name}`);

import type { TableRecord } from "../../config/types.ts";
import type { Transaction } from "../../db/index.ts";
import { type AppError, conflict } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json.ts";
import { CASCADE_COST_MAX, UNASKED_RECORDS_MAX } from "../limits.ts";
import type { Column, ReferenceEdge, TableModel } from "../model/model.ts";
import type { Table } from "../namespaces.ts";
import { constraintProblem } from "../problems.ts";
import { serverChanges } from "../write/changes.ts";
import { type CascadeWork, tooMuch } from "./cascade-cost.ts";

export interface CascadeContext {
  tx: Transaction;
  /** ISO 8601. */
  now: string;
  /** What the deletions of this request have cost so far. */
  cascadeCost: number;
}

/** A record of those that a delete changes, and the references to it. */
interface Affected {
  table: Table;
  record: TableRecord;
  referring: { edge: ReferenceEdge; key: string }[];
  /** References of its own that it lets go of. */
  released: ReferenceEdge[];
}

type TableOf = (model: TableModel) => Table;

/**
 * Deletes a record with what refers to it, by `onDelete`, whatever forms the references make: each record once, those that
 * refer before what they refer to. Errors: 409 by `restrict`, for too much in one request, and where letting go breaks a check.
 */
export function deleteCascading(context: CascadeContext, tableOf: TableOf, table: Table, stored: TableRecord): void {
  const root = keyOf(table.model, stored);
  const { leaving, staying } = collect(context, tableOf, table, stored);
  for (const [key, affected] of staying) {
    if (leaving.has(key)) continue;
    const restricting = affected.released.find(({ onDelete }) => onDelete === "restrict");
    if (restricting !== undefined) throw referred(restricting);
    letGo(context, affected);
  }
  const releaseOfRing = (key: string, { column }: ReferenceEdge): void => release(context.tx, leaving.get(key), column);
  for (const affected of inOrder(leaving, root, releaseOfRing)) {
    const id = String(affected.record["id"]);
    affected.table.store.delete(context.tx, id);
    context.tx.change({ table: affected.table.model.name, id, before: affected.record, after: null });
  }
}

/** Everything that `stored` takes along, and what else refers to that. In a ring one comes round to what is known already. */
function collect(context: CascadeContext, tableOf: TableOf, table: Table, stored: TableRecord) {
  const leaving = new Map<string, Affected>();
  const staying = new Map<string, Affected>();
  leaving.set(keyOf(table.model, stored), { table, record: stored, referring: [], released: [] });
  const add = (edge: ReferenceEdge, from: Table, record: TableRecord, cost: number): string => {
    const key = keyOf(edge.from, record);
    const list = edge.onDelete === "cascade" ? leaving : staying;
    if (!leaving.has(key) && !staying.has(key)) spend(context, edge, cost);
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
      for (const found of recordsReferring(context.tx, from, edge, value)) {
        referring.push({ edge, key: add(edge, from, found.record, found.cost) });
      }
    }
  }
  return { leaving, staying };
}

/** Errors: 409 before anything is read that one request may not take along. */
function recordsReferring(tx: Transaction, { store }: Table, edge: ReferenceEdge, value: JsonValue) {
  const { column } = edge;
  const { referring } = store;
  const to = { column, value: store.codec.toValue(column, value) };
  const work = workOf(edge);
  const few = referring.records(tx, work, to, UNASKED_RECORDS_MAX);
  if (few.length < UNASKED_RECORDS_MAX) return few;
  if (referring.cost(tx, work, to, CASCADE_COST_MAX + 1) > CASCADE_COST_MAX) throw tooMuchOf(edge);
  return referring.records(tx, work, to, CASCADE_COST_MAX + 1);
}

const workOf = ({ onDelete }: ReferenceEdge): CascadeWork => (onDelete === "cascade" ? "delete" : "let go");

function spend(context: CascadeContext, edge: ReferenceEdge, cost: number): void {
  context.cascadeCost += cost;
  if (context.cascadeCost > CASCADE_COST_MAX) throw tooMuchOf(edge);
}

/** What may not go at all is not told to be too much. */
const tooMuchOf = (edge: ReferenceEdge): AppError => (edge.onDelete === "restrict" ? referred(edge) : tooMuch());

/** Something of which others know that it refers to them. */
interface Referred {
  referring: { edge: ReferenceEdge; key: string }[];
}

/**
 * What refers comes before what it refers to, without recursion: a chain may be as long as the bound allows. `onRing`: this
 * reference closes a ring, and has to go first.
 */
export function* inOrder<Node extends Referred>(
  leaving: ReadonlyMap<string, Node>,
  root: string,
  onRing: (key: string, edge: ReferenceEdge) => void,
): Generator<Node> {
  const entered = new Set<string>();
  const left = new Set<string>();
  const path: { key: string; affected: Node; next: number }[] = [];
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
    if (entered.has(key) && !left.has(key) && key !== last.key) onRing(key, edge);
    else enter(key);
  }
}

/**
 * In the file alone: the record is about to go, and is told of as it was. Else the file's own cascade would follow the ring,
 * which it can do for a thousand records, and has to where the field is required.
 */
function release(tx: Transaction, affected: Affected | undefined, column: Column): void {
  if (affected === undefined || !column.isNullable) return;
  const changes = { [column.name]: null };
  affected.table.store.update(tx, String(affected.record["id"]), changes, { ...affected.record, ...changes });
}

/** Errors: 409 where letting go breaks a check. */
export function letGo(
  { tx, now }: CascadeContext,
  { table, record, released }: Pick<Affected, "table" | "record" | "released">,
): void {
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

export const referred = (edge: ReferenceEdge) =>
  conflict(`Records of ${edge.from.name} refer to this one by ${edge.column.name}`);

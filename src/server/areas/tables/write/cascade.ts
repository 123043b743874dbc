import { type AppError, conflict } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { Transaction } from "../../../db/index.ts";
import { CASCADE_COST_MAX, UNASKED_RECORDS_MAX } from "../limits.ts";
import type { Column, ReferenceEdge, TableModel } from "../model/model.ts";
import { constraintProblem } from "../model/problems.ts";
import type { Table } from "../records/namespaces.ts";
import { serverChanges } from "./changes.ts";
import { type CascadeWork, referringOf, tooMuch } from "./referring.ts";

export interface CascadeContext {
  tx: Transaction;
  /** Time of the request, as ISO 8601. */
  now: string;
  /** Cost of this request's deletions so far. */
  cascadeCost: number;
}

/** A record affected by a deletion, with the references to it. */
interface Affected {
  table: Table;
  record: TableRecord;
  referring: { edge: ReferenceEdge; key: string }[];
  /** Own references that are set to null, or from which an id is taken out. */
  cleared: Cleared[];
}

/** A reference to a deleted record. `value`: what it has of that record. */
export interface Cleared {
  edge: ReferenceEdge;
  value: JsonValue;
}

type TableOf = (model: TableModel) => Table;

/**
 * Deletes a record and applies `onDelete` to the records that refer to it, cycles included: each record once, referring records
 * first. Errors: 409 for `restrict`, for too much in one request, and when setting a reference to null violates a check.
 */
export function deleteCascading(context: CascadeContext, tableOf: TableOf, table: Table, stored: TableRecord): void {
  const root = keyOf(table.model, stored);
  const { leaving, staying } = collect(context, tableOf, table, stored);
  for (const [key, affected] of staying) {
    if (leaving.has(key)) continue;
    const restricting = affected.cleared.find(({ edge }) => edge.onDelete === "restrict");
    if (restricting !== undefined) throw referred(restricting.edge);
    clearReferences(context, affected);
  }
  const releaseOfRing = (key: string, { column }: ReferenceEdge): void => release(context.tx, leaving.get(key), column);
  for (const affected of inOrder(leaving, root, releaseOfRing)) {
    const id = String(affected.record["id"]);
    affected.table.store.delete(context.tx, id);
    context.tx.change({ table: affected.table.model.name, id, before: affected.record, after: null });
  }
}

/**
 * Collects all records that are deleted with `stored`, and the others that refer to them. In a cycle the walk ends at known
 * records.
 */
function collect(context: CascadeContext, tableOf: TableOf, table: Table, stored: TableRecord) {
  const leaving = new Map<string, Affected>();
  const staying = new Map<string, Affected>();
  leaving.set(keyOf(table.model, stored), { table, record: stored, referring: [], cleared: [] });
  const add = (cleared: Cleared, from: Table, record: TableRecord, cost: number): string => {
    const { edge } = cleared;
    const key = keyOf(edge.from, record);
    const list = edge.onDelete === "cascade" ? leaving : staying;
    if (!leaving.has(key) && !staying.has(key)) spend(context, edge, cost);
    const affected = list.get(key) ?? { table: from, record, referring: [], cleared: [] };
    if (edge.onDelete !== "cascade") affected.cleared.push(cleared);
    list.set(key, affected);
    return key;
  };
  // The iteration includes the records added during it.
  for (const { table: to, record, referring } of leaving.values()) {
    for (const edge of to.model.incoming) {
      const value = record[edge.toColumn.name] ?? null;
      if (value === null) continue;
      const from = tableOf(edge.from);
      for (const found of recordsReferring(context.tx, from, edge, value)) {
        const key = add({ edge, value }, from, found.record, found.cost);
        // Several references have no foreign key, which would want an order.
        if (edge.column.links === null) referring.push({ edge, key });
      }
    }
  }
  return { leaving, staying };
}

/** Reads the referring records. Errors: 409 before records are read that are too much for one request. */
function recordsReferring(tx: Transaction, table: Table, edge: ReferenceEdge, value: JsonValue) {
  const { column } = edge;
  const referring = referringOf(table);
  const to = { column, value: table.store.codec.toValue(edge.toColumn, value) };
  const work = workOf(edge);
  const few = referring.records(tx, work, to, UNASKED_RECORDS_MAX);
  if (few.length < UNASKED_RECORDS_MAX) return few;
  if (referring.cost(tx, work, to, CASCADE_COST_MAX + 1) > CASCADE_COST_MAX) throw tooMuchOf(edge);
  return referring.records(tx, work, to, CASCADE_COST_MAX + 1);
}

const workOf = ({ onDelete }: ReferenceEdge): CascadeWork => (onDelete === "cascade" ? "delete" : "clear");

function spend(context: CascadeContext, edge: ReferenceEdge, cost: number): void {
  context.cascadeCost += cost;
  if (context.cascadeCost > CASCADE_COST_MAX) throw tooMuchOf(edge);
}

/** Returns the error for too many referring records; `restrict` is reported before the cost. */
const tooMuchOf = (edge: ReferenceEdge): AppError => (edge.onDelete === "restrict" ? referred(edge) : tooMuch());

/** A record with references of its own. */
interface Referred {
  referring: { edge: ReferenceEdge; key: string }[];
}

/**
 * Iterates over referring records before referenced ones. Without recursion, because a chain may be as long as the bound allows.
 * `onCycle` is called for a reference that closes a cycle and has to be set to null first.
 */
export function* inOrder<Node extends Referred>(
  leaving: ReadonlyMap<string, Node>,
  root: string,
  onCycle: (key: string, edge: ReferenceEdge) => void,
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
    if (entered.has(key) && !left.has(key) && key !== last.key) onCycle(key, edge);
    else enter(key);
  }
}

/**
 * Clears the column in SQLite only; the delete event still carries the original record. Otherwise SQLite's own cascade would
 * follow the cycle, which works for a thousand records; it has to when the field is required, or a check forbids null.
 */
function release(tx: Transaction, affected: Affected | undefined, column: Column): void {
  if (affected === undefined || !column.isNullable) return;
  const { record, table } = affected;
  const changes = { [column.name]: null };
  try {
    table.store.update(tx, String(record["id"]), changes, { ...record, ...changes });
  } catch (cause) {
    if (constraintProblem(table.model, cause) === null) throw cause;
  }
}

/** Sets references to null, or takes ids out of them. Errors: 409 when that violates a check, or leaves a required field empty. */
export function clearReferences(
  { tx, now }: CascadeContext,
  { table, record, cleared }: Pick<Affected, "table" | "record" | "cleared">,
): void {
  const { model, store } = table;
  const names = [...new Set(cleared.map(({ edge }) => edge.column.name))];
  const changes: TableRecord = serverChanges(model, now);
  for (const { edge, value } of cleared) {
    const { name, links } = edge.column;
    changes[name] = links === null ? null : withoutId(edge, changes[name] ?? record[name], value);
  }
  const next = { ...record, ...changes };
  const id = String(record["id"]);
  try {
    store.update(tx, id, changes, next);
  } catch (cause) {
    const problem = constraintProblem(model, cause);
    if (problem === null) throw cause;
    throw conflict(
      `Records of ${model.name} refer to this one by ${names.join(" and ")} and cannot be set to null: ${problem.message}`,
    );
  }
  tx.change({ table: model.name, id, before: record, after: next });
}

/** Returns several references without an id. Errors: 409 where a required field would have none. */
function withoutId(edge: ReferenceEdge, ids: JsonValue | undefined, id: JsonValue): JsonValue {
  const others = Array.isArray(ids) ? ids.filter((one) => one !== id) : [];
  if (others.length === 0 && edge.column.field?.required === true) {
    throw conflict(`Records of ${edge.from.name} refer to this one alone by ${edge.column.name}, which is required`);
  }
  return others;
}

const keyOf = (model: TableModel, record: TableRecord): string => `${model.name} ${String(record["id"])}`;

export const referred = (edge: ReferenceEdge) =>
  conflict(`Records of ${edge.from.name} refer to this one by ${edge.column.name}`);

import { conflict } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { nextTurn } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import type { DatabaseFile, SqlValue } from "../../../db/index.ts";
import { IDS_PER_PAGE, PAGES_PER_TURN, STEP_COST_MAX, STEPPED_RECORDS_MAX } from "../limits.ts";
import type { Codec } from "../model/codec.ts";
import type { Column, ReferenceEdge, TableModel } from "../model/model.ts";
import type { Table } from "../records/namespaces.ts";
import type { Asker } from "../rules/access.ts";
import { type CascadeContext, clearReferences, deleteCascading, inOrder, referred } from "./cascade.ts";
import type { Precondition } from "./conditions.ts";
import { assertMeets } from "./preconditions.ts";
import { CascadeTooLarge, referringOf } from "./referring.ts";
import type { Writes } from "./writes.ts";

/** Whether the caller may delete in steps what is too much for one request: service keys and the server itself. */
export const mayDeleteInSteps = ({ kind }: Principal): boolean => kind === "serviceKey" || kind === "server";

/**
 * Deletes the records that refer to a record, in transactions of some milliseconds each. An interruption leaves no
 * dangling reference, because referring records are deleted first. The caller deletes the record itself.
 */
export type CascadeSteps = ReturnType<typeof createCascadeSteps>;

interface Node {
  table: Table;
  id: string;
  referring: { edge: ReferenceEdge; key: string }[];
}

/** Step for one record. `edge`: the reference that is set to null, or loses an id; null when the record is deleted. */
export interface CascadeStep {
  table: Table;
  id: string;
  edge: ReferenceEdge | null;
  /** Value of the reference. */
  value: SqlValue;
}

/** Performs one step. Returns whether the record is deleted, or has lost its last reference to what goes. */
function perform(
  context: CascadeContext,
  tableOf: (model: TableModel) => Table,
  { table, id, edge, value }: CascadeStep,
): boolean {
  const { store } = table;
  context.cascadeCost += referringOf(table).costOf(context.tx, "delete", id);
  const record = store.get(context.tx, id);
  if (record === null) return false;
  if (edge === null) {
    deleteCascading(context, tableOf, table, record);
    return true;
  }
  const refers = ({ column }: ReferenceEdge): boolean =>
    refersTo(column, record[column.name] ?? null, store.codec, value);
  if (!refers(edge)) return false;
  // What several references have is an id, which is stored as it is.
  clearReferences(context, { table, record, cleared: [{ edge, value: value as JsonValue }] });
  return !edge.to.incoming.some((other) => other !== edge && other.from === edge.from && refers(other));
}

/** Performs the steps from `at` on, as many as one transaction takes. Returns the place of the next one. `done`: gets those that end a record, or its last reference. */
function performSome(
  context: CascadeContext,
  tableOf: (model: TableModel) => Table,
  steps: readonly CascadeStep[],
  at: number,
  done: CascadeStep[] = [],
): number {
  let next = at;
  for (let step = steps[next]; step !== undefined && context.cascadeCost < STEP_COST_MAX; step = steps[next]) {
    if (perform(context, tableOf, step)) done.push(step);
    next++;
  }
  return next;
}

/** Performs steps for the server itself. `note`: gets, once it is on disk, each step that ends a record, or its last reference. */
export async function performSteps(
  { file, tableOf }: Place,
  steps: readonly CascadeStep[],
  { now, signal, note }: { now(): string; signal: AbortSignal; note?: ((step: CascadeStep) => void) | undefined },
): Promise<void> {
  for (let at = 0; at < steps.length; ) {
    signal.throwIfAborted();
    const done: CascadeStep[] = [];
    at = await file.write((tx) => {
      // A write may run again, after it was undone.
      done.length = 0;
      return performSome({ tx, now: now(), cascadeCost: 0 }, tableOf, steps, at, done);
    });
    if (note !== undefined) for (const step of done) note(step);
  }
}

export function createCascadeSteps(deps: { writes: Writes; tableOf(model: TableModel): Table }) {
  const { writes, tableOf } = deps;

  return {
    /**
     * Deletes the records that refer to this one. `condition`: checked on the record before each step. Errors: 409 for `restrict`,
     * before anything is deleted; for too many records; when setting a reference to null violates a check. 412 for a record that
     * does not meet the condition.
     */
    async clear(
      asker: Asker,
      file: DatabaseFile,
      table: Table,
      id: string,
      { condition }: { condition: Precondition | null } = { condition: null },
    ): Promise<void> {
      const steps = await planned({ file, tableOf }, table, id);
      for (let at = 0; at < steps.length; ) {
        at = await writes.run(file, asker, (context) => {
          const record = condition === null ? null : table.store.get(context.tx, id);
          if (condition !== null && record !== null) assertMeets(context, condition.filterNow(context), record);
          return performSome(context, tableOf, steps, at);
        });
      }
    },
  };
}

interface Place {
  file: DatabaseFile;
  tableOf(model: TableModel): Table;
}

/** Returns all direct and indirect referring records in the order of their deletion. Only their ids are in memory. */
async function planned(place: Place, table: Table, id: string): Promise<CascadeStep[]> {
  const root = keyOf(table, id);
  const leaving = new Map<string, Node>([[root, { table, id, referring: [] }]]);
  const { cleared, restricting } = await collected(place, leaving);
  const restricted = restricting.find(({ key }) => !leaving.has(key));
  if (restricted !== undefined) throw referred(restricted.edge);
  return [...cleared, ...(await inSteps(place.file, leaving, root))];
}

/**
 * Adds further records to delete to `leaving`; returns the references to set to null, and those that forbid the deletion of a
 * record unless their own record is deleted too.
 */
async function collected({ file, tableOf }: Place, leaving: Map<string, Node>) {
  const cleared: CascadeStep[] = [];
  const restricting: { edge: ReferenceEdge; key: string }[] = [];
  const count = { found: 0, pages: 0 };
  const add = (node: Node, edge: ReferenceEdge, id: string, value: SqlValue): void => {
    if (++count.found > STEPPED_RECORDS_MAX) throw tooMany();
    const from = tableOf(edge.from);
    const key = keyOf(from, id);
    if (edge.column.links === null) node.referring.push({ edge, key });
    if (edge.onDelete === "restrict") restricting.push({ edge, key });
    else if (edge.onDelete !== "cascade") cleared.push({ table: from, id, edge, value });
    else if (!leaving.has(key)) leaving.set(key, { table: from, id, referring: [] });
  };
  // The iteration includes the nodes added during it.
  for (const node of leaving.values()) {
    for (const edge of node.table.model.incoming) {
      const value = referredValue(file, node, edge);
      const referring = referringOf(tableOf(edge.from));
      for (let after: string | null = value === null ? null : ""; after !== null; ) {
        const ids = referring.ids(file, { column: edge.column, value }, { after, limit: IDS_PER_PAGE });
        for (const id of ids) add(node, edge, id, value);
        after = ids.length === IDS_PER_PAGE ? (ids.at(-1) ?? null) : null;
        if (ids.length === IDS_PER_PAGE || ++count.pages % PAGES_PER_TURN === 0) await nextTurn();
      }
    }
  }
  return { cleared, restricting };
}

/** Returns the deletions in order, without the root. */
async function inSteps(file: DatabaseFile, leaving: ReadonlyMap<string, Node>, root: string) {
  const steps: CascadeStep[] = [];
  const clearFirst = (key: string, edge: ReferenceEdge): void => {
    const node = leaving.get(key);
    if (node === undefined) return;
    if (!edge.column.isNullable) throw inACycle(edge);
    const { store } = node.table;
    const value = store.codec.toValue(edge.column, store.get(file, node.id)?.[edge.column.name] ?? null);
    steps.push({ table: node.table, id: node.id, edge, value });
  };
  let walked = 0;
  for (const { table, id } of inOrder(leaving, root, clearFirst)) {
    if (keyOf(table, id) !== root) steps.push({ table, id, edge: null, value: null });
    if (++walked % IDS_PER_PAGE === 0) await nextTurn();
  }
  return steps;
}

/** Returns the value of this record that others refer to: usually its id. */
function referredValue(file: DatabaseFile, { table, id }: Node, { toColumn }: ReferenceEdge): SqlValue {
  if (toColumn.name === "id") return id;
  return table.store.codec.toValue(toColumn, table.store.get(file, id)?.[toColumn.name] ?? null);
}

/** Whether a column has this value, or has it among several. */
const refersTo = (column: Column, stored: JsonValue, codec: Codec, value: SqlValue): boolean =>
  column.links === null
    ? codec.toValue(column, stored) === value
    : Array.isArray(stored) && stored.includes(String(value));

const keyOf = ({ model }: Table, id: string): string => `${model.name} ${id}`;

const tooMany = (): CascadeTooLarge =>
  new CascadeTooLarge(`More than ${STEPPED_RECORDS_MAX} records refer to what would be deleted; delete those first`);

const inACycle = (edge: ReferenceEdge) =>
  conflict(`Records of ${edge.from.name} refer to each other in a cycle by the required field ${edge.column.name}`);

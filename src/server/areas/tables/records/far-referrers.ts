import type { Database } from "bun:sqlite";
import { AppError } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { Pace } from "../../../../kernel/time/scheduler.ts";
import type { DatabaseFile, InstanceFiles, SqlValue } from "../../../db/index.ts";
import type { Column, ReferenceEdge, TableModel } from "../model/model.ts";
import { Referrers } from "../write/referrers.ts";
import type { Namespace, Table } from "./namespaces.ts";

/** Instances whose names are read together. */
const INSTANCES_PER_PAGE = 1_000;

/** A file whose records refer to those of a table. */
export interface ReferringPlace {
  namespace: string;
  instanceId: string | null;
  file: DatabaseFile;
  /** The table that they refer to, with the references of this file. */
  target: Table;
  tableOf(model: TableModel): Table;
  /** Resolves when the file may be used, for the rest of that turn; undefined: now. Errors: it cannot be opened, or is gone. */
  ready(): Promise<void> | undefined;
}

/** The pace of work that shares the event loop, and its end. */
export interface Course {
  pace: Pace;
  signal: AbortSignal;
}

/** Returns a function that finds the tables of a namespace by their models. */
export const tableIn =
  (tables: ReadonlyMap<string, Table>) =>
  ({ name }: TableModel): Table => {
    const table = tables.get(name);
    if (table === undefined) throw new Error(`the table ${name} is of another namespace`);
    return table;
  };

/** The instances to look at: after one, as `namespace/instance`; null: from the first on. */
export interface FarPage {
  after: string | null;
  instancesMax: number;
}

const ALL: FarPage = { after: null, instancesMax: Number.POSITIVE_INFINITY };

/**
 * Yields the files of other namespaces in which records may refer to this one: first those without instances, then instances by id. Of
 * instances that are not open those without such a record are left closed, and those that cannot be opened are left out; the log names
 * them. Returns the `after` of the next page; null: there are no more.
 */
export async function* farReferringPlaces(
  { namespaces, logger }: { namespaces: ReadonlyMap<string, Namespace>; logger: Logger },
  { table, id }: { table: Table; id: string },
  { pace, signal }: Course,
  { after, instancesMax }: FarPage = ALL,
): AsyncGenerator<ReferringPlace, string | null> {
  const referring = [...namespaces.values()].flatMap((namespace) => {
    const far = [...namespace.tables.values()].flatMap(({ model }) => (model.view === null ? model.far : []));
    const incoming = namespace.name === table.model.namespace ? [] : far.filter(({ to }) => to === table.model);
    const target = { ...table, model: { ...table.model, incoming } };
    const place = { namespace: namespace.name, target, tableOf: tableIn(namespace.tables) };
    return incoming.length === 0 ? [] : [{ namespace, place, incoming }];
  });
  for (const { namespace, place } of referring) {
    if (after !== null || namespace.kind !== "static") continue;
    const { file } = namespace;
    yield { ...place, instanceId: null, file, ready: () => file.ready() };
  }
  let [from, afterId] = after?.split("/") ?? [null, ""];
  let looked = 0;
  for (const { namespace, place, incoming } of referring) {
    if (namespace.kind !== "dynamic" || (from !== null && from !== namespace.name)) continue;
    const { name, instances } = namespace;
    for await (const instanceId of idsOf(instances, afterId ?? "", signal)) {
      if (pace.isDue()) await pace.next();
      if (mayRefer(instances, instanceId, incoming, id)) {
        try {
          await instances.ready(instanceId);
          const file = instances.get(instanceId, { create: false });
          if (file !== null) yield { ...place, instanceId, file, ready: () => instances.ready(instanceId) };
        } catch (cause) {
          signal.throwIfAborted();
          logger.warn("an instance that may refer to a record cannot be read", { namespace: name, instanceId, cause });
        }
      }
      looked++;
      if (looked >= instancesMax) return `${name}/${instanceId}`;
    }
    from = null;
    afterId = "";
  }
  return null;
}

async function* idsOf(instances: InstanceFiles, from: string, signal: AbortSignal): AsyncGenerator<string> {
  for (let after: string | null = from; after !== null; ) {
    signal.throwIfAborted();
    const page = await instances.list({ prefix: "", after, limit: INSTANCES_PER_PAGE });
    for (const { id } of page.instances) yield id;
    after = page.hasMore ? (page.instances.at(-1)?.id ?? null) : null;
  }
}

/** Whether an instance may have a record that refers to this one. Of one that is open, or of an earlier declaration, it is not known. */
function mayRefer(instances: InstanceFiles, instanceId: string, edges: readonly ReferenceEdge[], id: string): boolean {
  try {
    return instances.peek(instanceId, (sqlite) => edges.some((edge) => refersTo(sqlite, edge, id))) ?? true;
  } catch {
    return true;
  }
}

const refersTo = (sqlite: Database, { from, column }: ReferenceEdge, id: string): boolean => {
  const [table, referring] = referringSql(from, column);
  return sqlite.query(`SELECT 1 FROM ${table} WHERE ${referring} = ? LIMIT 1`).get(id) !== null;
};

/** Returns the table and the column that have the ids to which a field refers. */
export const referringSql = ({ sql: table }: TableModel, { sql, links }: Column): readonly [string, string] =>
  links === null ? [table, sql] : [links, '"target"'];

/** Yields the ids of one table's records that refer to a record, each once. Errors: those of `ReferringPlace.ready`. */
export async function* referringIds(
  { file, target, tableOf, ready }: ReferringPlace,
  { model, id: referred }: { model: TableModel; id: string },
  { pace, signal }: Course,
): AsyncGenerator<string, void> {
  const edges = target.model.incoming.filter(({ from }) => from === model);
  const referrers = new Referrers({ file, tableOf }, { table: target, id: referred }, (edge) => edges.includes(edge));
  const values = new Map<ReferenceEdge, SqlValue>();
  for (;;) {
    signal.throwIfAborted();
    if (pace.isDue()) await pace.next();
    await ready();
    const next = referrers.next();
    if (next === null) return;
    if (next === undefined) continue;
    const { edge, id, value } = next;
    values.set(edge, value);
    const earlier = edges.slice(0, edges.indexOf(edge));
    if (!earlier.some((one) => refersBy(file, model, one.column, { id, value: values.get(one) ?? null }))) yield id;
  }
}

/** Whether a record refers to this value by this column. */
function refersBy(
  file: DatabaseFile,
  model: TableModel,
  column: Column,
  { id, value }: { id: string; value: SqlValue },
): boolean {
  const [table, referring] = referringSql(model, column);
  return file.query(`SELECT 1 FROM ${table} WHERE "id" = ? AND ${referring} = ? LIMIT 1`).values(id, value).length > 0;
}

/** Counts the records of other files that refer to this one, each once, by `namespace/table`. */
export async function countFarReferrers(
  places: AsyncIterable<ReferringPlace>,
  id: string,
  course: Course,
): Promise<Record<string, number>> {
  const counts = new Map<string, number>();
  for await (const place of places) {
    for (const model of new Set(place.target.model.incoming.map(({ from }) => from))) {
      const name = `${model.namespace}/${model.name}`;
      try {
        for await (const _ of referringIds(place, { model, id }, course)) counts.set(name, (counts.get(name) ?? 0) + 1);
      } catch (cause) {
        // The instance was deleted meanwhile.
        if (!(cause instanceof AppError) || cause.status !== 404) throw cause;
      }
    }
  }
  return Object.fromEntries(counts);
}

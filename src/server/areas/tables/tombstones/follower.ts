import { AppError } from "../../../../kernel/errors.ts";
import { compareText } from "../../../../kernel/records/text-match.ts";
import { nextTurn } from "../../../../kernel/time/scheduler.ts";
import type { DatabaseFile, Transaction } from "../../../db/index.ts";
import type { ReferenceEdge, TableModel } from "../model/model.ts";
import { setMeta } from "../records/asked-changes.ts";
import type { Table } from "../records/namespaces.ts";
import { createAccountSteps } from "../write/account-steps.ts";
import { newestOf, type TargetNamespace } from "./log.ts";
import type { Follower, Place, Target } from "./machine.ts";
import { moveInSteps } from "./moving.ts";

type Queries = Pick<Transaction, "query">;

/** All references of one namespace to the tables of another one. */
export interface Following {
  to: TargetNamespace;
  target: Target;
  edges: readonly ReferenceEdge[];
  tableOf(model: TableModel): Table;
}

/** The place as the file's metadata has it. `fields`: those whose ids have been compared once, when they were declared. */
interface StoredPlace extends Place {
  fields: readonly string[];
}

/** Returns the name of the place in the file's metadata. */
export const nameOf = ({ to }: Following): string => `follows:${to.name}`;
const fieldOf = ({ from, column }: ReferenceEdge): string => `${from.name}.${column.name}`;
export const fieldsOf = ({ edges }: Following): string[] => edges.map(fieldOf).sort();
const tablesOf = ({ edges }: Following): string[] => [...new Set(edges.map(({ to }) => to.name))];

/** Returns the place of a file; null: nothing in it has referred to the target yet. */
export function placeIn(queries: Queries, following: Following): StoredPlace | null {
  const row = queries
    .query<{ value: string }>(`SELECT "value" FROM "_platform_meta" WHERE "name" = ?`)
    .get(nameOf(following));
  return placeOf(row?.value ?? null, following);
}

/** Returns the place that `nameOf` has in the metadata of a file. */
export function placeOf(value: string | null, following: Following): StoredPlace | null {
  if (value === null) return null;
  // As `setPlace` has written it.
  const place = JSON.parse(value) as StoredPlace;
  const tables = tablesOf(following);
  const newest = Object.fromEntries(Object.entries(place.newest).filter(([table]) => tables.includes(table)));
  return { ...place, newest };
}

export function setPlace(tx: Transaction, following: Following, place: Place): void {
  setMeta(tx, nameOf(following), JSON.stringify({ ...place, fields: fieldsOf(following) } satisfies StoredPlace));
}

/** Notes in the write of references which records they name, as far as a later comparison needs it. */
export function noteReferred(tx: Transaction, following: Following, table: Table, ids: readonly string[]): void {
  const { to, target } = following;
  const { name } = table.model;
  const place: Place = placeIn(tx, following) ?? { ...target.last(), newest: {} };
  const known = place.newest[name];
  const newest = newestOf(to.file, table, known === undefined ? ids : [known, ...ids]);
  if (newest === null || newest === known) return;
  setPlace(tx, following, { ...place, newest: { ...place.newest, [name]: newest } });
}

/** Returns the first id after `after` to which a field refers; null: there is none. */
function nextId(queries: Queries, { from, column: { sql, links } }: ReferenceEdge, after: string): string | null {
  const [table, column] = links === null ? [from.sql, sql] : [links, `"target"`];
  // One step of the index each, however many records have the id.
  const found = queries.query<{ id: string | null }>(`SELECT min(${column}) AS "id" FROM ${table} WHERE ${column} > ?`);
  return found.get(after)?.id ?? null;
}

/** Returns the ids after `after` to which the fields refer, in order. */
export function idsIn(
  queries: Queries,
  edges: readonly ReferenceEdge[],
  { after, limit }: { after: string; limit: number },
): string[] {
  const found = new Set<string>();
  for (const edge of edges) {
    let id = nextId(queries, edge, after);
    for (let count = 0; id !== null && count < limit; count++) {
      found.add(id);
      id = nextId(queries, edge, id);
    }
  }
  return [...found].sort(compareText).slice(0, limit);
}

/** Whether the file has a value in one of the fields. */
export const hasReferences = (file: DatabaseFile, { edges }: Following): boolean =>
  edges.some((edge) => nextId(file, edge, "") !== null);

/**
 * Takes over fields that are declared since the file was last opened. What they have of records that do not exist stays: it returns how
 * many ids that are, by field.
 */
export async function compareFields(file: DatabaseFile, following: Following): Promise<ReadonlyMap<string, number>> {
  const { to, target, edges } = following;
  const left = new Map<string, number>();
  const known = placeIn(file, following);
  if (known === null ? !hasReferences(file, following) : Bun.deepEquals(known.fields, fieldsOf(following))) return left;
  const place = known ?? { ...target.last(), newest: {} };
  const newest: Record<string, string> = { ...place.newest };
  for (const edge of edges.filter((one) => known?.fields.includes(fieldOf(one)) !== true)) {
    const { name } = edge.to;
    const table = to.tables.get(name);
    for (let after = ""; table !== undefined; ) {
      const ids = idsIn(file, [edge], { after, limit: COMPARED_TOGETHER });
      const end = ids.at(-1);
      if (end === undefined) break;
      const missing = target.missing(name, ids).length;
      if (missing > 0) left.set(fieldOf(edge), (left.get(fieldOf(edge)) ?? 0) + missing);
      const found = newestOf(to.file, table, newest[name] === undefined ? ids : [newest[name], ...ids]);
      if (found !== null) newest[name] = found;
      after = end;
      await nextTurn();
    }
  }
  await file.write((tx) => setPlace(tx, following, { ...place, newest }));
  return left;
}

/** Ids that are compared in one turn of the event loop. */
const COMPARED_TOGETHER = 100;

/**
 * Returns the follower that a file is. `conflict`: called where a reference cannot be ended, as a check forbids it; `stuck`: where a
 * record cannot refer to what takes the place of another one, so that its reference ends.
 */
export function followerOf(
  file: DatabaseFile,
  following: Following,
  options: {
    now(): string;
    signal: AbortSignal;
    conflict(cause: AppError, table: string, id: string): void;
    stuck(cause: unknown, model: TableModel, id: string): void;
  },
): Follower {
  const { now, signal, conflict, stuck } = options;
  const { edges, tableOf } = following;
  const tables = tablesOf(following);
  const edgesTo = (table: string): ReferenceEdge[] => edges.filter(({ to }) => to.name === table);
  const referred = new Map(
    tables.map((name) => {
      const [edge] = edgesTo(name);
      const table = following.to.tables.get(name);
      if (edge === undefined || table === undefined) throw new Error(`${name} is not a table of ${following.to.name}`);
      // What refers to its records from this file.
      const users: Table = { ...table, model: { ...table.model, incoming: edgesTo(name) } };
      return [name, { users, steps: createAccountSteps({ file, users, tableOf, now }) }] as const;
    }),
  );
  return {
    tables,
    place: () => placeIn(file, following),
    ids: (table, page) => idsIn(file, edgesTo(table), page),
    async move(table, ids) {
      const users = referred.get(table)?.users;
      if (users === undefined) return;
      const moving = (tx: Transaction): void => noteReferred(tx, following, users, [ids.into]);
      await moveInSteps({ file, users, tableOf }, ids, { now, signal, moving, stuck });
    },
    async end(table, id) {
      try {
        await referred.get(table)?.steps.clear(id, signal);
      } catch (cause) {
        if (!(cause instanceof AppError) || cause.status !== 409) throw cause;
        conflict(cause, table, id);
      }
    },
    note: ({ seq, mark }, gone) =>
      file.write((tx) => {
        const newest = Object.entries(placeIn(tx, following)?.newest ?? {});
        const left = newest.filter(([table, id]) => gone.get(table) !== id);
        setPlace(tx, following, { seq, mark, newest: Object.fromEntries(left) });
      }),
    settled: () => file.write(() => {}),
    pause: nextTurn,
  };
}

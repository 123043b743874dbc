import { AppError } from "../../../../kernel/errors.ts";
import { type Pace, Scheduler } from "../../../../kernel/time/scheduler.ts";
import { callerNameOf, type Principal } from "../../../access/principal.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, SqlValue } from "../../../db/index.ts";
import type { Column, ReferenceEdge, TableModel } from "../model/model.ts";
import type { TableService } from "../service.ts";
import { Referrers } from "../write/referrers.ts";
import type { Namespace, Table } from "./namespaces.ts";

/** Validity of the URLs of exported files. */
const URLS_SECONDS = 3_600;
/** Name of the share of long reads of callers without a name. */
const NOBODY = "export";

/** A record that belongs to the export of a user. `place` is the namespace and the table, as in `shared/films`. */
export interface ExportedRecord {
  place: string;
  record: TableRecord;
}

/** A file whose records refer to users. */
interface ExportPlace {
  file: DatabaseFile;
  /** The table of users, with the references of this file. */
  users: Table;
  tableOf(model: TableModel): Table;
}

interface ExportDeps extends ExportPlace {
  service: Pick<TableService, "get" | "signing" | "modelOf">;
  /** Files of other namespaces without instances. */
  others: readonly ExportPlace[];
}

const turns = new Scheduler();

/**
 * Yields the user's record in the table of users and the records that refer to it, table by table, as far as the caller may read
 * them. Each is read through the rules on its own, so memory holds one record and a page of ids. A record that changes meanwhile is
 * there as it was when its turn came.
 */
export async function* exportedRecords(
  deps: ExportDeps,
  principal: Principal,
  userId: string,
  signal: AbortSignal,
): AsyncGenerator<ExportedRecord, void> {
  const pace = turns.pace();
  const { users } = deps;
  const readable = async (table: Table, id: string): Promise<TableRecord | null> => {
    signal.throwIfAborted();
    if (pace.isDue()) await pace.next();
    return readAs(deps.service, { principal, signal }, table.model, id);
  };
  await pace.next();
  const own = await readable(users, userId);
  if (own !== null) yield { place: placeOf(users.model), record: own };
  // The users themselves first: a place is never left and entered again.
  for (const place of [deps, ...deps.others]) {
    const referring = new Set(place.users.model.incoming.map(({ from }) => from));
    for (const model of place === deps ? new Set([users.model, ...referring]) : referring) {
      const table = place.tableOf(model);
      for await (const id of referringIds(place, { model, userId, pace, signal })) {
        if (model === users.model && id === userId) continue;
        const record = await readable(table, id);
        if (record !== null) yield { place: placeOf(model), record };
      }
    }
  }
}

/** Returns the files of other namespaces without instances in which records refer to a table. */
export function placesReferringTo(
  namespaces: ReadonlyMap<string, Namespace>,
  users: Table,
  tableIn: (tables: ReadonlyMap<string, Table>) => ExportPlace["tableOf"],
): ExportPlace[] {
  return [...namespaces.values()].flatMap((namespace) => {
    if (namespace.kind !== "static" || namespace.name === users.model.namespace) return [];
    const far = [...namespace.tables.values()].flatMap(({ model }) => (model.view === null ? model.far : []));
    const incoming = far.filter(({ to }) => to === users.model);
    if (incoming.length === 0) return [];
    const { file, tables } = namespace;
    return [{ file, users: { ...users, model: { ...users.model, incoming } }, tableOf: tableIn(tables) }];
  });
}

const placeOf = ({ namespace, name }: TableModel): string => `${namespace}/${name}`;

/** Yields the ids of one table's records that refer to the user, each once. */
async function* referringIds(
  { file, users, tableOf }: ExportPlace,
  { model, userId, pace, signal }: { model: TableModel; userId: string; pace: Pace; signal: AbortSignal },
): AsyncGenerator<string, void> {
  const edges = users.model.incoming.filter(({ from }) => from === model);
  const referrers = new Referrers({ file, tableOf }, { table: users, id: userId }, (edge) => edges.includes(edge));
  const values = new Map<ReferenceEdge, SqlValue>();
  for (;;) {
    signal.throwIfAborted();
    if (pace.isDue()) await pace.next();
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
  { sql, links }: Column,
  { id, value }: { id: string; value: SqlValue },
): boolean {
  const [from, column] = links === null ? [model.sql, sql] : [links, '"target"'];
  return file.query(`SELECT 1 FROM ${from} WHERE "id" = ? AND ${column} = ? LIMIT 1`).values(id, value).length > 0;
}

/** Reads a record with its files' URLs signed; null where the caller may not, or it is gone. */
async function readAs(
  service: ExportDeps["service"],
  { principal, signal }: { principal: Principal; signal: AbortSignal },
  { namespace, name }: TableModel,
  id: string,
): Promise<TableRecord | null> {
  const address = { namespace, instanceId: null, table: name };
  const asked = {
    principal,
    callerName: callerNameOf(principal, () => NOBODY),
    signal,
    query: () => ({ signFiles: URLS_SECONDS }),
    peek: () => String(URLS_SECONDS),
  };
  try {
    const modelOf = () => service.modelOf(address);
    return await service.signing.read(asked, modelOf, (reading) => {
      return service.get({ ...reading, query: () => ({}) }, address, id);
    });
  } catch (cause) {
    if (cause instanceof AppError && [401, 403, 404].includes(cause.status)) return null;
    throw cause;
  }
}

import { badField } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { Scheduler } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import type { ReferenceEdge } from "../model/model.ts";
import { farReferringPlaces, referringSql } from "./far-referrers.ts";
import type { Namespace, Table } from "./namespaces.ts";

/** Records of one field that are counted. */
export const REFERRERS_COUNTED_MAX = 1_000;
/** Instances that one request looks at. */
export const REFERRER_INSTANCES_MAX = 1_000;
/** Fields with such records after which an answer ends; one file more may be in it. */
const LISTED_MAX = 100;

/** A field by which records refer to one. */
export interface ReferrerCount {
  namespace: string;
  instanceId: string | null;
  table: string;
  field: string;
  /** Number of records, at most REFERRERS_COUNTED_MAX. */
  records: number;
}

/**
 * Counts the records that refer to one, in its own file and in others, as far as the caller's scopes reach. `cursor`: of the answer before;
 * null for the first. Errors: 404 for an address that does not exist; 400 for an invalid cursor.
 */
export type CountReferrers = (
  principal: Principal,
  address: TableAddress,
  asked: { id: string; cursor: string | null },
  signal: AbortSignal,
) => Promise<{ items: ReferrerCount[]; cursor: string | null }>;

export function createReferrerCounts(deps: {
  namespaces: ReadonlyMap<string, Namespace>;
  logger: Logger;
  /** Finds a table and its file; null: the instance does not exist. Errors: 404. */
  find(address: TableAddress): MaybePromise<{ table: Table; file: DatabaseFile | null }>;
}): CountReferrers {
  const turns = new Scheduler();
  return async (principal, address, { id, cursor }, signal) => {
    const { table, file } = await deps.find(address);
    if (cursor !== null && deps.namespaces.get(cursor.split("/")[0] ?? "")?.kind !== "dynamic") {
      throw badField("cursor", "invalid_value", "cursor is not one of an answer");
    }
    const isReadable = ({ from }: ReferenceEdge): boolean =>
      principal.kind !== "serviceKey" || principal.scopes.allows("db", from.namespace, from.name, "read");
    const counted = (place: { file: DatabaseFile; instanceId: string | null; target: Table }): ReferrerCount[] =>
      place.target.model.incoming.filter(isReadable).flatMap((edge) => {
        const records = count(place.file, place.target, edge, id);
        const { namespace, name } = edge.from;
        const { instanceId } = place;
        return records === 0 ? [] : [{ namespace, instanceId, table: name, field: edge.column.name, records }];
      });
    const items = file === null || cursor !== null ? [] : counted({ ...address, file, target: table });
    const page = { after: cursor, instancesMax: REFERRER_INSTANCES_MAX };
    const places = farReferringPlaces(deps, { table, id }, { pace: turns.pace(), signal }, page);
    for (;;) {
      const next = await places.next();
      if (next.done === true) return { items, cursor: next.value };
      const place = next.value;
      await place.ready();
      items.push(...counted(place));
      if (place.instanceId !== null && items.length >= LISTED_MAX) {
        await places.return(null);
        return { items, cursor: `${place.namespace}/${place.instanceId}` };
      }
    }
  };
}

/** Counts the records that refer to one by a field, up to a bound. */
function count(file: DatabaseFile, { store }: Table, { from, column, toColumn }: ReferenceEdge, id: string): number {
  const isById = toColumn.name === "id";
  const value = isById ? id : store.codec.toValue(toColumn, store.get(file, id)?.[toColumn.name] ?? null);
  if (value === null) return 0;
  const [table, referring] = referringSql(from, column);
  const some = `SELECT 1 FROM ${table} WHERE ${referring} = ? LIMIT ${REFERRERS_COUNTED_MAX}`;
  return Number(file.query(`SELECT count(*) FROM (${some})`).values(value)[0]?.[0] ?? 0);
}

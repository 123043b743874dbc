import { forbidden } from "../../../../kernel/errors.ts";
import { chain, isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { Principal } from "../../../access/principal.ts";
import type { ReadableTables } from "../filters/filter.ts";
import { filterJson } from "../filters/filter-json.ts";
import type { TableModel } from "../model/model.ts";
import type { CountValues } from "../model/requests.ts";
import type { Table } from "../records/namespaces.ts";
import { ownAddressOf, seesAddresses } from "../records/users-view.ts";
import type { Asker, Grant, RecordRights } from "../rules/access.ts";

/** Tables that a filter without relations may read: none. */
export const NO_RELATIONS: ReadableTables = () => "nothing";

/** Returns what relations may ask where a filter on the table has none: nothing. The filter of a user still knows the own address. */
export function noRelationsOn(model: TableModel, principal: Principal): ReadableTables {
  const own = model.isUsers ? ownAddressOf(principal) : undefined;
  return own === undefined ? NO_RELATIONS : Object.assign((): "nothing" => "nothing", { own });
}

/** Adds the names of the tables that the relations of a filter may ask. Filters of requests have few levels. */
function addTables(value: unknown, names: Set<string>): void {
  if (typeof value !== "object" || value === null) return;
  if ("table" in value && typeof value.table === "string") names.add(value.table);
  for (const inside of Object.values(value)) addTables(inside, names);
}

/** Rights to read the tables that the relations of filters may ask. */
export type RelatedGrants = ReadonlyMap<TableModel, Grant>;

/** Finds the rights to read the tables that the relations of filters on a table may ask; null where they name none. */
export type FindRelatedGrants = (
  asker: Asker,
  model: TableModel,
  filters: readonly unknown[],
) => MaybePromise<RelatedGrants | null>;

export const createRelatedGrants =
  (rights: RecordRights): FindRelatedGrants =>
  (asker, { siblings }, filters) => {
    const names = new Set<string>();
    for (const filter of filters) addTables(filter, names);
    const asked = [...siblings.values()].filter(({ name }) => names.has(name));
    if (asked.length === 0) return null;
    const grants = new Map<TableModel, Grant>();
    const pending: Promise<void>[] = [];
    for (const model of asked) {
      const kept = chain(rights.grant(asker, model, "read"), (grant) => void grants.set(model, grant));
      if (isPromise(kept)) pending.push(kept);
    }
    return pending.length === 0 ? grants : Promise.all(pending).then(() => grants);
  };

/** Returns what relations may ask by these rights. */
export function readableOf(principal: Principal, grantOf: (model: TableModel) => Grant | undefined): ReadableTables {
  const readable: ReadableTables = (model) => {
    const grant = grantOf(model);
    if (grant === undefined || grant.kind === "none") return "nothing";
    if (grant.kind === "all") return "all";
    if (grant.kind === "filter") return grant.filter;
    throw forbidden(`The read rule of ${model.name} looks at each record, so that no relation can ask this table`);
  };
  readable.own = ownAddressOf(principal);
  readable.seesAddresses = seesAddresses(principal);
  return readable;
}

/** Finds what a caller may read of the tables that the relations of its filters may ask, by their read rules. [TB630] */
export function createReadableTables(rights: RecordRights) {
  const find = createRelatedGrants(rights);
  return (
    principal: Principal,
    { table, rules }: { table: Table; rules: Asker["rules"] },
    values: CountValues,
  ): MaybePromise<ReadableTables> => {
    const filters: unknown[] = [];
    for (const name of ["filter", "orFilter"] as const) {
      const text = values[name] ?? "";
      // The usual filter has neither, and is parsed once.
      if (text.includes('"table"') || text.includes("\\")) filters.push(filterJson(text, name));
    }
    if (filters.length === 0) return noRelationsOn(table.model, principal);
    return chain(find({ principal, rules }, table.model, filters), (grants) =>
      grants === null ? noRelationsOn(table.model, principal) : readableOf(principal, (model) => grants.get(model)),
    );
  };
}

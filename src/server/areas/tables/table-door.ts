import { chain, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { matches } from "../../../kernel/records/filter-match.ts";
import type { LookupWatch } from "../../access/lookups/lookups.ts";
import type { ReadAccess, RecordFilter, TableDoor } from "../../access/table-door.ts";
import type { TableRecord } from "../../config/types.ts";
import type { DatabaseFile } from "../../db/index.ts";
import { type ParsedFilter, plain } from "./filters/filter.ts";
import type { TableLookups } from "./lookups/session.ts";
import { isInstanceId } from "./model/model.ts";
import type { Sources } from "./query/sources.ts";
import { type Namespace, readable, type Table } from "./records/namespaces.ts";
import { channelFilter, createRelatedAccess } from "./related-access.ts";
import { type Asker, denied, type Grant, hasRelations, type RecordRights } from "./rules/access.ts";
import type { InstanceRights } from "./rules/instance-access.ts";

/** Rights and filters of tables for other areas. */
export function createTableDoor(deps: {
  sources: Sources;
  namespaces: ReadonlyMap<string, Namespace>;
  rights: RecordRights;
  instances: InstanceRights;
  lookups: TableLookups;
}): TableDoor {
  const grants = new WeakMap<ReadAccess, Grant>();
  const relatedAccess = createRelatedAccess(deps.rights);
  return {
    isInstanceId,
    find(namespace, table) {
      const found = deps.namespaces.get(namespace);
      return found?.tables.has(table) === true ? { isDynamic: found.kind === "dynamic" } : null;
    },
    startOf({ namespace, table }, about) {
      const found = deps.namespaces.get(namespace);
      return found?.kind === "static" && found.tables.has(table) ? found.file.startOf(table, about) : null;
    },
    kept: () =>
      [...deps.namespaces.values()].flatMap((found) =>
        found.kind === "static"
          ? found.keptTables.map((table) => ({ namespace: found.name, instanceId: null, table }))
          : [],
      ),
    isDynamic(namespace) {
      const found = deps.namespaces.get(namespace);
      return found === undefined ? null : found.kind === "dynamic";
    },
    sources: ({ namespace, table }) => deps.namespaces.get(namespace)?.tables.get(table)?.model.view?.live ?? null,
    readAccess(principal, address, { before = null, watch, sight, related } = {}) {
      const { namespace, table } = deps.sources.find(address);
      const asker = (by: LookupWatch | undefined): Asker => {
        const session = deps.lookups.begin({ for: "subscription", ...(by === undefined ? {} : { watch: by }) });
        return { principal, rules: session.scope(address) };
      };
      const asking = asker(watch);
      const open = (): MaybePromise<DatabaseFile | null> =>
        namespace.kind === "static" ? readable(namespace) : deps.instances.open(asking, namespace, address.instanceId);
      const recordAccess = (grant: Grant, file: DatabaseFile | null): ReadAccess & { kind: "record" } => {
        // What the relations of a filter look at is known without a record, and watched by the right itself.
        const seen = grant.kind === "record" ? sight : undefined;
        const seeing = seen?.watch();
        // Each record has its own time: data looked up for the one before it may have changed, and with it a rule's filter.
        const allows = (record: TableRecord) => {
          const now = asker(seeing);
          if (grant.kind === "record") return deps.rights.coversRead(grant, now, table.model, record);
          return chain(deps.rights.grant(asker(undefined), table.model, "read", { before: grant }), (present) =>
            deps.rights.coversRead(present, now, table.model, record),
          );
        };
        if (seen?.isKnown === false && file !== null) {
          for (const record of sample(table, file, seen.about)) void allows(record);
        }
        return { kind: "record", allows };
      };
      const accessOf = (grant: Grant, file: DatabaseFile | null): ReadAccess => {
        if (grant.kind === "none") throw denied(principal);
        if (grant.kind === "all") return { kind: "all", saidBy: grant.saidBy };
        if (grant.kind === "filter" && !hasRelations(grant))
          return { kind: "filter", filter: recordFilter(grant.filter) };
        return recordAccess(grant, file);
      };
      const known = before === null ? null : (grants.get(before) ?? null);
      return chain(open(), (file) =>
        chain(deps.rights.grant(asking, table.model, "read", { before: known }), (grant): MaybePromise<ReadAccess> => {
          if (related !== undefined) {
            if (grant.kind === "none") throw denied(principal);
            const base = recordAccess(grant, file);
            return relatedAccess({ namespace, table, address, asking, asker: () => asker(undefined) }, related, base);
          }
          if (before !== null && grant === known) return before;
          const access = accessOf(grant, file);
          // A copy, because the rule may reuse its array for the next caller.
          grants.set(access, grant.kind === "filter" ? { ...grant, answer: structuredClone(grant.answer) } : grant);
          return access;
        }),
      );
    },
    parseFilter(address, { all, any }) {
      const { model } = deps.sources.find(address).table;
      return recordFilter(channelFilter(model, { all, any }));
    },
  };
}

/** Returns the sample of records for which a rule shows its lookups. */
function sample({ model, store }: Table, file: DatabaseFile, about: string | null): TableRecord[] {
  // No record of a view is ever sent.
  if (model.view !== null) return [];
  if (about === null) return store.sample(file);
  const record = store.get(file, about);
  return record === null ? [] : [record];
}

function recordFilter(filter: ParsedFilter): RecordFilter {
  const matched = plain(filter);
  return { key: JSON.stringify(keyOf(filter)), matches: (record) => matches(matched, record) };
}

const keyOf = ({ all, groups }: ParsedFilter): unknown[] => [
  ...all.map(({ field, operator, value }) => [field.name, operator, value]),
  ...groups.map(({ kind, filters }) => ({ [kind]: filters.map(keyOf) })),
];

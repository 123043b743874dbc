import type { ReadAccess, RecordFilter, TableDoor } from "../access/table-door.ts";
import { chain } from "../kernel/maybe-promise.ts";
import { type Door, denied } from "./access.ts";
import { type ParsedFilter, parseConditions } from "./filter.ts";
import { matches } from "./filter-match.ts";
import type { InstanceDoor } from "./instance-access.ts";
import type { Namespace } from "./namespaces.ts";
import type { Sources } from "./sources.ts";

/** Spec: Limits / Realtime. A channel's filters are few because each change asks them all. */
const CHANNEL_CONDITIONS_MAX = 5;

/** The same door for those outside the area. */
export function createTableDoor(deps: {
  sources: Sources;
  namespaces: ReadonlyMap<string, Namespace>;
  door: Door;
  instances: InstanceDoor;
}): TableDoor {
  return {
    find(namespace, table) {
      const found = deps.namespaces.get(namespace);
      return found?.tables.has(table) === true ? { isDynamic: found.kind === "dynamic" } : null;
    },
    isDynamic(namespace) {
      const found = deps.namespaces.get(namespace);
      return found === undefined ? null : found.kind === "dynamic";
    },
    readAccess(principal, address) {
      const { namespace, table } = deps.sources.find(address);
      const mayOpen =
        namespace.kind === "static" ? null : deps.instances.open(principal, namespace, address.instanceId);
      return chain(mayOpen, () =>
        chain(deps.door.grant(principal, table.model, "read"), (grant): ReadAccess => {
          if (grant.kind === "none") throw denied(principal);
          if (grant.kind === "all") return { kind: "all" };
          if (grant.kind === "filter") return { kind: "filter", filter: recordFilter(grant.filter) };
          return { kind: "record", allows: (record) => deps.door.coversRead(grant, principal, table.model, record) };
        }),
      );
    },
    parseFilter(address, { all, any }) {
      const { model } = deps.sources.find(address).table;
      return recordFilter({
        all: parseConditions(model, all, { name: "filters", conditionsMax: CHANNEL_CONDITIONS_MAX }),
        any: parseConditions(model, any, { name: "orFilters", conditionsMax: CHANNEL_CONDITIONS_MAX }),
      });
    },
  };
}

function recordFilter(filter: ParsedFilter): RecordFilter {
  const tuples = [filter.all, filter.any].map((list) => list.map((one) => [one.field.name, one.operator, one.value]));
  return { key: JSON.stringify(tuples), matches: (record) => matches(filter, record) };
}

import type { Principal } from "../../access/principal.ts";
import type { TableAddress } from "../../access/table-door.ts";
import { notFound } from "../../kernel/errors.ts";
import { chain, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { TableLookups } from "../lookups/session.ts";
import type { Namespace, Table } from "../namespaces.ts";
import type { InstanceRights } from "../rules/instance-access.ts";
import type { Source, WritableSource } from "./reads.ts";

/** Finds the table and file of an address. */
export interface Sources {
  /** Errors: 404 for an undeclared namespace or table, an instance id in a static namespace, or none in a dynamic one. */
  find(address: TableAddress, options?: { anyInstance: boolean }): { namespace: Namespace; table: Table };
  /** The file is null where the instance does not exist. Errors: as `find`, and those of the instance's rules. */
  forReading(principal: Principal, address: TableAddress): MaybePromise<Source>;
  /** The first write that changes something creates an instance. */
  forInserting(principal: Principal, address: TableAddress): MaybePromise<WritableSource>;
}

export function createSources(deps: {
  namespaces: ReadonlyMap<string, Namespace>;
  instances: InstanceRights;
  lookups: TableLookups;
}): Sources {
  const find: Sources["find"] = (address, options) => {
    const namespace = deps.namespaces.get(address.namespace);
    if (namespace === undefined) throw notFound(`There is no namespace "${address.namespace}"`);
    const table = namespace.tables.get(address.table);
    if (table === undefined) throw notFound(`There is no table "${address.table}" in ${address.namespace}`);
    const isDynamic = namespace.kind === "dynamic";
    if (options?.anyInstance !== true && isDynamic !== (address.instanceId !== null)) {
      throw notFound(`The path of ${address.namespace} has ${isDynamic ? "an" : "no"} instance id`);
    }
    return { namespace, table };
  };
  return {
    find,
    forReading(principal, address) {
      const { namespace, table } = find(address);
      const rules = deps.lookups.begin().scope(address);
      if (namespace.kind === "static") return { table, file: namespace.file, rules };
      return chain(deps.instances.open({ principal, rules }, namespace, address.instanceId), (file) => ({
        table,
        file,
        rules,
      }));
    },
    forInserting(principal, address) {
      const { namespace, table } = find(address);
      const rules = deps.lookups.begin().scope(address);
      if (namespace.kind === "static") return { table, file: namespace.file, rules };
      return chain(deps.instances.openForWriting({ principal, rules }, namespace, address.instanceId), (file) => ({
        table,
        file,
        rules,
      }));
    },
  };
}

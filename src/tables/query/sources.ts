import type { Principal } from "../../access/principal.ts";
import type { TableAddress } from "../../access/table-door.ts";
import type { DatabaseFile } from "../../db/index.ts";
import { notFound } from "../../kernel/errors.ts";
import { chain, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Namespace, Table } from "../namespaces.ts";
import type { InstanceDoor } from "../rules/instance-access.ts";
import type { Source } from "./reads.ts";

/** From an address to its table and file. */
export interface Sources {
  /** Errors: 404 for what is not declared, and for an instance id where none belongs or the other way round. */
  find(address: TableAddress, options?: { anyInstance: boolean }): { namespace: Namespace; table: Table };
  /** The file is null where the instance has not been written to. Errors: as `find`, and by the instance's rules. */
  forReading(principal: Principal, address: TableAddress): MaybePromise<Source>;
  /** An instance that is not there is made by its first write that changes something. */
  forInserting(principal: Principal, address: TableAddress): MaybePromise<{ table: Table; file: DatabaseFile }>;
}

export function createSources(deps: { namespaces: ReadonlyMap<string, Namespace>; instances: InstanceDoor }): Sources {
  const find: Sources["find"] = (address, options) => {
    const namespace = deps.namespaces.get(address.namespace);
    if (namespace === undefined) throw notFound(`There is no namespace "${address.namespace}"`);
    const table = namespace.tables.get(address.table);
    if (table === undefined) throw notFound(`There is no table "${address.table}" in ${address.namespace}`);
    const isDynamic = namespace.kind === "dynamic";
    if (options?.anyInstance !== true && isDynamic !== (address.instanceId !== null)) {
      throw notFound(`${address.namespace} takes ${isDynamic ? "an" : "no"} instance id in the path`);
    }
    return { namespace, table };
  };
  return {
    find,
    forReading(principal, address) {
      const { namespace, table } = find(address);
      if (namespace.kind === "static") return { table, file: namespace.file };
      return chain(deps.instances.open(principal, namespace, address.instanceId), (file) => ({ table, file }));
    },
    forInserting(principal, address) {
      const { namespace, table } = find(address);
      if (namespace.kind === "static") return { table, file: namespace.file };
      return chain(deps.instances.openForWriting(principal, namespace, address.instanceId), (file) => ({
        table,
        file,
      }));
    },
  };
}

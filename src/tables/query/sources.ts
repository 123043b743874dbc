import type { Principal } from "../../access/principal.ts";
import type { TableAddress } from "../../access/table-door.ts";
import type { DatabaseFile } from "../../db/index.ts";
import { notFound } from "../../kernel/errors.ts";
import { chain, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Namespace, Table } from "../namespaces.ts";
import type { InstanceRights } from "../rules/instance-access.ts";
import type { Source } from "./reads.ts";

/** A namespace, and its instance where it is dynamic. */
export type FileAddress = Omit<TableAddress, "table">;

/** Finds the table and file of an address. */
export interface Sources {
  /** Errors: 404 for an undeclared namespace or table, an instance id in a static namespace, or none in a dynamic one. */
  find(address: TableAddress, options?: { anyInstance: boolean }): { namespace: Namespace; table: Table };
  /** The file is null where the instance does not exist. Errors: as `find`, and those of the instance's rules. */
  forReading(principal: Principal, address: TableAddress): MaybePromise<Source>;
  /** A namespace's file for changes of any of its tables. Errors: as `forInserting`, without a table. */
  forTransaction(
    principal: Principal,
    address: FileAddress,
  ): MaybePromise<{ tables: ReadonlyMap<string, Table>; file: DatabaseFile }>;
  /** The first write that changes something creates an instance. */
  forInserting(principal: Principal, address: TableAddress): MaybePromise<{ table: Table; file: DatabaseFile }>;
}

export function createSources(deps: {
  namespaces: ReadonlyMap<string, Namespace>;
  instances: InstanceRights;
}): Sources {
  const namespaceOf = ({ namespace: name, instanceId }: FileAddress, { anyInstance = false } = {}): Namespace => {
    const namespace = deps.namespaces.get(name);
    if (namespace === undefined) throw notFound(`There is no namespace "${name}"`);
    const isDynamic = namespace.kind === "dynamic";
    if (!anyInstance && isDynamic !== (instanceId !== null)) {
      throw notFound(`The path of ${name} has ${isDynamic ? "an" : "no"} instance id`);
    }
    return namespace;
  };
  const find: Sources["find"] = (address, options) => {
    const namespace = namespaceOf(address, { anyInstance: true });
    const table = namespace.tables.get(address.table);
    if (table === undefined) throw notFound(`There is no table "${address.table}" in ${address.namespace}`);
    return { namespace: namespaceOf(address, options), table };
  };
  return {
    find,
    forReading(principal, address) {
      const { namespace, table } = find(address);
      if (namespace.kind === "static") return { table, file: namespace.file };
      return chain(deps.instances.open(principal, namespace, address.instanceId), (file) => ({ table, file }));
    },
    forTransaction(principal, address) {
      const namespace = namespaceOf(address);
      const { tables } = namespace;
      if (namespace.kind === "static") return { tables, file: namespace.file };
      const opened = deps.instances.openForWriting(principal, namespace, address.instanceId);
      return chain(opened, (file) => ({ tables, file }));
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

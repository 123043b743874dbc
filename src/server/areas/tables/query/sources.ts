import { notFound } from "../../../../kernel/errors.ts";
import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { Principal } from "../../../access/principal.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import type { TableLookups } from "../lookups/session.ts";
import { isInstanceId } from "../model/model.ts";
import { type Namespace, readable, type Table } from "../records/namespaces.ts";
import type { InstanceRights } from "../rules/instance-access.ts";
import type { Source, WritableSource } from "./reads.ts";

/** Address of a file: a namespace, and its instance if it is dynamic. */
export type FileAddress = Omit<TableAddress, "table">;

/** Tables and file of a namespace. */
interface TransactionSource extends Pick<WritableSource, "file" | "rules"> {
  tables: ReadonlyMap<string, Table>;
}

/** Finds the table and file of an address. */
export type Sources = ReturnType<typeof createSources>;

/** Finds a declared namespace. Errors: 404. */
function declaredIn(namespaces: ReadonlyMap<string, Namespace>, name: string): Namespace {
  const namespace = namespaces.get(name);
  if (namespace === undefined) throw notFound(`There is no namespace "${name}"`);
  return namespace;
}

/** Checks the instance id. Errors: 404 for one in a static namespace, or none in a dynamic one. */
function checkInstance({ kind }: Namespace, { namespace: name, instanceId }: FileAddress): void {
  const isDynamic = kind === "dynamic";
  if (isDynamic && instanceId === null) {
    const expected = `its paths begin with /api/db/${name}/INSTANCE`;
    throw notFound(`The namespace "${name}" has instances, and none is named: ${expected}`);
  }
  if (!isDynamic && instanceId !== null) {
    const expected = `its paths begin with /api/db/${name}/tables`;
    throw notFound(`The namespace "${name}" has no instances, got "${instanceId}": ${expected}`);
  }
}

/** The file of a namespace or an instance, and the names of the tables that are stored in it. */
export interface StoredTables {
  file: DatabaseFile;
  tables: readonly string[];
}

/** Finds a file with its tables, without its views. Errors: 404 for one that is not declared, and an instance that does not exist. */
export function storedTables(namespaces: ReadonlyMap<string, Namespace>, address: FileAddress): StoredTables {
  const { namespace: name, instanceId } = address;
  const namespace = declaredIn(namespaces, name);
  checkInstance(namespace, address);
  const file = namespace.kind === "static" ? namespace.file : instanceFile(namespace, instanceId ?? "");
  if (file === null) throw notFound(`There is no instance "${instanceId}" of ${name}`);
  const tables = [...namespace.tables.values()].filter(({ model }) => model.view === null);
  return { file, tables: tables.map(({ model }) => model.name) };
}

const instanceFile = ({ instances }: Namespace & { kind: "dynamic" }, id: string): DatabaseFile | null =>
  isInstanceId(id) ? instances.get(id, { create: false }) : null;

export function createSources(deps: {
  namespaces: ReadonlyMap<string, Namespace>;
  instances: InstanceRights;
  lookups: TableLookups;
}) {
  const declared = (name: string): Namespace => declaredIn(deps.namespaces, name);
  const find = (address: TableAddress, options?: { anyInstance: boolean }): { namespace: Namespace; table: Table } => {
    const namespace = declared(address.namespace);
    const table = namespace.tables.get(address.table);
    if (table === undefined) throw notFound(`There is no table "${address.table}" in ${address.namespace}`);
    if (options?.anyInstance !== true) checkInstance(namespace, address);
    return { namespace, table };
  };
  return {
    /**
     * Finds a table. Errors: 404 for an undeclared namespace or table, an instance id in a static namespace, or none in a dynamic
     * one.
     */
    find,
    /**
     * Finds the source of a read. The file is null when the instance does not exist. Errors: as `find`, and those of the instance's
     * rules.
     */
    forReading(principal: Principal, address: TableAddress): MaybePromise<Source> {
      const { namespace, table } = find(address);
      const rules = deps.lookups.begin().scope(address);
      if (namespace.kind === "static") return chain(readable(namespace), (file) => ({ table, file, rules }));
      return chain(deps.instances.open({ principal, rules }, namespace, address.instanceId), (file) => ({
        table,
        file,
        rules,
      }));
    },
    /** Finds a namespace's file for changes of any of its tables. Errors: as `forInserting`, without a table. */
    forTransaction(principal: Principal, address: FileAddress): MaybePromise<TransactionSource> {
      const namespace = declared(address.namespace);
      checkInstance(namespace, address);
      const { tables } = namespace;
      const rules = deps.lookups.begin().scope(address);
      if (namespace.kind === "static") return chain(readable(namespace), (file) => ({ tables, file, rules }));
      const opened = deps.instances.openForWriting({ principal, rules }, namespace, address.instanceId);
      return chain(opened, (file) => ({ tables, file, rules }));
    },
    /** Finds the source of a write. The first one that changes something creates an instance. Errors: as `forReading`. */
    forInserting(principal: Principal, address: TableAddress): MaybePromise<WritableSource> {
      const { namespace, table } = find(address);
      const rules = deps.lookups.begin().scope(address);
      if (namespace.kind === "static") return chain(readable(namespace), (file) => ({ table, file, rules }));
      return chain(deps.instances.openForWriting({ principal, rules }, namespace, address.instanceId), (file) => ({
        table,
        file,
        rules,
      }));
    },
  };
}

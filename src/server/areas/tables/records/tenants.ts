import { badRequest, notFound } from "../../../../kernel/errors.ts";
import { isInstanceId } from "../model/model.ts";
import type { Namespace } from "./namespaces.ts";

interface Address {
  namespace: string;
  instanceId: string;
}

/** Returns what a restore of single instances needs of them. */
export function createTenants(namespaces: ReadonlyMap<string, Namespace>) {
  const find = ({ namespace: name, instanceId }: Address) => {
    const namespace = namespaces.get(name);
    if (namespace === undefined) throw notFound(`There is no namespace "${name}"`);
    if (namespace.kind !== "dynamic") throw notFound(`The namespace "${name}" has no instances`);
    if (!isInstanceId(instanceId)) {
      throw badRequest("An instance id has 1 to 128 characters of A-Z a-z 0-9 _ -, and cannot be tables");
    }
    const tables = [...namespace.tables.values()]
      .filter(({ model }) => model.view === null)
      .map(({ model }) => model.name);
    return { tables, instances: namespace.instances };
  };
  return {
    /** Returns the names of the tables. Errors: 404 for a namespace without instances; 400 for an id that none has. */
    tablesOf: (address: Address): readonly string[] => find(address).tables,
    /** Counts the records by table; 0 where there is no such instance. Errors: 503. */
    async counts(address: Address): Promise<Record<string, number>> {
      const { tables, instances } = find(address);
      const file = instances.get(address.instanceId, { create: false });
      if (file === null) return Object.fromEntries(tables.map((table) => [table, 0]));
      await file.ready();
      return Object.fromEntries(tables.map((table) => [table, file.rowCount(table)]));
    },
    /** Replaces the content of an instance, which is made if there is none. Errors: those of `InstanceFiles.replace`. */
    replace: (address: Address, database: string): Promise<void> =>
      find(address).instances.replace(address.instanceId, database),
  };
}

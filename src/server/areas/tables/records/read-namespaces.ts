import { join } from "node:path";
import type { NamespaceConfig } from "../../../config/types.ts";
import type { DatabaseFile, InstanceFiles } from "../../../db/index.ts";
import { AnsweredElsewhere } from "../../../db/readers/read-cut.ts";
import { compileNamespaces } from "../model/model.ts";
import { createShapeCache, createTable, type Namespace, type Table } from "./namespaces.ts";

/**
 * Opens the declared namespaces in a process that does not write: static files by `open`, where the process that writes has them
 * open, and instances that it has lent. `spoil` marks what is under way as unanswerable here.
 */
export function readNamespaces(deps: {
  databases: Readonly<Record<string, NamespaceConfig>>;
  /** Directory of `NAME.db`. */
  directory: string;
  open: (path: string) => DatabaseFile;
  /** Returns the file of an instance that is lent to this process; null: it is not. */
  instance: (namespace: string, instanceId: string, path: string) => DatabaseFile | null;
  spoil: () => never;
}): ReadonlyMap<string, Namespace> {
  const shapes = createShapeCache();
  const namespaces = new Map<string, Namespace>();
  const compiled = compileNamespaces(deps.databases);
  for (const [name, config] of Object.entries(deps.databases)) {
    const tables = new Map<string, Table>();
    for (const model of compiled.get(name)?.values() ?? []) tables.set(model.name, createTable(model, shapes));
    const namespace = { name, config, tables };
    const fileOf = (id: string) => deps.instance(name, id, join(deps.directory, name, `${id}.db`));
    if (config.instance === true)
      namespaces.set(name, { ...namespace, kind: "dynamic", instances: lentInstances(fileOf, deps) });
    else {
      const file = deps.open(join(deps.directory, `${name}.db`));
      namespaces.set(name, { ...namespace, kind: "static", file, keptTables: [] });
    }
  }
  return namespaces;
}

/** Returns instance files of which those can be read that are lent. Whether there is another one only the writer knows. */
const lentInstances = (
  fileOf: (instanceId: string) => DatabaseFile | null,
  { spoil }: { spoil: () => never },
): InstanceFiles => ({
  exists: (instanceId) => fileOf(instanceId) !== null || spoil(),
  ready: (instanceId) => (fileOf(instanceId) === null ? spoil() : undefined),
  get: (instanceId) => fileOf(instanceId) ?? spoil(),
  list: () => Promise.reject(new AnsweredElsewhere()),
  delete: () => Promise.reject(new AnsweredElsewhere()),
  replace: () => Promise.reject(new AnsweredElsewhere()),
  size: 0,
  openFiles: () => [],
  openIds: () => [],
  catchUp: () => Promise.reject(new AnsweredElsewhere()),
  lendable: () => null,
  peek: spoil,
  async close() {},
});

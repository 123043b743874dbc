import type { Clock } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { AppAccess } from "../../../config/app/index.ts";
import type { NamespaceConfig } from "../../../config/types.ts";
import type { Change, DatabaseFile } from "../../../db/index.ts";
import type { TableModel } from "../model/model.ts";
import type { Namespace } from "../records/namespaces.ts";
import { createEmbedding, type EmbeddedPlace, type EmbedQueue, hasEmbedding } from "./job.ts";

/** A file: a namespace, and its instance if it is dynamic. */
type Address = Omit<EmbeddedPlace, "table">;

/** Whether any table has records with vectors. */
export const embedsAny = (databases: Readonly<Record<string, NamespaceConfig>>): boolean =>
  Object.values(databases).some(({ tables = {} }) => Object.values(tables).some(({ embed }) => embed !== undefined));

/** The work of a config without vectors. */
const NOTHING = { announced() {}, opened() {}, begin() {}, stop() {} };

/** Keeps the vectors of all tables that declare them; does nothing where none does. `namespace` finds one that is open. */
export function createEmbeddings(deps: {
  databases: Readonly<Record<string, NamespaceConfig>>;
  namespace(name: string): Namespace | null;
  queue: EmbedQueue;
  app: () => AppAccess;
  clock: Clock;
  logger: Logger;
}) {
  const fileOf = (namespace: Namespace, instanceId: string | null): DatabaseFile | null => {
    if (namespace.kind === "static") return namespace.file;
    return instanceId === null ? null : namespace.instances.get(instanceId, { create: false });
  };
  if (!embedsAny(deps.databases)) return NOTHING;
  const embedding = createEmbedding({
    ...deps,
    find({ namespace: name, instanceId, table }) {
      const namespace = deps.namespace(name);
      const model = namespace?.tables.get(table)?.model;
      const file = namespace === null ? null : fileOf(namespace, instanceId);
      return model === undefined || file === null ? null : { model, file };
    },
  });
  const modelsIn = (namespace: Namespace | null): TableModel[] =>
    [...(namespace?.tables.values() ?? [])].map(({ model }) => model);
  const opened = (address: Address, file: DatabaseFile, models: readonly TableModel[]): void => {
    for (const model of models) if (hasEmbedding(model)) embedding.opened(address, file, model);
  };
  return {
    /** Called with changes that are on disk. */
    announced(address: Address, groups: readonly (readonly Change[])[]): void {
      const tables = deps.namespace(address.namespace)?.tables;
      for (const change of groups.flat()) {
        const model = tables?.get(change.table)?.model;
        if (model !== undefined && hasEmbedding(model)) embedding.announced(address, model, change);
      }
    },
    /** Called with the file of an instance that has been opened. */
    opened: (address: Address, file: DatabaseFile): void =>
      opened(address, file, modelsIn(deps.namespace(address.namespace))),
    /** Begins what waits in the files of static namespaces. */
    begin(namespaces: ReadonlyMap<string, Namespace>): void {
      for (const namespace of namespaces.values()) {
        if (namespace.kind !== "static") continue;
        const { name, file } = namespace;
        // One of 0.2 is rewritten before it can be read.
        const ready = file.ready();
        const look = (): void => opened({ namespace: name, instanceId: null }, file, modelsIn(namespace));
        if (ready === undefined) look();
        else
          ready.then(look, (cause: unknown) => deps.logger.error("tables: vectors wait", { namespace: name, cause }));
      }
    },
    stop: embedding.stop,
  };
}

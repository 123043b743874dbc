import type { Database } from "bun:sqlite";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { LRUCache } from "lru-cache";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { AccountMembers } from "../../../access/account-records.ts";
import type { NamespaceConfig } from "../../../config/types.ts";
import {
  type Change,
  createInstanceFiles,
  type DatabaseFile,
  type DeclaredOptions,
  type FormerDatetimes,
  holdsRecords,
  type InstanceFiles,
  instanceBounds,
  type OutboxOptions,
  openUpgraded,
  type StorageEngine,
} from "../../../db/index.ts";
import { trackingFiles } from "../files/tracking.ts";
import { SHAPE_LENGTH_MAX, SHAPES_LENGTH_MAX } from "../limits.ts";
import { BIRTH_COLUMN, compileNamespaces, declareTable, type TableModel } from "../model/model.ts";
import { createValidator, type Validator } from "../model/validation.ts";
import { countedNamespaces, createCreators } from "./creators.ts";
import { fillUsers } from "./fill-users.ts";
import { createTableStore, type TableStore } from "./store.ts";

export interface Table {
  model: TableModel;
  store: TableStore;
  validator: Validator;
  /** Statement cache of all tables. */
  shapes: ShapeCache;
  /** The table of users with all addresses, for reads of the server and of rules; null for other tables. */
  full: Table | null;
}

/** Returns a table and how it reads and checks records. */
export function createTable(model: TableModel, shapes: ShapeCache): Table {
  const full = model.full === null ? null : createTable(model.full, shapes);
  return { model, store: createTableStore(model), validator: createValidator(model), shapes, full };
}

/** Memoises a function of tables: it is called once per table. */
export function perTable<T>(make: (table: Table) => T): (table: Table) => T {
  const made = new WeakMap<Table, T>();
  return (table) => {
    const known = made.get(table);
    if (known !== undefined) return known;
    const value = make(table);
    made.set(table, value);
    return value;
  };
}

/** LRU cache of the requests' statements by shape, for all tables. */
export type ShapeCache = LRUCache<string, { made: object; length: number }>;

export const createShapeCache = (): ShapeCache =>
  new LRUCache({
    maxSize: SHAPES_LENGTH_MAX,
    maxEntrySize: SHAPE_LENGTH_MAX,
    sizeCalculation: ({ length }, key) => length + key.length,
  });

export type Namespace = {
  name: string;
  config: NamespaceConfig;
  tables: ReadonlyMap<string, Table>;
} & (
  | { kind: "static"; file: DatabaseFile; keptTables: readonly string[] }
  | { kind: "dynamic"; instances: InstanceFiles }
);

/** Returns the file of a static namespace once it can be read: one of 0.2 is rewritten first. Errors: 503. [TB685] */
export const readable = ({ file }: { file: DatabaseFile }): MaybePromise<DatabaseFile> =>
  chain(file.ready(), () => file);

/** Called with changes in order, as soon as they are committed. `instanceId` is null in a static namespace. */
export type TablesCommitListener = (
  address: { namespace: string; instanceId: string | null },
  groups: readonly (readonly Change[])[],
) => void;
/** Called with the same changes when they are on disk. `seqs`: the number of each group's first change. */
export type TablesChangeListener = (
  address: { namespace: string; instanceId: string | null },
  groups: readonly (readonly Change[])[],
  seqs: readonly number[],
) => void;

/** Called with an instance that was deleted or replaced, before requests to one of its id go on. */
export type InstanceListener = (address: { namespace: string; instanceId: string }) => void;

/** Returns the outbox options of a file of tables. `instanceId` is null in a static namespace. */
export type TablesOutbox = (address: { namespace: string; instanceId: string | null }) => OutboxOptions;

/** Opens static files and prepares dynamic ones. Errors: a declaration that would lose data; a damaged file. */
export function openNamespaces(deps: {
  databases: Readonly<Record<string, NamespaceConfig>>;
  engine: StorageEngine;
  /** Directory of `NAME.db` and `NAME/INSTANCE.db`. */
  directory: string;
  ids: Ids;
  logger: Logger;
  onChange: TablesChangeListener;
  onDelete: InstanceListener;
  /** Called when the content of an instance was replaced. */
  onReplace: InstanceListener;
  /** Called with changes before they are on disk, as soon as rules can see them. */
  onCommit: TablesCommitListener;
  /** Outbox of the files. Absent: changes trigger nothing. */
  outbox?: TablesOutbox | undefined;
  /** The file `system.db`, which counts the instances of users. */
  systemFile: DatabaseFile;
  /** Equal as long as constant rules show the same records of the tables, across restarts. */
  viewsKey: string;
  /** The accounts, to fill a new table of users with. */
  accounts: () => Iterable<AccountMembers>;
  /** Called with an opened file of an instance that refers to other files, as `InstanceFilesOptions.catchUp`. Absent: not at all. */
  catchUp?: (namespace: string, file: DatabaseFile) => Promise<void> | undefined;
  /** Called with an opened file of an instance whose records get vectors, before others use it. */
  onOpened?: (address: { namespace: string; instanceId: string }, file: DatabaseFile) => void;
}): ReadonlyMap<string, Namespace> {
  const namespaces = new Map<string, Namespace>();
  const counted = countedNamespaces(deps.systemFile);
  const shapes = createShapeCache();
  const dynamicCount = Object.values(deps.databases).filter(({ instance }) => instance === true).length;
  mkdirSync(deps.directory, { recursive: true });
  warnOfUndeclared(deps.directory, (name) => Object.hasOwn(deps.databases, name), deps.logger);
  const compiled = compileNamespaces(deps.databases);
  for (const [name, config] of Object.entries(deps.databases)) {
    refuseOtherKind(deps.directory, name, config);
    const models = compiled.get(name) ?? new Map<string, TableModel>();
    const tables = new Map<string, Table>();
    for (const model of models.values()) tables.set(model.name, createTable(model, shapes));
    const declared = [...models.values()].filter(({ view }) => view === null).map(declareTable);
    const outboxOf = (instanceId: string | null): OutboxOptions | undefined => {
      const place = { namespace: name, instanceId };
      return trackingFiles(deps.outbox?.(place), place, { models: models.values(), ids: deps.ids });
    };
    if (config.instance === true) {
      const directory = join(deps.directory, name);
      const { perInstance, instancesPerUser } = config.quota ?? {};
      const isFar = [...models.values()].some(({ far }) => far.length > 0);
      const isEmbedded = [...models.values()].some(({ embed }) => embed !== null);
      const opened = (file: DatabaseFile) => {
        if (isEmbedded) deps.onOpened?.({ namespace: name, instanceId: basename(file.path, ENDING) }, file);
        return isFar ? deps.catchUp?.(name, file) : undefined;
      };
      const isCounted = instancesPerUser !== undefined || counted.has(name);
      const creators = () =>
        createCreators({
          namespace: name,
          instancesPerUser,
          file: deps.systemFile,
          logger: deps.logger,
          pathOf: (instanceId) => join(directory, `${instanceId}.db`),
        });
      const instances = createInstanceFiles(deps.engine, {
        directory,
        quota: perInstance === undefined ? undefined : { name, bytesMax: perInstance },
        creations: isCounted ? creators() : undefined,
        bounds: instanceBounds(deps.engine.descriptorLimit, dynamicCount),
        declaration: { tables: declared, options: { namespace: name, rebuildTexts: "later" } },
        onChange: (instanceId, groups, seqs) => deps.onChange({ namespace: name, instanceId }, groups, seqs),
        onDelete: (instanceId) => deps.onDelete({ namespace: name, instanceId }),
        onReplace: (instanceId) => deps.onReplace({ namespace: name, instanceId }),
        onCommit: (instanceId, groups) => deps.onCommit({ namespace: name, instanceId }, groups),
        outbox: outboxOf,
        catchUp: isFar || isEmbedded ? opened : undefined,
        onFormer: (instanceId, former) => logFormer(deps.logger, former, instanceId),
        onUnfit: (instanceId, cause) =>
          deps.logger.error(`databases.${name}: an instance does not fit what is declared: its requests are 503`, {
            instanceId,
            cause,
          }),
      });
      namespaces.set(name, { name, config, tables, kind: "dynamic", instances });
    } else {
      const keptTables: string[] = [];
      const file = openUpgraded(deps.engine, join(deps.directory, `${name}.db`), {
        declaration: { tables: declared, options: { namespace: name } },
        ...firstOf(models, deps.accounts),
        onFormer: (former) => logFormer(deps.logger, former, null),
        onFailure: (cause) =>
          deps.logger.error(`databases.${name}: its datetimes could not be rewritten, and its requests are 503`, {
            cause,
          }),
        onChange: (groups, seqs) => deps.onChange({ namespace: name, instanceId: null }, groups, seqs),
        onCommit: (groups) => deps.onCommit({ namespace: name, instanceId: null }, groups),
        outbox: outboxOf(null),
        places: { key: deps.viewsKey, onKept: (names) => void keptTables.push(...names) },
      });
      namespaces.set(name, { name, config, tables, kind: "static", file, keptTables });
    }
  }
  return namespaces;
}

/** Logs which fields have datetimes that were not rewritten, and how many. */
function logFormer(logger: Logger, fields: readonly FormerDatetimes[], instanceId: string | null): void {
  const about = instanceId === null ? {} : { instanceId };
  for (const { path, unread, kept, keptIds } of fields) {
    const at = `databases.${path}`;
    if (unread > 0) logger.warn(`${at}: ${unread} datetimes have no offset and stay as they were`, about);
    if (kept === 0) continue;
    const ids = `${keptIds.join(", ")}${kept > keptIds.length ? ", …" : ""}`;
    logger.warn(
      `${at}: ${kept} datetimes break a constraint as UTC and stay as they were, in the records ${ids}`,
      about,
    );
  }
}

/** Fills a table of users that a file has not had, before its migrations. */
function firstOf(
  models: ReadonlyMap<string, TableModel>,
  accounts: () => Iterable<AccountMembers>,
): Pick<DeclaredOptions, "first"> {
  const users = [...models.values()].find(({ isUsers }) => isUsers);
  if (users === undefined) return {};
  const fill = (sqlite: Database): void => fillUsers(sqlite, users, accounts());
  return { first: { table: users.name, column: BIRTH_COLUMN, fill } };
}

const ENDING = ".db";
const isDatabase = (entry: string): boolean => entry.endsWith(ENDING);

/** Refuses a namespace that was declared with the other kind: its records are in another place and would not be found. */
export function refuseOtherKind(directory: string, name: string, { instance }: NamespaceConfig): void {
  const file = join(directory, name + ENDING);
  const folder = join(directory, name);
  if (instance === true && existsSync(file) && holdsRecords(file)) {
    throw new Error(
      `databases.${name}: it is declared with instance: true, but ${file} has the records of a namespace without it. ` +
        "Remove instance: true, or move that file out of the data directory",
    );
  }
  if (instance !== true && existsSync(folder) && readdirSync(folder).some(isDatabase)) {
    throw new Error(
      `databases.${name}: it is declared without instance: true, but ${folder} has the files of its instances. ` +
        "Declare instance: true again, or move that folder out of the data directory",
    );
  }
}

/** Logs files of namespaces that the config no longer declares. Their data is kept but cannot be reached. */
export function warnOfUndeclared(directory: string, isDeclared: (name: string) => boolean, logger: Logger): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const name = entry.isFile() && isDatabase(entry.name) ? entry.name.slice(0, -ENDING.length) : entry.name;
    if (!entry.isDirectory() && name === entry.name) continue;
    const path = join(directory, entry.name);
    if (isDeclared(name) || (entry.isDirectory() ? !readdirSync(path).some(isDatabase) : !holdsRecords(path))) continue;
    logger.warn(`databases.${name} is not declared. Its records stay in ${path}, but no request can reach them`);
  }
}

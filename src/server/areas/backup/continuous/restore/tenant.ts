import { Database } from "bun:sqlite";
import { createReadStream, existsSync, mkdirSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { syncDirectorySync } from "../../../../disk/directory-names.ts";
import { objectPath } from "../../layout.ts";
import { BackupError } from "../../types.ts";
import type { Archive } from "../format/archive.ts";
import type { StoredFile } from "../format/manifest.ts";
import { hashOfContent, pathOfContent } from "../ship/contents.ts";
import type { Store } from "../store/store.ts";
import { filesAt, requireNoGap, restoreDatabases } from "./databases.ts";
import { momentOf, rangeOf } from "./moment.ts";
import { checkDatabase, requireArchive, requireRoom, syncFile } from "./restore.ts";

/** The claim of a file of a record: the row of system.db that names its bytes. */
export interface FileClaim {
  fileId: string;
  bucket: string;
  size: number;
  ownerId: string | null;
  namespace: string;
  instanceId: string;
  storedAt: number;
  isPending: number;
}

export interface TenantMoment {
  store: Store;
  dataDirectory: string;
  /** Folder to which the database is restored. */
  scratch: string;
  namespace: string;
  instanceId: string;
  at: number;
  /** Tables whose records are counted. */
  tables: readonly string[];
  /** Whether the claims of the files of its records are wanted. */
  withFiles: boolean;
  signal: AbortSignal;
}

export interface RestoredTenant {
  /** The moment; the last one that is stored, if that is before `at`. */
  at: number;
  /** Records by table. */
  records: Record<string, number>;
  /** Path of the restored database. */
  database: string;
  /** Claims of the files of its records. */
  claims: FileClaim[];
}

/** Thrown when there is no such instance or moment. */
export class NoSuchMoment extends Error {}

/** Restores the database of one instance as of a moment into a scratch folder. Errors: NoSuchMoment; BackupError; those of the store. */
export async function restoreTenant(options: TenantMoment): Promise<RestoredTenant> {
  const { store, namespace, instanceId, scratch, tables, withFiles } = options;
  const archive = await requireArchive(store);
  const { file, place, at } = await fileOf(archive, `databases/${namespace}/${instanceId}`, options);
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const database = join(scratch, `${file.path}.db`);
  await restoreInto(archive, file, { ...options, place });
  const records = countRecords(database, tables);
  const ids = withFiles ? fileIdsIn(database) : [];
  const claims = ids.length === 0 ? [] : await claimsAt(archive, { ...options, place, ids });
  return { at, records, database, claims };
}

/** Finds the instance in a moment. Errors: NoSuchMoment. */
async function fileOf(
  archive: Archive,
  path: string,
  { store, at }: Pick<TenantMoment, "store" | "at">,
): Promise<{ file: StoredFile; place: number | null; at: number }> {
  const range = rangeOf(store, archive);
  const moment = await asked(() => momentOf(store, archive, at));
  const place = moment.isAfterLast ? null : moment.place;
  const file = filesAt(archive, place).find((one) => one.path === path);
  if (file === undefined) throw new NoSuchMoment(`There was no such instance at ${new Date(at).toISOString()}`);
  await asked(async () => requireNoGap(archive, [file], place));
  return { file, place, at: moment.isAfterLast ? Math.min(at, range.to) : at };
}

/** Names what the request has asked for as its fault. */
async function asked<T>(find: () => Promise<T>): Promise<T> {
  try {
    return await find();
  } catch (cause) {
    throw cause instanceof BackupError ? new NoSuchMoment(cause.message) : cause;
  }
}

async function restoreInto(
  archive: Archive,
  file: StoredFile,
  { store, scratch, place, signal }: Pick<TenantMoment, "store" | "scratch" | "signal"> & { place: number | null },
): Promise<void> {
  requireRoom(scratch, [file]);
  const onProgress = () => {};
  await restoreDatabases({ store, archive, files: [file], placeOf: () => place, folder: scratch, signal, onProgress });
  await checkDatabase(scratch, file.path, signal);
}

function countRecords(database: string, tables: readonly string[]): Record<string, number> {
  using sqlite = new Database(database, { readwrite: true, create: false });
  return Object.fromEntries(
    tables.map((table) => {
      if (!hasTable(sqlite, table)) return [table, 0];
      const name = `"${table.replaceAll('"', '""')}"`;
      return [table, sqlite.query<{ count: number }, []>(`SELECT count(*) AS count FROM ${name}`).get()?.count ?? 0];
    }),
  );
}

const hasTable = (sqlite: Database, table: string): boolean =>
  sqlite.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(table) !== null;

/** The table of a database in which the ids of its records' files are. */
const FILES_TABLE = "_platform_files";

function fileIdsIn(database: string): string[] {
  using sqlite = new Database(database, { readwrite: true, create: false });
  if (!hasTable(sqlite, FILES_TABLE)) return [];
  return sqlite
    .query<{ id: string }, []>(`SELECT id FROM "${FILES_TABLE}"`)
    .all()
    .map(({ id }) => id);
}

/** Reads the claims that system.db had of these files at that moment. */
async function claimsAt(
  archive: Archive,
  options: TenantMoment & { place: number | null; ids: readonly string[] },
): Promise<FileClaim[]> {
  const { namespace, instanceId, scratch, place } = options;
  const system = filesAt(archive, place).find(({ path }) => path === "system");
  if (system === undefined) return [];
  await restoreInto(archive, system, options);
  using sqlite = new Database(join(scratch, "system.db"), { readwrite: true, create: false });
  const ids = new Set(options.ids);
  return sqlite
    .query<FileClaim, [string, string]>("SELECT * FROM storage_claims WHERE namespace = ? AND instanceId = ?")
    .all(namespace, instanceId)
    .filter(({ fileId }) => ids.has(fileId));
}

/** Files of records whose bytes are wanted. */
export interface WantedContents extends Pick<TenantMoment, "store" | "dataDirectory" | "scratch" | "signal"> {
  fileIds: readonly string[];
}

/** Fetches the contents that the data directory lacks. Those that the store has no more, or never had, stay away. */
export async function fetchContents(options: WantedContents): Promise<void> {
  const { store, dataDirectory, scratch, fileIds, signal } = options;
  const paths = fileIds.map((fileId) => objectPath("objects", fileId));
  const wanted = new Set(paths.filter((path) => !existsSync(join(dataDirectory, path))));
  for (const folder of new Set([...wanted].map((path) => dirname(path)))) {
    for await (const { key } of store.list(`contents/${folder.slice("storage/".length)}/`)) {
      signal.throwIfAborted();
      const path = pathOfContent(key);
      if (!wanted.delete(path)) continue;
      const fetched = join(scratch, "content");
      if (!(await store.fetch(key, fetched))) continue;
      const hash = new Bun.CryptoHasher("sha256");
      for await (const chunk of createReadStream(fetched)) hash.update(chunk);
      if (hash.digest("hex") !== hashOfContent(key)) throw new BackupError(`${store.name} ${key} is damaged`);
      syncFile(fetched);
      const target = join(dataDirectory, path);
      mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
      renameSync(fetched, target);
      syncDirectorySync(dirname(target));
    }
  }
}

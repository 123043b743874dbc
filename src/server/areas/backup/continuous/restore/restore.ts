import { Database } from "bun:sqlite";
import {
  closeSync,
  createReadStream,
  existsSync,
  fdatasyncSync,
  mkdirSync,
  openSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { reasonOf } from "../../../../../kernel/errors.ts";
import { isEmptyFile } from "../../../../db/index.ts";
import { claimPlace, moveIn } from "../../archive/restore.ts";
import { objectPath, RESTORE_FOLDER, SECRETS_FILE, STORAGE_FOLDERS, STORED_TABLES, SYSTEM_FILE } from "../../layout.ts";
import { DAMAGES_SHOWN_MAX } from "../../limits.ts";
import { BackupError } from "../../types.ts";
import { type Archive, lastOf, loadArchive } from "../format/archive.ts";
import { type PlainVersion, plainKey, type StoredFile } from "../format/manifest.ts";
import { RESTORE_BATCH_BYTES } from "../limits.ts";
import { hashOfContent, pathOfContent } from "../ship/contents.ts";
import type { Store } from "../store/store.ts";
import { filesAt, requireNoGap, restoreDatabases } from "./databases.ts";
import { momentOf } from "./moment.ts";
import { RestoredFiles } from "./restored-files.ts";

export const DATABASES = "databases/";

export interface ContinuousRestore {
  store: Store;
  dataDirectory: string;
  /** null: the newest moment. */
  at: number | null;
  /** Paths without `.db`; empty: everything. */
  only: readonly string[];
  signal: AbortSignal;
  onProgress: (progress: RestoreProgress) => void;
}

export interface RestoreProgress {
  /** Bytes that were read, and that are read in all as far as is known. */
  bytes: number;
  bytesInAll: number;
  /** Number of databases. */
  files: number;
}

export interface ContinuousRestoreSummary {
  dataDirectory: string;
  fileCount: number;
  /** Whether the moment asked for is after the last that is stored. */
  isAfterLast: boolean;
  /** Time of the last commit in it. */
  asOf: number;
  /** Contents that were not in the store yet. */
  missing: string[];
  /** Number of contents that are stored elsewhere. */
  elsewhereCount: number;
  hasSecrets: boolean;
}

/**
 * Restores a moment into an empty or missing data directory. Until everything is compared and on disk, it is in RESTORE_FOLDER,
 * which prevents a server from starting. After a failure the directory is as it was; after a kill, the next restore of the same moment
 * takes over what is whole. Errors: BackupError.
 */
export async function restoreContinuous(options: ContinuousRestore): Promise<ContinuousRestoreSummary> {
  const { store, at, only, signal } = options;
  const dataDirectory = resolve(options.dataDirectory);
  const archive = await requireArchive(store);
  const moment = await momentOf(store, archive, at);
  const files = chosen(filesAt(archive, moment.place), archive, only);
  requireNoGap(archive, only.length === 0 ? null : files, moment.place);
  const place = claimPlace(dataDirectory, { keepsPartial: true });
  let isDone = false;
  let done: RestoredFiles | null = null;
  try {
    const last = lastOf(archive.manifest);
    const key = JSON.stringify([last, archive.manifest.incarnation, moment.place, files.map(({ id }) => id), only]);
    done = new RestoredFiles(join(dataDirectory, RESTORE_FOLDER), key);
    const { folder } = done;
    const progress: RestoreProgress = { bytes: 0, bytesInAll: 0, files: files.length };
    const onProgress = (some: number): void =>
      options.onProgress(Object.assign(progress, { bytes: progress.bytes + some }));
    const onPlanned = (some: number): void => void Object.assign(progress, { bytesInAll: progress.bytesInAll + some });
    const left = files.filter(({ path }) => done?.has(`${path}.db`) === false);
    requireRoom(folder, left);
    for (const batch of batchesOf(left)) {
      const of = { store, archive, files: batch, placeOf: () => moment.place, folder, signal };
      await restoreDatabases({ ...of, onProgress, onPlanned });
      for (const { path } of batch) await checkDatabase(folder, path, signal);
      done.add(batch.map(({ path }) => `${path}.db`));
    }
    const rest =
      only.length > 0
        ? { missing: [], elsewhereCount: 0, fileCount: 0 }
        : await restoreRest({ store, archive, done, place: moment.place, signal, onProgress, onPlanned });
    done.close();
    moveIn(folder, dataDirectory);
    isDone = true;
    return {
      dataDirectory,
      ...rest,
      fileCount: files.length + rest.fileCount,
      isAfterLast: moment.isAfterLast,
      asOf:
        at !== null && !moment.isAfterLast
          ? at
          : archive.manifest.segments.reduce((last, { to }) => Math.max(last, to), 0),
      hasSecrets: existsSync(join(dataDirectory, SECRETS_FILE)),
    };
  } finally {
    if (isDone) place.open();
    else {
      done?.close();
      place.giveBack();
    }
  }
}

function* batchesOf(files: readonly StoredFile[]): Generator<StoredFile[]> {
  let batch: StoredFile[] = [];
  let bytes = 0;
  for (const file of files) {
    const size = file.last.pages * file.pageBytes;
    if (batch.length > 0 && bytes + size > RESTORE_BATCH_BYTES) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(file);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** Reads what a store has. Errors: BackupError if it has no continuous backup. */
export async function requireArchive(store: Store): Promise<Archive> {
  const archive = await loadArchive(store);
  if (archive === null) throw new BackupError(`${store.name} has no continuous backup`);
  return archive;
}

/** Returns the files that were asked for. Errors: BackupError for a name that no file has. */
function chosen(files: readonly StoredFile[], { manifest }: Archive, only: readonly string[]): StoredFile[] {
  if (only.length === 0) return [...files];
  return [...new Set(only)].map((name) => {
    const paths = [name, DATABASES + name];
    const found = files.find(({ path }) => paths.includes(path));
    if (found !== undefined) return found;
    const isKnown = manifest.files.some(({ path }) => paths.includes(path));
    throw new BackupError(isKnown ? `${name} did not exist at that moment` : `There is no file ${name} in it`);
  });
}

export function requireRoom(folder: string, files: readonly StoredFile[]): void {
  const wanted = files.reduce((sum, { last, pageBytes }) => sum + last.pages * pageBytes, 0);
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= wanted) return;
  throw new BackupError(`The disk has ${bavail * bsize} bytes free, and the databases need ${wanted}`);
}

/** Checks a restored database, by its path without `.db`. Its next commit gets a number above all that were given: see the commit row. */
export async function checkDatabase(folder: string, path: string, signal: AbortSignal): Promise<void> {
  const file = join(folder, `${path}.db`);
  if (isEmptyFile(file)) return;
  try {
    using sqlite = new Database(file, { readwrite: true, create: false });
    const found = sqlite.query<{ integrity_check: string }, []>(`PRAGMA integrity_check(${DAMAGES_SHOWN_MAX})`).all();
    const damages = found.map((row) => row.integrity_check).filter((text) => text !== "ok");
    if (damages.length > 0) throw new BackupError(damages.join("; "));
  } catch (cause) {
    throw new BackupError(`${path} does not hold: ${reasonOf(cause)}`, { cause });
  }
  syncFile(file);
  // A check blocks this thread: a signal that arrived meanwhile is noticed here.
  await Bun.sleep(0);
  signal.throwIfAborted();
}

interface Rest {
  store: Store;
  archive: Archive;
  done: RestoredFiles;
  place: number | null;
  signal: AbortSignal;
  onProgress: (bytes: number) => void;
  onPlanned: (bytes: number) => void;
}

/** Restores what is no database: secrets, and the contents that system.db names. */
async function restoreRest(rest: Rest) {
  const { store, archive, done, place } = rest;
  const { folder } = done;
  let fileCount = 0;
  for (const { path, sha256 } of plainAt(archive.manifest.plain, place)) {
    const name = `${store.name} ${plainKey(sha256)}`;
    const bytes = await store.read(plainKey(sha256));
    if (bytes === null) throw new BackupError(`${name} is missing`);
    if (new Bun.CryptoHasher("sha256").update(bytes).digest("hex") !== sha256)
      throw new BackupError(`${name} is damaged`);
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, bytes, { mode: 0o600 });
    syncFile(file);
    fileCount++;
  }
  if (!existsSync(join(folder, SYSTEM_FILE)))
    throw new BackupError(`${store.name} has no ${SYSTEM_FILE} of that moment`);
  const contents = await restoreContents(rest);
  return { ...contents, fileCount: fileCount + contents.fileCount };
}

/** Returns the version of each plain file at a moment. */
export function plainAt(versions: readonly PlainVersion[], place: number | null): { path: string; sha256: string }[] {
  return [...Map.groupBy(versions, ({ path }) => path)].flatMap(([path, own]) => {
    const last = place === null ? own.at(-1) : own.findLast((version) => version.place <= place);
    // Secrets are needed for every moment, and are there from the first pass on.
    const version = last ?? (path === SECRETS_FILE ? own[0] : undefined);
    return version === undefined || version.sha256 === null ? [] : [{ path, sha256: version.sha256 }];
  });
}

async function restoreContents({ store, archive, done, signal, onProgress, onPlanned }: Rest) {
  const { folder } = done;
  const objects = new Map<string, { key: string; bytes: number }>();
  for await (const { key, bytes } of store.list("contents/")) objects.set(pathOfContent(key), { key, bytes });
  const pending = new Set(archive.manifest.missing);
  const missing: string[] = [];
  let [fileCount, elsewhereCount] = [0, 0];
  const named = namedContents(join(folder, SYSTEM_FILE));
  onPlanned([...named].reduce((sum, path) => sum + (objects.get(path)?.bytes ?? 0), 0));
  for (const path of named) {
    signal.throwIfAborted();
    const object = objects.get(path);
    if (object !== undefined) {
      if (!done.has(path)) await restoreContent(store, object.key, join(folder, path));
      done.add([path]);
      onProgress(object.bytes);
      fileCount++;
    } else if (pending.has(path)) missing.push(path);
    else elsewhereCount++;
  }
  return { missing, elsewhereCount, fileCount };
}

async function restoreContent(store: Store, key: string, file: string): Promise<void> {
  if (!(await store.fetch(key, file))) throw new BackupError(`${store.name} ${key} is missing`);
  const hash = new Bun.CryptoHasher("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk);
  if (hash.digest("hex") !== hashOfContent(key)) throw new BackupError(`${store.name} ${key} is damaged`);
  syncFile(file);
}

/** Returns the paths of all contents that a system.db names. */
export function namedContents(systemPath: string): Set<string> {
  using sqlite = new Database(systemPath, { readwrite: true, create: false });
  const paths = new Set<string>();
  for (const folder of STORAGE_FOLDERS) {
    for (const table of STORED_TABLES[folder]) {
      if (sqlite.query("SELECT 1 FROM sqlite_schema WHERE name = ?").get(table) === null) continue;
      for (const { fileId } of sqlite.query<{ fileId: string }, []>(`SELECT fileId FROM ${table}`).iterate()) {
        paths.add(objectPath(folder, fileId));
      }
    }
  }
  return paths;
}

export function syncFile(path: string): void {
  const descriptor = openSync(path, "r+");
  try {
    fdatasyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

import { Database } from "bun:sqlite";
import { createWriteStream, existsSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Clock } from "../../../../kernel/clock.ts";
import { isMissing, reasonOf } from "../../../../kernel/errors.ts";
import { VERSION } from "../../../../kernel/version.ts";
import { holdRemovals, isEmptyFile } from "../../../db/index.ts";
import { syncDirectorySync } from "../../../disk/directory-names.ts";
import { reopenJobs } from "../../../jobs/reopening.ts";
import { AUDIT_FILE, JOBS_FILE, SYSTEM_FILE, scanFiles } from "../layout.ts";
import { NAMES_SHOWN_MAX } from "../limits.ts";
import { type ArchiveHeader, BackupError, type BackupSummary, type FileFacts } from "../types.ts";
import { claimWorkFolder, requireWhole, type WorkFolder } from "../work-folder.ts";
import { ARCHIVE_VERSION, type ArchiveWriter, createArchive, HEADER_ENTRY, MANIFEST_ENTRY } from "./archive.ts";
import { createFactsStore, type FactsStore } from "./facts-store.ts";
import { addSystem } from "./objects.ts";
import { snapshotDatabase } from "./snapshot.ts";

interface BackupOptions {
  dataDirectory: string;
  /** Path of the archive, which gets this name once it is complete, and then replaces an existing file. */
  file: string;
  /** Called with the complete archive before the rename; an exception prevents the rename. */
  check?: (archivePath: string) => Promise<void>;
  clock: Clock;
  signal: AbortSignal;
}

/**
 * Copies a data directory, with or without a running server, into one file, with every write that was acknowledged before the
 * call. Needs space beside `file` for the archive and the largest database, and blocks this thread while it copies a database.
 * Errors: BackupError; those of the file system; the reason of `signal`. Rules: SPEC.md.
 */
export async function createBackup(options: BackupOptions): Promise<BackupSummary> {
  const { clock, signal } = options;
  const file = resolve(options.file);
  const dataDirectory = resolve(options.dataDirectory);
  requirePlaces(dataDirectory, file);
  const time = new Date(clock.now());
  const work = claimWorkFolder(`${file}.partial`);
  const hold = holdRemovals(dataDirectory);
  try {
    const archivePath = work.pathOf("archive");
    const archive = createArchive(archivePath, { time, signal });
    try {
      const content = await fill({ ...options, dataDirectory, time, work, archive });
      await archive.finish();
      await options.check?.(archivePath);
      signal.throwIfAborted();
      renameSync(archivePath, file);
      syncDirectorySync(dirname(file));
      return { file, createdAt: time.toISOString(), ...content, sizeBytes: statSync(file).size };
    } catch (cause) {
      await archive.abort();
      throw cause;
    }
  } finally {
    hold.release();
    work.remove();
  }
}

function requirePlaces(dataDirectory: string, file: string): void {
  if (!existsSync(dataDirectory)) throw new BackupError(`There is no data directory at ${dataDirectory}`);
  requireWhole(dataDirectory);
  if (!existsSync(join(dataDirectory, SYSTEM_FILE))) {
    throw new BackupError(`${dataDirectory} is not a data directory: it has no ${SYSTEM_FILE}`);
  }
  if (!existsSync(dirname(file))) throw new BackupError(`There is no folder ${dirname(file)} to write the backup to`);
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined || found.isFile()) return;
  // The backup would take its place: as root also that of /dev/null.
  throw new BackupError(`${file} is ${found.isDirectory() ? "a folder" : "a device or a pipe"}, and not a file`);
}

interface Filling extends BackupOptions {
  time: Date;
  work: WorkFolder;
  archive: ArchiveWriter;
}

type Content = Omit<BackupSummary, "file" | "createdAt" | "sizeBytes">;

async function fill(filling: Filling): Promise<Content> {
  const { archive, work, time, signal, dataDirectory } = filling;
  const header: ArchiveHeader = {
    format: "platform-backup",
    version: ARCHIVE_VERSION,
    platform: VERSION,
    createdAt: time.toISOString(),
  };
  await archive.addText(HEADER_ENTRY, `${JSON.stringify(header)}\n`);
  const factsPath = work.pathOf("facts.db");
  const facts = createFactsStore(factsPath);
  try {
    // What takes longest comes first, so that the databases are copied shortly after one another.
    await addObjects(filling, facts);
    const strangers = await addOthers(filling, facts);
    const elsewhereCount = await addSystem({ dataDirectory, work, archive, facts, factsPath, signal });
    await addJobs(filling, facts);
    await addAudit(filling, facts);
    const manifestPath = work.pathOf("manifest");
    await writeManifest(manifestPath, facts.all());
    await archive.addFile(MANIFEST_ENTRY, manifestPath);
    return { ...facts.totals(), elsewhereCount, ...strangers };
  } finally {
    facts.close();
  }
}

/** Adds the contents of stored files that exist now. One removed meanwhile is not needed: its record is gone too. */
async function addObjects({ dataDirectory, archive, signal }: Filling, facts: FactsStore): Promise<void> {
  for (const { path, kind } of scanFiles(dataDirectory, "storage")) {
    signal.throwIfAborted();
    if (kind === "object") await addPresent(archive, facts, { path, source: join(dataDirectory, path) });
  }
}

type Strangers = Pick<BackupSummary, "strangers" | "strangerCount">;

/** Adds databases and plain files except for system.db. Resolves to the files that do not belong to the server. */
async function addOthers({ dataDirectory, archive, work, signal }: Filling, facts: FactsStore): Promise<Strangers> {
  const strangers: string[] = [];
  let strangerCount = 0;
  const snapshotPath = work.pathOf("snapshot.db");
  for (const { path, kind } of scanFiles(dataDirectory)) {
    signal.throwIfAborted();
    const source = join(dataDirectory, path);
    if (kind === "plain") await addPresent(archive, facts, { path, source });
    if (kind === "stranger" && strangerCount++ < NAMES_SHOWN_MAX) strangers.push(path);
    if (kind === "database" && path !== SYSTEM_FILE && path !== JOBS_FILE && path !== AUDIT_FILE) {
      await addDatabase(archive, facts, { path, source, snapshotPath });
    }
  }
  return { strangers, strangerCount };
}

interface DatabaseCopy {
  /** Path in the archive. */
  path: string;
  source: string;
  snapshotPath: string;
  /** Changes the copy before it is added. */
  prepare?: (copyPath: string) => void;
}

async function addDatabase(
  archive: ArchiveWriter,
  facts: FactsStore,
  { path, source, snapshotPath, prepare }: DatabaseCopy,
): Promise<void> {
  try {
    await snapshotDatabase(source, snapshotPath);
    // One of 0 bytes has nothing to change. [BK7]
    if (!isEmptyFile(snapshotPath)) prepare?.(snapshotPath);
  } catch (cause) {
    // An instance that was deleted meanwhile.
    if (!existsSync(source)) return rmSync(snapshotPath, { force: true });
    const reason = reasonOf(cause);
    throw new BackupError(`${source} cannot be copied: ${reason}`, { cause });
  }
  facts.add(await archive.addFile(path, snapshotPath));
  rmSync(snapshotPath);
}

/**
 * Adds the audit log. Must run after the databases whose entries it takes: entries that an earlier copy lacks may have been
 * deleted from the others by then. [AL2]
 */
async function addAudit({ archive, work, dataDirectory }: Filling, facts: FactsStore): Promise<void> {
  const source = join(dataDirectory, AUDIT_FILE);
  if (!existsSync(source)) return;
  await addDatabase(archive, facts, { path: AUDIT_FILE, source, snapshotPath: work.pathOf("snapshot.db") });
}

/**
 * Adds jobs.db. Must run after all other databases: jobs that their transactions have noted move to jobs.db after the
 * commit, so an earlier copy could lack what the others no longer have. Duplicates are recognised by id. Jobs that were
 * done meanwhile wait in the copy: the other databases may have been copied before them. [BK202]
 */
async function addJobs({ dataDirectory, archive, work, time }: Filling, facts: FactsStore): Promise<void> {
  const source = join(dataDirectory, JOBS_FILE);
  if (!existsSync(source)) return;
  const since = time.getTime();
  const prepare = (copyPath: string): void => {
    const copy = new Database(copyPath);
    try {
      reopenJobs(copy, since);
    } finally {
      copy.close();
    }
  };
  await addDatabase(archive, facts, { path: JOBS_FILE, source, snapshotPath: work.pathOf("snapshot.db"), prepare });
}

async function addPresent(archive: ArchiveWriter, facts: FactsStore, file: { path: string; source: string }) {
  try {
    facts.add(await archive.addFile(file.path, file.source));
  } catch (cause) {
    if (!isMissing(cause)) throw cause;
  }
}

/** Writes the manifest to a file first, because an entry of the archive begins with its size. */
async function writeManifest(path: string, files: Iterable<FileFacts>): Promise<void> {
  await pipeline(function* () {
    for (const facts of files) yield `${JSON.stringify(facts)}\n`;
  }, createWriteStream(path));
}

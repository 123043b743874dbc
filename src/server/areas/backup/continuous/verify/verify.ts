import { closeSync, existsSync, mkdirSync, openSync, readSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../../../kernel/clock.ts";
import { CONTINUOUS_FOLDER, SYSTEM_FILE } from "../../layout.ts";
import { DAMAGES_SHOWN_MAX } from "../../limits.ts";
import { BackupError } from "../../types.ts";
import type { Archive } from "../format/archive.ts";
import { plainKey, type StoredFile } from "../format/manifest.ts";
import { hashText } from "../format/pages.ts";
import { VERIFY_BATCH_BYTES, VERIFY_POLL_MS, VERIFY_ROUNDS, VERIFY_WAIT_MS } from "../limits.ts";
import { type RestoredDatabase, restoreDatabases } from "../restore/databases.ts";
import { checkDatabase, namedContents, plainAt, requireArchive, requireRoom } from "../restore/restore.ts";
import { pathOfContent } from "../ship/contents.ts";
import type { Store } from "../store/store.ts";
import { freePagesOf } from "./free-pages.ts";
import { databasesOf, type LiveState, readLive } from "./live-state.ts";

export interface Verification {
  store: Store;
  dataDirectory: string;
  clock: Clock;
  signal: AbortSignal;
}

export interface Verified {
  databases: number;
  bytes: number;
  /** Databases that were changed again in each interval, so that the store never had the state that was read. */
  skipped: string[];
}

/**
 * Compares what is stored with what the server has: reads each database as of one commit, waits until the store has it, restores that
 * state into a scratch folder, which checks chain and checksums, and compares it page by page, those of the free list excepted. Several
 * at a time are restored, as far as the folder takes. Files in buckets have to be in the store, and are not read. Errors: BackupError
 * with what was found.
 */
export async function verifyContinuous(options: Verification): Promise<Verified> {
  const { dataDirectory, signal } = options;
  const scratch = join(dataDirectory, CONTINUOUS_FOLDER, "verify");
  rmSync(scratch, { recursive: true, force: true });
  const problems: string[] = [];
  const done: Verified = { databases: 0, bytes: 0, skipped: [] };
  try {
    let paths = [...databasesOf(dataDirectory)];
    for (let round = 0; round < VERIFY_ROUNDS && paths.length > 0; round++) {
      const states = readAll(dataDirectory, paths, signal);
      const archive = await untilStored(states, options);
      const again: string[] = [];
      for (const batch of batchesOf(states, archive)) {
        const found = await compareBatch(batch, { ...options, archive, scratch });
        problems.push(...found.problems);
        again.push(...found.again);
        done.databases += batch.length - found.again.length;
        done.bytes += found.bytes;
      }
      if (round === 0) problems.push(...(await plainProblems(options.store, archive)));
      paths = again;
    }
    done.skipped = paths;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  if (problems.length === 0) return done;
  const more = problems.length > DAMAGES_SHOWN_MAX ? ["…"] : [];
  throw new BackupError([...problems.slice(0, DAMAGES_SHOWN_MAX), ...more].join("; "));
}

function readAll(dataDirectory: string, paths: readonly string[], signal: AbortSignal): LiveState[] {
  return paths.flatMap((path) => {
    signal.throwIfAborted();
    return readLive(dataDirectory, path) ?? [];
  });
}

/** Waits until the store has the commits that were read. Files that have been removed meanwhile need not be there. */
async function untilStored(states: readonly LiveState[], options: Verification): Promise<Archive> {
  const { store, dataDirectory, clock, signal } = options;
  const until = clock.now() + VERIFY_WAIT_MS;
  for (;;) {
    const archive = await requireArchive(store);
    const missing = states.find(({ id, path, place }) => {
      const stored = archive.byId(id);
      const isStored = stored !== undefined && stored.fulls.length > 0 && stored.last.place >= place;
      return !isStored && existsSync(join(dataDirectory, `${path}.db`));
    });
    if (missing === undefined) return archive;
    if (clock.now() > until) throw new BackupError(`the store lacks commit ${missing.number} of ${missing.path}`);
    await Bun.sleep(VERIFY_POLL_MS);
    signal.throwIfAborted();
  }
}

/** A database as it was read, and the file of the store that has to have the same content. */
interface Pair {
  live: LiveState;
  stored: StoredFile;
}

function* batchesOf(states: readonly LiveState[], archive: Archive): Generator<Pair[]> {
  let batch: Pair[] = [];
  let bytes = 0;
  for (const live of states) {
    const stored = archive.byId(live.id);
    // Removed, or replaced by another file.
    if (stored === undefined || stored.last.place < live.place || stored.path !== live.path) continue;
    const size = live.hashes.count * live.hashes.pageBytes;
    if (batch.length > 0 && bytes + size > VERIFY_BATCH_BYTES) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push({ live, stored });
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

async function compareBatch(
  batch: readonly Pair[],
  { store, archive, dataDirectory, scratch, signal }: Verification & { archive: Archive; scratch: string },
): Promise<{ problems: string[]; again: string[]; bytes: number }> {
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const files = batch.map(({ stored }) => stored);
  requireRoom(scratch, files);
  const liveOf = new Map(batch.map(({ live, stored }) => [stored, live]));
  const restored = await restoreDatabases({
    store,
    archive,
    files,
    folder: scratch,
    signal,
    placeOf: (file) => liveOf.get(file)?.place ?? null,
    onProgress: () => {},
  });
  const [problems, again]: string[][] = [[], []];
  let bytes = 0;
  for (const one of restored) {
    const live = liveOf.get(one.file);
    if (live === undefined) continue;
    bytes += one.hashes.count * one.hashes.pageBytes;
    // One with an open mark, or whose commits were not captured, has states without an entry.
    if (one.number !== live.number) again?.push(live.path);
    else problems?.push(...differencesOf(one, live));
    await checkDatabase(scratch, live.path, signal);
    if (`${live.path}.db` === SYSTEM_FILE) {
      problems?.push(...(await contentProblems(store, { archive, dataDirectory, system: one.path })));
    }
  }
  rmSync(scratch, { recursive: true, force: true });
  return { problems: problems ?? [], again: again ?? [], bytes };
}

/** Names the pages in which a restored database differs from the live one at the same commit. */
function differencesOf({ path, hashes }: RestoredDatabase, live: LiveState): string[] {
  const { count, pageBytes } = hashes;
  if (count !== live.hashes.count) return [`${live.path} has ${live.hashes.count} pages, and ${count} in the store`];
  if (hashes.checksum === live.hashes.checksum) return [];
  const free = freePages(path, { count, pageBytes });
  const pages: number[] = [];
  for (let page = 1; page <= count; page++) {
    if (!free.has(page) && hashText(hashes.get(page)) !== hashText(live.hashes.get(page))) pages.push(page);
  }
  if (pages.length === 0) return [];
  const shown = pages.slice(0, DAMAGES_SHOWN_MAX).join(", ");
  return [`${live.path} differs from the store at commit ${live.number}: ${pages.length} pages (${shown})`];
}

function freePages(path: string, { count, pageBytes }: { count: number; pageBytes: number }): Set<number> {
  const descriptor = openSync(path, "r");
  try {
    return freePagesOf(count, (page) => {
      const bytes = new Uint8Array(pageBytes);
      readSync(descriptor, bytes, 0, pageBytes, (page - 1) * pageBytes);
      return bytes;
    });
  } finally {
    closeSync(descriptor);
  }
}

/** Names contents of buckets that the server has and the store lacks, or has with another size. */
async function contentProblems(
  store: Store,
  { archive, dataDirectory, system }: { archive: Archive; dataDirectory: string; system: string },
): Promise<string[]> {
  const sizes = new Map<string, number>();
  for await (const { key, bytes } of store.list("contents/")) sizes.set(pathOfContent(key), bytes);
  const pending = new Set(archive.manifest.missing);
  return [...namedContents(system)].flatMap((path) => {
    const local = statSync(join(dataDirectory, path), { throwIfNoEntry: false })?.size;
    // Removed meanwhile, or stored elsewhere by its bucket.
    if (local === undefined || pending.has(path) || sizes.get(path) === local) return [];
    return [sizes.has(path) ? `${path} has another size in the store` : `the store lacks ${path}`];
  });
}

/** Names files that are no databases and that the store lacks, or has with another content. */
async function plainProblems(store: Store, { manifest }: Archive): Promise<string[]> {
  const problems: string[] = [];
  for (const { path, sha256 } of plainAt(manifest.plain, null)) {
    const bytes = await store.read(plainKey(sha256));
    if (bytes === null) problems.push(`the store lacks ${path}`);
    else if (new Bun.CryptoHasher("sha256").update(bytes).digest("hex") !== sha256) problems.push(`${path} is damaged`);
  }
  return problems;
}

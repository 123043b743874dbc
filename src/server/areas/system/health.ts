import { statSync } from "node:fs";
import { stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../../kernel/clock.ts";
import type { HealthChecks } from "../../../kernel/observing/health.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import { type LastSync, SYSTEM_FILE } from "../../db/index.ts";
import { DISK_FREE_MIN_BYTES, FILE_SIZES_KEPT_MS, FILES_PER_TURN, JOB_OVERDUE_MS } from "./limits.ts";

/** Sources of the health checks. */
export interface Watched {
  dataDirectory: string;
  engine: { readonly load: { openFiles: number; failedFiles: number }; readonly lastSync: LastSync; paths(): string[] };
  jobs: () => readonly { waiting: number; failedTotal: number; oldestWaitingSeconds: number }[];
}

/** Adds the checks of disk, databases and jobs. The databases must be open. */
export function addChecks(checks: HealthChecks, clock: Clock, { dataDirectory, engine, jobs }: Watched): void {
  const fileSizes = createFileSizes({ clock, paths: () => engine.paths() });
  const systemFile = join(dataDirectory, SYSTEM_FILE);
  const opened = identityOf(statSync(systemFile, { throwIfNoEntry: false }));
  // If the directory was moved, removed or mounted over, writes to its open files are lost with the process, or end up elsewhere.
  const isInPlace = async (): Promise<boolean> => identityOf(await stat(systemFile).catch(() => undefined)) === opened;
  checks.add(
    "disk",
    async () => {
      const freeBytes = await freeBytesOf(dataDirectory);
      return { ok: freeBytes >= DISK_FREE_MIN_BYTES, freeBytes };
    },
    { isVital: true },
  );
  checks.add("sync", () => {
    const { at, durationMs } = engine.lastSync;
    return { ok: engine.load.failedFiles === 0, lastAt: isoTime(at), lastMs: durationMs };
  });
  checks.add(
    "files",
    async () => {
      const { openFiles, failedFiles } = engine.load;
      const inPlace = await isInPlace();
      return {
        ok: failedFiles === 0 && inPlace,
        count: openFiles,
        ...(await fileSizes()),
        failed: failedFiles,
        inPlace,
      };
    },
    { isVital: true },
  );
  checks.add("jobs", () => {
    const load = jobs();
    const sum = (figure: "waiting" | "failedTotal") => load.reduce((total, one) => total + one[figure], 0);
    const isOverdue = load.some((one) => one.oldestWaitingSeconds * SECOND_MS > JOB_OVERDUE_MS);
    return { ok: !isOverdue, waiting: sum("waiting"), failed: sum("failedTotal") };
  });
}

/** Adds the numbers of sockets, which are informative and never fail. */
export function addLoad(checks: HealthChecks, load: () => { realtimeSockets: number; roomSockets: number }): void {
  checks.add("sockets", () => {
    const { realtimeSockets, roomSockets } = load();
    return { ok: true, realtime: realtimeSockets, rooms: roomSockets };
  });
  checks.add("memory", () => ({ ok: true, residentBytes: process.memoryUsage.rss() }));
}

/** Returns the free bytes of the directory's disk for an unprivileged account. */
async function freeBytesOf(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** Returns device and inode of a file; null if there is no file. */
const identityOf = (file: { dev: number; ino: number } | undefined): string | null =>
  file === undefined ? null : `${file.dev} ${file.ino}`;

const isoTime = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

interface FileSizes {
  /** Bytes of the database files and their WALs together. */
  bytes: number;
  walBytes: number;
}

/** Creates a function that measures the open database files, off the event loop. Sizes are cached for FILE_SIZES_KEPT_MS. */
function createFileSizes(deps: { clock: Clock; paths: () => string[] }): () => Promise<FileSizes> {
  const { clock, paths } = deps;
  let kept: { at: number; sizes: Promise<FileSizes> } | null = null;
  return () => {
    const now = clock.now();
    if (kept === null || Math.abs(now - kept.at) >= FILE_SIZES_KEPT_MS) kept = { at: now, sizes: measure(paths()) };
    return kept.sizes;
  };
}

async function measure(paths: readonly string[]): Promise<FileSizes> {
  const sizes: FileSizes = { bytes: 0, walBytes: 0 };
  for (let at = 0; at < paths.length; at += FILES_PER_TURN) {
    const some = paths.slice(at, at + FILES_PER_TURN);
    const [files, wals] = await Promise.all([sum(some), sum(some.map((path) => `${path}-wal`))]);
    sizes.bytes += files + wals;
    sizes.walBytes += wals;
  }
  return sizes;
}

/** Sums the sizes of files. One that has been closed and removed meanwhile counts as empty. */
async function sum(paths: readonly string[]): Promise<number> {
  const sizes = await Promise.all(
    paths.map((path) =>
      stat(path).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((total, size) => total + size, 0);
}

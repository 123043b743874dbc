import { statfs } from "node:fs/promises";
import type { LastSync } from "../../db/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { HealthChecks } from "../../kernel/observing/health.ts";
import { SECOND_MS } from "../../kernel/time/duration.ts";
import { DISK_FREE_MIN_BYTES, JOB_OVERDUE_MS } from "../limits.ts";
import { createFileSizes } from "./file-sizes.ts";

/** What the checks look at. */
export interface Watched {
  dataDirectory: string;
  engine: { readonly load: { openFiles: number; failedFiles: number }; readonly lastSync: LastSync; paths(): string[] };
  jobs: () => readonly { waiting: number; failedTotal: number; oldestWaitingSeconds: number }[];
}

/** The checks of disk, databases and jobs. */
export function addChecks(checks: HealthChecks, clock: Clock, { dataDirectory, engine, jobs }: Watched): void {
  const fileSizes = createFileSizes({ clock, paths: () => engine.paths() });
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
      return { ok: failedFiles === 0, count: openFiles, ...(await fileSizes()), failed: failedFiles };
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

/** Figures that are never wrong by themselves. */
export function addLoad(checks: HealthChecks, load: () => { realtimeSockets: number; roomSockets: number }): void {
  checks.add("sockets", () => {
    const { realtimeSockets, roomSockets } = load();
    return { ok: true, realtime: realtimeSockets, rooms: roomSockets };
  });
  checks.add("memory", () => ({ ok: true, residentBytes: process.memoryUsage.rss() }));
}

/** What an account without privileges may still write. */
export async function freeBytesOf(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

const isoTime = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

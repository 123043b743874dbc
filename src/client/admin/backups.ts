import type { Runtime } from "../runtime.ts";
import { pause } from "../runtime.ts";
import { localError, networkError } from "../transport/errors.ts";
import type { Transport } from "../transport/types.ts";

export interface Backup {
  name: string;
  createdAt: string;
  /** Size in bytes. */
  size: number;
  /** Time of the last successful verification; null: unknown. */
  verifiedAt: string | null;
  /** Verification failed when the backup was made. The backup is kept all the same. */
  failed: boolean;
}

/** Creation or verification of a backup since the server started. */
export interface BackupRun {
  id: string;
  action: "create" | "verify";
  /** Name of the backup; null until it has one. */
  backup: string | null;
  state: "waiting" | "running" | "done" | "failed";
  startedAt: string | null;
  endedAt: string | null;
  /** Cause of the failure; for a verification, every problem found. */
  error: string | null;
  files: number | null;
  contentBytes: number | null;
  /** Number of databases checked; null: the backup was not verified. */
  databases: number | null;
}

export interface BackupList {
  /** Human-readable description of where backups are stored. */
  place: string;
  /** Cron schedule; null without one. */
  schedule: string | null;
  /** Number of newest backups that are kept. */
  keep: number;
  /** Backups, newest first. */
  backups: Backup[];
  /** Runs, newest first. */
  runs: BackupRun[];
}

export interface AdminBackups {
  list(): Promise<BackupList>;
  /**
   * Makes a backup, and resolves when it is stored. Aborting `signal` ends only the wait. Errors: `conflict` while another backup
   * is made or verified, `unavailable` in a drill, `internal` on failure.
   */
  create(options?: { signal?: AbortSignal }): Promise<BackupRun & { backup: string }>;
  /**
   * Restores a backup into a scratch folder and checks everything. `state` is `done` on success, else `failed`. Errors: as
   * `create`.
   */
  verify(name: string, options?: { signal?: AbortSignal }): Promise<BackupRun>;
  /** Returns an address from which a browser can download the backup, once, within a minute. */
  link(name: string): Promise<string>;
  /** Streams the bytes of a backup. Errors: `not_found`. */
  download(name: string, options?: { signal?: AbortSignal }): Promise<ReadableStream<Uint8Array>>;
}

/** Interval between polls for the end of a run. */
const RUN_POLL_MS = 500;

const BACKUPS = "/api/admin/backups";
const pathOf = (name: string): string => `${BACKUPS}/${encodeURIComponent(name)}`;

export function createBackups({ request, url }: Transport, runtime: Runtime): AdminBackups {
  const finished = async (begun: BackupRun, signal: AbortSignal | undefined): Promise<BackupRun> => {
    let run = begun;
    while (run.state === "waiting" || run.state === "running") {
      await pause(runtime, RUN_POLL_MS, signal);
      run = await request<BackupRun>("GET", `${BACKUPS}/runs/${run.id}`, { signal });
    }
    return run;
  };
  return {
    list: () => request<BackupList>("GET", BACKUPS),
    async create({ signal } = {}) {
      const run = await finished(await request<BackupRun>("POST", BACKUPS, { signal }), signal);
      if (run.state === "done" && run.backup !== null) return { ...run, backup: run.backup };
      throw localError("internal", run.error ?? "The backup has failed");
    },
    verify: async (name, { signal } = {}) =>
      finished(await request<BackupRun>("POST", `${pathOf(name)}/verify`, { signal }), signal),
    async link(name) {
      const { path } = await request<{ path: string }>("POST", `${pathOf(name)}/link`);
      return url(path);
    },
    async download(name, { signal } = {}) {
      const path = pathOf(name);
      const { body } = await request<Response>("GET", path, { signal, raw: true });
      if (body === null) throw networkError(url(path), null);
      return body;
    },
  };
}

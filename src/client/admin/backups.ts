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
  /** Whether there is a continuous backup as well; false in a drill. */
  continuous: boolean;
  /** Backups, newest first. */
  backups: Backup[];
  /** Runs, newest first. */
  runs: BackupRun[];
}

/** Moments that can be restored. Times are ISO 8601. */
export interface BackupHistory {
  /** Times in which there are moments, oldest first: one for all files; of one, each time that it was made. */
  spans: { from: string; to: string }[];
  /** Times in them of which moments are missing: the newest 100, oldest first. */
  gaps: { from: string; to: string; file: string; reason: "full" | "store_ahead" | "replaced" | "unread" }[];
  /** Full copies by minute: the newest 200, oldest first. */
  copies: { at: string; files: number; bytes: number }[];
  /** Number of databases that are not removed. */
  files: number;
  /** Bytes of all copies and entries. */
  bytes: number;
}

/** State of the continuous backup. */
export interface ContinuousBackup {
  /** Human-readable description of where it is stored. */
  place: string;
  everyMs: number;
  keepDays: number;
  ok: boolean;
  /** Age of the oldest commit or content that is not in the store; 0: all are. */
  lagMs: number;
  lagBytes: number;
  /** Time at which everything was last brought to the store; null: not since the start. */
  lastAt: string | null;
  verifiedAt: string | null;
  /** Whether the last verification succeeded; null: there was none. */
  verified: boolean | null;
  /** A problem, or why there is no history. */
  message: string | null;
  /** Moments that can be restored; null: the place cannot be read, or the first copies are not complete. */
  history: BackupHistory | null;
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
  /**
   * Returns how far the continuous backup is, and what can be restored; `file`: of one database, such as `workspaces/w42`. Errors:
   * `not_found` without a continuous backup and for an unknown file, `unavailable` in a drill.
   */
  continuous(options?: { file?: string }): Promise<ContinuousBackup>;
  /** Begins a verification of the continuous backup. Errors: as `continuous`; `conflict` while one runs. */
  verifyContinuous(): Promise<void>;
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
    continuous: (options = {}) => request<ContinuousBackup>("GET", `${BACKUPS}/continuous`, { query: { ...options } }),
    async verifyContinuous() {
      await request("POST", `${BACKUPS}/continuous/verify`);
    },
    async download(name, { signal } = {}) {
      const path = pathOf(name);
      const { body } = await request<Response>("GET", path, { signal, raw: true });
      if (body === null) throw networkError(url(path), null);
      return body;
    },
  };
}

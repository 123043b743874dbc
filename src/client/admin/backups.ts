import type { Runtime } from "../runtime.ts";
import { pause } from "../runtime.ts";
import { localError, networkError } from "../transport/errors.ts";
import type { Transport } from "../transport/types.ts";

export interface Backup {
  name: string;
  createdAt: string;
  /** Bytes. */
  size: number;
  /** When it last held; null: unknown. */
  verifiedAt: string | null;
  /** It did not hold when it was made, and is kept all the same. */
  failed: boolean;
}

/** A backup that is made, or verified, since the start of the server. */
export interface BackupRun {
  id: string;
  action: "create" | "verify";
  /** The name of the backup, once it has one. */
  backup: string | null;
  state: "waiting" | "running" | "done" | "failed";
  startedAt: string | null;
  endedAt: string | null;
  /** Why it has failed: of a verification, everything that was found. */
  error: string | null;
  files: number | null;
  contentBytes: number | null;
  /** Those that were checked; null: the backup was not verified. */
  databases: number | null;
}

export interface BackupList {
  /** Where they are stored, in words. */
  place: string;
  /** null without a schedule. */
  schedule: string | null;
  /** The newest backups that are kept. */
  keep: number;
  /** Newest first. */
  backups: Backup[];
  /** Newest first. */
  runs: BackupRun[];
}

export interface AdminBackups {
  list(): Promise<BackupList>;
  /**
   * Makes a backup, and resolves when it is stored. The end of `signal` ends the wait only. Errors: `conflict` while one is made
   * or verified, `unavailable` in a drill, `internal` where it fails.
   */
  create(options?: { signal?: AbortSignal }): Promise<BackupRun & { backup: string }>;
  /** Restores it into a scratch folder and checks everything: `state` is `done` if it holds, else `failed`. Errors: as `create`. */
  verify(name: string, options?: { signal?: AbortSignal }): Promise<BackupRun>;
  /** An address with which a browser downloads it, once, within a minute. */
  link(name: string): Promise<string>;
  /** Its bytes. Errors: `not_found`. */
  download(name: string, options?: { signal?: AbortSignal }): Promise<ReadableStream<Uint8Array>>;
}

/** How often it is asked whether a backup is done. */
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

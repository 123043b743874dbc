import { RUN_POLL_MS } from "../limits.ts";
import type { Runtime } from "../runtime.ts";
import { pause } from "../runtime.ts";
import { localError, networkError } from "../transport/errors.ts";
import type { Transport } from "../transport/types.ts";
import type { AdminBackups, BackupList, BackupRun } from "./types.ts";

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

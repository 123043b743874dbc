import { renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { Clock } from "../../../../../kernel/clock.ts";
import { AppError } from "../../../../../kernel/errors.ts";
import { ProcessPool } from "../../../../db/processes/pool.ts";
import { SERVER_CALLER } from "../../../../db/server-caller.ts";
import type { LogPlace } from "../format/manifest.ts";
import { TENANT_IDLE_MS, TENANT_TIMEOUT_MS, TENANTS_WAITING_MAX } from "../limits.ts";
import type { StorePlace } from "../store/store.ts";
import type { FileInStore, FilesAnswer, FilesRequest } from "./files-job.ts";

/** Files of a cluster in its object store, as a node that follows reads them: in another process, page by page compared. */
export class StoredFiles {
  readonly #to: StorePlace;
  readonly #pool: ProcessPool;

  constructor(to: StorePlace, clock: Clock) {
    this.#to = to;
    this.#pool = new ProcessPool({
      clock,
      program: "areas/backup/continuous/restore/files-job",
      settings: null,
      processesMax: 1,
      placesMax: TENANTS_WAITING_MAX,
      idleMs: TENANT_IDLE_MS,
    });
  }

  /** Returns all files; null: the store has not all of them yet. Errors: the store fails, or is damaged. */
  list(): Promise<{ place: LogPlace; files: FileInStore[] } | null> {
    return this.#run({ op: "list", to: this.#to });
  }

  /** Writes the newest state of a file to `target`; null: it has no such file. Errors: the store fails, or is damaged. */
  async fetch(id: string, target: string): Promise<{ place: LogPlace; path: string } | null> {
    const folder = `${target}.folder`;
    try {
      const answer = await this.#run({ op: "fetch", to: this.#to, id, folder });
      const [file] = answer?.files ?? [];
      if (answer === null || file?.written === undefined) return null;
      renameSync(file.written, target);
      return { place: answer.place, path: file.path };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  stop(): Promise<void> {
    return this.#pool.stop();
  }

  async #run(request: FilesRequest): Promise<FilesAnswer | null> {
    const answer = await this.#pool.run({
      request,
      caller: SERVER_CALLER.callerName,
      places: 1,
      waitMs: TENANT_TIMEOUT_MS,
      runMs: TENANT_TIMEOUT_MS,
      signals: [],
      refusals: {
        queueFull: () => new AppError(503, "Too many files wait to be fetched"),
        waitedTooLong: () => new AppError(503, "Other files are being fetched"),
        ranTooLong: () => new AppError(503, "Fetching a file took too long and was stopped"),
        ended: (exit) => new Error(`the process that fetches files ended by itself (${exit})`),
      },
      // Written by files-job.ts.
      failed: (failure) => new Error(String(failure)),
    });
    // Written by files-job.ts.
    return answer as FilesAnswer | null;
  }
}

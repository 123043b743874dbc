import { rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../../../../kernel/clock.ts";
import { AppError, conflict, notFound } from "../../../../../kernel/errors.ts";
import type { Ids } from "../../../../../kernel/ids.ts";
import { isoTime } from "../../../../../kernel/time/iso-datetime.ts";
import { ProcessPool } from "../../../../db/processes/pool.ts";
import { SERVER_CALLER } from "../../../../db/server-caller.ts";
import { CONTINUOUS_FOLDER } from "../../layout.ts";
import { TENANT_IDLE_MS, TENANT_TIMEOUT_MS, TENANTS_WAITING_MAX, TIMELINE_TIMEOUT_MS } from "../limits.ts";
import type { StorePlace } from "../store/store.ts";
import type { FileClaim, RestoredTenant } from "./tenant.ts";
import type { TenantFailure, TenantRequest } from "./tenant-job.ts";
import type { Timeline } from "./timeline.ts";

/** An instance of a namespace. */
export interface TenantAddress {
  namespace: string;
  instanceId: string;
}

/** The instances of the server. */
export interface Tenants {
  /** Returns the names of the tables. Errors: 404 for a namespace without instances; 400 for an id that none has. */
  tablesOf(address: TenantAddress): readonly string[];
  /** Counts the records by table; 0 where there is no such instance. Errors: 503. */
  counts(address: TenantAddress): Promise<Record<string, number>>;
  /**
   * Replaces the content of an instance by that of a database, whose records have these files, and makes the instance if there is
   * none. `fetchFiles` is called when nothing removes them any more. Errors: 503; the content is as it was.
   */
  replace(
    address: TenantAddress,
    content: { database: string; claims: readonly FileClaim[]; fetchFiles: () => Promise<void> },
  ): Promise<void>;
}

interface TenantRestoresDeps {
  to: StorePlace;
  dataDirectory: string;
  tenants: () => Tenants;
  /** Brings everything to the store that has been committed. false: the store fails. */
  storeNow: () => Promise<boolean>;
  clock: Clock;
  ids: Ids;
}

export interface TenantOutcome {
  at: string;
  tables: Record<string, { then: number; now: number }>;
}

/** Gives single instances of a running server the content of an earlier moment. */
export class TenantRestores {
  readonly #deps: TenantRestoresDeps;
  readonly #folder: string;
  readonly #pool: ProcessPool;
  readonly #underWay = new Set<string>();

  constructor(deps: TenantRestoresDeps) {
    this.#deps = deps;
    this.#folder = join(deps.dataDirectory, CONTINUOUS_FOLDER, "restore");
    rmSync(this.#folder, { recursive: true, force: true });
    this.#pool = new ProcessPool({
      clock: deps.clock,
      program: "areas/backup/continuous/restore/tenant-job",
      settings: null,
      processesMax: 1,
      placesMax: TENANTS_WAITING_MAX,
      idleMs: TENANT_IDLE_MS,
    });
  }

  /**
   * Restores an instance. `isPreview`: only counts its records. Errors: 404 where there was no such instance or is no such moment, 409
   * while it is being restored, 503 where the store fails.
   */
  async restore(address: TenantAddress, { at, isPreview }: { at: number; isPreview: boolean }): Promise<TenantOutcome> {
    const { tenants } = this.#deps;
    const tables = tenants().tablesOf(address);
    const key = `${address.namespace}/${address.instanceId}`;
    if (this.#underWay.has(key)) throw conflict(`The instance "${address.instanceId}" is being restored`);
    if (!isPreview) this.#underWay.add(key);
    const scratch = join(this.#folder, this.#deps.ids.uuid());
    try {
      if (!(await this.#deps.storeNow())) throw new AppError(503, "The place of the continuous backup fails");
      const { to, dataDirectory } = this.#deps;
      const from = { to, dataDirectory, scratch };
      // Written by tenant-job.ts.
      const found = (await this.#run({
        op: "moment",
        ...from,
        ...address,
        at,
        tables,
        withFiles: !isPreview,
      })) as RestoredTenant;
      const now = await tenants().counts(address);
      if (!isPreview) {
        const { database, claims } = found;
        const fileIds = claims.map(({ fileId }) => fileId);
        const fetchFiles = async () => void (await this.#run({ op: "contents", ...from, fileIds }));
        await tenants().replace(address, { database, claims, fetchFiles });
      }
      const counts: TenantOutcome["tables"] = {};
      for (const table of tables) {
        // biome-ignore lint/suspicious/noThenProperty: a number, and the name that the answer has
        counts[table] = { then: found.records[table] ?? 0, now: now[table] ?? 0 };
      }
      return { at: isoTime(found.at), tables: counts };
    } finally {
      if (!isPreview) this.#underWay.delete(key);
      // The system takes its time for a large file, and takes it in another thread.
      await rm(scratch, { recursive: true, force: true });
    }
  }

  /** Reads the moments of a file, named as `--only` takes it; null: of all. Errors: 404 for an unknown name; 503 while the place fails. */
  async timeline(file: string | null): Promise<Timeline> {
    // Written by tenant-job.ts.
    return (await this.#run({ op: "timeline", to: this.#deps.to, file }, TIMELINE_TIMEOUT_MS)) as Timeline;
  }

  stop(): Promise<void> {
    return this.#pool.stop();
  }

  #run(request: TenantRequest, timeoutMs = TENANT_TIMEOUT_MS): Promise<unknown> {
    return this.#pool.run({
      request,
      caller: SERVER_CALLER.callerName,
      places: 1,
      waitMs: timeoutMs,
      runMs: timeoutMs,
      signals: [],
      refusals: {
        queueFull: () => new AppError(503, "Too many instances wait to be restored"),
        waitedTooLong: () => new AppError(503, "Other instances are being restored"),
        ranTooLong: () => new AppError(503, "The restore took too long and was stopped"),
        ended: (exit) => new Error(`the process of a restore ended by itself (${exit})`),
      },
      failed: (failure) => {
        // Written by tenant-job.ts.
        const { kind, message } = failure as TenantFailure;
        return kind === "none" ? notFound(message) : new AppError(503, message);
      },
    });
  }
}

import { resolve } from "node:path";
import type { Clock } from "../../../../kernel/clock.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { HealthChecks } from "../../../../kernel/observing/health.ts";
import type { ContinuousConfig } from "../../../config/types.ts";
import type { StorageEngine } from "../../../db/index.ts";
import type { Endpoint } from "../../../http/endpoint.ts";
import { Spool } from "./capture/spool.ts";
import { continuousEndpoints } from "./endpoints.ts";
import { PENDING_BYTES_DEFAULT } from "./limits.ts";
import { TenantRestores, type Tenants } from "./restore/tenants.ts";
import { ContinuousBackup, type ContinuousState, type StoredLog } from "./service.ts";

export type { StoredLog } from "./service.ts";

export interface ContinuousArea {
  readonly endpoints: readonly Endpoint[];
  /** null: it is not declared. */
  state(): ContinuousState | null;
  stop(): Promise<void>;
}

/** Creates the spool, before the first database is opened; null: no continuous backup is declared. */
export const spoolOf = (
  config: ContinuousConfig | undefined,
  { dataDirectory, clock }: { dataDirectory: string; clock: Clock },
): Spool | null =>
  config === undefined
    ? null
    : new Spool({ dataDirectory, clock, bytesMax: config.maxPendingBytes ?? PENDING_BYTES_DEFAULT });

/** Begins continuous backup. Rules: ../SPEC.md. */
export function createContinuousArea(deps: {
  config: ContinuousConfig | undefined;
  /** null: none is declared, or this is a drill. */
  spool: Spool | null;
  dataDirectory: string;
  takeOver: boolean;
  isDrill: boolean;
  log: StoredLog | null;
  /** The instances, once they are open. */
  tenants: () => Tenants;
  audit: { record(change: { action: string; target: string; after?: unknown }): Promise<void> };
  engine: StorageEngine;
  health: HealthChecks;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}): ContinuousArea {
  const { config, spool, health } = deps;
  const backup = config === undefined || spool === null ? null : new ContinuousBackup({ ...deps, config, spool });
  const restores =
    backup === null
      ? null
      : new TenantRestores({
          ...deps,
          dataDirectory: resolve(deps.dataDirectory),
          to: backup.place,
          storeNow: () => backup.storeNow(),
        });
  const endpoints = continuousEndpoints({ ...deps, backup, restores });
  if (backup === null) return { endpoints, state: () => null, stop: async () => {} };
  health.add("continuous", () => {
    const { lastAt, verifiedAt, ...figures } = backup.state;
    return { ...figures, lastAt: isoTime(lastAt), verifiedAt: isoTime(verifiedAt) };
  });
  return {
    endpoints,
    state: () => backup.state,
    stop: async () => {
      await restores?.stop();
      await backup.stop();
    },
  };
}

const isoTime = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

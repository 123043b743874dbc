import { existsSync } from "node:fs";
import { join } from "node:path";
import { auditLayout } from "../../../../schema/migrations/index.ts";
import type { Clock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { HealthChecks } from "../../../kernel/observing/health.ts";
import { createWriteBehind } from "../../../kernel/time/write-behind.ts";
import { type DatabaseFile, layOut, NewerFileError, type StorageEngine } from "../../db/index.ts";
import { auditEndpoints } from "./endpoints.ts";
import { CACHE_KIB, DAYS_MS, RETENTION_DAYS, TAKE_BYTES, TAKE_DELAY_MS, TAKE_RETRY_MS } from "./limits.ts";
import type { AuditOutbox } from "./outbox.ts";
import { startRetention } from "./retention.ts";
import { createAuditService } from "./service.ts";
import { type AuditStore, createAuditStore } from "./store.ts";

export { AuditOutbox } from "./outbox.ts";

const AUDIT_FILE = "audit.db";

export type AuditArea = ReturnType<typeof createAuditArea>;

/** Creates the audit log in `<data>/audit.db`, which the first entry creates. Rules: SPEC.md. */
export function createAuditArea(deps: {
  audit: AuditOutbox;
  /** Default RETENTION_DAYS. */
  days: number | undefined;
  engine: StorageEngine;
  /** File for entries that belong to no transaction. */
  file: DatabaseFile;
  health: Pick<HealthChecks, "add">;
  dataDirectory: string;
  clock: Clock;
  logger: Logger;
}) {
  const { audit, engine, clock, logger } = deps;
  const path = join(deps.dataDirectory, AUDIT_FILE);
  let opened: AuditStore | null = null;
  let isFailing = false;
  const open = (): AuditStore => {
    opened ??= createAuditStore(engine.open(path, { migrate: layOut(auditLayout), cacheKiB: CACHE_KIB }));
    return opened;
  };
  const existing = (): AuditStore | null => opened ?? (existsSync(path) ? open() : null);

  const takeAll = async (): Promise<void> => {
    for (const source of audit.sources) {
      for (let rows = source.unread(TAKE_BYTES); rows.length > 0; rows = source.unread(TAKE_BYTES)) {
        await open().insertRows(rows);
        source.taken(rows.at(-1)?.seq ?? 0);
      }
      // Nothing is awaited after the last read, so the source has no new rows.
      audit.onClosed(source);
    }
  };
  const taking = createWriteBehind({
    clock,
    delayMs: TAKE_DELAY_MS,
    retryMs: TAKE_RETRY_MS,
    async writeAll() {
      try {
        await takeAll();
        isFailing = false;
      } catch (cause) {
        // Logs the first failure only, until writes work again. Entries stay in the files of their changes meanwhile.
        if (!isFailing) logger.error("audit: the log cannot be written; entries wait in the databases", { cause });
        isFailing = true;
      }
      return audit.isWaiting;
    },
  });
  audit.connect({
    wake: taking.wake,
    flush: taking.flush,
    write: async (actor, change) => {
      await deps.file.write((tx) => tx.auditBy(actor, change));
    },
  });
  // Entries are safe while this fails, but cannot be found in the log.
  deps.health.add("audit", () => ({ ok: !isFailing }));
  openPresent(existing, logger);
  const retentionMs = (deps.days ?? RETENTION_DAYS) * DAYS_MS;
  const stopRetention = startRetention({ store: existing, retentionMs, clock, logger });

  return {
    endpoints: auditEndpoints(createAuditService({ store: existing, flush: () => audit.flush() })),
    /** Takes every waiting entry into the log, and stops. */
    async stop(): Promise<void> {
      await audit.flush();
      await Promise.all([stopRetention(), taking.stop()]);
    },
  };
}

/**
 * Opens the log if it exists. One of a later version stops the start, as every other file does. A damaged one does not: its entries
 * wait. [AL16]
 */
function openPresent(existing: () => AuditStore | null, logger: Logger): void {
  try {
    existing();
  } catch (cause) {
    if (cause instanceof NewerFileError) throw cause;
    logger.error("audit: the log cannot be opened; entries wait in the databases", { cause });
  }
}

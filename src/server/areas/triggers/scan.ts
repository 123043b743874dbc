import { type Clock, pause } from "../../../kernel/clock.ts";
import { AppError } from "../../../kernel/errors.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { SERVER_CALLER } from "../../db/index.ts";
import { ProcessPool } from "../../db/processes/pool.ts";
import { SCAN_FILES, SCAN_RETRIES_MAX, SCAN_RETRY_MS, SCAN_TIMEOUT_MS } from "./limits.ts";
import type { ScanAnswer, ScanRequest } from "./scan-job.ts";

/**
 * Scans for instance files with waiting rows, in a process beside the server, once after a start: rows that were written before a
 * crash, or restored from a backup, must not wait until somebody opens their file. The rows themselves are the only list of waiting
 * work; a second list could disagree with them after a crash. [TG9]
 */
export function startScan(options: {
  /** The directories of the dynamic namespaces. */
  namespaces: readonly { name: string; directory: string }[];
  onFound(namespace: string, instanceId: string): void;
  clock: Clock;
  logger: Logger;
}): () => Promise<void> {
  const { namespaces, onFound, clock, logger } = options;
  if (namespaces.length === 0) return async () => {};
  const stopping = new AbortController();
  const pool = new ProcessPool({
    clock,
    program: "areas/triggers/scan-job",
    settings: null,
    processesMax: 1,
    placesMax: 1,
    idleMs: SCAN_RETRY_MS,
  });
  const step = async (request: ScanRequest): Promise<ScanAnswer> => {
    for (let retries = 0; ; retries++) {
      try {
        return await ask(pool, request, stopping.signal);
      } catch (cause) {
        if (retries === SCAN_RETRIES_MAX || stopping.signal.aborted) throw cause;
        await pause(clock, SCAN_RETRY_MS);
      }
    }
  };
  const scan = async (): Promise<void> => {
    for (const { name, directory } of namespaces) {
      for (let after: string | null = ""; after !== null; ) {
        const { instanceIds, last }: ScanAnswer = await step({ directory, after, filesMax: SCAN_FILES });
        if (stopping.signal.aborted) return;
        for (const instanceId of instanceIds) onFound(name, instanceId);
        after = last;
      }
    }
  };
  void scan()
    .catch((cause: unknown) => {
      if (stopping.signal.aborted) return;
      logger.error("triggers: the scan of instances for waiting jobs failed; the next start repeats it", { cause });
    })
    .finally(() => pool.stop());
  return () => {
    stopping.abort();
    return pool.stop();
  };
}

async function ask(pool: ProcessPool, request: ScanRequest, signal: AbortSignal): Promise<ScanAnswer> {
  const failed = (what: string) => (): Error => new AppError(503, `The scan for waiting triggers ${what}`);
  // Returned by `scanSome`.
  return (await pool.run({
    request,
    caller: SERVER_CALLER.callerName,
    places: 1,
    waitMs: SCAN_TIMEOUT_MS,
    runMs: SCAN_TIMEOUT_MS,
    signals: [{ signal, reason: failed("was stopped") }],
    refusals: {
      queueFull: failed("found its queue full"),
      waitedTooLong: failed("waited too long"),
      ranTooLong: failed("ran too long"),
      ended: failed("ended by itself"),
    },
    failed: (failure) => new Error(`The scan for waiting triggers failed: ${String(failure)}`),
    restart: () => {},
  })) as ScanAnswer;
}

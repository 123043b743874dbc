import type { Clock, Millis } from "../../../../../kernel/clock.ts";
import { AppError, conflict, reasonOf } from "../../../../../kernel/errors.ts";
import type { Logger } from "../../../../../kernel/logger.ts";
import { ProcessPool } from "../../../../db/processes/pool.ts";
import { SERVER_CALLER } from "../../../../db/server-caller.ts";
import { BackupError } from "../../types.ts";
import { VERIFY_EVERY_MS, VERIFY_FIRST_MS, VERIFY_IDLE_MS, VERIFY_RETRY_MS, VERIFY_TIMEOUT_MS } from "../limits.ts";
import type { Verified } from "./verify.ts";
import type { VerifyRequest } from "./verify-job.ts";

interface VerifierDeps {
  request: VerifyRequest;
  /** Whether to verify once a day; on request it is always done. */
  isDaily: boolean;
  clock: Clock;
  logger: Logger;
}

/** Verifies the continuous backup in a process beside the server: once a day, and on request. */
export class Verifier {
  readonly #deps: VerifierDeps;
  readonly #pool: ProcessPool;
  #verifiedAt: Millis | null = null;
  /** Reason of the failure of the last one; null: it has succeeded, or there was none. */
  #failure: string | null = null;
  #isRunning = false;
  #isStopped = false;
  #cancel: (() => void) | null = null;

  constructor(deps: VerifierDeps) {
    this.#deps = deps;
    this.#pool = new ProcessPool({
      clock: deps.clock,
      program: "areas/backup/continuous/verify/verify-job",
      settings: null,
      processesMax: 1,
      placesMax: 1,
      idleMs: VERIFY_IDLE_MS,
    });
  }

  /** Time of the last verification that succeeded, of an earlier start too; null: never. */
  get verifiedAt(): Millis | null {
    return this.#verifiedAt;
  }

  get failure(): string | null {
    return this.#failure;
  }

  /** Takes note that every file is in the store, which was last verified at `verifiedAt`. Plans the next verification. */
  ready(verifiedAt: Millis | null): void {
    this.#verifiedAt = Math.max(this.#verifiedAt ?? 0, verifiedAt ?? 0) || null;
    if (this.#deps.isDaily && !this.#isRunning && this.#cancel === null) {
      const dueAt = (this.#verifiedAt ?? 0) + VERIFY_EVERY_MS;
      this.#plan(Math.max(VERIFY_FIRST_MS, dueAt - this.#deps.clock.now()));
    }
  }

  /** Begins a verification. Errors: 409 while one runs. */
  begin(): void {
    if (this.#isRunning) throw conflict("A verification of the continuous backup runs already");
    this.#cancel?.();
    this.#cancel = null;
    void this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    await this.#pool.stop();
  }

  #plan(delayMs: number): void {
    if (this.#isStopped || !this.#deps.isDaily) return;
    this.#cancel = this.#deps.clock.after(delayMs, () => {
      this.#cancel = null;
      void this.#run();
    });
  }

  async #run(): Promise<void> {
    const { clock, logger } = this.#deps;
    this.#isRunning = true;
    try {
      const found = await this.#verify();
      this.#verifiedAt = clock.now();
      this.#failure = null;
      logger.info("the continuous backup was verified", { ...found });
      this.#plan(VERIFY_EVERY_MS);
    } catch (cause) {
      if (this.#isStopped) return;
      this.#failure = reasonOf(cause);
      logger.error("the verification of the continuous backup failed", { reason: this.#failure });
      this.#plan(VERIFY_RETRY_MS);
    } finally {
      this.#isRunning = false;
    }
  }

  async #verify(): Promise<Verified> {
    const answer = await this.#pool.run({
      request: this.#deps.request,
      caller: SERVER_CALLER.callerName,
      places: 1,
      waitMs: VERIFY_TIMEOUT_MS,
      runMs: VERIFY_TIMEOUT_MS,
      signals: [],
      refusals: {
        queueFull: () => new AppError(503, "Another verification of the continuous backup runs"),
        waitedTooLong: () => new AppError(503, "The process of the verification is busy"),
        ranTooLong: () => new AppError(408, "The verification of the continuous backup took too long and was stopped"),
        ended: (exit) => new Error(`the process of the verification ended by itself (${exit})`),
      },
      failed: (reason) => new BackupError(String(reason)),
    });
    // Written by verify-job.ts.
    return answer as Verified;
  }
}

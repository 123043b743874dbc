import type { Clock, Millis } from "../../../kernel/clock.ts";
import { AppError } from "../../../kernel/errors.ts";
import { UNFIT_INSTANCES_MAX, UNFIT_KEPT_MS } from "../limits.ts";
import { MigrationFailed, SchemaMismatch } from "../schema/types.ts";

/**
 * Cache of the instances whose file cannot be migrated to the declaration, with their problems: each request to such an instance
 * would otherwise plan and run migrations again, on the event loop.
 */
export class UnfitInstances {
  readonly #clock: Clock;
  readonly #onUnfit: ((instanceId: string, cause: Error) => void) | undefined;
  readonly #known = new Map<string, { refusal: AppError; until: Millis }>();

  constructor(clock: Clock, onUnfit: ((instanceId: string, cause: Error) => void) | undefined) {
    this.#clock = clock;
    this.#onUnfit = onUnfit;
  }

  /** Throws a 503 error with the problems of an instance that was recently found unfit. */
  refuseKnown(instanceId: string): void {
    const known = this.#known.get(instanceId);
    if (known === undefined) return;
    if (this.#clock.now() < known.until) throw known.refusal;
    this.#known.delete(instanceId);
  }

  /** Forgets a deleted instance. */
  forget(instanceId: string): void {
    this.#known.delete(instanceId);
  }

  /** Returns the error for a failed opening: 503 if the file does not fit the declaration, otherwise `cause`. */
  refusal(instanceId: string, cause: unknown): unknown {
    if (!(cause instanceof SchemaMismatch) && !(cause instanceof MigrationFailed)) return cause;
    const problems = cause instanceof SchemaMismatch ? cause.problems.join("; ") : cause.message;
    const refusal = new AppError(503, `The instance "${instanceId}" does not fit what is declared: ${problems}`, {
      cause,
    });
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size >= UNFIT_INSTANCES_MAX) this.#known.delete(oldest);
    this.#known.set(instanceId, { refusal, until: this.#clock.now() + UNFIT_KEPT_MS });
    this.#onUnfit?.(instanceId, cause);
    return refusal;
  }
}

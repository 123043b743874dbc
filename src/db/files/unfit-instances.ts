import type { Clock, Millis } from "../../kernel/clock.ts";
import { AppError } from "../../kernel/errors.ts";
import { UNFIT_INSTANCES_MAX, UNFIT_KEPT_MS } from "../limits.ts";
import { MigrationFailed, SchemaMismatch } from "../schema/types.ts";

/**
 * Instances whose file cannot become what is declared. What was found is kept for a while: trying again means to plan,
 * and to run migrations, on the event loop, and each request to such an instance asks for it.
 */
export class UnfitInstances {
  readonly #clock: Clock;
  readonly #onUnfit: ((instanceId: string, cause: Error) => void) | undefined;
  readonly #known = new Map<string, { refusal: AppError; until: Millis }>();

  constructor(clock: Clock, onUnfit: ((instanceId: string, cause: Error) => void) | undefined) {
    this.#clock = clock;
    this.#onUnfit = onUnfit;
  }

  /** Errors: 503 with what is wrong, for an instance that was found unfit a moment ago. */
  refuseKnown(instanceId: string): void {
    const known = this.#known.get(instanceId);
    if (known === undefined) return;
    if (this.#clock.now() < known.until) throw known.refusal;
    this.#known.delete(instanceId);
  }

  /** What a failed opening is answered with: 503 where the file does not fit what is declared, else `cause`. */
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

import type { AppError } from "../../../kernel/errors.ts";

/** Errors for the writes of a file whose commits may not become durable: for those that are committed, and for all others. */
export interface DurabilityErrors {
  committed: AppError;
  refused: AppError;
}

/** Thrown where commits will not become durable here, whatever is done. */
export class DurabilityRefused extends Error {
  readonly errors: DurabilityErrors;
  constructor(errors: DurabilityErrors) {
    super(errors.committed.message);
    this.errors = errors;
  }
}

/**
 * Calls `done` when everything that was committed before is durable. Calls `doubt` when that takes so long that nobody should wait for
 * it: what waits is answered with its errors, and further writes are refused, until `done` is called. Errors: those of the disk;
 * `DurabilityRefused`.
 */
export type Durable = (done: (error: Error | null) => void, doubt: (errors: DurabilityErrors) => void) => void;

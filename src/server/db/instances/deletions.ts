import { type AppError, notFound } from "../../../kernel/errors.ts";
import { DELETIONS_KNOWN_MAX } from "../limits.ts";

/** Knows which instances were deleted of late, so that what was got before then is refused. */
export class Deletions {
  readonly #known = new Map<string, number>();
  /** The number of deletions. */
  count = 0;

  add(instanceId: string): void {
    this.count += 1;
    this.#known.delete(instanceId);
    this.#known.set(instanceId, this.count);
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size > DELETIONS_KNOWN_MAX) this.#known.delete(oldest);
  }

  /** `since`: what `count` was. Errors: 404 for an instance that was deleted later. */
  refuse(instanceId: string, since: number): void {
    if (this.#known.size === 0) return;
    if ((this.#known.get(instanceId) ?? 0) > since) throw deleted(instanceId);
  }
}

export const deleted = (instanceId: string): AppError => notFound(`The instance "${instanceId}" was deleted`);

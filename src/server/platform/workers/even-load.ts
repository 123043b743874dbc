import type { Millis } from "../../../kernel/clock.ts";
import { EVEN_LOOK_MS, EVEN_MAX_MS, EVEN_REQUESTS_MIN, EVEN_SHARE } from "./limits.ts";

/** Steps without a process that has too many requests after which the load is even. */
const EVEN_LOOKS = 3;

/**
 * Decides which processes have more than their part of the requests after another one has begun to listen, which connections that are
 * kept alive never reach. Times are arguments.
 */
export class EvenLoad {
  readonly #endsAt: Millis;
  #before: readonly number[];
  #evenLooks = 0;

  /** `requests`: what each process has got, the main one first. */
  constructor(now: Millis, requests: readonly number[]) {
    this.#endsAt = now + EVEN_MAX_MS;
    this.#before = requests;
  }

  /** Returns the share of its connections that each process is to end, after EVEN_LOOK_MS; null: it is over. */
  look(now: Millis, requests: readonly number[]): readonly number[] | null {
    // A worker that was started again counts from zero.
    const since = requests.map((count, place) => Math.max(0, count - (this.#before[place] ?? 0)));
    this.#before = requests;
    const all = since.reduce((sum, count) => sum + count, 0);
    const isQuiet = all < (EVEN_REQUESTS_MIN * EVEN_LOOK_MS) / 1000;
    const fair = all / since.length;
    const shares = since.map((count) => (isQuiet || count <= fair * EVEN_SHARE ? 0 : (count - fair) / count));
    this.#evenLooks = shares.some((share) => share > 0) ? 0 : this.#evenLooks + 1;
    return now >= this.#endsAt || this.#evenLooks >= EVEN_LOOKS ? null : shares;
  }
}

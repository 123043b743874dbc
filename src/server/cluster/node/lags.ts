import { LAG_SAMPLES } from "./limits.ts";

/** Times at which the log's end was first seen at a position, by which is said how old is what a node shows. */
export class Lags {
  readonly #ends: { position: number; atMs: number }[] = [];

  /** Takes the end of the log, at a time of the monotonic clock. */
  add(position: number, nowMs: number): void {
    const last = this.#ends.at(-1);
    if (last !== undefined && last.position >= position) return;
    this.#ends.push({ position, atMs: nowMs });
    if (this.#ends.length > LAG_SAMPLES) this.#ends.shift();
  }

  /** Returns for how long the log has had more than this position. */
  of(applied: number, nowMs: number): number {
    const first = this.#ends.find(({ position }) => position > applied);
    return first === undefined ? 0 : Math.round(nowMs - first.atMs);
  }
}

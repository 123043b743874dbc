/** Pseudorandom generator, determined by its seed. */
export interface Random {
  /** Returns a number from 0 up to, but excluding, 1. */
  next(): number;
  /** Returns an integer from 0 up to, but excluding, `limit`. */
  below(limit: number): number;
  pick<T>(list: readonly T[]): T;
  chance(probability: number): boolean;
}

/** Creates a mulberry32 generator: small, and equal on every machine. */
export function random(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    next,
    below,
    // The caller's list is not empty.
    pick: <T>(list: readonly T[]): T => list[below(list.length)] as T,
    chance: (probability) => next() < probability,
  };
}

/** Returns PLATFORM_TEST_SEED, or the fallback of normal runs. */
export const testSeed = (fallback: number): number => Number(process.env["PLATFORM_TEST_SEED"] ?? fallback);

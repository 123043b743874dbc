/** A generator whose whole run follows from its seed. */
export interface Random {
  /** From 0 up to, but without, 1. */
  next(): number;
  /** A whole number from 0 up to, but without, `limit`. */
  below(limit: number): number;
  pick<T>(list: readonly T[]): T;
  chance(probability: number): boolean;
}

/** mulberry32: small, and the same everywhere. */
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
    // A list of the caller's own, which is not empty.
    pick: <T>(list: readonly T[]): T => list[below(list.length)] as T,
    chance: (probability) => next() < probability,
  };
}

/** PLATFORM_TEST_SEED, or the one that every run takes. */
export const testSeed = (fallback: number): number => Number(process.env["PLATFORM_TEST_SEED"] ?? fallback);

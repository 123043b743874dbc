import { LATENCY_MAX_US } from "./limits.ts";

/**
 * Buckets of latencies in microseconds: one each up to 16 µs, then 16 for every power of two, so that a bucket is at most 1/16 as
 * wide as its values are large. Histograms of such buckets add up.
 */
const STEPS = 16;
/** Binary logarithm of `STEPS`. */
const STEP_DIGITS = 4;

export function bucketOf(durationUs: number): number {
  const value = durationUs < LATENCY_MAX_US ? durationUs | 0 : LATENCY_MAX_US;
  if (value < STEPS) return Math.max(0, value);
  const power = 31 - Math.clz32(value);
  return (power - STEP_DIGITS + 1) * STEPS + ((value >>> (power - STEP_DIGITS)) & (STEPS - 1));
}

export const BUCKETS = bucketOf(LATENCY_MAX_US) + 1;

const widthOf = (bucket: number): number => (bucket < STEPS ? 1 : 2 ** (Math.floor(bucket / STEPS) - 1));
const lowerOf = (bucket: number): number =>
  bucket < STEPS ? bucket : (STEPS + (bucket % STEPS)) * 2 ** (Math.floor(bucket / STEPS) - 1);

/** SQL for the smallest value of `bucket`, and for its width, in microseconds: the two functions above. */
export const LOWER_SQL = "iif(bucket < 16, bucket, (16 + bucket % 16) << (bucket / 16 - 1))";
export const WIDTH_SQL = "iif(bucket < 16, 1, 1 << (bucket / 16 - 1))";

/** Requests by bucket. */
export type Latencies = Map<number, number>;

export function addLatencies(sum: Latencies, latencies: Latencies): void {
  for (const [bucket, requests] of latencies) sum.set(bucket, (sum.get(bucket) ?? 0) + requests);
}

export interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}

/** Returns percentiles in milliseconds with two decimal places; 0 without requests. Values count as spread evenly over a bucket. */
export function percentilesOf(latencies: Latencies): Percentiles {
  const buckets = [...latencies].toSorted(([a], [b]) => a - b);
  const total = buckets.reduce((sum, [, requests]) => sum + requests, 0);
  const at = (percent: number): number => {
    const rank = Math.ceil((total * percent) / 100);
    let before = 0;
    for (const [bucket, requests] of buckets) {
      if (before + requests >= rank && requests > 0) {
        const valueUs = lowerOf(bucket) + (widthOf(bucket) * (rank - before - 0.5)) / requests;
        return Math.round(valueUs / 10) / 100;
      }
      before += requests;
    }
    return 0;
  };
  return { p50: at(50), p95: at(95), p99: at(99) };
}

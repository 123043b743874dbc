import { expect, test } from "bun:test";
import fc from "fast-check";
import { addLatencies, BUCKETS, bucketOf, type Latencies, percentilesOf } from "./latency-buckets.ts";

const histogramOf = (valuesUs: readonly number[]): Latencies => {
  const latencies: Latencies = new Map();
  for (const value of valuesUs) addLatencies(latencies, new Map([[bucketOf(value), 1]]));
  return latencies;
};

test("[AN102] buckets are in the order of their values, up to 35 minutes", () => {
  expect([0, 1, 15, 16, 17, 31, 32, 34].map(bucketOf)).toEqual([0, 1, 15, 16, 17, 31, 32, 33]);
  expect([-1, 0.9, 2 ** 40].map(bucketOf)).toEqual([0, 0, BUCKETS - 1]);
  const value = fc.integer({ min: 0, max: 2 ** 31 - 1 });
  fc.assert(
    fc.property(value, value, (a, b) => {
      if (a < b) expect(bucketOf(a)).toBeLessThanOrEqual(bucketOf(b));
    }),
    { seed: 20_261_122, numRuns: 500 },
  );
});

test("[AN102] a percentile is within 1/16 of the true one, also of histograms that were added up", () => {
  const valuesUs = fc.array(fc.integer({ min: 100, max: 60_000_000 }), { minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(valuesUs, valuesUs, (some, others) => {
      const both = histogramOf(some);
      addLatencies(both, histogramOf(others));
      expect(both).toEqual(histogramOf([...some, ...others]));
      const sorted = [...some, ...others].toSorted((a, b) => a - b);
      const { p50, p95, p99 } = percentilesOf(both);
      for (const [percent, ms] of [
        [50, p50],
        [95, p95],
        [99, p99],
      ] as const) {
        const trueMs = (sorted[Math.ceil((sorted.length * percent) / 100) - 1] ?? 0) / 1_000;
        expect(Math.abs(ms - trueMs)).toBeLessThanOrEqual(trueMs / 16 + 0.01);
      }
    }),
    { seed: 20_261_122, numRuns: 300 },
  );
  expect(percentilesOf(new Map())).toEqual({ p50: 0, p95: 0, p99: 0 });
});

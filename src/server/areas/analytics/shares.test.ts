import { expect, test } from "bun:test";
import fc from "fast-check";
import { percentagesOf, sharesByEndpoint } from "./shares.ts";

test("[AN11] percentages add up to 100 and keep the order of the counts", () => {
  const counts = fc.array(fc.integer({ min: 0, max: 1_000_000_000 }), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(counts, (given) => {
      const sorted = given.toSorted((a, b) => b - a);
      const percentages = percentagesOf(sorted);
      const hundredths = percentages.map((percentage) => Math.round(percentage * 100));
      const isEmpty = sorted.every((one) => one === 0);
      expect(hundredths.reduce((sum, one) => sum + one, 0)).toBe(isEmpty ? 0 : 10_000);
      expect(hundredths).toEqual(hundredths.toSorted((a, b) => b - a));
    }),
    { seed: 20_261_121, numRuns: 300 },
  );
});

test("[AN11] percentages are of all, also of names that are left out", () => {
  const endpoint = (route: string, requests: number) => ({
    method: "GET",
    route,
    category: "db",
    requests,
    errors: 0,
    durationUs: 0,
    errors4xx: 0,
    target: "",
    latencies: new Map(),
  });
  const shares = sharesByEndpoint([endpoint("/a", 1), endpoint("/c", 6), endpoint("/b", 1)], 2);
  expect(shares.map(({ label, percentage }) => [label, percentage])).toEqual([
    ["GET /c", 75],
    ["GET /a", 12.5],
  ]);
});

import type { Share } from "../schemas.ts";
import type { EndpointSums, RequestSums } from "../types.ts";

/** Percentages are computed in hundredths of a percent. */
const HUNDREDTHS = 10_000;

/** One share per category, ordered by requests, most first. Percentages add up to 100. */
export function sharesByCategory(endpoints: readonly EndpointSums[]): Share[] {
  const sums = new Map<string, RequestSums>();
  for (const { category, requests, errors, durationUs } of endpoints) {
    const sum = sums.get(category) ?? { requests: 0, errors: 0, durationUs: 0 };
    sum.requests += requests;
    sum.errors += errors;
    sum.durationUs += durationUs;
    sums.set(category, sum);
  }
  return shares([...sums].map(([label, sum]) => ({ label, ...sum })));
}

/** One share per endpoint (`GET /api/kv/:namespace`), at most `limit`. Percentages relate to all requests in the range. */
export function sharesByEndpoint(endpoints: readonly EndpointSums[], limit: number): Share[] {
  return shares(endpoints.map((sum) => ({ label: `${sum.method} ${sum.route}`, ...sum }))).slice(0, limit);
}

function shares(labelled: readonly (RequestSums & { label: string })[]): Share[] {
  const sorted = labelled.toSorted((a, b) => b.requests - a.requests || (a.label < b.label ? -1 : 1));
  const percentages = percentagesOf(sorted.map(({ requests }) => requests));
  return sorted.map((sum, index) => ({
    label: sum.label,
    count: sum.requests,
    percentage: percentages[index] ?? 0,
    avgLatency: averageMs(sum),
    errorRate: sum.requests === 0 ? 0 : round((sum.errors / sum.requests) * 100),
  }));
}

/** Milliseconds with two decimal places; 0 without requests. */
export function averageMs({ requests, durationUs }: RequestSums): number {
  return requests === 0 ? 0 : round(durationUs / requests / 1000);
}

/** With two decimal places and a sum of 100, by the largest remainder method. */
export function percentagesOf(counts: readonly number[]): number[] {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return counts.map(() => 0);
  const floors = counts.map((count) => Math.floor((count * HUNDREDTHS) / total));
  let left = HUNDREDTHS - floors.reduce((sum, floor) => sum + floor, 0);
  // In whole numbers, so that equal counts have equal remainders.
  const byRemainder = counts.map((count, index) => ({ index, remainder: (count * HUNDREDTHS) % total }));
  for (const { index } of byRemainder.toSorted((a, b) => b.remainder - a.remainder)) {
    if (left-- <= 0) break;
    floors[index] = (floors[index] ?? 0) + 1;
  }
  return floors.map((floor) => floor / 100);
}

const round = (value: number): number => Math.round(value * 100) / 100;

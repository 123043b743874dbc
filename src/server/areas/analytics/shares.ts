import { addLatencies, type Latencies, percentilesOf } from "./latency-buckets.ts";
import type { EndpointSums, RequestSums, Share, Target } from "./model.ts";

/** Hundredths of a percent in the whole, the unit in which percentages are computed. */
const HUNDREDTHS = 10_000;

type Sums = RequestSums & { latencies: Latencies };

/** Returns one share per category, ordered by requests, most first. Percentages add up to 100. */
export const sharesByCategory = (endpoints: readonly EndpointSums[]): Share[] =>
  shares(summedBy(endpoints, ({ category }) => category));

/** Returns one share per endpoint (`GET /api/kv/:namespace`), at most `limit`. Percentages relate to all requests in the range. */
export const sharesByEndpoint = (endpoints: readonly EndpointSums[], limit: number): Share[] =>
  shares(summedBy(endpoints, ({ method, route }) => `${method} ${route}`)).slice(0, limit);

/** Returns one entry per method, route and target, ordered by requests, most first, at most `limit`. */
export function targetsOf(endpoints: readonly EndpointSums[], limit: number): Target[] {
  const keyOf = ({ method, route, target }: EndpointSums): string => `${route} ${target} ${method}`;
  const sorted = endpoints.toSorted((a, b) => b.requests - a.requests || (keyOf(a) < keyOf(b) ? -1 : 1));
  return sorted.slice(0, limit).map((sum) => ({
    method: sum.method,
    route: sum.route,
    target: sum.target === "" ? null : sum.target,
    requests: sum.requests,
    errors4xx: sum.errors4xx,
    errors5xx: sum.errors,
    avgLatency: averageMs(sum),
    ...percentilesOf(sum.latencies),
  }));
}

/** Adds up the histograms of all endpoints. */
export function latenciesOf(endpoints: readonly EndpointSums[]): Latencies {
  const all: Latencies = new Map();
  for (const { latencies } of endpoints) addLatencies(all, latencies);
  return all;
}

function summedBy(endpoints: readonly EndpointSums[], labelOf: (sums: EndpointSums) => string): Map<string, Sums> {
  const sums = new Map<string, Sums>();
  for (const endpoint of endpoints) {
    const label = labelOf(endpoint);
    const sum = sums.get(label) ?? { requests: 0, errors: 0, errors4xx: 0, durationUs: 0, latencies: new Map() };
    sum.requests += endpoint.requests;
    sum.errors += endpoint.errors;
    sum.errors4xx += endpoint.errors4xx;
    sum.durationUs += endpoint.durationUs;
    addLatencies(sum.latencies, endpoint.latencies);
    sums.set(label, sum);
  }
  return sums;
}

function shares(labelled: ReadonlyMap<string, Sums>): Share[] {
  const sorted = [...labelled].toSorted(([a, one], [b, other]) => other.requests - one.requests || (a < b ? -1 : 1));
  const percentages = percentagesOf(sorted.map(([, { requests }]) => requests));
  return sorted.map(([label, sum], index) => ({
    label,
    count: sum.requests,
    percentage: percentages[index] ?? 0,
    avgLatency: averageMs(sum),
    ...percentilesOf(sum.latencies),
    errorRate: sum.requests === 0 ? 0 : round((sum.errors / sum.requests) * 100),
    errors4xx: sum.errors4xx,
  }));
}

/** Returns the average latency in milliseconds with two decimal places; 0 without requests. */
export function averageMs({ requests, durationUs }: RequestSums): number {
  return requests === 0 ? 0 : round(durationUs / requests / 1000);
}

/** Returns percentages with two decimal places and a sum of 100, by the largest remainder method; 0 each if all counts are 0. */
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

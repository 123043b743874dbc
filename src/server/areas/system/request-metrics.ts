import { SECOND_MS } from "../../../kernel/time/duration.ts";
import type { AnswerListener } from "../../http/http.ts";
import { areaOf } from "../../http/route-area.ts";
import { family, histogramFamily } from "./exposition.ts";

/** Upper bounds of the latency buckets: from a point read to the longest query. */
const LATENCY_BOUNDS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const LATENCY_BOUNDS_MS = LATENCY_BOUNDS_S.map((seconds) => seconds * SECOND_MS);
const STATUS_CLASSES = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/** All requests of one area and method. */
interface Counters {
  area: string;
  method: string;
  byStatusClass: number[];
}

interface Latencies {
  counts: number[];
  sumMs: number;
}

export interface RequestMetrics {
  /** Runs for every request: two map lookups and three additions. */
  readonly record: AnswerListener;
  text(): string;
}

export function createRequestMetrics(): RequestMetrics {
  // Both maps are bounded: routes are declared, and all unmatched paths share the route null.
  const byRoute = new Map<string | null, { counters: Map<string, Counters>; latencies: Latencies }>();
  const byArea = new Map<string, { counters: Map<string, Counters>; latencies: Latencies }>();

  const addRoute = (route: string | null) => {
    const area = areaOf(route);
    const ofArea = byArea.get(area) ?? { counters: new Map(), latencies: { counts: emptyCounts(), sumMs: 0 } };
    byArea.set(area, ofArea);
    byRoute.set(route, ofArea);
    return ofArea;
  };
  return {
    record({ request, route, status, durationMs }) {
      const { counters, latencies } = byRoute.get(route) ?? addRoute(route);
      const { method } = request;
      let counter = counters.get(method);
      if (counter === undefined) {
        counter = { area: areaOf(route), method, byStatusClass: STATUS_CLASSES.map(() => 0) };
        counters.set(method, counter);
      }
      increment(counter.byStatusClass, Math.floor(status / 100) - 1);
      increment(latencies.counts, bucketOf(durationMs));
      latencies.sumMs += durationMs;
    },
    text() {
      const counters = [...byArea.values()].flatMap((area) => [...area.counters.values()]);
      const requests = counters.flatMap(({ area, method, byStatusClass }) =>
        byStatusClass
          .map((value, index) => ({ value, labels: { area, method, status: STATUS_CLASSES[index] ?? "" } }))
          .filter(({ value }) => value > 0),
      );
      const histograms = [...byArea].map(([area, { latencies }]) => ({
        labels: { area },
        counts: latencies.counts,
        sum: latencies.sumMs / SECOND_MS,
      }));
      return (
        family({ name: "platform_http_requests_total", type: "counter", help: "Requests answered." }, requests) +
        histogramFamily(
          "platform_http_request_duration_seconds",
          "Time from the start of a handler to its answer.",
          LATENCY_BOUNDS_S,
          histograms,
        )
      );
    },
  };
}

const emptyCounts = (): number[] => Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, () => 0);

function bucketOf(durationMs: number): number {
  const index = LATENCY_BOUNDS_MS.findIndex((boundMs) => durationMs <= boundMs);
  return index === -1 ? LATENCY_BOUNDS_MS.length : index;
}

function increment(counts: number[], index: number): void {
  const count = counts[index];
  if (count !== undefined) counts[index] = count + 1;
}

import type { LatencyRow } from "../types.ts";
import { BUCKETS, bucketOf } from "./latency-buckets.ts";

/** An endpoint with its histogram of the current minute. */
export interface Measured extends Pick<LatencyRow, "method" | "route" | "category" | "target"> {
  /** Requests by bucket; null: it has had none yet. */
  latencies: Uint32Array | null;
  hasLatencies: boolean;
}

/** The histograms of the current minute, and what waits of earlier ones. */
export interface Histograms {
  /** Runs for every request. */
  add(endpoint: Measured, durationUs: number): void;
  /** What was added belongs to this minute. */
  end(minute: number): void;
  /** The same; removes and returns what waits. */
  take(minute: number): LatencyRow[];
}

export function createHistograms(): Histograms {
  let active: Measured[] = [];
  let waiting: LatencyRow[] = [];
  const end = (minute: number): void => {
    for (const endpoint of active) {
      const { method, route, category, target, latencies } = endpoint;
      for (const [bucket, requests] of latencies?.entries() ?? []) {
        if (requests > 0) waiting.push({ minute, method, route, category, target, bucket, requests });
      }
      latencies?.fill(0);
      endpoint.hasLatencies = false;
    }
    active = [];
  };
  return {
    add(endpoint, durationUs) {
      endpoint.latencies ??= new Uint32Array(BUCKETS);
      if (!endpoint.hasLatencies) {
        endpoint.hasLatencies = true;
        active.push(endpoint);
      }
      const bucket = bucketOf(durationUs);
      endpoint.latencies[bucket] = (endpoint.latencies[bucket] ?? 0) + 1;
    },
    end,
    take(minute) {
      end(minute);
      const taken = waiting;
      waiting = [];
      return taken;
    },
  };
}

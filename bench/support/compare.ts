import type { Load, LoadResult } from "./load.ts";
import { runLoad } from "./load.ts";
import type { Bench, Result } from "./section.ts";
import { median, milliseconds, perSecond } from "./statistics.ts";

const ROUNDS = 5;
const ROUND_S = 3;

function middle(results: readonly LoadResult[]): LoadResult {
  return {
    requests: median(results.map(({ requests }) => requests)),
    requestsPerSecond: median(results.map(({ requestsPerSecond }) => requestsPerSecond)),
    p50Ms: median(results.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(results.map(({ p99Ms }) => p99Ms)),
  };
}

/**
 * Measures the platform and its floor alternately, so that a machine that slows down affects both. Returns the medians of five
 * rounds of three seconds. `targetRatio` is the minimum share of the floor's requests.
 */
export async function compare(
  bench: Bench,
  options: { name: string; platform: Load; floor: Load; targetRatio: number },
): Promise<Result> {
  bench.note(options.name);
  const directory = bench.directory("load");
  const own: LoadResult[] = [];
  const floor: LoadResult[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    own.push(await runLoad(options.platform, { seconds: ROUND_S, directory }));
    floor.push(await runLoad(options.floor, { seconds: ROUND_S, directory }));
  }
  const [measured, least] = [middle(own), middle(floor)];
  const ratio = measured.requestsPerSecond / least.requestsPerSecond;
  return {
    name: options.name,
    measured: perSecond(measured.requestsPerSecond),
    p50: milliseconds(measured.p50Ms),
    p99: milliseconds(measured.p99Ms),
    floor: perSecond(least.requestsPerSecond),
    ratio,
    target: `≥ ${options.targetRatio} of the floor`,
    isMet: ratio >= options.targetRatio,
  };
}

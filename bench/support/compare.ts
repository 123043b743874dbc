import type { Load, LoadResult } from "./load.ts";
import { runLoad } from "./load.ts";
import { processorTime } from "./processor-time.ts";
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
 * rounds of three seconds. `targetRatio` is the minimum share of the floor's requests. `pid`: the server of both, whose processor time
 * for one request decides instead of the rates, since a busy machine changes it least.
 */
export async function compare(
  bench: Bench,
  options: { name: string; platform: Load; floor: Load; targetRatio: number; pid?: number },
): Promise<Result> {
  bench.note(options.name);
  const { pid, targetRatio } = options;
  const directory = bench.directory("load");
  const micros = { own: [] as number[], floor: [] as number[] };
  const timed = async (load: Load, into: number[]): Promise<LoadResult> => {
    let before = 0;
    const onWarm = () => {
      before = pid === undefined ? 0 : processorTime(pid);
    };
    const result = await runLoad(load, { seconds: ROUND_S, directory, onWarm });
    if (pid !== undefined) into.push((processorTime(pid) - before) / result.requests);
    return result;
  };
  const own: LoadResult[] = [];
  const floor: LoadResult[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    own.push(await timed(options.platform, micros.own));
    floor.push(await timed(options.floor, micros.floor));
  }
  const [measured, least] = [middle(own), middle(floor)];
  const ratio =
    pid === undefined
      ? measured.requestsPerSecond / least.requestsPerSecond
      : median(micros.floor) / median(micros.own);
  const text = ({ requestsPerSecond }: LoadResult, taken: readonly number[]) =>
    [...(taken.length === 0 ? [] : [`${median(taken).toFixed(0)} µs`]), perSecond(requestsPerSecond)].join(", ");
  return {
    name: options.name,
    measured: text(measured, micros.own),
    p50: milliseconds(measured.p50Ms),
    p99: milliseconds(measured.p99Ms),
    floor: text(least, micros.floor),
    ratio,
    target: pid === undefined ? `≥ ${targetRatio} of the floor` : `floor / own ≥ ${targetRatio}`,
    isMet: ratio >= targetRatio,
  };
}

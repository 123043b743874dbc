import { join } from "node:path";
import { type Load, type LoadResult, runLoad } from "../support/load.ts";
import { type Running, SERVICE_KEY, startPlatform } from "../support/processes.ts";
import { ownProcessorTime, processorTime } from "../support/processor-time.ts";
import type { Bench } from "../support/section.ts";
import { median } from "../support/statistics.ts";

const ROUNDS = 7;
const ROUND_S = 3;

/** Two servers with the same config, of which the first has a continuous backup. */
export interface Pair {
  beside: Running;
  alone: Running;
  /** Folder to which the first one stores. */
  store: string;
  directories: { beside: string; alone: string };
}

const configOf = (databases: string, store: string | null): string => `import { defineConfig } from "platform";

export default defineConfig({
  databases: ${databases},
  ${store === null ? "" : `backups: { continuous: { to: { folder: ${JSON.stringify(store)} } } },`}
});
`;

/** Starts both servers, runs `work`, and stops them. `databases`: their section of the config. */
export async function withPair<T>(
  bench: Bench,
  { name, databases }: { name: string; databases: string },
  work: (pair: Pair) => Promise<T>,
): Promise<T> {
  const directories = { beside: bench.directory(`${name}-beside`), alone: bench.directory(`${name}-alone`) };
  const store = join(bench.directory(`${name}-store`), "store");
  const beside = await startPlatform(bench.executable, directories.beside, configOf(databases, store));
  try {
    const alone = await startPlatform(bench.executable, directories.alone, configOf(databases, null));
    try {
      return await work({ beside, alone, store, directories });
    } finally {
      await alone.stop();
    }
  } finally {
    await beside.stop();
  }
}

export interface Compared {
  beside: LoadResult;
  alone: LoadResult;
  /** Median of the rounds' ratios. */
  rateRatio: number;
  p99Ratio: number;
  /** Microseconds of processor time per request: of the server itself, and of its processes. */
  own: { beside: number; alone: number };
  processes: { beside: number; alone: number };
}

/** Result of a load, with the processor time that the server, and its processes, have taken for it. */
interface Measured extends LoadResult {
  ownUs: number;
  processesUs: number;
}

async function measured({ url, pid }: Running, load: (url: string) => Load, directory: string): Promise<Measured> {
  const [own, all] = [ownProcessorTime(pid), processorTime(pid)];
  const result = await runLoad(load(url), { seconds: ROUND_S, directory });
  const ownUs = ownProcessorTime(pid) - own;
  return { ...result, ownUs, processesUs: processorTime(pid) - all - ownUs };
}

const middle = (results: readonly LoadResult[]): LoadResult => ({
  requests: median(results.map(({ requests }) => requests)),
  requestsPerSecond: median(results.map(({ requestsPerSecond }) => requestsPerSecond)),
  p50Ms: median(results.map(({ p50Ms }) => p50Ms)),
  p99Ms: median(results.map(({ p99Ms }) => p99Ms)),
});

/** Measures both servers in turns, each first in every other round, so that a machine that slows down affects both. */
export async function compareLoad(
  bench: Bench,
  { beside, alone }: Pair,
  load: (url: string) => Load,
): Promise<Compared> {
  const directory = bench.directory("load");
  const rounds: { beside: Measured; alone: Measured }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const isFirst = round % 2 === 0;
    const first = await measured(isFirst ? beside : alone, load, directory);
    const second = await measured(isFirst ? alone : beside, load, directory);
    rounds.push(isFirst ? { beside: first, alone: second } : { beside: second, alone: first });
  }
  // Requests of the time in which the load warms up are not counted in its result, but take their processor time: of both servers.
  const perRequest = (of: "ownUs" | "processesUs", server: "beside" | "alone"): number =>
    median(rounds.map((round) => round[server][of] / round[server].requests));
  return {
    own: { beside: perRequest("ownUs", "beside"), alone: perRequest("ownUs", "alone") },
    processes: { beside: perRequest("processesUs", "beside"), alone: perRequest("processesUs", "alone") },
    beside: middle(rounds.map((one) => one.beside)),
    alone: middle(rounds.map((one) => one.alone)),
    rateRatio: median(rounds.map((one) => one.beside.requestsPerSecond / one.alone.requestsPerSecond)),
    p99Ratio: median(rounds.map((one) => one.beside.p99Ms / one.alone.p99Ms)),
  };
}

export const HEADERS = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };

export async function post(url: string, body: unknown): Promise<void> {
  const response = await fetch(url, { method: "POST", headers: HEADERS, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 500)}`);
}

/** Calls `work` at this rate for `seconds`, whether earlier calls have ended or not; returns when all have. */
export async function atRate(
  { perSecond, seconds }: { perSecond: number; seconds: number },
  work: (index: number) => Promise<void>,
): Promise<void> {
  const startedAt = performance.now();
  const running = new Set<Promise<void>>();
  let begun = 0;
  while (performance.now() - startedAt < seconds * 1000) {
    const due = Math.floor(((performance.now() - startedAt) / 1000) * perSecond);
    for (; begun < due; begun++) {
      const one = work(begun).finally(() => running.delete(one));
      running.add(one);
    }
    await Bun.sleep(5);
  }
  await Promise.all(running);
}

export interface ContinuousHealth {
  lagMs: number;
  lastAt: string | null;
  uploads: number;
}

export async function continuousHealth(url: string): Promise<ContinuousHealth> {
  const response = await fetch(`${url}/api/health?full`, { headers: HEADERS });
  // The answer of a server that this run has started.
  const { checks } = (await response.json()) as { checks: { continuous: ContinuousHealth } };
  return checks.continuous;
}

/** Resolves when everything that was committed before is in the store, the first copies too. */
export async function untilStored(executable: string, { beside, store }: Pair): Promise<void> {
  const since = Date.now();
  for (;;) {
    const { lagMs, lastAt } = await continuousHealth(beside.url);
    const isLater = lastAt !== null && Date.parse(lastAt) > since;
    if (isLater && lagMs === 0 && Bun.spawnSync([executable, "history", store]).success) return;
    await Bun.sleep(100);
  }
}

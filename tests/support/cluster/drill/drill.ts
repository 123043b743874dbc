import { afterEach, expect } from "bun:test";
import { DrillCluster, eventually } from "./drill-cluster.ts";
import { LOAD_CONFIG, Load } from "./load.ts";

/** The time that a drill may take on a busy machine. */
export const DRILL_MS = 240_000;
/** Notes that are written before a fault, and behind it. */
const SOME = 30;
const LEASE_MS = 10_000;
/** A time without a sign of life that ends every lease. */
export const OVER_LEASE_MS = LEASE_MS + 3_000;

let cluster: DrillCluster | null = null;

/** Ends what a drill has left. */
export function endDrills(): void {
  afterEach(async () => {
    await cluster?.stop();
    cluster = null;
  }, 60_000);
}

/** Starts a cluster with a load, and waits until something is written. */
export async function begin(
  options: Partial<Parameters<typeof DrillCluster.start>[0]> = {},
): Promise<[DrillCluster, Load]> {
  cluster = await DrillCluster.start({ config: LOAD_CONFIG, ...options });
  const load = await Load.start(cluster);
  await writeMore(load);
  return [cluster, load];
}

/** Waits until more is acknowledged. */
export async function writeMore(load: Load): Promise<void> {
  const before = load.written;
  await eventually("more is written", () => load.written >= before + SOME);
}

/** Waits until so many requests have ended so since the start: the fault has struck. */
export const struck = (load: Load, what: string | RegExp, count = 1): Promise<void> =>
  eventually(`requests end with ${what}`, () => ended(load, what) >= count);

/** Number of requests that have ended so. */
export function ended({ history }: Load, what: string | RegExp): number {
  const matches = (name: string): boolean => (typeof what === "string" ? name === what : what.test(name));
  return [...history.tally.counts].reduce((sum, [name, count]) => sum + (matches(name) ? count : 0), 0);
}

/** Requires that since these counts were taken every request was answered, and that each says what is known of it. */
export function expectNoDoubt(load: Load, before: ReadonlyMap<string, number>): void {
  const doubtful = [...load.history.tally.counts].filter(
    // A busy machine may take longer than a request waits for an owner: then it was not done.
    ([name, count]) => /^(?:5|no answer)/.test(name) && name !== "503 no_owner" && count > (before.get(name) ?? 0),
  );
  expect(doubtful).toEqual([]);
}

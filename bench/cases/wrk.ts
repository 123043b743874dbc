import { median } from "../support/statistics.ts";

const ROUND_SECONDS = 3;
const ROUNDS = 5;

/** End of a wrk script, which prints what `compareByTurns` reads. */
export const WRK_RESULT = `done = function(summary, latency)
  local errors = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
  io.write(string.format("RESULT %f %f %d", summary.requests / summary.duration * 1e6, latency:percentile(99) / 1e3, errors))
end`;

interface Round {
  perSecond: number;
  p99Ms: number;
}

async function load(url: string, script: string, connections: number): Promise<Round> {
  const args = ["-t1", `-c${connections}`, `-d${ROUND_SECONDS}`, "-s", script, url];
  const wrk = Bun.spawn(["wrk", ...args], { stdout: "pipe", stderr: "inherit" });
  const [, perSecond, p99Ms, errors] = /RESULT (\S+) (\S+) (\d+)/.exec(await new Response(wrk.stdout).text()) ?? [];
  if (perSecond === undefined || errors !== "0")
    throw new Error(`wrk against ${url}: ${errors ?? "no"} errors reported`);
  return { perSecond: Number(perSecond), p99Ms: Number(p99Ms) };
}

/**
 * Measures the server and the floor alternately, so that fluctuations of the machine affect both, and returns medians. `script`:
 * the path of wrk's script.
 */
export async function compareByTurns(
  urls: readonly [ours: string, floor: string],
  { script, connections }: { script: string; connections: number },
): Promise<Round & { floorPerSecond: number }> {
  const rounds: [Round, Round][] = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push([await load(urls[0], script, connections), await load(urls[1], script, connections)]);
  }
  return {
    perSecond: median(rounds.map(([ours]) => ours.perSecond)),
    p99Ms: median(rounds.map(([ours]) => ours.p99Ms)),
    floorPerSecond: median(rounds.map(([, floor]) => floor.perSecond)),
  };
}

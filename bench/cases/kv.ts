import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { SERVICE_KEY, temporaryDirectory, testPlatform } from "../../tests/support/index.ts";

const CONNECTIONS = 32;
const ROUND_SECONDS = 3;
const ROUNDS = 5;
const KEYS = 10_000;

export interface KeyValueFigures {
  getPerSecond: number;
  getP99Ms: number;
  getFloorPerSecond: number;
  setPerSecond: number;
  setP99Ms: number;
  setFloorPerSecond: number;
}

interface Round {
  perSecond: number;
  p99Ms: number;
}

/** wrk's script: keys in an order that no cache likes, the member `value` for `set`. */
function script(directory: string, action: "get" | "set"): string {
  const path = join(directory, `${action}.lua`);
  const value = action === "set" ? ',"value":{"name":"somebody","visits":17}' : "";
  writeFileSync(
    path,
    `wrk.method = "POST"
     wrk.headers["content-type"] = "application/json"
     wrk.headers["x-platform-service-key"] = "${SERVICE_KEY}"
     local n = 0
     request = function()
       n = (n * 1103515245 + 12345) % 2147483648
       return wrk.format(nil, "/api/kv/cache", nil, '{"action":"${action}","key":"user/' .. (n % ${KEYS}) .. '"${value}}')
     end
     done = function(summary, latency)
       local errors = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
       io.write(string.format("RESULT %f %f %d", summary.requests / summary.duration * 1e6, latency:percentile(99) / 1e3, errors))
     end`,
  );
  return path;
}

async function load(url: string, path: string): Promise<Round> {
  const args = ["-t1", `-c${CONNECTIONS}`, `-d${ROUND_SECONDS}`, "-s", path, url];
  const wrk = Bun.spawn(["wrk", ...args], { stdout: "pipe", stderr: "inherit" });
  const [, perSecond, p99Ms, errors] = /RESULT (\S+) (\S+) (\d+)/.exec(await new Response(wrk.stdout).text()) ?? [];
  if (perSecond === undefined || errors !== "0")
    throw new Error(`wrk against ${url}: ${errors ?? "no"} errors reported`);
  return { perSecond: Number(perSecond), p99Ms: Number(p99Ms) };
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

/** The server and the floor by turns, so that the machine's moods meet both. */
async function compare(urls: readonly [ours: string, floor: string], path: string) {
  const rounds: [Round, Round][] = [];
  for (let round = 0; round < ROUNDS; round++) rounds.push([await load(urls[0], path), await load(urls[1], path)]);
  return {
    perSecond: median(rounds.map(([ours]) => ours.perSecond)),
    p99Ms: median(rounds.map(([ours]) => ours.p99Ms)),
    floorPerSecond: median(rounds.map(([, floor]) => floor.perSecond)),
  };
}

/** Get and set of single keys, 32 clients. */
export async function measureKeyValue(): Promise<KeyValueFigures> {
  const directory = temporaryDirectory();
  const platform = await testPlatform({ config: { kv: { cache: {} }, analytics: { requestLog: false } } });
  const floor = Bun.spawn([process.execPath, join(import.meta.dir, "../kv-floor.ts"), join(directory, "floor.db")], {
    ...{ stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  });
  try {
    const { value } = await floor.stdout.getReader().read();
    const urls = [platform.url, new TextDecoder().decode(value).trim()] as const;
    // Sets first: they make the keys that are got.
    const set = await compare(urls, script(directory, "set"));
    const get = await compare(urls, script(directory, "get"));
    return {
      ...{ getPerSecond: get.perSecond, getP99Ms: get.p99Ms, getFloorPerSecond: get.floorPerSecond },
      ...{ setPerSecond: set.perSecond, setP99Ms: set.p99Ms, setFloorPerSecond: set.floorPerSecond },
    };
  } finally {
    floor.kill();
    await platform.stop();
  }
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(await measureKeyValue(), null, 2)}\n`);

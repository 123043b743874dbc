import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { SERVICE_KEY, temporaryDirectory, testPlatform } from "../../tests/support/index.ts";
import { compareByTurns, WRK_RESULT } from "./wrk.ts";

const CONNECTIONS = 32;
const KEYS = 10_000;

export interface KeyValueFigures {
  getPerSecond: number;
  getP99Ms: number;
  getFloorPerSecond: number;
  setPerSecond: number;
  setP99Ms: number;
  setFloorPerSecond: number;
}

/** Writes wrk's script: keys in a cache-unfriendly order, the member `value` for `set`. */
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
     ${WRK_RESULT}`,
  );
  return path;
}

/** Measures get and set of single keys with 32 clients. */
export async function measureKeyValue(): Promise<KeyValueFigures> {
  const directory = temporaryDirectory();
  const platform = await testPlatform({ config: { kv: { cache: {} } } });
  const floor = Bun.spawn([process.execPath, join(import.meta.dir, "../kv-floor.ts"), join(directory, "floor.db")], {
    ...{ stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  });
  try {
    const { value } = await floor.stdout.getReader().read();
    const urls = [platform.url, new TextDecoder().decode(value).trim()] as const;
    // Sets come first: they create the keys to get.
    const set = await compareByTurns(urls, { script: script(directory, "set"), connections: CONNECTIONS });
    const get = await compareByTurns(urls, { script: script(directory, "get"), connections: CONNECTIONS });
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

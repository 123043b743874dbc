import { writeFileSync } from "node:fs";
import { join } from "node:path";

export const CONNECTIONS = 32;
const WARM_UP_S = 1;

export interface Load {
  url: string;
  method?: "GET" | "POST" | "PATCH";
  headers?: Record<string, string>;
  body?: string;
  /** Suffixes of `url`, used in random order: requests for many records instead of one. */
  suffixes?: readonly string[];
  /** Whether to use the suffixes in order. */
  isInOrder?: boolean;
  /** Header with a unique value in each request, across runs. */
  freshHeader?: string;
  /** Number of connections; 32 by default. */
  connections?: number;
  /** Pause of each connection before a request; 0 by default. */
  delayMs?: number;
}

export interface LoadResult {
  requests: number;
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
}

interface WrkReport {
  requests: number;
  durationUs: number;
  p50Us: number;
  p99Us: number;
  statusErrors: number;
  socketErrors: number;
}

const lua = (text: string): string => `"${text.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n")}"`;

/** Returns a wrk script: what to send, and the numbers as JSON at the end. */
function scriptOf(load: Load): string {
  const { pathname, search } = new URL(load.url);
  const headers = Object.entries(load.headers ?? {}).map(
    ([name, value]) => `wrk.headers[${lua(name)}] = ${lua(value)}`,
  );
  const paths = (load.suffixes ?? []).map((suffix) => lua(`${pathname}${search}${suffix}`));
  return [
    `wrk.method = ${lua(load.method ?? "GET")}`,
    ...(load.body === undefined
      ? []
      : [`wrk.body = ${lua(load.body)}`, `wrk.headers["Content-Type"] = "application/json"`]),
    ...headers,
    // Requests are prepared before the measurement, as the generator shares the server's machine.
    ...(paths.length === 0
      ? []
      : [
          `local paths = {${paths.join(",")}}`,
          "local requests = {}",
          "function init() for i, path in ipairs(paths) do requests[i] = wrk.format(nil, path) end end",
          ...(load.isInOrder === true
            ? ["local place = 0", "function request() place = place % #requests + 1 return requests[place] end"]
            : ["function request() return requests[math.random(#requests)] end"]),
        ]),
    ...(load.delayMs === undefined ? [] : [`function delay() return ${load.delayMs} end`]),
    ...(load.freshHeader === undefined
      ? []
      : [
          // The address of a new table, and the time: no other run has both.
          `local prefix = string.gsub(tostring({}), "[^%w]", "") .. "-" .. os.time() .. "-"`,
          "local count = 0",
          "function request()",
          "  count = count + 1",
          `  wrk.headers[${lua(load.freshHeader)}] = prefix .. count`,
          "  return wrk.format()",
          "end",
        ]),
    "function done(summary, latency)",
    "  local e = summary.errors",
    `  io.write(string.format('\\n{"requests":%d,"durationUs":%d,"p50Us":%f,"p99Us":%f,"statusErrors":%d,"socketErrors":%d}',`,
    "    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), e.status,",
    "    e.connect + e.read + e.write + e.timeout))",
    "end",
  ].join("\n");
}

async function wrk(load: Load, seconds: number, scriptFile: string): Promise<LoadResult> {
  const connections = String(load.connections ?? CONNECTIONS);
  const command = ["wrk", "-t1", "-c", connections, "-d", `${seconds}s`, "-s", scriptFile, load.url];
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(`wrk failed: ${errors}${output}`);
  // wrk prints this last, as the script above defines.
  const report = JSON.parse(output.trim().split("\n").at(-1) ?? "") as WrkReport;
  if (report.statusErrors > 0 || report.socketErrors > 0) {
    const answer = await fetch(load.url, { method: load.method ?? "GET", headers: load.headers ?? {} });
    throw new Error(
      `${load.url}: ${report.statusErrors} answers were errors, ${report.socketErrors} connections failed; ` +
        `alone it answers ${answer.status} ${(await answer.text()).slice(0, 500)}`,
    );
  }
  return {
    requests: report.requests,
    requestsPerSecond: (report.requests / report.durationUs) * 1e6,
    p50Ms: report.p50Us / 1000,
    p99Ms: report.p99Us / 1000,
  };
}

/** Sends requests for `seconds`, after an uncounted second. Throws on any status outside 2xx and 3xx. */
export async function runLoad(
  load: Load,
  options: { seconds: number; directory: string; onWarm?: () => void },
): Promise<LoadResult> {
  const scriptFile = join(options.directory, `load-${Bun.randomUUIDv7()}.lua`);
  writeFileSync(scriptFile, scriptOf(load));
  if (Bun.which("wrk") === null) {
    throw new Error("The load generator wrk is needed: `apt-get install wrk`, or `brew install wrk`");
  }
  await wrk(load, WARM_UP_S, scriptFile);
  options.onWarm?.();
  return wrk(load, options.seconds, scriptFile);
}

import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Running, residentBytes, SERVICE_KEY, startPlatform } from "../support/processes.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { median, milliseconds } from "../support/statistics.ts";

const STARTS = 15;
const COLD_START_MAX_MS = 100;
const SETTLE_MS = 5_000;
const IDLE_MAX_BYTES = 80e6;
const INSTANCES = 10_000;
const INSTANCES_MAX_BYTES = 250e6;
const REQUESTS_AT_ONCE = 32;

const CONFIG = `import { defineConfig } from "platform";

const notes = {
  schema: { title: { type: "string", required: true }, text: { type: "text" } },
  access: { read: true, insert: true, upsert: "matching" },
} as const;
export default defineConfig({
  databases: {
    shared: { tables: { notes } },
    workspaces: { instance: true, access: { create: true, open: true }, tables: { notes } },
  },
});
`;

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

function memoryResult(name: string, bytes: number, maxBytes: number): Result {
  const target = `≤ ${megabytes(maxBytes)}`;
  const nothing = { p50: null, p99: null, floor: null, ratio: null };
  return { name, measured: megabytes(bytes), ...nothing, target, isMet: bytes <= maxBytes };
}

async function coldStart(bench: Bench): Promise<Result> {
  bench.note("cold start");
  const directory = bench.directory("cold-start");
  const timesMs: number[] = [];
  for (let turn = 0; turn < STARTS; turn++) {
    rmSync(join(directory, "data"), { recursive: true, force: true });
    const startedAt = performance.now();
    const platform = await startPlatform(bench.executable, directory, CONFIG);
    const response = await fetch(`${platform.url}/api/db/shared/tables/notes`);
    await response.text();
    timesMs.push(performance.now() - startedAt);
    await platform.stop();
    if (!response.ok) throw new Error(`the first request was answered ${response.status}`);
  }
  const ms = median(timesMs);
  return {
    ...{ name: "cold start to the first answered request", measured: milliseconds(ms) },
    p50: milliseconds(ms),
    p99: null,
    ...{ floor: null, ratio: null, target: `≤ ${COLD_START_MAX_MS} ms`, isMet: ms <= COLD_START_MAX_MS },
  };
}

/** Inserts one record into each instance, some requests concurrently. */
async function touchInstances(platform: Running): Promise<void> {
  const headers = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };
  let next = 0;
  const touch = async () => {
    while (next < INSTANCES) {
      const url = `${platform.url}/api/db/workspaces/team-${next++}/tables/notes`;
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ title: "first" }) });
      await response.text();
      if (response.status !== 201) throw new Error(`${url} answered ${response.status}`);
    }
  };
  await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, touch));
}

async function memory(bench: Bench): Promise<Result[]> {
  const platform = await startPlatform(bench.executable, bench.directory("memory"), CONFIG);
  try {
    bench.note("idle memory");
    await Bun.sleep(SETTLE_MS);
    const idle = residentBytes(platform.pid);
    bench.note("memory with many instances");
    await touchInstances(platform);
    await Bun.sleep(SETTLE_MS);
    return [
      memoryResult("idle memory", idle, IDLE_MAX_BYTES),
      memoryResult(
        `memory after ${INSTANCES.toLocaleString("en")} instance files were made, one record in each`,
        residentBytes(platform.pid),
        INSTANCES_MAX_BYTES,
      ),
    ];
  } finally {
    await platform.stop();
  }
}

export const processSection: Section = {
  name: "process",
  title: "The process",
  about: `The compiled executable on an empty data directory. Cold start: from starting the process to the last byte of the answer to a
list, median of ${STARTS}. Memory: resident (RSS), ${SETTLE_MS / 1000} s after the start or the last request.`,
  async run(bench) {
    return [await coldStart(bench), ...(await memory(bench))];
  },
};

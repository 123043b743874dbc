import type { StallArea } from "../stalls/area.ts";
import { fileStalls } from "../stalls/files.ts";
import { httpStalls } from "../stalls/http.ts";
import { type Measured, measure } from "../stalls/measure.ts";
import { nativeStalls } from "../stalls/native.ts";
import { productStalls } from "../stalls/products.ts";
import { shapeStalls } from "../stalls/shapes.ts";
import { socketStalls } from "../stalls/sockets.ts";
import { tableStalls } from "../stalls/tables.ts";
import { startPlatform } from "../support/processes.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { milliseconds } from "../support/statistics.ts";

const HEALTH_P99_MAX_MS = 50;
const MEMORY_MAX_BYTES = 512e6;

const AREAS: readonly StallArea[] = [
  tableStalls,
  fileStalls,
  nativeStalls,
  httpStalls,
  socketStalls,
  productStalls,
  shapeStalls,
];

const statuses = (counts: Record<string, number>): string =>
  Object.entries(counts)
    .map(([status, count]) => `${count} × ${status}`)
    .join(", ");

function line(area: string, { name, probe, clients, memoryBytes }: Measured): Result {
  const megabytes = Math.max(0, Math.round(memoryBytes / 1e6));
  return {
    name: `${area}: ${name}`,
    measured: `longest ${milliseconds(probe.maxMs)}, + ${megabytes} MB (${statuses(clients.statuses)})`,
    p50: milliseconds(probe.p50Ms),
    p99: milliseconds(probe.p99Ms),
    floor: null,
    ratio: null,
    target: `p99 < ${HEALTH_P99_MAX_MS} ms, + < ${MEMORY_MAX_BYTES / 1e6} MB`,
    isMet: probe.p99Ms < HEALTH_P99_MAX_MS && probe.failures === 0 && memoryBytes < MEMORY_MAX_BYTES,
  };
}

async function measureArea(bench: Bench, area: StallArea): Promise<Result[]> {
  const server = await startPlatform(bench.executable, bench.directory(`stalls-${area.name}`), area.config);
  try {
    bench.note(`stalls: filling ${area.name}`);
    const operations = await area.prepare(server);
    const results: Result[] = [];
    for (const operation of operations) results.push(line(area.name, await measure(bench, server, operation)));
    return results;
  } finally {
    await server.stop();
  }
}

export const stalls: Section = {
  name: "stalls",
  title: "Stalls",
  about: `What one client can do at the largest input that the bounds allow, by 8 clients at once unless the line says otherwise, for five
seconds each; p50, p99 and the longest are those of \`/api/health\` (where the line begins with GET, of that), asked for every 5 ms meanwhile by another process. Memory: the most
that the server's process held, over what it held before. In brackets: the answers.`,
  async run(bench) {
    const results: Result[] = [];
    for (const area of AREAS) results.push(...(await measureArea(bench, area)));
    return results;
  },
};

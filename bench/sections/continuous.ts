import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  atRate,
  type Compared,
  compareLoad,
  continuousHealth,
  type Pair,
  post,
  untilStored,
  withPair,
} from "../cases/continuous.ts";
import { proportionalBytes, residentBytes } from "../support/processes.ts";
import { processorTime } from "../support/processor-time.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { milliseconds, perSecond, quantile } from "../support/statistics.ts";

const RATE_RATIO_MIN = 0.93;
const READ_RATIO_MIN = 0.97;
const P99_RATIO_MAX = 1.2;
const INSTANCES = 10_000;
const REQUESTS_AT_ONCE = 32;
const SPREAD_PER_SECOND = 100;
const SPREAD_S = 20;
const CPU_MAX_PERCENT = 5;
const INSERTS_PER_SECOND = 5_000;
const INSERTS_AT_ONCE = 10;
const LAG_S = 20;
const LAG_SAMPLE_MS = 50;
const LAG_MAX_MS = 1_500;
const MEMORY_MAX_BYTES = 32 * 1024 ** 2;
const BIG_ROWS = 1_000_000;
const BIG_BATCH = 500;
const DAY_CHANGES = 86_400;
const RESTORE_MAX_MS = 60_000;
const BYTES_PER_MIB = 1024 ** 2;

const DATABASES = `{
    shared: { tables: { posts: { schema: { title: { type: "string" }, body: { type: "text" }, score: { type: "number" } },
      access: { read: true, insert: true, upsert: "matching" } } } },
    workspaces: { instance: true, tables: { notes: { schema: { title: { type: "string" } }, access: {} } } },
  }`;
const BODY = "A paragraph of text that says what happened, to whom, and what came of it in the end. ".repeat(3);
const record = { title: "What happened on the day", body: BODY, score: 50 };

const line = (name: string, measured: string): Result => ({
  ...{ name, measured, p50: null, p99: null, floor: null, ratio: null, target: null, isMet: null },
});

function compared(name: string, { beside, alone, rateRatio, p99Ratio }: Compared, ratioMin: number): Result[] {
  const rate: Result = {
    ...line(name, perSecond(beside.requestsPerSecond)),
    ...{ p50: milliseconds(beside.p50Ms), p99: milliseconds(beside.p99Ms) },
    ...{ floor: perSecond(alone.requestsPerSecond), ratio: rateRatio },
    ...{ target: `≥ ${ratioMin} of the floor`, isMet: rateRatio >= ratioMin },
  };
  const p99: Result = {
    ...line(`${name}: p99`, milliseconds(beside.p99Ms)),
    ...{ floor: milliseconds(alone.p99Ms), ratio: p99Ratio },
    ...{ target: `≤ ${P99_RATIO_MAX} × the floor`, isMet: p99Ratio <= P99_RATIO_MAX },
  };
  return [rate, p99];
}

async function requests(bench: Bench, pair: Pair): Promise<Result[]> {
  const posts = (url: string) => `${url}/api/db/shared/tables/posts`;
  for (const { url } of [pair.beside, pair.alone]) {
    const inserts = Array.from({ length: BIG_BATCH }, (_, index) => ({ id: `post-${index}`, ...record }));
    await post(`${posts(url)}/batch`, { inserts });
  }
  await untilStored(bench.executable, pair);
  bench.note("GET without and with a continuous backup");
  const suffixes = Array.from({ length: BIG_BATCH }, (_, index) => `/post-${index}`);
  const reads = await compareLoad(bench, pair, (url) => ({ url: posts(url), suffixes }));
  bench.note("POST without and with a continuous backup");
  const body = JSON.stringify(record);
  const writes = await compareLoad(bench, pair, (url) => ({ url: posts(url), method: "POST", body }));
  return [
    ...compared("POST one record, 32 clients", writes, RATE_RATIO_MIN),
    ...processorTimes(writes),
    ...compared("GET one record, 32 clients", reads, READ_RATIO_MIN).slice(0, 1),
  ];
}

function processorTimes({ own, processes }: Compared): Result[] {
  const micros = (us: number): string => `${us.toFixed(1)} µs`;
  return [
    {
      ...line("POST: processor time of the server itself", micros(own.beside)),
      ...{ floor: micros(own.alone), ratio: own.beside / own.alone },
    },
    {
      ...line("POST: processor time of its processes, with the one that stores", micros(processes.beside)),
      floor: micros(processes.alone),
    },
  ];
}

/** Returns the memory of a server with its processes. */
function memoryOf(pid: number, bytesOf: (pid: number) => number): number {
  const found = Bun.spawnSync(["ps", "-o", "pid=", "--ppid", String(pid)]).stdout.toString();
  const children = found
    .split("\n")
    .map(Number)
    .filter((child) => child > 0);
  return [pid, ...children].reduce((sum, one) => sum + bytesOf(one), 0);
}

async function memory(bench: Bench, pair: Pair): Promise<Result[]> {
  bench.note("memory");
  await Bun.sleep(5_000);
  const mib = (bytes: number): string => `${Math.round(bytes / BYTES_PER_MIB)} MiB`;
  const [beside, alone] = [memoryOf(pair.beside.pid, proportionalBytes), memoryOf(pair.alone.pid, proportionalBytes)];
  const resident = [memoryOf(pair.beside.pid, residentBytes), memoryOf(pair.alone.pid, residentBytes)] as const;
  const more = Math.max(0, beside - alone);
  return [
    {
      ...line("memory more (PSS), after that, with the process that stores", mib(more)),
      floor: mib(alone),
      ...{ target: "≤ 32 MiB", isMet: more <= MEMORY_MAX_BYTES },
    },
    {
      ...line(
        "the same as resident memory, in which the executable counts in each process",
        mib(resident[0] - resident[1]),
      ),
      floor: mib(resident[1]),
    },
  ];
}

async function lag(bench: Bench, pair: Pair): Promise<Result[]> {
  bench.note(`lag at ${INSERTS_PER_SECOND} inserts a second`);
  const samples: number[] = [];
  let isOver = false;
  const watch = async (): Promise<void> => {
    while (!isOver) {
      samples.push((await continuousHealth(pair.beside.url)).lagMs);
      await Bun.sleep(LAG_SAMPLE_MS);
    }
  };
  const watching = watch();
  const inserts = Array.from({ length: INSERTS_AT_ONCE }, () => record);
  const url = `${pair.beside.url}/api/db/shared/tables/posts/batch`;
  await atRate({ perSecond: INSERTS_PER_SECOND / INSERTS_AT_ONCE, seconds: LAG_S }, () => post(url, { inserts }));
  isOver = true;
  await watching;
  const p99Ms = quantile(samples, 0.99);
  return [
    {
      ...line(`lag at ${INSERTS_PER_SECOND.toLocaleString("en")} inserts/s, every second`, milliseconds(p99Ms)),
      ...{ p50: milliseconds(quantile(samples, 0.5)), p99: milliseconds(p99Ms) },
      ...{ target: `p99 ≤ ${LAG_MAX_MS} ms`, isMet: p99Ms <= LAG_MAX_MS },
    },
  ];
}

const instance = (url: string, index: number) => `${url}/api/db/workspaces/team-${index}/tables/notes`;

async function instances(bench: Bench, pair: Pair): Promise<Result[]> {
  const loads: { percent: number; uploads: number }[] = [];
  for (const { url, pid } of [pair.beside, pair.alone]) {
    bench.note(`making ${INSTANCES} instances`);
    let next = 0;
    const make = async (): Promise<void> => {
      while (next < INSTANCES) await post(instance(url, next++), { title: "first" });
    };
    await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, make));
    if (pid === pair.beside.pid) await untilStored(bench.executable, pair);
    bench.note(`${SPREAD_PER_SECOND} writes a second, spread over them`);
    const [segments, used] = [segmentCount(pair), processorTime(pid)];
    await atRate({ perSecond: SPREAD_PER_SECOND, seconds: SPREAD_S }, (index) =>
      post(instance(url, (index * 7919) % INSTANCES), { title: "later" }),
    );
    const percent = (processorTime(pid) - used) / 1e4 / SPREAD_S;
    loads.push({ percent, uploads: segmentCount(pair) - segments });
  }
  const [beside, alone] = loads;
  if (beside === undefined || alone === undefined) return [];
  const perInterval = beside.uploads / SPREAD_S;
  const more = beside.percent - alone.percent;
  const name = `${INSTANCES.toLocaleString("en")} instances, ${SPREAD_PER_SECOND} writes/s spread over them`;
  return [
    {
      ...line(`${name}: objects stored an interval`, perInterval.toFixed(2)),
      ...{ target: "one", isMet: perInterval <= 1.05 },
    },
    {
      ...line(`${name}: processor time more`, `${more.toFixed(1)} % of a core`),
      ...{ floor: `${alone.percent.toFixed(1)} %`, target: `≤ ${CPU_MAX_PERCENT} %`, isMet: more <= CPU_MAX_PERCENT },
    },
  ];
}

const segmentCount = ({ store }: Pair): number => readdirSync(join(store, "segments")).length;

async function restore(bench: Bench, pair: Pair): Promise<Result[]> {
  bench.note(`filling ${BIG_ROWS} rows`);
  const posts = `${pair.beside.url}/api/db/shared/tables/posts`;
  for (let index = 0; index < BIG_ROWS; index += BIG_BATCH) {
    const inserts = Array.from({ length: BIG_BATCH }, (_, at) => ({
      ...{ id: `row-${index + at}`, title: crypto.randomUUID(), score: index + at },
      body: `${BODY}${BODY}${crypto.randomUUID()}`,
    }));
    await post(`${posts}/batch`, { inserts });
  }
  await untilStored(bench.executable, pair);
  bench.note(`${DAY_CHANGES} changes`);
  let next = 0;
  const change = async (): Promise<void> => {
    while (next < DAY_CHANGES) {
      const id = `row-${(next++ * 7919) % BIG_ROWS}`;
      await post(`${posts}?upsert=true`, { ...record, id, title: crypto.randomUUID() });
    }
  };
  await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, change));
  await untilStored(bench.executable, pair);
  bench.note("a restore");
  const startedAt = performance.now();
  const to = join(bench.directory("continuous-restored"), "data");
  const child = Bun.spawn([bench.executable, "restore", pair.store, "--data", to], {
    ...{ stdin: "ignore", stdout: "ignore", stderr: "pipe" },
  });
  const errors = await child.stderr.text();
  if ((await child.exited) !== 0) throw new Error(`restore failed: ${errors}`);
  const tookMs = performance.now() - startedAt;
  const mib = Math.round(statSync(join(to, "databases/shared.db")).size / BYTES_PER_MIB);
  const segments = segmentCount(pair).toLocaleString("en");
  return [
    {
      ...line(
        `restoring ${mib} MiB with ${DAY_CHANGES.toLocaleString("en")} changes, ${segments} segments`,
        milliseconds(tookMs),
      ),
      ...{ target: `≤ ${RESTORE_MAX_MS / 1000} s`, isMet: tookMs <= RESTORE_MAX_MS },
    },
  ];
}

export const continuous: Section = {
  name: "continuous",
  title: "Continuous backup",
  about: `Two servers with the same config, one of them with \`backups.continuous\` to a folder on the same disk, every second; the floor is the one without. Requests of
wrk in turns, seven rounds of three seconds each, each server first in every other round: medians of the rounds and of their ratios. Changes of a day: one record each, ${DAY_CHANGES.toLocaleString("en")} of them, made as fast as they are taken.`,
  async run(bench) {
    const results = await withPair(bench, { name: "continuous", databases: DATABASES }, async (pair) => [
      ...(await requests(bench, pair)),
      ...(await lag(bench, pair)),
      ...(await memory(bench, pair)),
      ...(await instances(bench, pair)),
    ]);
    const restored = await withPair(bench, { name: "restored", databases: DATABASES }, (pair) => restore(bench, pair));
    return [...results, ...restored];
  },
};

import { join } from "node:path";
import { runLoad } from "../support/load.ts";
import { type Running, residentBytes, SERVICE_KEY, startPlatform } from "../support/processes.ts";
import type { Bench } from "../support/section.ts";

export const JOBS_PER_SECOND = 1_000;
export const GETS_PER_SECOND = 5_000;
export const WAITING = 1_000_000;
const SECONDS = 20;
const LOAD_SECONDS = 12;
const CONNECTIONS = 64;
const POLL_MS = 100;
const SETTLE_MS = 3_000;
const MEGABYTE = 1024 * 1024;

/** Config of the server under test. Inserting a row starts a task, and the key-value namespace holds its result. */
const CONFIG = `
const delays = [];
const percentile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
const works = {
  /** Enqueues small jobs at a steady rate, and waits until all have run. */
  async produce({ app }) {
    delays.length = 0;
    const startedAt = performance.now();
    let enqueued = 0;
    const pending = [];
    while (performance.now() - startedAt < ${SECONDS * 1_000}) {
      const due = Math.floor((performance.now() - startedAt) * ${JOBS_PER_SECOND / 1_000});
      for (; enqueued < due; enqueued++) pending.push(app.jobs.enqueue("small", { at: performance.now() }));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await Promise.all(pending);
    while (delays.length < enqueued) await new Promise((resolve) => setTimeout(resolve, 5));
    const seconds = (performance.now() - startedAt) / 1000;
    const sorted = [...delays].sort((one, other) => one - other);
    return { perSecond: enqueued / seconds, p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99) };
  },
  async fill({ app }) {
    for (let added = 0; added < ${WAITING}; added += 2000) {
      const jobs = Array.from({ length: 2000 }, () => app.jobs.enqueue("later", { n: 1 }, { delay: 1e6 }));
      await Promise.all(jobs);
    }
    return {};
  },
  async enqueue({ app }) {
    const times = [];
    for (let round = 0; round < 300; round++) {
      const startedAt = performance.now();
      await Promise.all(Array.from({ length: 100 }, () => app.jobs.enqueue("later", { n: 1 }, { delay: 1e6 })));
      times.push(performance.now() - startedAt);
    }
    const sorted = times.sort((one, other) => one - other);
    return { p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99) };
  },
};
export default {
  kv: { results: {} },
  databases: { shared: { tables: {
    items: { access: { read: true } },
    asked: { access: { insert: true }, hooks: {
      afterInsert: (_auth, asked, app) => app.jobs.enqueue("work", { name: asked.name, id: asked.id }),
    } },
  } } },
  jobs: {
    small: { run: ({ data }) => void delays.push(performance.now() - data.at) },
    later: { run() {} },
    work: { timeout: 600, retries: 0, run: async ({ data, app }) => {
      await app.kv("results").set(data.id, await works[data.name]({ app }));
    } },
  },
};
`;

const headers = { "x-platform-service-key": SERVICE_KEY, "content-type": "application/json" };

async function post<T>(url: string, body: object): Promise<T> {
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  // The config above determines the types.
  return (await response.json()) as T;
}

interface Figures {
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
}

/** Runs one task on the server, and returns its figures. */
async function work(platform: Running, name: "produce" | "fill" | "enqueue"): Promise<Figures> {
  const id = Bun.randomUUIDv7();
  await post(`${platform.url}/api/db/shared/tables/asked`, { id, name });
  for (;;) {
    const { value } = await post<{ value: Figures | null }>(`${platform.url}/api/kv/results`, {
      action: "get",
      key: id,
    });
    if (value !== null) return value;
    await Bun.sleep(POLL_MS);
  }
}

export interface JobFigures {
  jobs: Figures;
  gets: { perSecond: number; p50Ms: number; p99Ms: number };
  enqueueEmpty: { p50Ms: number; p99Ms: number };
  enqueueFull: { p50Ms: number; p99Ms: number };
  /** Additional resident memory, in bytes, of a started server with a million waiting jobs. */
  waitingBytes: number;
  databaseBytes: number;
}

export async function measureJobs(bench: Bench): Promise<JobFigures> {
  const directory = bench.directory("jobs");
  const start = () => startPlatform(bench.executable, directory, CONFIG);
  let platform = await start();
  try {
    await post(`${platform.url}/api/db/shared/tables/items`, { id: "one", title: "An item", n: 1 });
    bench.note("jobs beside requests");
    const produced = work(platform, "produce");
    const load = {
      url: `${platform.url}/api/db/shared/tables/items/one`,
      connections: CONNECTIONS,
      // The remaining millisecond is the time of the request itself.
      delayMs: Math.floor((CONNECTIONS * 1_000) / GETS_PER_SECOND) - 1,
    };
    const gets = await runLoad(load, { seconds: LOAD_SECONDS, directory });
    const jobs = await produced;

    bench.note("a million waiting jobs");
    const enqueueEmpty = await work(platform, "enqueue");
    const rested = async () => {
      await platform.stop();
      platform = await start();
      await Bun.sleep(SETTLE_MS);
      return residentBytes(platform.pid);
    };
    const before = await rested();
    await work(platform, "fill");
    const enqueueFull = await work(platform, "enqueue");
    const waitingBytes = (await rested()) - before;
    return {
      jobs,
      gets: { perSecond: gets.requestsPerSecond, p50Ms: gets.p50Ms, p99Ms: gets.p99Ms },
      enqueueEmpty,
      enqueueFull,
      waitingBytes,
      databaseBytes: Bun.file(join(directory, "data/jobs.db")).size,
    };
  } finally {
    await platform.stop();
  }
}

export const megabytes = (bytes: number): string => `${(bytes / MEGABYTE).toFixed(1)} MB`;

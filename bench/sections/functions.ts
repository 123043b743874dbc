import { GETS_PER_SECOND, JOBS_PER_SECOND, measureJobs, megabytes, WAITING } from "../cases/jobs.ts";
import { compare } from "../support/compare.ts";
import type { Load } from "../support/load.ts";
import { startPlatform } from "../support/processes.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { latency, plain, rate } from "./figures.ts";

const GET_P99_TARGET_MS = 20;
const START_P99_TARGET_MS = 100;
const WAITING_TARGET_BYTES = 30 * 1024 * 1024;
/** Maximum latency of an enqueue beside a million waiting jobs, relative to before. */
const ENQUEUE_RATIO_MAX = 1.25;

/** Minimum rate of writes that fire a trigger, relative to those that do not. */
const TRIGGERED_RATIO_MIN = 0.85;

const TRIGGER_CONFIG = `export default {
  databases: { shared: { tables: { watched: { access: { insert: true } }, unwatched: { access: { insert: true } } } } },
  triggers: { noticed: { on: { table: "shared.watched" }, run: () => {} } },
};
`;

async function measureTrigger(bench: Bench): Promise<Result[]> {
  const platform = await startPlatform(bench.executable, bench.directory("triggers"), TRIGGER_CONFIG);
  const insertInto = (table: string, connections: number): Load => ({
    url: `${platform.url}/api/db/shared/tables/${table}`,
    method: "POST",
    body: JSON.stringify({ title: "An order", cents: 450, status: "open" }),
    connections,
  });
  try {
    const rows: Result[] = [];
    for (const connections of [1, 32]) {
      const name = `POST one record that sets off a trigger, ${connections === 1 ? "one client" : `${connections} clients`}`;
      const watched = insertInto("watched", connections);
      rows.push(
        await compare(bench, {
          name,
          platform: watched,
          floor: insertInto("unwatched", connections),
          targetRatio: TRIGGERED_RATIO_MIN,
        }),
      );
    }
    return rows;
  } finally {
    await platform.stop();
  }
}

export const functions: Section = {
  name: "functions",
  title: "Jobs",
  about: `Jobs are enqueued by a job of the config for 20 s, ${JOBS_PER_SECOND.toLocaleString("en")} a second with the default concurrency of 4; beside them wrk reads one
record about ${GETS_PER_SECOND.toLocaleString("en")} times a second over 64 connections. The delay is from the call of \`enqueue\` to the start of \`run\`, with the
transactions of both. Memory is that of a server that has just been started on the directory, with and without ${WAITING.toLocaleString("en")} waiting jobs. Enqueueing
is 100 jobs at once until all are on disk, 300 times; the floor is the same before there were any. The floor of a write that sets off a trigger is the same insert into a table without one; the runs, which do
nothing, and their jobs go on beside the inserts.`,
  async run(bench) {
    const { jobs, gets, enqueueEmpty, enqueueFull, waitingBytes, databaseBytes } = await measureJobs(bench);
    const full = latency("enqueue 100 jobs beside a million", enqueueFull, enqueueEmpty.p50Ms);
    return [
      {
        ...rate("small jobs", { perSecond: jobs.perSecond, unit: "jobs" }),
        ...{ target: `≥ ${JOBS_PER_SECOND * 0.99}/s`, isMet: jobs.perSecond >= JOBS_PER_SECOND * 0.99 },
      },
      {
        ...latency("delay until a job starts", jobs),
        ...{ target: `p99 < ${START_P99_TARGET_MS} ms`, isMet: jobs.p99Ms < START_P99_TARGET_MS },
      },
      {
        ...rate("GET one record beside them", gets),
        ...{ target: `p99 < ${GET_P99_TARGET_MS} ms`, isMet: gets.p99Ms < GET_P99_TARGET_MS },
      },
      {
        ...plain("memory of a million waiting jobs", megabytes(waitingBytes)),
        ...{ target: `≤ ${megabytes(WAITING_TARGET_BYTES)}`, isMet: waitingBytes <= WAITING_TARGET_BYTES },
      },
      {
        ...full,
        ...{ target: `ratio ≤ ${ENQUEUE_RATIO_MAX}`, isMet: (full.ratio ?? 0) <= ENQUEUE_RATIO_MAX },
      },
      plain("jobs.db with a million waiting jobs", megabytes(databaseBytes)),
      ...(await measureTrigger(bench)),
    ];
  },
};

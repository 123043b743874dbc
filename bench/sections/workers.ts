import { CONFIG, fill, KINDS, VARIED } from "../cases/lists.ts";
import { FAN_OUT_CONFIG, type FanOut, measureFanOut, SUBSCRIBERS } from "../cases/workers.ts";
import { type Load, runLoad } from "../support/load.ts";
import { type Running, startPlatform } from "../support/processes.ts";
import { processorTime } from "../support/processor-time.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { median, milliseconds, perSecond } from "../support/statistics.ts";

const WORKERS = 2;
const ROUNDS = 3;
const ROUND_S = 2;
const READ = ["GET one", "page 1 to 50, total=false", "range and a second condition, descending"];
const READS = KINDS.filter(({ name }) => READ.includes(name));

interface Measured {
  micros: number;
  perSecond: number;
}

const withWorkers = (workers: number): string =>
  CONFIG.replace("defineConfig({", `defineConfig({\n  server: { workers: ${workers} },`).replaceAll(
    "access: { read: true }",
    "access: { read: true, insert: true }",
  );

async function measure(server: Running, load: Load, directory: string): Promise<Measured> {
  let before = 0;
  const onWarm = () => {
    before = processorTime(server.pid);
  };
  const { requestsPerSecond, requests } = await runLoad(load, { seconds: ROUND_S, directory, onWarm });
  return { micros: (processorTime(server.pid) - before) / requests, perSecond: requestsPerSecond };
}

const figure = ({ micros, perSecond: rate }: Measured): string => `${micros.toFixed(0)} µs, ${perSecond(rate)}`;

async function compared(bench: Bench, name: string, loads: (server: Running) => Load, servers: [Running, Running]) {
  bench.note(name);
  const directory = bench.directory("load");
  const rounds: [Measured, Measured][] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const [many, one] = servers;
    rounds.push([await measure(many, loads(many), directory), await measure(one, loads(one), directory)]);
  }
  // Drops the first round, in which all are still being compiled.
  rounds.shift();
  const of = (index: 0 | 1): Measured => ({
    micros: median(rounds.map((round) => round[index].micros)),
    perSecond: median(rounds.map((round) => round[index].perSecond)),
  });
  const [many, one] = [of(0), of(1)];
  const result: Result = {
    ...{ name, measured: figure(many), p50: null, p99: null, floor: figure(one), ratio: many.micros / one.micros },
    ...{ target: null, isMet: null },
  };
  return result;
}

async function requests(bench: Bench): Promise<Result[]> {
  const started = await Promise.all(
    [WORKERS, 0].map(async (workers) => {
      const server = await startPlatform(bench.executable, bench.directory(`workers-${workers}`), withWorkers(workers));
      await fill(`${server.url}/api/db/shared/tables`);
      return server;
    }),
  );
  const [many, one] = started;
  if (many === undefined || one === undefined) throw new Error("two servers were started");
  try {
    const results: Result[] = [];
    for (const kind of READS) {
      const suffixes = Array.from({ length: VARIED }, (_, index) => kind.ours(index));
      const load = ({ url }: Running): Load => ({ url: `${url}/api/db/shared/tables/`, suffixes, isInOrder: true });
      results.push(await compared(bench, kind.name, load, [many, one]));
    }
    const insert = ({ url }: Running): Load => {
      const body = JSON.stringify({ name: "A maker", city: "Vienna" });
      return { url: `${url}/api/db/shared/tables/makers`, method: "POST", body };
    };
    results.push(await compared(bench, "insert, which workers pass on", insert, [many, one]));
    return results;
  } finally {
    for (const server of started) await server.stop();
  }
}

async function fanOut(bench: Bench): Promise<Result> {
  bench.note("changes for many subscribers");
  const measured = async (workers: number): Promise<FanOut> => {
    const server = await startPlatform(bench.executable, bench.directory(`fan-${workers}`), FAN_OUT_CONFIG(workers));
    try {
      return await measureFanOut(server);
    } finally {
      await server.stop();
    }
  };
  const [many, one] = [await measured(WORKERS), await measured(0)];
  const text = ({ p99, allUs, mainUs }: FanOut): string =>
    `${milliseconds(mainUs / 1000)} of the main process, ${milliseconds(allUs / 1000)} of all; p99 ${milliseconds(p99)}`;
  return {
    name: `a change for ${SUBSCRIBERS.toLocaleString("en")} subscribers`,
    measured: text(many),
    p50: milliseconds(many.p50),
    p99: milliseconds(many.p99),
    floor: text(one),
    ratio: many.mainUs / one.mainUs,
    target: null,
    isMet: null,
  };
}

export const workers: Section = {
  name: "workers",
  title: "Workers",
  about: `A server with ${WORKERS} workers beside one without, which is what stands as the floor: processor time of all processes for one request, and
requests per second, with 32 connections of wrk and each request another one, of the records of the lists above. In turns, medians of ${ROUNDS} rounds after one that
does not count; the ratio is that of the processor times. Then one change after another for ${SUBSCRIBERS.toLocaleString("en")} subscribers of a table: processor time for one change, of
which the ratio is that of the main processes, and the time from the request until a subscriber has it. Load generators and subscribers run on the same two processors.`,
  run: async (bench) => [...(await requests(bench)), await fanOut(bench)],
};

import { join, resolve } from "node:path";
import { CONFIG, fill, KINDS, type Kind, PAGE, RECORDS, VARIED } from "../cases/lists.ts";
import { type Load, runLoad } from "../support/load.ts";
import { type Running, startFloor, startPlatform } from "../support/processes.ts";
import { processorTime } from "../support/processor-time.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { median, perSecond } from "../support/statistics.ts";

const FLOOR = resolve(import.meta.dir, "../lists-floor.ts");
const ROUNDS = 3;
const ROUND_S = 1;
/** Maximum ratio of our processor time to the floor's. */
const TARGET = 1.5;

interface Measured {
  micros: number;
  perSecond: number;
}

async function measure(server: Running, load: Load, directory: string): Promise<Measured> {
  let before = 0;
  const onWarm = () => {
    before = processorTime(server.pid);
  };
  const { requestsPerSecond, requests } = await runLoad(load, { seconds: ROUND_S, directory, onWarm });
  return { micros: (processorTime(server.pid) - before) / requests, perSecond: requestsPerSecond };
}

const middle = (rounds: readonly Measured[]): Measured => ({
  micros: median(rounds.map(({ micros }) => micros)),
  perSecond: median(rounds.map((round) => round.perSecond)),
});

async function compared(bench: Bench, kind: Kind, ours: Running, floor: Running): Promise<Result> {
  bench.note(kind.name);
  const directory = bench.directory("load");
  const loadOf = (base: string, address: (index: number) => string): Load => ({
    url: base,
    suffixes: Array.from({ length: VARIED }, (_, index) => address(index)),
    isInOrder: true,
    ...(kind.connections === undefined ? {} : { connections: kind.connections }),
  });
  const own = loadOf(`${ours.url}/api/db/shared/tables/`, kind.ours);
  const bare = loadOf(`${floor.url}/`, kind.floor);
  const rounds: [Measured, Measured][] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    rounds.push([await measure(ours, own, directory), await measure(floor, bare, directory)]);
  }
  // Drops the first round, in which both are still being compiled.
  rounds.shift();
  const [measured, bound] = [middle(rounds.map(([one]) => one)), middle(rounds.map(([, one]) => one))];
  const ratio = measured.micros / bound.micros;
  const micros = (one: Measured) => `${one.micros.toFixed(0)} µs, ${perSecond(one.perSecond)}`;
  return {
    ...{ name: kind.name, measured: micros(measured), p50: null, p99: null, floor: micros(bound), ratio },
    ...{ target: `≤ ${TARGET} × the floor`, isMet: ratio <= TARGET },
  };
}

export const lists: Section = {
  name: "lists",
  title: "Lists",
  about: `${RECORDS.toLocaleString("en")} records of some 550 bytes, ${PAGE} to a page, 32 connections of wrk, and each request another one, so that no kept answer helps, but in the
row that says so. The floor is a bare \`Bun.serve\` with the best statement for what is asked, prepared once, as much page cache, and \`JSON.stringify\`
(\`bench/lists-floor.ts\`). Measured is the processor time of
the whole process for one request, and the requests per second; the ratio is that of the processor times. In turns, medians of ${ROUNDS} rounds after one that does not count.`,
  async run(bench) {
    const directory = bench.directory("lists");
    const platform = await startPlatform(bench.executable, directory, CONFIG);
    try {
      await fill(`${platform.url}/api/db/shared/tables`);
      const floor = await startFloor(join(directory, "data", "databases", "shared.db"), directory, FLOOR);
      try {
        const results: Result[] = [];
        for (const kind of KINDS) results.push(await compared(bench, kind, platform, floor));
        return results;
      } finally {
        await floor.stop();
      }
    } finally {
      await platform.stop();
    }
  },
};

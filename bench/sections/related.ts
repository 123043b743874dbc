import { compare } from "../support/compare.ts";
import { CONNECTIONS } from "../support/load.ts";
import { SERVICE_KEY, startPlatform } from "../support/processes.ts";
import type { Result, Section } from "../support/section.ts";
import { median, milliseconds } from "../support/statistics.ts";

const ROWS = 100_000;
const POSTS = 10_000;
const PEOPLE = 1_000;
const TEAMS = 50;
const FILLED_AT_ONCE = 500;
const PAGES = 2_000;
const REPEATS = 40;
const STATUSES = 10;
const MINUTES_APART = 10;
/** Target: an expansion of two references costs at most 2.5 times the list. */
const EXPANDED_RATIO_MIN = 0.4;
const AGGREGATE_MAX_MS = 60;

const CONFIG = `export default { databases: { shared: { tables: {
  people: { schema: { name: { type: "string" }, bio: { type: "text" } }, access: { read: true } },
  teams: { schema: { name: { type: "string" } }, access: { read: true } },
  posts: { schema: { title: { type: "string" }, body: { type: "text" }, author: { type: "string", references: "people" },
    team: { type: "string", references: "teams" } }, access: { read: true } },
  tasks: { schema: { body: { type: "text" }, status: { type: "string" }, points: { type: "integer" }, due: { type: "datetime" } },
    indexes: [{ fields: ["status"] }], access: { read: true } },
} } } };
`;

async function fill(table: string, count: number, recordAt: (index: number) => object): Promise<void> {
  const headers = { "x-platform-service-key": SERVICE_KEY, "content-type": "application/json" };
  for (let index = 0; index < count; index += FILLED_AT_ONCE) {
    const length = Math.min(FILLED_AT_ONCE, count - index);
    const inserts = Array.from({ length }, (_, offset) => recordAt(index + offset));
    const response = await fetch(`${table}/batch`, { method: "POST", headers, body: JSON.stringify({ inserts }) });
    if (!response.ok) throw new Error(`${table} answered ${response.status}: ${await response.text()}`);
  }
}

const TEXT = "A paragraph of text that says what happened, to whom, and what came of it in the end. ";

const postId = (index: number): string => `post${String(index).padStart(5, "0")}`;

async function fillAll(tables: string): Promise<void> {
  await fill(`${tables}/people`, PEOPLE, (n) => ({ id: `p${n}`, name: `Person ${n}`, bio: TEXT }));
  await fill(`${tables}/teams`, TEAMS, (n) => ({ id: `t${n}`, name: `Team ${n}` }));
  await fill(`${tables}/posts`, POSTS, (n) => ({
    id: postId(n),
    title: `Post ${n}: what happened on the day`,
    body: TEXT.repeat(3),
    author: `p${(n * 7919) % PEOPLE}`,
    team: `t${n % TEAMS}`,
  }));
  await fill(`${tables}/tasks`, ROWS, (n) => ({
    body: TEXT.repeat(2),
    status: `s${n % STATUSES}`,
    points: n % 100,
    due: new Date(Date.UTC(2024, 0, 1, 0, n * MINUTES_APART)).toISOString(),
  }));
}

/** Measures sequential requests. */
async function aggregate(name: string, url: string, maxMs: number | null): Promise<Result> {
  const taken: number[] = [];
  for (let index = 0; index < REPEATS; index++) {
    const startedAt = performance.now();
    const response = await fetch(url);
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`${url} answered ${response.status}`);
    taken.push(performance.now() - startedAt);
  }
  taken.sort((a, b) => a - b);
  const p50 = median(taken);
  return {
    name,
    measured: milliseconds(p50),
    p50: milliseconds(p50),
    p99: milliseconds(taken.at(-1) ?? 0),
    floor: null,
    ratio: null,
    target: maxMs === null ? null : `< ${maxMs} ms`,
    isMet: maxMs === null ? null : p50 < maxMs,
  };
}

export const relatedRecords: Section = {
  name: "related",
  title: "Tables: expand and aggregate",
  about: `A list of 20 of ${POSTS.toLocaleString("en")} records, ${CONNECTIONS} connections of wrk; another page each time; the floor is the same pages without \`expand\`, in turns, five rounds of
three seconds each; medians. Aggregates over ${ROWS.toLocaleString("en")} records of 300 bytes: ${REPEATS} requests one after the other, in a query process; p99 is the slowest.`,
  async run(bench) {
    const platform = await startPlatform(bench.executable, bench.directory("related"), CONFIG);
    try {
      const tables = `${platform.url}/api/db/shared/tables`;
      await fillAll(tables);
      const list = `${tables}/posts?limit=20`;
      // A different page each time: a repeated list without expand is answered from the cache.
      const pages = Array.from({ length: PAGES }, (_, index) => `&after=${postId((index * 7919) % (POSTS - 20))}`);
      const expanded = await compare(bench, {
        name: "list of 20, two references expanded",
        platform: { url: `${list}&expand=author,team`, suffixes: pages },
        floor: { url: list, suffixes: pages },
        targetRatio: EXPANDED_RATIO_MIN,
      });
      bench.note("aggregates");
      const groups = (query: string) => `${tables}/tasks/aggregate?${query}`;
      return [
        expanded,
        await aggregate("count by an indexed field", groups("groupBy=status"), AGGREGATE_MAX_MS),
        await aggregate("count and sum by an indexed field", groups("groupBy=status&select=count(),sum(points)"), null),
        await aggregate("count by day in Europe/Berlin", groups("groupBy=due:day&timezone=Europe/Berlin"), null),
      ];
    } finally {
      await platform.stop();
    }
  },
};
